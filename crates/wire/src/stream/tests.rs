//! Tests of rejected status and command packets, and of counters that wrap.

use super::*;
use crate::{Epid, Error, Width, chdr};

const STATUS: StatusRepr = StatusRepr {
    dst_epid: Epid(2),
    seq: 1,
    src_epid: Epid(3),
    status: StreamCondition::SequenceError,
    capacity_bytes: MAX_CAPACITY_BYTES,
    capacity_packets: PACKETS_UNLIMITED,
    count_packets: 5,
    count_bytes: u64::MAX,
    buffer_info: 0xBEEF,
    error_info: 0x1234_5678_9ABC,
};

const COMMAND: CommandRepr = CommandRepr {
    dst_epid: Epid(3),
    seq: 9,
    src_epid: Epid(2),
    op: CommandOp::Ping,
    op_data: 0xF,
    packets: 4,
    bytes: 0x1780,
};

fn status_bytes(width: Width) -> Vec<u8> {
    let mut buf = vec![0xAA; StatusRepr::packet_len(width)];
    STATUS.emit(width, &mut buf).unwrap();
    buf
}

#[test]
fn counters_wrap_and_other_fields_do_not() {
    let mut buf = [0; 64];
    let wrapped = StatusRepr { count_packets: (3 << 40) + 5, ..STATUS };
    wrapped.emit(Width::W64, &mut buf).unwrap();
    assert_eq!(StatusRepr::parse(&chdr::Packet::parse(&buf, Width::W64).unwrap()), Ok(STATUS));
    let wrapped = CommandRepr { packets: (7 << 40) + 4, ..COMMAND };
    wrapped.emit(Width::W64, &mut buf).unwrap();
    assert_eq!(CommandRepr::parse(&chdr::Packet::parse(&buf, Width::W64).unwrap()), Ok(COMMAND));

    for too_much in [
        StatusRepr { capacity_bytes: 1 << 40, ..STATUS },
        StatusRepr { capacity_packets: 1 << 24, ..STATUS },
        StatusRepr { error_info: 1 << 48, ..STATUS },
    ] {
        assert_eq!(too_much.emit(Width::W64, &mut buf), Err(Error::FieldOverflow));
    }
    let too_much = CommandRepr { op_data: 16, ..COMMAND };
    assert_eq!(too_much.emit(Width::W64, &mut buf), Err(Error::FieldOverflow));
}

#[test]
fn the_payload_follows_the_header_word_without_padding_between_its_words() {
    for width in Width::ALL {
        let bytes = status_bytes(width);
        assert_eq!(bytes.len(), width.bytes() + 32);
        assert_eq!(bytes[width.bytes()..][..4], [3, 0, 2, 0xFF]);
        assert_eq!(bytes[width.bytes() + 16..][..8], [0xFF; 8]);
    }
}

#[test]
fn undefined_codes_are_refused() {
    let mut bytes = status_bytes(Width::W64);
    for code in 5..16 {
        bytes[10] = code;
        let packet = chdr::Packet::parse(&bytes, Width::W64).unwrap();
        assert_eq!(StatusRepr::parse(&packet), Err(Error::UnknownStatus));
    }
    let mut bytes = [0; 24];
    COMMAND.emit(Width::W64, &mut bytes).unwrap();
    for code in 3..16 {
        bytes[10] = code;
        let packet = chdr::Packet::parse(&bytes, Width::W64).unwrap();
        assert_eq!(CommandRepr::parse(&packet), Err(Error::UnknownOp));
    }
}

#[test]
fn a_short_payload_or_another_type_is_refused() {
    let mut bytes = status_bytes(Width::W64);
    for length in 8..bytes.len() {
        bytes[2] = length as u8;
        let packet = chdr::Packet::parse(&bytes, Width::W64).unwrap();
        assert_eq!(StatusRepr::parse(&packet), Err(Error::PayloadTooShort), "{length}");
        assert_eq!(CommandRepr::parse(&packet), Err(Error::WrongPacketType));
    }
    let mut bytes = [0; 24];
    COMMAND.emit(Width::W64, &mut bytes).unwrap();
    for length in 8..24 {
        bytes[2] = length;
        let packet = chdr::Packet::parse(&bytes, Width::W64).unwrap();
        assert_eq!(CommandRepr::parse(&packet), Err(Error::PayloadTooShort), "{length}");
        assert_eq!(StatusRepr::parse(&packet), Err(Error::WrongPacketType));
    }
}

#[test]
fn both_describe_themselves() {
    assert_eq!(
        STATUS.to_string(),
        "stream status 3 to 2 seq 1 SequenceError consumed 18446744073709551615 B / 5 pkts \
         of 1099511627775 B / 16777215 pkts"
    );
    assert_eq!(COMMAND.to_string(), "stream command 2 to 3 seq 9 Ping 6016 B / 4 pkts");
}

#[test]
fn the_detail_of_a_sequence_error_says_what_came_and_what_was_due() {
    let kind = chdr::PacketType::TimedData;
    let gap = SequenceGap { kind, expected: 0xFFFF, actual: 3 };
    assert_eq!(gap.to_info(), 0x7_FFFF_0003);
    assert_eq!(SequenceGap::from_info(gap.to_info()), Some(gap));
    // Newer images use the bits above.
    assert_eq!(SequenceGap::from_info(0x3000_0000_0000 | gap.to_info()), Some(gap));
    for nothing in [0, 0x7_0003_0003, 0x1_0001_0003, 0x5_0001_0003] {
        assert_eq!(SequenceGap::from_info(nothing), None, "{nothing:#x}");
    }
}

#[test]
fn the_detail_of_an_endpoint_is_its_place() {
    // Recorded: the answer to command 3 behind 15 data packets, and a periodic report.
    for (info, period, expected, command) in
        [(0xF_0003, false, 15, 3), (0x8000_0009_0001, true, 9, 1)]
    {
        let place = StreamPlace { period, expected, command };
        assert_eq!((StreamPlace::from_info(info), place.to_info()), (place, info));
    }
}
