//! ICMP: echo, and "port unreachable" in both directions.

use millstream_wire::checksum::Sum;
use millstream_wire::ethernet::{EthernetRepr, ether_type};
use millstream_wire::icmp::{self, Message as Says, Packet as Icmp};
use millstream_wire::ipv4::{Header, Ipv4Repr, protocol};

use super::*;

/// Returns an ICMP message from station 7 to an address.
fn message(to_mac: Mac, to: &str, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[2..4].fill(0);
    let checksum = Sum::new().bytes(&bytes).checksum();
    bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    let mut frame = vec![0; 34];
    let (source, tag) = (Mac([2, 0, 0, 0, 0, 7]), None);
    let ethernet = EthernetRepr { destination: to_mac, source, tag, ether_type: ether_type::IPV4 };
    ethernet.emit(&mut frame).unwrap();
    let header = Ipv4Repr {
        source: ip("10.0.0.7"),
        destination: ip(to),
        protocol: protocol::ICMP,
        hop_limit: 3,
        traffic_class: 0,
        id: 99,
        payload_len: bytes.len(),
    };
    header.emit(&mut frame[14..]).unwrap();
    frame.extend(bytes);
    frame
}

const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);

fn request(data: usize) -> Vec<u8> {
    let mut bytes = vec![8, 0, 0, 0, 0x12, 0x34, 0, 5];
    bytes.extend((0..data).map(|n| n as u8));
    bytes
}

fn settled() -> Stack {
    let mut stack = stack(1);
    due(&mut stack, 0);
    stack
}

#[test]
fn an_echo_request_of_any_size_up_to_the_mtu_is_answered_byte_by_byte() {
    let mut stack = settled();
    for data in (0..=1472).step_by(23).chain([1471, 1472]) {
        let asked = message(OWN, "10.0.0.1", &request(data));
        let reply = answer(&mut stack, &asked, 0).unwrap();
        assert_eq!(&reply[..12], [2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 1]);
        let header = Header::parse(&reply[14..]).unwrap();
        assert!(header.is_whole() && header.repr().hop_limit == 64);
        let icmp = Icmp::parse(header.payload(&reply[14..]).unwrap()).unwrap();
        assert!(icmp.is_whole());
        assert_eq!(icmp.message(), Says::EchoReply { id: 0x1234, seq: 5 });
        assert_eq!(icmp.payload(), &asked[42..]);
        assert_eq!(reply.len(), asked.len());
    }
    assert!(answer(&mut stack, &message(OWN, "10.0.0.1", &request(1473)), 0).unwrap().is_empty());
    assert_eq!(stack.counters().too_long_to_answer, 1);
}

#[test]
fn an_echo_request_in_parts_is_answered_too() {
    let mut stack = settled();
    let asked = message(OWN, "10.0.0.1", &request(1001));
    let whole = answer(&mut stack, &asked, 0).unwrap();
    let parts = [&asked[..50], &asked[50..701], &asked[701..]];
    let frame = ReceivedFrame { parts: &parts, vlan: None, checksum_trusted: false };
    let Inbound::Answer(message) = stack.receive(frame, 0) else { panic!() };
    assert_eq!(written(&mut stack, &message, &parts)[34..], whole[34..]);
}

#[test]
fn what_needs_no_answer_gets_none() {
    let mut stack = settled();
    let broadcast = message(Mac::BROADCAST, "10.0.0.255", &request(8));
    assert_eq!(receive(&mut stack, &broadcast, 0), Inbound::Done);
    let mut reply = request(8);
    reply[0] = 0;
    assert_eq!(receive(&mut stack, &message(OWN, "10.0.0.1", &reply), 0), Inbound::Done);
    assert_eq!(stack.counters().other_protocol, 2);
    let mut bad = message(OWN, "10.0.0.1", &request(8));
    bad[45] ^= 1;
    assert_eq!(receive(&mut stack, &bad, 0), Inbound::Done);
    assert_eq!(stack.counters().bad_icmp_checksum, 1);
}

#[test]
fn a_port_that_nobody_has_is_reported_at_a_limited_rate() {
    let mut stack = settled();
    let frame = datagram();
    let answered = (0..1000).filter_map(|_| answer(&mut stack, &frame, 1000 * MS)).count();
    let counters = stack.counters();
    assert_eq!((counters.no_port, counters.tx_unreachable), (1000, answered as u64));
    assert_eq!(counters.rate_limited, 1000 - answered as u64);
    assert!((10..=100).contains(&answered), "{answered}");
    let reply = answer(&mut stack, &frame, 3000 * MS).unwrap();
    let header = Header::parse(&reply[14..]).unwrap();
    let icmp = Icmp::parse(header.payload(&reply[14..]).unwrap()).unwrap();
    assert!(header.is_whole() && icmp.is_whole());
    let failed = icmp.failed_datagram().unwrap();
    assert_eq!((failed.from, failed.to), (at("10.0.0.7:5000"), at("10.0.0.1:6000")));
    assert_eq!(icmp.payload(), &frame[14..], "the whole of a short packet is quoted");
}

