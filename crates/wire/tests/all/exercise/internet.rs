//! The harness for frames: Ethernet, ARP, IPv4, UDP, ICMP.

use millstream_wire::Error;
use millstream_wire::arp::{self, ArpRepr};
use millstream_wire::ethernet::{Frame, ether_type, vlan_id};
use millstream_wire::icmp::{self, Packet};
use millstream_wire::ipv4::{self, Header, protocol};
use millstream_wire::udp;

/// Exercises a whole frame, down to its payload.
pub fn ethernet(bytes: &[u8]) {
    let Ok(frame) = Frame::parse(bytes) else { return };
    assert_eq!(frame.header_len() + frame.payload().len(), bytes.len());
    assert!(frame.tag().is_none_or(|tag| vlan_id(tag) <= 4095));
    assert_eq!(frame.destination().to_string().len(), 17);
    let mut header = [0xAA; 18];
    match frame.repr().emit(&mut header) {
        Ok(len) => assert_eq!(header[..len], bytes[..len]),
        // A tag in a tag is read as a type, and is not written.
        Err(error) => assert_eq!((error, frame.tag()), (Error::FieldOverflow, None)),
    }
    match frame.ether_type() {
        ether_type::ARP => arp_packet(frame.payload()),
        ether_type::IPV4 => ipv4_packet(frame.payload()),
        // Any bytes may be given to any parser.
        _ => {
            arp_packet(frame.payload());
            ipv4_packet(frame.payload());
        }
    }
}

fn arp_packet(bytes: &[u8]) {
    let Ok(repr) = ArpRepr::parse(bytes) else { return };
    assert!(!(repr.is_probe() && repr.is_announcement()));
    let mut again = [0xAA; arp::LEN];
    repr.emit(&mut again).unwrap();
    assert_eq!(again, bytes[..arp::LEN]);
    assert_eq!(repr.emit(&mut again[1..]), Err(Error::BufferTooSmall));
}

fn ipv4_packet(bytes: &[u8]) {
    let Ok(header) = Header::parse(bytes) else { return };
    assert!((20..=60).contains(&header.header_len()) && header.total_len() >= header.header_len());
    assert_eq!(header.options().len(), header.header_len() - 20);
    let mut again = [0xAA; ipv4::HEADER_LEN];
    let repr = header.repr();
    match repr.emit(&mut again) {
        Ok(len) => {
            let ours = Header::parse(&again[..len]).unwrap();
            assert!(ours.is_whole() && !ours.is_fragment() && ours.is_first());
            assert_eq!(ours.repr(), repr);
        }
        Err(error) => panic!("{error}: no packet is longer without its options"),
    }
    let Ok(payload) = header.payload(bytes) else { return };
    assert_eq!(payload.len(), header.payload_len());
    if header.protocol() == protocol::ICMP {
        icmp_message(payload);
    } else {
        udp_datagram(&header, payload);
    }
}

fn udp_datagram(ip: &Header<'_>, bytes: &[u8]) {
    let Ok(header) = udp::Header::parse(bytes) else { return };
    let (from, to) = (ip.source(), ip.destination());
    let _ = header.is_partial(from, to);
    let Ok(payload) = header.payload(bytes) else { return };
    assert_eq!(payload.is_empty(), header.is_empty());
    let whole = header.is_whole(from, to, [&bytes[..header.len()]]);
    let (source_port, destination_port) = (header.source_port(), header.destination_port());
    let mut again = [0xAA; udp::HEADER_LEN];
    let repr = udp::UdpRepr { source_port, destination_port };
    repr.emit(from, to, payload, &mut again).unwrap();
    let ours = udp::Header::parse(&again).unwrap();
    assert!(ours.is_whole(from, to, [&again[..], payload]));
    // Only one checksum fits besides 0, but 0 and all ones are the same.
    assert_eq!(whole && header.checksum() != 0, ours.checksum() == header.checksum());
}

fn icmp_message(bytes: &[u8]) {
    let Ok(packet) = Packet::parse(bytes) else { return };
    let _ = (packet.message(), packet.is_whole(), packet.checksum());
    assert!(packet.failed_datagram().is_none() || packet.is_error());
    let mut reply = vec![0xAA; bytes.len()];
    assert_eq!(icmp::emit_echo_reply([bytes], &mut reply), Ok(bytes.len()));
    let reply = Packet::parse(&reply).unwrap();
    assert!(reply.is_whole() && reply.payload() == packet.payload());
    assert!(matches!(reply.message(), icmp::Message::EchoReply { .. }));
}
