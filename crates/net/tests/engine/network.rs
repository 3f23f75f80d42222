//! The network's effects on a port, and the errors that report them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use millstream_link::frame::FrameLink;
use millstream_link::loopback::{LoopLink, LoopOptions, pair};
use millstream_link::port::PortOptions;
use millstream_net::engine::attach;
use millstream_testkit::raw::{at, too_long, udp_frame};

use crate::{Net, PATIENCE, any, collect};

#[test]
fn a_neighbour_that_does_not_answer_is_an_error_of_a_later_send() {
    for mode in ["io=thread", "io=inline"] {
        let net = Net::new(mode, &LoopOptions::default());
        let mut near = net.near();
        let nobody = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 77), 9);
        let until = Instant::now() + PATIENCE;
        let error = loop {
            assert!(Instant::now() < until, "{mode}");
            if let Err(error) = near.tx.send(b"anybody?", nobody) {
                break error;
            }
            let _ = near.rx.recv_batch(Duration::from_millis(10));
        };
        assert_eq!(error.raw_os_error(), Some(libc::EHOSTUNREACH), "{mode}");
    }
}

#[test]
fn where_there_is_no_way_the_next_send_says_so() {
    let net = Net::new("", &LoopOptions::default());
    let mut near = net.near();
    let errno = |result: std::io::Result<()>| result.unwrap_err().raw_os_error();
    let at = |ip: [u8; 4], port| SocketAddrV4::new(ip.into(), port);
    assert_eq!(errno(near.tx.send(b"x", at([127, 0, 0, 1], 9))), Some(libc::ENETUNREACH));
    assert_eq!(
        near.tx.send(b"x", at([10, 0, 0, 2], 0)).unwrap_err().kind(),
        std::io::ErrorKind::InvalidInput
    );
    near.tx.send(b"x", at([192, 168, 0, 1], 9)).unwrap();
    let until = Instant::now() + PATIENCE;
    let error = loop {
        assert!(Instant::now() < until);
        if let Err(error) = near.tx.send(b"x", at([192, 168, 0, 1], 9)) {
            break error;
        }
    };
    assert_eq!(error.raw_os_error(), Some(libc::ENETUNREACH));
}

#[test]
fn a_gateway_is_used_for_what_is_not_on_the_wire() {
    let net = Net::with("gateway=10.0.0.2", "", &LoopOptions::default());
    let mut near = net.near();
    // The far host is not a router: it drops the packet and counts it.
    near.tx.send(b"onward", SocketAddrV4::new(Ipv4Addr::new(192, 168, 0, 1), 9)).unwrap();
    let far = net.far();
    let until = Instant::now() + PATIENCE;
    let not_ours = || {
        let inventory = millstream_net::engine::inventory();
        let threads = inventory.threads.iter();
        let mut links = threads.flat_map(|thread| &thread.links);
        let link = links.find(|link| link.ports.iter().any(|port| port.local == far.local));
        link.is_some_and(|link| link.stack.not_ours > 0)
    };
    while !not_ours() {
        assert!(Instant::now() < until, "it arrived at the gateway");
    }
}

#[test]
fn ports_of_one_link_reach_each_other_and_kernel_sockets_do_not_matter() {
    for mode in ["io=thread"] {
        let net = Net::new(mode, &LoopOptions::default());
        let (mut one, mut other) = (net.near(), net.near());
        for turn in 0..2000u32 {
            one.tx.send(&turn.to_le_bytes(), other.local).unwrap();
            assert_eq!(collect(&mut other, 1), [(turn.to_le_bytes().to_vec(), one.local)]);
        }
    }
}

#[test]
fn in_a_vlan_only_its_members_hear() {
    let net = Net::with("vlan=7", "vlan=7", &LoopOptions::default());
    let (mut near, mut far) = (net.near(), net.far());
    near.tx.send(&[5; 8972], far.local).unwrap();
    assert_eq!(collect(&mut far, 1)[0].0, [5; 8972]);
    let net = Net::with("vlan=7", "vlan=8", &LoopOptions::default());
    let (mut near, mut far) = (net.near(), net.far());
    near.tx.send(b"x", far.local).unwrap();
    assert_eq!(far.rx.recv_batch(Duration::from_millis(20)).unwrap(), 0);
}

/// A station of the test itself at the other end: 10.0.0.2.
struct Station {
    wire: LoopLink,
    /// Its Ethernet address, and that of the tested host.
    macs: ([u8; 6], [u8; 6]),
}

impl Station {
    fn send(&mut self, bytes: &[u8]) {
        let mut frames = Vec::new();
        assert_eq!(self.wire.reserve(&mut frames, 1), 1);
        frames[0].set_len(bytes.len());
        self.wire.memory().bytes_mut(&mut frames[0]).copy_from_slice(bytes);
        self.wire.transmit(&mut frames).unwrap();
        self.wire.flush().unwrap();
    }

    /// Returns the next packet that the host sends; answers requests for our Ethernet address.
    fn next(&mut self) -> Vec<u8> {
        let until = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < until, "nothing comes");
            let mut frames = Vec::new();
            self.wire.receive(&mut frames).unwrap();
            let came: Vec<_> =
                frames.iter().map(|frame| self.wire.memory().bytes(frame).to_vec()).collect();
            self.wire.give_back(&mut frames);
            for frame in came {
                match frame[at::ETHERTYPE..at::IP] {
                    [0x08, 0x06] => self.answer(&frame),
                    _ => return frame,
                }
            }
        }
    }

    /// Answers an ARP request for 10.0.0.2 (RFC 826).
    fn answer(&mut self, request: &[u8]) {
        if request[20..22] != [0, 1] || request[38..42] != [10, 0, 0, 2] {
            return;
        }
        let (ours, theirs) = self.macs;
        let head = [&theirs[..], &ours, &request[12..20], &[0, 2]].concat();
        let reply = [&head[..], &ours, &request[38..42], &request[22..32]].concat();
        self.send(&reply);
    }
}

/// RFC 5927: a sender who guesses two ports must not be able to end a stream.
#[test]
fn a_router_that_finds_a_datagram_too_long_fails_no_send() {
    let (one, wire, _) = pair(&LoopOptions::default()).unwrap();
    let macs = (wire.info().mac, one.info().mac);
    let host = attach(Box::new(one), "address=10.0.0.1/24").unwrap();
    let mut near = host.open(any(), &PortOptions::default()).unwrap();
    let mut station = Station { wire, macs };
    let peer = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 6000);
    near.tx.send(&[7; 8972], peer).unwrap();
    let sent = station.next();
    let may_be_cut = |frame: &[u8]| frame[at::IP + 6] & 0x40 == 0;
    assert!(!may_be_cut(&sent));
    let never_sent = udp_frame((macs.1, macs.0), near.local, peer, &[7; 8974]);
    for (about, believed) in [(&never_sent, false), (&sent, true)] {
        station.send(&too_long(macs, Ipv4Addr::new(10, 0, 0, 254), about, 1500));
        for _ in 0..2 {
            // When the second one has arrived, the step that received the message has ended.
            station.send(&udp_frame(macs, peer, near.local, b"behind"));
            assert_eq!(collect(&mut near, 1)[0].0, b"behind");
        }
        for _ in 0..3 {
            near.tx.send(&[8; 8972], peer).unwrap();
            assert_eq!(may_be_cut(&station.next()), believed);
        }
    }
}