#[test]
fn a_quotation_is_cut_where_rfc_1812_says() {
    let mut stack = settled();
    let mut frame = vec![0; 42];
    frame.resize(1400, 1);
    frame[..42].copy_from_slice(&datagram()[..42]);
    frame[16..18].copy_from_slice(&1386u16.to_be_bytes());
    frame[38..40].copy_from_slice(&1366u16.to_be_bytes());
    frame[40..42].fill(0);
    reseal(&mut frame);
    assert_eq!(answer(&mut stack, &frame, 0).unwrap().len(), 14 + 576);
}

/// Returns an error of a router about a packet of `len` bytes from an address of ours to station 7.
fn error(code: u8, mtu: u16, from: (&str, u16), to_port: u16, len: u16) -> Vec<u8> {
    let mut bytes = vec![3, code, 0, 0, 0, 0, (mtu >> 8) as u8, mtu as u8];
    let mut quote = datagram()[14..42].to_vec();
    quote[2..4].copy_from_slice(&len.to_be_bytes());
    quote[12..16].copy_from_slice(&ip(from.0).octets());
    quote[16..20].copy_from_slice(&ip("10.0.0.7").octets());
    quote[20..22].copy_from_slice(&from.1.to_be_bytes());
    quote[22..24].copy_from_slice(&to_port.to_be_bytes());
    bytes.extend(quote);
    message(OWN, "10.0.0.1", &bytes)
}

#[test]
fn an_error_counts_if_it_is_about_a_port_of_ours() {
    let mut stack = settled();
    stack.open_port(5000);
    for strange in [("10.0.0.9", 5000), ("10.0.0.1", 5001)] {
        assert_eq!(receive(&mut stack, &error(3, 0, strange, 6000, 40), 0), Inbound::Done);
        assert_eq!(stack.counters().rx_icmp_errors, 0);
    }
    for code in [0, 1, 3] {
        receive(&mut stack, &error(code, 0, ("10.0.0.1", 5000), 6000, 40), 0);
    }
    assert_eq!((stack.counters().rx_icmp_errors, stack.counters().icmp_doubted), (3, 0));
    let mut about_nothing = icmp_error_about_icmp();
    about_nothing = message(OWN, "10.0.0.1", &about_nothing);
    assert_eq!(receive(&mut stack, &about_nothing, 0), Inbound::Done);
    assert_eq!(stack.counters().rx_icmp_errors, 3);
}

/// RFC 5927, 7.2, and RFC 1191, 3: an error that cannot be true has no effect; one that may be true
/// lets routers fragment our packets. Neither refuses a datagram.
#[test]
fn too_long_for_a_router_is_believed_only_about_what_was_sent() {
    let mut stack = settled();
    stack.open_port(5000);
    let (from, to) = (at("10.0.0.1:5000"), at("10.0.0.7:6000"));
    stack.neighbours.heard(*to.ip(), Mac([2, 0, 0, 0, 0, 7]), ArpSource::Asked, 0);
    let send = |stack: &mut Stack, bytes: usize| {
        let mut frame = vec![0; 42 + bytes];
        stack.emit(from, to, &mut frame, &[], 0).unwrap();
        assert!(Header::parse(&frame[14..]).unwrap().is_whole());
        frame[20] & 0x40 != 0
    };
    assert!(send(&mut stack, 1000), "a packet of 1028 bytes that must not be cut");
    let own = ("10.0.0.1", 5000);
    let forged = [
        ("to a port that nothing went to", error(4, 600, own, 6001, 1028)),
        ("longer than all that went there", error(4, 600, own, 6000, 1029)),
        ("no longer than what it says would pass", error(4, 1028, own, 6000, 1028)),
        ("about another port of ours", error(4, 600, ("10.0.0.1", 5001), 6000, 1028)),
    ];
    for (what, forged) in forged {
        assert_eq!(receive(&mut stack, &forged, 0), Inbound::Done);
        assert!(send(&mut stack, 1000), "{what}");
    }
    let counters = stack.counters();
    assert_eq!((counters.icmp_doubted, counters.paths_narrowed), (3, 0));
    assert_eq!((counters.rx_icmp_errors, counters.not_ours), (3, 1));
    receive(&mut stack, &error(4, 600, own, 6000, 1028), 0);
    assert_eq!(stack.counters().paths_narrowed, 1);
    assert!(!send(&mut stack, 1000), "a router may cut it");
    assert!(!send(&mut stack, 1472), "whatever its length");
    // Routers older than RFC 1191 do not report the size that would pass.
    receive(&mut stack, &error(4, 0, own, 6000, 1028), 0);
    assert_eq!(stack.counters().paths_narrowed, 2);
}

fn icmp_error_about_icmp() -> Vec<u8> {
    let mut quote = datagram()[14..42].to_vec();
    quote[9] = protocol::ICMP;
    let mut bytes = vec![0; icmp::HEADER_LEN + quote.len()];
    icmp::emit_unreachable(3, &quote, &mut bytes).unwrap();
    bytes
}
