//! Parses and emits packets that UHD 4.3's codec made.

use millstream_wire::ctrl::{CtrlRepr, DataWords, Op as CtrlOp};
use millstream_wire::mgmt::{self, MgmtRepr};
use millstream_wire::stream::{
    CommandOp, CommandRepr, PACKETS_UNLIMITED, StatusRepr, StreamCondition,
};
use millstream_wire::{Epid, Width, chdr};

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// Asserts that `golden` parses to `repr` and that `repr` emits exactly `golden`.
macro_rules! both_directions {
    ($repr:expr, $parse:path, $width:expr, $golden:expr) => {{
        let (repr, golden) = ($repr, $golden);
        let packet = chdr::Packet::parse(&golden, $width).unwrap();
        assert_eq!($parse(&packet).unwrap(), repr);
        let mut buf = vec![0xAA; golden.len() + 8];
        let len = repr.emit($width, &mut buf).unwrap();
        assert_eq!(buf[..len], golden);
        assert!(buf[len..].iter().all(|&b| b == 0xAA), "written beyond the packet");
        assert!(repr.emit($width, &mut buf[..golden.len() - 1]).is_err());
    }};
}

fn control_write() -> CtrlRepr {
    CtrlRepr {
        dst_epid: Epid(2),
        seq: 7,
        src_epid: Epid(1),
        dst_port: 3,
        src_port: 3,
        ctrl_seq: 5,
        address: 0x1014,
        op: CtrlOp::Write,
        data: DataWords::one(0x8000_0001),
        ..CtrlRepr::default()
    }
}

#[test]
fn control_write_without_time() {
    let golden = bytes("02 00 18 00 07 00 80 00  03 0c 10 05 01 00 00 00  14 10 f0 01 01 00 00 80");
    both_directions!(control_write(), CtrlRepr::parse, Width::W64, golden);
}

#[test]
fn control_write_with_time() {
    let golden = bytes(
        "02 00 20 00 07 00 80 00  03 0c 10 45 01 00 00 00  89 67 45 23 01 00 00 00
         14 10 f0 01 01 00 00 80",
    );
    let repr = CtrlRepr { timestamp: Some(0x1_2345_6789), ..control_write() };
    both_directions!(repr, CtrlRepr::parse, Width::W64, golden);
}

#[test]
fn control_write_at_256_bits() {
    let mut golden = bytes("02 00 30 00 07 00 80 00");
    golden.extend([0; 24]);
    golden.extend(bytes("03 0c 10 05 01 00 00 00  14 10 f0 01 01 00 00 80"));
    both_directions!(control_write(), CtrlRepr::parse, Width::W256, golden);
}

#[test]
fn stream_status() {
    let golden = bytes(
        "02 00 28 00 01 00 20 00  03 00 00 a0 25 26 00 00  ff ff ff 07 00 00 00 00
         e8 28 00 00 00 00 00 00  00 00 00 00 00 00 00 00",
    );
    let repr = StatusRepr {
        dst_epid: Epid(2),
        seq: 1,
        src_epid: Epid(3),
        status: StreamCondition::Ok,
        capacity_bytes: 2_500_000,
        capacity_packets: PACKETS_UNLIMITED,
        count_packets: 7,
        count_bytes: 0x28e8,
        ..StatusRepr::default()
    };
    both_directions!(repr, StatusRepr::parse, Width::W64, golden);
}

#[test]
fn stream_command() {
    let golden = bytes("03 00 18 00 00 00 40 00  02 00 02 04 00 00 00 00  80 17 00 00 00 00 00 00");
    let repr = CommandRepr {
        dst_epid: Epid(3),
        src_epid: Epid(2),
        op: CommandOp::Resync,
        packets: 4,
        bytes: 0x1780,
        ..CommandRepr::default()
    };
    both_directions!(repr, CommandRepr::parse, Width::W64, golden);
}

#[test]
fn management() {
    let golden = bytes(
        "00 00 28 00 00 00 00 00  01 00 02 00 00 00 00 01  01 04 00 00 00 00 00 00
         00 03 00 00 00 00 00 00  00 00 00 00 00 00 00 00",
    );
    let repr = MgmtRepr::request(Epid(1), 0)
        .hop(&[mgmt::Op::InfoReq, mgmt::Op::Return])
        .and_then(|repr| repr.hop(&[mgmt::Op::Nop]))
        .unwrap();
    assert_eq!(repr.version, mgmt::PROTOCOL_VERSION);
    assert_eq!(format!("{repr:?}"), "management 1 to 0 seq 0 [InfoReq, Return] [Nop]");
    both_directions!(repr, MgmtRepr::parse, Width::W64, golden);
}
