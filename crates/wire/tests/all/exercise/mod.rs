//! One harness per parser, for any bytes: property tests and fuzz targets share it.
//!
//! Each function passes the bytes to a parser, calls every accessor of an accepted packet, and
//! asserts that its emitted bytes are read back. It panics only when the crate's contract is
//! broken.

#![allow(dead_code, unused_imports, reason = "each target calls one of these")]

mod brokers;
mod internet;

use millstream_wire::chdr::{self, DataRepr, Header, Packet};
use millstream_wire::ctrl::{CtrlRepr, Protocol};
use millstream_wire::mgmt::{ForwardHops, MAX_OPS, MgmtRepr, NodeInfo, Op};
use millstream_wire::mpm::{self, DiscoveryReply, DiscoveryRequest};
use millstream_wire::msgpack::{MessageLimits, Scan, scan};
use millstream_wire::stream::{CommandRepr, StatusRepr};
use millstream_wire::{Error, Width};

pub use brokers::brokers;
pub use internet::ethernet;

/// Large enough for any control, stream or management packet held in a `Repr`.
const SCRATCH: usize = 8192;

/// The CHDR header and view, at every width.
pub fn chdr(bytes: &[u8]) {
    for width in Width::ALL {
        let Ok(packet) = Packet::parse(bytes, width) else { continue };
        let header = packet.header();
        let length = usize::from(header.length);
        assert_eq!(packet.kind(), header.kind);
        assert_eq!(packet.width(), width);
        assert_eq!(packet.timestamp().is_some(), header.kind == chdr::PacketType::TimedData);
        assert_eq!(packet.metadata().len(), usize::from(header.num_mdata) * width.bytes());
        assert_eq!(header.payload_offset(width) + packet.payload().len(), length);
        assert!(packet.flow_len() >= length && packet.flow_len() - length < width.bytes());
        assert!(!packet.to_string().is_empty() && !header.to_string().is_empty());
        header_is_emitted_again(bytes, &packet);
        // Bytes behind `Length` change nothing; one byte less is too few.
        assert_eq!(Packet::parse(&bytes[..length], width), Ok(packet));
        assert_eq!(Packet::parse(&bytes[..length - 1], width), Err(Error::Truncated));
        data(&packet);
    }
}

fn header_is_emitted_again(bytes: &[u8], packet: &Packet<'_>) {
    let (header, width) = (packet.header(), packet.width());
    let mut buf = [0xAA; 64];
    let len = header.emit(packet.timestamp().unwrap_or(0), width, &mut buf).unwrap();
    assert_eq!(len, header.len(width));
    assert_eq!(buf[..8], bytes[..8]);
    let word = u64::from_le_bytes(buf[..8].try_into().unwrap());
    assert_eq!(Header::from_word(word), Ok(*header));
}

fn data(packet: &Packet<'_>) {
    let Ok(repr) = DataRepr::parse(packet) else { return };
    let width = packet.width();
    assert!(!repr.to_string().is_empty());
    let mut frame = vec![0xAA; repr.packet_len(width)];
    let at = repr.emit(width, &mut frame).unwrap();
    assert_eq!(at, repr.header_len(width));
    frame[at..].copy_from_slice(packet.payload());
    let again = Packet::parse(&frame, width).unwrap();
    assert_eq!(DataRepr::parse(&again), Ok(repr));
    assert_eq!(again.payload(), packet.payload());
}

/// Asserts that an accepted `Repr` is emitted to `packet_len` bytes and read back.
macro_rules! read_back {
    ($repr:expr, $ty:ty, $width:expr, $len:expr) => {{
        let repr: $ty = $repr;
        let mut buf = [0xAA; SCRATCH];
        let len = repr.emit($width, &mut buf).unwrap();
        assert_eq!(len, $len);
        let packet = Packet::parse(&buf[..len], $width).unwrap();
        assert_eq!(usize::from(packet.header().length), len);
        assert_eq!(<$ty>::parse(&packet), Ok(repr.clone()));
        assert_eq!(repr.emit($width, &mut buf[..len - 1]), Err(Error::BufferTooSmall));
    }};
}

/// Stream status and stream command, at every width.
pub fn stream(bytes: &[u8]) {
    for width in Width::ALL {
        let Ok(packet) = Packet::parse(bytes, width) else { continue };
        if let Ok(repr) = StatusRepr::parse(&packet) {
            assert!(!repr.to_string().is_empty());
            read_back!(repr, StatusRepr, width, StatusRepr::packet_len(width));
        }
        if let Ok(repr) = CommandRepr::parse(&packet) {
            assert!(!repr.to_string().is_empty());
            read_back!(repr, CommandRepr, width, CommandRepr::packet_len(width));
        }
    }
}

