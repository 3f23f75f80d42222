//! Tests that emitted packets are read back, for every format at every width.

use crate::exercise;
use millstream_wire::chdr::{DataRepr, Header, Packet, PacketType, round_to_word};
use millstream_wire::ctrl::{self, CtrlRepr, DataWords};
use millstream_wire::mgmt::{MgmtRepr, Node, NodeInfo, Op};
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr, StreamCondition};
use millstream_wire::{Epid, Error, Width};
use proptest::collection::vec;
use proptest::prelude::*;

fn width() -> impl Strategy<Value = Width> {
    prop::sample::select(&Width::ALL[..])
}

fn epid() -> impl Strategy<Value = Epid> {
    any::<u16>().prop_map(Epid)
}

/// Returns the places of bytes to damage, with the changes.
fn damage() -> impl Strategy<Value = Vec<(usize, u8)>> {
    vec(any::<(usize, u8)>(), 1..16)
}

prop_compose! {
    fn status()(
        (dst_epid, seq, src_epid) in (epid(), any::<u16>(), epid()),
        status in (0u8..5).prop_map(|code| StreamCondition::from_code(code).unwrap()),
        capacity_bytes in 0u64..1 << 40,
        capacity_packets in 0u32..1 << 24,
        count_packets in 0u64..1 << 40,
        (count_bytes, buffer_info) in any::<(u64, u16)>(),
        error_info in 0u64..1 << 48,
    ) -> StatusRepr {
        StatusRepr {
            dst_epid, seq, src_epid, status, capacity_bytes, capacity_packets, count_packets,
            count_bytes, buffer_info, error_info,
        }
    }
}

prop_compose! {
    fn command()(
        (dst_epid, seq, src_epid) in (epid(), any::<u16>(), epid()),
        op in (0u8..3).prop_map(|code| CommandOp::from_code(code).unwrap()),
        op_data in 0u8..16,
        packets in 0u64..1 << 40,
        bytes in any::<u64>(),
    ) -> CommandRepr {
        CommandRepr { dst_epid, seq, src_epid, op, op_data, packets, bytes }
    }
}

prop_compose! {
    fn control()(
        (dst_epid, seq, src_epid) in (epid(), any::<u16>(), epid()),
        (dst_port, src_port, ctrl_seq) in (0u16..1 << 10, 0u16..1 << 10, 0u8..64),
        (is_ack, timestamp) in any::<(bool, Option<u64>)>(),
        (address, byte_enables) in (0u32..1 << 20, 0u8..16),
        (op, status) in (0u8..16, 0u8..4),
        data in vec(any::<u32>(), 1..=15),
    ) -> CtrlRepr {
        CtrlRepr {
            dst_epid, seq, src_epid, dst_port, src_port, ctrl_seq, is_ack, timestamp, address,
            byte_enables,
            op: ctrl::Op::from_code(op),
            status: ctrl::ControlStatus::from_code(status),
            data: DataWords::new(&data).unwrap(),
            read_words: 0,
        }
    }
}

