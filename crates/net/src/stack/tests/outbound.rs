//! Written headers, and refused datagrams.

use millstream_wire::ethernet::Frame;
use millstream_wire::ipv4::Header;
use millstream_wire::udp;

use super::*;

const TO: &str = "10.0.0.7:6000";
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 7];

fn ready(config: StackConfig) -> Stack {
    let mut stack = Stack::new(config).unwrap();
    due(&mut stack, 0);
    for address in ["10.0.0.7", "10.0.0.254"] {
        stack.neighbours.heard(ip(address), Mac(PEER), ArpSource::Asked, 0);
    }
    stack
}

fn emitted(stack: &mut Stack, to: &str, payload: &[u8]) -> Result<Vec<u8>, EmitError> {
    let mut frame = vec![0xAA; stack.header_len()];
    frame.extend(payload);
    stack.emit(at("0.0.0.0:5000"), at(to), &mut frame, &[], 0).map(|()| frame)
}

/// Checks headers and checksums of a frame; returns its destinations.
fn check(frame: &[u8], payload: &[u8]) -> (Mac, std::net::SocketAddrV4) {
    let ethernet = Frame::parse(frame).unwrap();
    let ip = Header::parse(ethernet.payload()).unwrap();
    assert!(ip.is_whole() && !ip.is_fragment());
    assert_eq!((ip.repr().hop_limit, ip.header_len()), (64, 20));
    assert_eq!(ethernet.payload()[6], 0x40, "don't fragment");
    assert_eq!(ip.total_len(), ethernet.payload().len());
    let datagram = ip.payload(ethernet.payload()).unwrap();
    let udp = udp::Header::parse(datagram).unwrap();
    assert!(udp.is_whole(ip.source(), ip.destination(), [datagram]));
    assert_eq!(udp.payload(datagram), Ok(payload));
    assert_eq!((ip.source(), udp.source_port()), (super::ip("10.0.0.1"), 5000));
    let to = SocketAddrV4::new(ip.destination(), udp.destination_port());
    (ethernet.destination(), to)
}

#[test]
fn every_length_up_to_the_mtu_has_right_headers() {
    let mut stack = ready(config(1));
    for len in (0..=1472).step_by(31).chain([1, 1471, 1472]) {
        let payload: Vec<u8> = (0..len).map(|n| (n * 7) as u8).collect();
        let frame = emitted(&mut stack, TO, &payload).unwrap();
        assert_eq!(check(&frame, &payload), (Mac(PEER), at(TO)));
        assert_ne!(frame[40..42], [0, 0]);
        // The first half is in the frame, the other elsewhere.
        let (head, tail) = payload.split_at(len / 2);
        let mut first = vec![0; 42];
        first.extend(head);
        stack.emit(at("10.0.0.1:5000"), at(TO), &mut first, &[tail, &[]], 0).unwrap();
        first.extend(tail);
        check(&first, &payload);
    }
}

#[test]
fn a_checksum_of_zero_is_sent_as_all_ones() {
    let mut stack = ready(config(1));
    let sum = |payload: &[u8]| {
        let frame = emitted(&mut stack, TO, payload).unwrap();
        u16::from_be_bytes([frame[40], frame[41]])
    };
    let mut sum = sum;
    let without = sum(&[0, 0]);
    assert_eq!(sum(&without.to_be_bytes()), 0xFFFF);
}

#[test]
fn a_checksum_that_is_left_to_the_link_holds_the_sum_of_the_pseudo_header() {
    let mut stack = ready(StackConfig { checksum_offload: true, ..config(1) });
    for payload in [&b"data"[..], &[0xFF; 101], &[]] {
        let mut frame = emitted(&mut stack, TO, payload).unwrap();
        let udp = millstream_wire::udp::Header::parse(&frame[34..]).unwrap();
        let address =
            |at: usize| std::net::Ipv4Addr::from(<[u8; 4]>::try_from(&frame[at..at + 4]).unwrap());
        assert!(udp.is_partial(address(26), address(30)));
        // The device then completes the checksum.
        let end = 42 + payload.len();
        let sum = millstream_wire::checksum::Sum::new().bytes(&frame[34..end]).udp_checksum();
        frame[40..42].copy_from_slice(&sum.to_be_bytes());
        check(&frame, payload);
    }
}

