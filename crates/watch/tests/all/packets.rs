//! Packets of a stream, as a sparing capture has them.

use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_watch::{CaptureAccount, Captured, LinkType, SNAPLEN};
use millstream_wire::chdr::{DataRepr, Width};
use millstream_wire::stream::StatusRepr;
use millstream_wire::{Epid, ipv4, udp};

pub const RADIO: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 49153);
pub const HOST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 40001);
pub const SAMPLES: u64 = 364;
pub const TICKS: u64 = 4;

/// Returns the IP packet of a datagram.
pub fn packet(source: SocketAddrV4, destination: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; udp::HEADER_LEN + payload.len()];
    datagram[udp::HEADER_LEN..].copy_from_slice(payload);
    let ports = (source.port(), destination.port());
    datagram[..2].copy_from_slice(&ports.0.to_be_bytes());
    datagram[2..4].copy_from_slice(&ports.1.to_be_bytes());
    let length = datagram.len() as u16;
    datagram[4..6].copy_from_slice(&length.to_be_bytes());
    let mut bytes = vec![0; ipv4::HEADER_LEN];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(ipv4::HEADER_LEN as u16 + length).to_be_bytes());
    bytes[9] = ipv4::protocol::UDP;
    bytes[12..16].copy_from_slice(&source.ip().octets());
    bytes[16..20].copy_from_slice(&destination.ip().octets());
    bytes.extend(datagram);
    bytes
}

pub fn data(width: Width, seq: u16, ticks: u64) -> Vec<u8> {
    let repr = DataRepr {
        dst_epid: Epid(3),
        seq,
        timestamp: Some(ticks),
        payload_len: SAMPLES as usize * 4,
        ..DataRepr::default()
    };
    let mut bytes = vec![0; repr.packet_len(width)];
    repr.emit(width, &mut bytes).unwrap();
    bytes
}

pub fn status(width: Width, repr: StatusRepr) -> Vec<u8> {
    let mut bytes = vec![0; StatusRepr::packet_len(width)];
    let repr = StatusRepr { dst_epid: Epid(2), src_epid: Epid(3), ..repr };
    repr.emit(width, &mut bytes).unwrap();
    bytes
}

/// Gives an account a packet, cut off as a sparing capture does.
pub fn take(account: &mut CaptureAccount, at_ns: u64, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(SNAPLEN)];
    account.take(&Captured {
        at_ns: Some(at_ns),
        interface: 0,
        is_outgoing: None,
        link: LinkType::Raw,
        bytes,
    });
}
