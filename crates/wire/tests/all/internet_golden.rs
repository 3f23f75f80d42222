//! Packets sent by Linux 6.18, as printed by `tcpdump -xx`: ping, arping and nc between 10.0.0.1
//! (02:…:01) and 10.0.0.2 (02:…:02). Parsed and, for packets that we send, emitted.

use core::net::Ipv4Addr;

use millstream_wire::arp::{ArpRepr, Op};
use millstream_wire::ethernet::{EthernetRepr, Frame, Mac, ether_type};
use millstream_wire::icmp::{self, Message, Packet, unreachable};
use millstream_wire::ipv4::{Header, Ipv4Repr, protocol};
use millstream_wire::udp::{self, UdpRepr};

const MACS: [Mac; 2] = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];
const IPS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Returns the frame of an ARP packet.
fn arp_frame(destination: Mac, repr: ArpRepr) -> Vec<u8> {
    let (source, tag, ether_type) = (repr.sender_mac, None, ether_type::ARP);
    let mut frame = vec![0xAA; 42];
    let at = EthernetRepr { destination, source, tag, ether_type }.emit(&mut frame).unwrap();
    repr.emit(&mut frame[at..]).unwrap();
    frame
}

#[test]
fn arp_requests_replies_announcements_and_probes() {
    let request = ArpRepr {
        op: Op::Request,
        sender_mac: MACS[0],
        sender: IPS[0],
        target_mac: Mac::default(),
        target: IPS[1],
    };
    let reply = ArpRepr {
        op: Op::Reply,
        sender_mac: MACS[1],
        sender: IPS[1],
        target_mac: MACS[0],
        target: IPS[0],
    };
    let announcement = ArpRepr { op: Op::Reply, target_mac: MACS[0], target: IPS[0], ..request };
    let probe = ArpRepr {
        sender: Ipv4Addr::UNSPECIFIED,
        target_mac: Mac::BROADCAST,
        target: Ipv4Addr::new(10, 0, 0, 9),
        ..request
    };
    for (to, repr, golden) in [
        (
            Mac::BROADCAST,
            request,
            "ffff ffff ffff 0200 0000 0001 0806 0001 0800 0604 0001 0200 0000 0001 0a00 0001
             0000 0000 0000 0a00 0002",
        ),
        (
            MACS[0],
            reply,
            "0200 0000 0001 0200 0000 0002 0806 0001 0800 0604 0002 0200 0000 0002 0a00 0002
             0200 0000 0001 0a00 0001",
        ),
        (
            Mac::BROADCAST,
            announcement,
            "ffff ffff ffff 0200 0000 0001 0806 0001 0800 0604 0002 0200 0000 0001 0a00 0001
             0200 0000 0001 0a00 0001",
        ),
        (
            Mac::BROADCAST,
            probe,
            "ffff ffff ffff 0200 0000 0001 0806 0001 0800 0604 0001 0200 0000 0001 0000 0000
             ffff ffff ffff 0a00 0009",
        ),
    ] {
        let golden = bytes(golden);
        let frame = Frame::parse(&golden).unwrap();
        assert_eq!((frame.destination(), frame.ether_type()), (to, ether_type::ARP));
        assert_eq!(ArpRepr::parse(frame.payload()), Ok(repr));
        assert_eq!(arp_frame(to, repr), golden);
        assert_eq!(repr.is_probe(), repr == probe);
        assert_eq!(repr.is_announcement(), repr == announcement);
    }
}

const REQUEST: &str = "0200 0000 0002 0200 0000 0001 0800 4500 0028 387a 4000 4001 ee58 0a00 0001
     0a00 0002 0800 97ea 5942 0001 abcd abcd abcd abcd abcd abcd";
const REPLY: &str = "0200 0000 0001 0200 0000 0002 0800 4500 0028 fd89 0000 4001 6949 0a00 0002
     0a00 0001 0000 9fea 5942 0001 abcd abcd abcd abcd abcd abcd";