/// Control, at every width.
pub fn ctrl(bytes: &[u8]) {
    for width in Width::ALL {
        let Ok(packet) = Packet::parse(bytes, width) else { continue };
        ctrl_2(&packet, width);
        let Ok(repr) = CtrlRepr::parse(&packet) else { continue };
        assert!(!repr.to_string().is_empty() && !format!("{repr:?}").is_empty());
        assert!((1..=15).contains(&repr.data.len()));
        assert_eq!(repr.data.first(), repr.data[0]);
        assert!(repr.credit_words() <= 2 + 2 + 15);
        let ack = repr.ack(1, repr.status, repr.data);
        assert_eq!((ack.dst_epid, ack.src_epid), (repr.src_epid, repr.dst_epid));
        read_back!(repr, CtrlRepr, width, repr.packet_len(width));
    }
}

/// Control of protocol 2.0.
fn ctrl_2(packet: &Packet<'_>, width: Width) {
    let Ok(repr) = Protocol::V2.parse(packet) else { return };
    assert!(!repr.to_string().is_empty() && !format!("{repr:?}").is_empty());
    let mut buf = [0xAA; SCRATCH];
    let len = Protocol::V2.emit(&repr, width, &mut buf).unwrap();
    assert_eq!(len, Protocol::V2.packet_len(&repr, width));
    let again = Packet::parse(&buf[..len], width).unwrap();
    assert_eq!(Protocol::V2.parse(&again), Ok(repr));
    let short = Protocol::V2.emit(&repr, width, &mut buf[..len - 1]);
    assert_eq!(short, Err(Error::BufferTooSmall));
}

/// Management, at every width: `Repr`, and a node that executes one hop after another.
pub fn mgmt(bytes: &[u8]) {
    for width in Width::ALL {
        let Ok(packet) = Packet::parse(bytes, width) else { continue };
        let Ok(repr) = MgmtRepr::parse(&packet) else { continue };
        let ops: usize = repr.hops().map(<[Op]>::len).sum();
        assert!(ops <= MAX_OPS && !format!("{repr:?}").is_empty());
        assert!(repr.hops().all(|hop| !hop.is_empty()));
        execute_all(repr, width);
    }
}

fn execute_all(mut repr: MgmtRepr, width: Width) {
    // An operand is emitted as it was read, except for reserved bits.
    read_back!(repr.clone(), MgmtRepr, width, repr.packet_len(width));
    let info = NodeInfo::from_operand(0x2_0001);
    loop {
        let (hops_before, ends) = (repr.hops().count(), (repr.src_epid, repr.dst_epid));
        let result = repr.execute(|op| match op {
            Op::InfoReq => Some(Op::InfoResp(info)),
            Op::CfgRead { address } => Some(Op::CfgReadResp { address, value: 7 }),
            _ => None,
        });
        match result {
            Ok(forward) => {
                assert_eq!(repr.hops().count(), hops_before - 1);
                let returns = forward == ForwardHops::Return;
                assert!(!returns || (repr.dst_epid, repr.src_epid) == ends);
            }
            Err(Error::NoHop) => return assert_eq!(hops_before, 0),
            Err(error) => {
                assert_eq!((error, hops_before), (Error::NoReplyHop, 1));
                return;
            }
        }
    }
}

/// Discovery requests and replies.
pub fn mpm(bytes: &[u8]) {
    if let Ok(DiscoveryRequest::Echo(echo)) = DiscoveryRequest::parse(bytes) {
        assert_eq!(echo, bytes);
    }
    let Ok(reply) = DiscoveryReply::parse(bytes) else { return };
    assert!(DiscoveryRequest::parse(bytes).is_err());
    let fields: Vec<(&str, &str)> = reply.fields().collect();
    for (key, _) in &fields {
        assert!(reply.get(key).is_some());
    }
    assert_eq!(reply.to_string().is_empty(), fields.is_empty());
    let mut buf = [0xAA; mpm::MAX_REPLY_LEN];
    let len = mpm::emit_reply(&fields, &mut buf).unwrap();
    assert!(DiscoveryReply::parse(&buf[..len]).unwrap().fields().eq(fields));
}

/// The MessagePack scanner: a complete message stays complete, and a rejected one stays rejected,
/// however many bytes follow.
pub fn msgpack(bytes: &[u8]) {
    const LIMITS: MessageLimits = MessageLimits { bytes: 512, depth: 6, items: 64 };
    let whole = scan(bytes, &LIMITS);
    // The results for shorter pieces of the stream must be consistent with that.
    for cut in 0..bytes.len().min(600) {
        match scan(&bytes[..cut], &LIMITS) {
            Ok(Scan::NeedMore) => assert!(cut < LIMITS.bytes),
            verdict => return assert_eq!(verdict, whole, "{cut}"),
        }
    }
    if let Ok(Scan::Complete(length)) = whole {
        assert!(length > 0 && length <= bytes.len().min(LIMITS.bytes));
        assert_eq!(scan(&bytes[..length], &LIMITS), whole);
    }
}
