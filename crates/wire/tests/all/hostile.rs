//! Tests with arbitrary bytes: no parser panics, and accepted packets can be emitted again.

use millstream_wire::Width;
use millstream_wire::chdr::{Header, PacketType};
use proptest::collection::vec;
use proptest::prelude::*;

fn exercise_all(bytes: &[u8]) {
    crate::exercise::chdr(bytes);
    crate::exercise::stream(bytes);
    crate::exercise::ctrl(bytes);
    crate::exercise::mgmt(bytes);
    crate::exercise::mpm(bytes);
    crate::exercise::msgpack(bytes);
    crate::exercise::brokers(bytes);
}

fn packet_type() -> impl Strategy<Value = PacketType> {
    use PacketType::*;
    prop::sample::select(vec![Management, StreamStatus, StreamCommand, Control, Data, TimedData])
}

prop_compose! {
    /// Random bytes behind a header that fits them, so that the inner parsers are reached.
    fn framed()(
        kind in packet_type(),
        num_mdata in prop_oneof![4 => Just(0u8), 1 => 0u8..32],
        mut bytes in vec(any::<u8>(), 8..512),
        cut in 0usize..12,
        width in prop::sample::select(&Width::ALL[..]),
    ) -> Vec<u8> {
        let length = bytes.len().saturating_sub(cut) as u16;
        let header = Header { kind, num_mdata, length, ..Header::default() };
        bytes[..8].copy_from_slice(&header.to_word().unwrap().to_le_bytes());
        // Set the width code of a management packet to a matching one, and reduce its hops.
        let head = width.bytes();
        if let Some(word) = bytes.get_mut(head..head + 8) {
            word[2] %= 8;
            word[3] &= 0xFC;
            word[5] = (word[5] & 0x1F) | width.code() << 5;
        }
        bytes
    }
}

/// Pieces of what brokers send.
const ANSWERS: [&[u8]; 9] = [
    b"INFO {}\r\n",
    b"PING\r\n",
    b"-ERR 'x'\r\n",
    b"+ok\n",
    b"\x20\x02\0\0",
    b"\x40\x02\0\x01",
    b"\xd0\0",
    b"P",
    b"\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 4096 }))]

    #[test]
    fn arbitrary_bytes_are_parsed_or_refused(bytes in vec(any::<u8>(), 0..256)) {
        exercise_all(&bytes);
    }

    #[test]
    fn arbitrary_payloads_are_parsed_or_refused(bytes in framed()) {
        exercise_all(&bytes);
    }

    #[test]
    fn arbitrary_answers_of_brokers_are_parsed_or_refused(
        parts in vec(prop::sample::select(&ANSWERS[..]), 0..20),
    ) {
        crate::exercise::brokers(&parts.concat());
    }

    #[test]
    fn arbitrary_discovery_text_is_parsed_or_refused(
        fields in "[ -~\u{e9}]{0,80}", nuls in 0usize..4
    ) {
        let mut bytes = format!("USRP-MPM;{fields}").into_bytes();
        bytes.resize(bytes.len() + nuls, 0);
        exercise_all(&bytes);
    }
}