/// Returns the IPv4 header of a frame, and the bytes behind it.
fn packet(frame: &[u8]) -> (Header<'_>, &[u8]) {
    let payload = Frame::parse(frame).unwrap().payload();
    let header = Header::parse(payload).unwrap();
    assert!(header.is_whole() && !header.is_fragment());
    (header, header.payload(payload).unwrap())
}

#[test]
fn the_echo_reply_that_linux_writes_is_the_one_that_we_write() {
    let (request, reply) = (bytes(REQUEST), bytes(REPLY));
    let (header, asked) = packet(&request);
    assert_eq!((header.source(), header.destination()), (IPS[0], IPS[1]));
    assert_eq!((header.protocol(), header.total_len()), (protocol::ICMP, 40));
    let echo = Packet::parse(asked).unwrap();
    assert!(echo.is_whole());
    assert_eq!(echo.message(), Message::EchoRequest { id: 0x5942, seq: 1 });
    let mut ours = [0xAA; 20];
    assert_eq!(icmp::emit_echo_reply([asked], &mut ours), Ok(20));
    assert_eq!(ours, packet(&reply).1);
    // The header differs only in "don't fragment", which Linux omits in replies.
    let mut repr = packet(&reply).0.repr();
    assert_eq!((repr.id, repr.hop_limit), (0xFD89, 64));
    repr.id = 0x387A;
    (repr.source, repr.destination) = (IPS[0], IPS[1]);
    let mut header = [0xAA; 20];
    repr.emit(&mut header).unwrap();
    assert_eq!(header, request[14..34]);
}

const DATAGRAM: &str = "0200 0000 0002 0200 0000 0001 0800 4500 0026 bdef 4000 4011 68d5 0a00 0001
     0a00 0002 1388 1770 0012 9fb2 6d69 6c6c 7374 7265 616d";
const UNREACHABLE: &str = "0200 0000 0001 0200 0000 0002 0800 45c0 0042 fd8a 0000 4001 686e
     0a00 0002 0a00 0001 0303 1123 0000 0000 4500 0026 bdef 4000 4011 68d5 0a00 0001 0a00 0002
     1388 1770 0012 9fb2 6d69 6c6c 7374 7265 616d";

#[test]
fn a_datagram_and_the_error_about_it() {
    let (frame, error) = (bytes(DATAGRAM), bytes(UNREACHABLE));
    let (header, datagram) = packet(&frame);
    let udp = udp::Header::parse(datagram).unwrap();
    assert!(udp.is_whole(header.source(), header.destination(), [datagram]));
    assert_eq!(udp.payload(datagram), Ok(&b"millstream"[..]));
    let mut ours = [0xAA; 28];
    let repr = Ipv4Repr {
        source: IPS[0],
        destination: IPS[1],
        protocol: protocol::UDP,
        hop_limit: 64,
        traffic_class: 0,
        id: 0xBDEF,
        payload_len: 18,
    };
    assert_eq!(header.repr(), repr);
    repr.emit(&mut ours).unwrap();
    let ports = UdpRepr { source_port: 5000, destination_port: 6000 };
    ports.emit(IPS[0], IPS[1], b"millstream", &mut ours[20..]).unwrap();
    assert_eq!(ours, frame[14..42]);

    let (header, message) = packet(&error);
    assert_eq!(header.repr().traffic_class, 0xC0);
    let icmp = Packet::parse(message).unwrap();
    assert!(icmp.is_whole() && icmp.is_error());
    assert_eq!(icmp.message(), Message::Unreachable { code: unreachable::PORT, mtu: 0 });
    let failed = icmp.failed_datagram().unwrap();
    assert_eq!(
        (failed.from.to_string(), failed.to.to_string()),
        ("10.0.0.1:5000".to_owned(), "10.0.0.2:6000".to_owned())
    );
    let mut ours = vec![0xAA; message.len()];
    icmp::emit_unreachable(unreachable::PORT, &frame[14..], &mut ours).unwrap();
    assert_eq!(ours, message);
}
