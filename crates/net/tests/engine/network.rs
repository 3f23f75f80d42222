//! What a port meets on the network, and the errors that tell of it.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use millstream_link::loopback::LoopOptions;

use crate::{Net, PATIENCE, collect};

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
    // The far host is no router: it drops the packet and counts it.
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
