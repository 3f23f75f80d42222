//! Arbitrary histories: the stack neither panics nor leaves a frame uncounted.

use millstream_net::stack::{Inbound, ReceivedFrame};
use proptest::collection::vec;
use proptest::prelude::*;

/// A request, a reply and a datagram, each for the stack of the harness.
const FRAMES: [&[u8]; 3] = [
    b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x07\x08\x06\0\x01\x08\0\x06\x04\0\x01\x02\0\0\0\0\x07\
      \x0a\0\0\x07\0\0\0\0\0\0\x0a\0\0\x01",
    b"\x02\0\0\0\0\x01\x02\0\0\0\0\x07\x08\x06\0\x01\x08\0\x06\x04\0\x02\x02\0\0\0\0\x07\
      \x0a\0\0\x07\x02\0\0\0\0\x01\x0a\0\0\x01",
    b"\x02\0\0\0\0\x01\x02\0\0\0\0\x07\x08\0\x45\0\0\x1e\0\0\x40\0\x40\x11\x26\xc8\x0a\0\0\x07\
      \x0a\0\0\x01\0\x05\x17\x70\0\x0a\0\0hi",
];

fn step() -> impl Strategy<Value = Vec<u8>> {
    let frame = (any::<u8>(), 0usize..3, vec((0usize..44, any::<u8>()), 0..3));
    let frame = frame.prop_map(|(how, which, damage)| {
        let mut bytes = vec![how & !7, FRAMES[which].len() as u8];
        bytes.extend(FRAMES[which]);
        for (at, value) in damage {
            let end = bytes.len() - 2;
            bytes[2 + at % end] ^= value;
        }
        bytes
    });
    prop_oneof![2 => frame, 1 => vec(any::<u8>(), 2..20)]
}

#[test]
fn undamaged_frames_reach_what_they_are_for() {
    let mut stack = crate::exercise::stack(1, 7);
    while stack.poll(0).is_some() {}
    let outcomes = FRAMES.map(|frame| {
        stack.receive(ReceivedFrame { parts: &[frame], vlan: None, checksum_trusted: false }, 0)
    });
    assert!(matches!(outcomes[0], Inbound::Answer(_)), "{outcomes:?}");
    assert_eq!((&outcomes[1], stack.counters().rx_arp), (&Inbound::Done, 2));
    assert!(matches!(outcomes[2], Inbound::Udp(_)), "{outcomes:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_history_is_survived(start in any::<[u8; 2]>(), steps in vec(step(), 0..40)) {
        let mut bytes = start.to_vec();
        bytes.extend(steps.concat());
        crate::exercise::history(&bytes);
    }
}