#[test]
fn without_udp_checksums_the_field_is_zero() {
    let mut stack = ready(StackConfig { udp_checksum: false, ..config(1) });
    let frame = emitted(&mut stack, TO, b"data").unwrap();
    assert_eq!(frame[40..42], [0, 0]);
    check(&frame, b"data");
}

#[test]
fn a_tag_is_written_before_the_headers() {
    let mut stack = ready(StackConfig { vlan: Some(42), ..config(1) });
    assert_eq!(stack.header_len(), 46);
    let frame = emitted(&mut stack, TO, b"data").unwrap();
    assert_eq!(Frame::parse(&frame).unwrap().tag(), Some(42));
    check(&frame, b"data");
    let mut request = arp(Op::Request, 7, "10.0.0.7", "10.0.0.1");
    request.splice(12..12, [0x81, 0, 0, 42]);
    let reply = answer(&mut stack, &request, 0).unwrap();
    assert_eq!(Frame::parse(&reply).unwrap().tag(), Some(42));
}

#[test]
fn what_does_not_fit_the_mtu_is_refused_with_the_limit() {
    let mut stack = ready(config(1));
    let error = emitted(&mut stack, TO, &[0; 1473]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a datagram of 1473 bytes is too long: at most 1472 bytes fit into the MTU of 1500"
    );
    assert_eq!((stack.counters().too_long, stack.counters().tx_datagrams), (1, 0));
    let jumbo = ready(StackConfig { mtu: 9000, ..config(1) });
    assert_eq!(jumbo.payload_len_max(), 8972);
}

#[test]
fn a_gateway_gets_what_is_not_on_the_wire() {
    let mut config = config(1);
    config.routes.push(Route::default_via(ip("10.0.0.254")));
    let mut stack = ready(config);
    let frame = emitted(&mut stack, "192.168.9.9:6000", b"far").unwrap();
    assert_eq!(check(&frame, b"far"), (Mac(PEER), at("192.168.9.9:6000")));
}

#[test]
fn broadcast_datagrams_go_to_every_station_and_need_no_neighbour() {
    let mut stack = ready(config(1));
    for to in ["10.0.0.255:6000", "255.255.255.255:6000"] {
        let frame = emitted(&mut stack, to, b"all").unwrap();
        assert_eq!(check(&frame, b"all"), (Mac::BROADCAST, at(to)));
    }
}

#[test]
fn what_cannot_be_reached_says_why_and_is_counted() {
    let mut stack = ready(config(1));
    for (to, says) in [
        ("10.0.0.1:1", "cannot send to 10.0.0.1: the address belongs to this host"),
        ("127.0.0.1:1", "cannot send to 127.0.0.1: loopback addresses belong to the kernel"),
        ("8.8.8.8:1", "cannot send to 8.8.8.8: there is no route"),
        (
            "239.0.0.1:1",
            "cannot send to 239.0.0.1: multicast addresses are not supported: give the address of \
             a single host",
        ),
    ] {
        let error = emitted(&mut stack, to, b"").unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    }
    let strange = stack.emit(at("10.0.0.9:1"), at(TO), &mut [0; 42], &[], 0).unwrap_err();
    assert!(strange.to_string().contains("source address"), "{strange}");
    assert_eq!(stack.counters().unreachable, 5);
}

#[test]
fn a_neighbour_that_moved_gets_the_next_datagram_at_its_new_address() {
    let mut stack = ready(config(1));
    assert_eq!(check(&emitted(&mut stack, TO, b"1").unwrap(), b"1").0, Mac(PEER));
    let moved = arp(Op::Request, 9, "10.0.0.7", "10.0.0.7");
    receive(&mut stack, &moved, 0);
    let to = check(&emitted(&mut stack, TO, b"2").unwrap(), b"2").0;
    assert_eq!(to, Mac([2, 0, 0, 0, 0, 9]));
}

#[test]
fn more_streams_than_templates_are_all_right() {
    let mut stack = ready(config(1));
    for _ in 0..2 {
        for port in 1..500u16 {
            let to = SocketAddrV4::new(ip("10.0.0.7"), port);
            let frame = emitted(&mut stack, &to.to_string(), b"x").unwrap();
            assert_eq!(check(&frame, b"x"), (Mac(PEER), to));
        }
    }
}