fn node() -> impl Strategy<Value = Node> {
    let endpoint = (any::<(bool, bool, bool)>(), 0u8..64, 0u8..64);
    prop_oneof![
        any::<(u8, u8)>().prop_map(|(ports, transports)| Node::Crossbar { ports, transports }),
        endpoint.prop_map(|((control, data, reports_errors), inputs, outputs)| {
            Node::StreamEndpoint { control, data, inputs, outputs, reports_errors }
        }),
        any::<u8>().prop_map(|subtype| Node::Transport { subtype }),
        (4u8..16, 0u32..1 << 18).prop_map(|(code, extended)| Node::Other { code, extended }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        Just(Op::Nop),
        Just(Op::Advertise),
        any::<u16>().prop_map(Op::SelDest),
        Just(Op::Return),
        Just(Op::InfoReq),
        (any::<u16>(), 0u16..1 << 10, node()).prop_map(|(device_id, instance, node)| {
            Op::InfoResp(NodeInfo { device_id, instance, node })
        }),
        any::<(u16, u32)>().prop_map(|(address, value)| Op::CfgWrite { address, value }),
        any::<u16>().prop_map(|address| Op::CfgRead { address }),
        any::<(u16, u32)>().prop_map(|(address, value)| Op::CfgReadResp { address, value }),
    ]
}

prop_compose! {
    fn management()(
        (dst_epid, seq, src_epid) in (epid(), any::<u16>(), epid()),
        version in any::<u16>(),
        hops in vec(vec(op(), 1..9), 0..8),
    ) -> MgmtRepr {
        let mut repr = MgmtRepr::request(src_epid, seq);
        (repr.dst_epid, repr.version) = (dst_epid, version);
        for hop in &hops {
            repr.push_hop(hop).unwrap();
        }
        repr
    }
}

/// Emits into a dirty buffer of exactly the right size, reads back, and runs the fuzz harness on
/// the packet, whole and damaged.
macro_rules! check {
    ($repr:expr, $ty:ty, $width:expr, $len:expr, $harness:path, $damage:expr) => {{
        let mut buf = vec![0xAA; $len];
        prop_assert_eq!($repr.emit($width, &mut buf), Ok(buf.len()));
        let packet = Packet::parse(&buf, $width).unwrap();
        prop_assert_eq!(<$ty>::parse(&packet), Ok($repr));
        $harness(&buf);
        // Every missing byte is detected, with or without a `Length`.
        for short in 0..buf.len() {
            prop_assert_eq!(Packet::parse(&buf[..short], $width), Err(Error::Truncated));
        }
        for (at, flip) in $damage {
            let at = at % buf.len();
            buf[at] ^= flip;
            $harness(&buf);
        }
    }};
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 1024 }))]

    #[test]
    fn stream_status_is_read_back(repr in status(), width in width(), damage in damage()) {
        check!(repr, StatusRepr, width, StatusRepr::packet_len(width), exercise::stream, damage);
    }

    #[test]
    fn stream_command_is_read_back(repr in command(), width in width(), damage in damage()) {
        check!(repr, CommandRepr, width, CommandRepr::packet_len(width), exercise::stream, damage);
    }

    #[test]
    fn control_is_read_back(repr in control(), width in width(), damage in damage()) {
        check!(repr, CtrlRepr, width, repr.packet_len(width), exercise::ctrl, damage);
    }

    #[test]
    fn management_is_read_back(repr in management(), width in width(), damage in damage()) {
        check!(repr.clone(), MgmtRepr, width, repr.packet_len(width), exercise::mgmt, damage);
    }

    #[test]
    fn data_is_read_back(
        (dst_epid, seq, timestamp) in (epid(), any::<u16>(), any::<Option<u64>>()),
        (eob, eov) in any::<(bool, bool)>(),
        payload in vec(any::<u8>(), 0..200),
        surplus in 0usize..20,
        width in width(),
    ) {
        let payload_len = payload.len();
        let repr = DataRepr { dst_epid, seq, timestamp, eob, eov, payload_len };
        let len = repr.packet_len(width);
        let mut buf = vec![0xAA; len + surplus];
        let at = repr.emit(width, &mut buf).unwrap();
        buf[at..len].copy_from_slice(&payload);
        let packet = Packet::parse(&buf, width).unwrap();
        prop_assert_eq!(DataRepr::parse(&packet), Ok(repr));
        prop_assert_eq!(packet.payload(), &payload[..]);
        prop_assert_eq!(packet.flow_len(), round_to_word(len, width));
        prop_assert_eq!(packet.flow_len() % width.bytes(), 0);
        exercise::chdr(&buf);
    }

    #[test]
    fn metadata_lies_between_header_and_payload(
        num_mdata in 0u8..32,
        payload_len in 0u16..64,
        (timed, timestamp) in any::<(bool, u64)>(),
        width in width(),
    ) {
        let kind = if timed { PacketType::TimedData } else { PacketType::Data };
        let mut header = Header { kind, num_mdata, ..Header::default() };
        let payload_at = header.payload_offset(width);
        header.length = payload_at as u16 + payload_len;
        let mut buf = vec![0xEE; usize::from(header.length)];
        let at = header.emit(timestamp, width, &mut buf).unwrap();
        buf[at..payload_at].fill(0xDD);
        let packet = Packet::parse(&buf, width).unwrap();
        prop_assert_eq!(packet.timestamp(), timed.then_some(timestamp));
        prop_assert!(packet.metadata().iter().all(|&b| b == 0xDD));
        prop_assert_eq!(packet.metadata().len(), usize::from(num_mdata) * width.bytes());
        prop_assert!(packet.payload().iter().all(|&b| b == 0xEE));
        prop_assert_eq!(packet.payload().len(), usize::from(payload_len));
    }
}
