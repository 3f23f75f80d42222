//! Opening and closing: threads start and end, links are exclusive, ends are noticed.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use millstream_link::loopback::{CableState, LoopOptions};
use millstream_link::port::PortOptions;
use millstream_net::{engine, open};

use crate::{Net, PATIENCE, any, collect, gone, started};

/// Returns the error of opening. Links without hardware are identified by their name: these tests
/// use one each.
fn error(link: &str) -> String {
    open(link, any(), &PortOptions::default()).err().expect("it is refused").to_string()
}

#[test]
fn the_first_port_starts_the_thread_and_the_last_one_ends_it() {
    assert!(error("loop:first").contains("not of the form"), "loops work on nothing");
    let link = "loop:address=10.1.0.1/24,thread=first,cpu=0";
    for _ in 0..3 {
        let one = open(link, any(), &PortOptions::default()).unwrap();
        assert_eq!(started("ms-io-first", 1), ["ms-io-first"]);
        let mut two = open("loop", any(), &PortOptions::default()).unwrap();
        assert_eq!(started("ms-io-first", 1).len(), 1, "both ports are on one thread");
        assert_ne!(one.local, two.local);
        let report = engine::inventory();
        let thread = report.threads.iter().find(|t| t.name == "ms-io-first").unwrap();
        assert_eq!((thread.cpu, thread.wait, thread.links.len()), (Some(0), "adaptive", 1));
        assert_eq!(thread.links[0].ports.len(), 2);
        // Opened once, and again only with the same options.
        for (other, reason) in [
            ("loop:cpu=1", "\"cpu=1\": contradicts the port that is open on loop already"),
            ("loop:io=inline", "where it is thread"),
            ("loop:mtu=1500", "\"mtu=1500\": contradicts"),
            ("loop:address=10.1.0.2/24", "where it is 10.1.0.1/24"),
            ("loop:thread=other", "where it is first"),
        ] {
            assert!(error(other).contains(reason), "{other}: {}", error(other));
        }
        drop(one.tx);
        drop(two.rx);
        two.tx.send(b"x", one.local).unwrap();
        let mut rx = one.rx;
        assert_eq!(rx.recv_batch(PATIENCE).unwrap(), 1, "each half holds its port");
        drop(rx);
        assert_eq!(started("ms-io-first", 1).len(), 1);
        drop(two.tx);
        gone("ms-io-first");
    }
    opens_that_race_share_one_link();
    an_inline_link_goes_with_its_last_port();
    bad_addresses_are_refused_with_advice();
}

fn opens_that_race_share_one_link() {
    let barrier = Arc::new(Barrier::new(4));
    for _ in 0..20 {
        let opens: Vec<_> = (0..4)
            .map(|_| {
                let barrier = Arc::clone(&barrier);
                std::thread::spawn(move || {
                    barrier.wait();
                    let link = "loop:address=10.1.0.1/24,thread=race";
                    open(link, any(), &PortOptions::default()).unwrap()
                })
            })
            .collect();
        let ports: Vec<_> = opens.into_iter().map(|open| open.join().unwrap()).collect();
        let mut numbers: Vec<_> = ports.iter().map(|port| port.local.port()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((numbers.len(), started("ms-io-race", 1).len()), (4, 1));
        let closes: Vec<_> =
            ports.into_iter().map(|port| std::thread::spawn(move || drop(port))).collect();
        closes.into_iter().for_each(|close| close.join().unwrap());
        gone("ms-io-race");
    }
}

fn an_inline_link_goes_with_its_last_port() {
    let link = "loop:address=10.1.0.1/24,io=inline";
    let port = open(link, any(), &PortOptions::default()).unwrap();
    let second = open(link, any(), &PortOptions::default()).unwrap();
    assert_eq!(engine::inventory().inline[0].ports.len(), 2);
    drop(port);
    assert_eq!(engine::inventory().inline.len(), 1);
    drop(second);
    assert!(engine::inventory().inline.is_empty());
}

fn bad_addresses_are_refused_with_advice() {
    let refused = |link: &str, bind: &str| {
        let bind = bind.parse().unwrap();
        open(link, bind, &PortOptions::default()).err().unwrap().to_string()
    };
    let text = refused("loop", "0.0.0.0:0");
    assert!(text.contains("\"address=IP/PREFIX\": is needed"), "{text}");
    let link = "loop:address=10.1.0.1/24";
    let text = refused(link, "127.0.0.1:0");
    assert!(text.contains("the kernel handles all addresses 127.x: use link=udp"), "{text}");
    let text = refused(link, "10.1.0.2:0");
    assert!(text.contains("loop has 10.1.0.1: choose one of these"), "{text}");
    let text = refused("loop:address=10.1.0.0/24", "0.0.0.0:0");
    assert!(text.contains("10.1.0.0/24 cannot be the address of this host"), "{text}");
    let text = refused("loop:address=10.1.0.1/24,cpu=999", "0.0.0.0:0");
    assert!(text.contains("cannot run on CPU 999"), "{text}");
    let text = refused("loop:warp=9,address=10.1.0.1/24", "0.0.0.0:0");
    assert!(
        text.contains("every frame link are: io, thread")
            && text.contains("this link: mtu, part_b"),
        "{text}"
    );
    let held = open(link, "10.1.0.1:5000".parse().unwrap(), &PortOptions::default()).unwrap();
    let text = refused(link, "0.0.0.0:5000");
    assert!(text.contains("5000") && text.contains("in use"), "{text}");
    drop(held);
    let other = "loop:address=10.2.0.1/24,mtu=1500";
    drop(open(other, any(), &PortOptions::default()).expect("nothing was left open"));
}

#[test]
fn links_that_name_the_same_thread_share_it() {
    let link = LoopOptions::default();
    // 2 threads x 1 link, then 1 thread x 2 links; a pair has two links.
    let apart = Net::with("thread=apart1", "thread=apart2", &link);
    let together = Net::new("thread=together", &link);
    assert_eq!(started("ms-io-apart", 2).len(), 2);
    assert_eq!(started("ms-io-together", 1).len(), 1);
    for net in [&apart, &together] {
        let (mut near, mut far) = (net.near(), net.far());
        near.tx.send(b"hello", far.local).unwrap();
        assert_eq!(collect(&mut far, 1)[0].0, b"hello");
    }
    let other = millstream_link::loopback::single(&link).unwrap().0;
    let refused = engine::attach(Box::new(other), "address=10.0.0.9/24,thread=together,wait=spin");
    let text = refused.err().unwrap().to_string();
    assert!(text.contains("open on thread together already, where it is adaptive"), "{text}");
    drop((apart, together));
    gone("ms-io-apart");
    gone("ms-io-together");
}

#[test]
fn whoever_waits_on_a_link_that_goes_away_gets_an_error() {
    for mode in ["io=thread,user_wait=park", "io=thread", "io=inline", "io=inline,user_wait=park"] {
        let net = Net::new(mode, &LoopOptions::default());
        let (mut far, mut near) = (net.far(), net.near());
        let waiter = std::thread::spawn(move || {
            let error = far.rx.recv_batch(Duration::from_secs(3600)).unwrap_err();
            (far, error)
        });
        std::thread::sleep(Duration::from_millis(20));
        net.cable.set(CableState::Gone);
        let (_far, error) = waiter.join().unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{mode}");
        let until = std::time::Instant::now() + PATIENCE;
        while near.tx.send(b"x", any()).is_ok() {
            assert!(std::time::Instant::now() < until);
        }
    }
}

#[test]
fn a_user_who_only_sends_notices_that_the_interface_is_up_again() {
    for mode in ["io=thread", "io=inline"] {
        let net = Net::with(mode, "io=thread", &LoopOptions::default());
        let (mut near, mut far) = (net.near(), net.far());
        drop(near.rx);
        near.tx.send(b"before", far.local).unwrap();
        assert_eq!(collect(&mut far, 1)[0].0, b"before");
        net.cable.set(CableState::Down);
        let until = std::time::Instant::now() + PATIENCE;
        while near.tx.send(b"lost", far.local).is_ok() {
            assert!(std::time::Instant::now() < until, "{mode}");
        }
        net.cable.set(CableState::Up);
        while near.tx.send(b"after", far.local).is_err() {
            assert!(std::time::Instant::now() < until, "{mode}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_port_closed_right_after_sending_loses_nothing() {
    // A link with a slow receiver: most of the data is still on this side when the port closes.
    let link = LoopOptions { keep: true, ..LoopOptions::default() };
    for mode in ["io=thread", "io=inline"] {
        let net = Net::with(mode, "io=thread", &link);
        let mut far = net.far();
        for turn in 0..20 {
            let near = net.near();
            let (mut tx, rx) = (near.tx, near.rx);
            let count = 200 + turn;
            for number in 0..count {
                tx.send(&u32::to_le_bytes(number), far.local).unwrap();
            }
            // On two threads, in either order.
            let other = std::thread::spawn(move || drop(rx));
            drop(tx);
            other.join().unwrap();
            for (number, got) in collect(&mut far, count as usize).into_iter().enumerate() {
                assert_eq!(got.0, u32::to_le_bytes(number as u32), "{mode}");
            }
        }
    }
}

#[test]
fn a_tiny_largest_datagram_opens() {
    let net = Net::new("", &LoopOptions::default());
    for bytes in [0, 1, 63] {
        let options = PortOptions { datagram_bytes_max: bytes, ..PortOptions::default() };
        drop(net.near.open(any(), &options).unwrap());
        drop(open("null:address=10.3.0.1/24,thread=tiny", any(), &options).unwrap());
    }
}

#[test]
fn opens_of_one_attached_link_are_one_after_the_other() {
    for _ in 0..20 {
        let net = Arc::new(Net::new("", &LoopOptions::default()));
        let barrier = Arc::new(Barrier::new(4));
        let opens: Vec<_> = (0..4)
            .map(|_| {
                let (net, barrier) = (Arc::clone(&net), Arc::clone(&barrier));
                std::thread::spawn(move || {
                    barrier.wait();
                    let bind = "10.0.0.1:7000".parse().unwrap();
                    net.near.open(bind, &PortOptions::default()).ok()
                })
            })
            .collect();
        let ports: Vec<_> = opens.into_iter().map(|open| open.join().unwrap()).collect();
        assert_eq!(ports.iter().flatten().count(), 1, "one gets the port");
    }
}

#[test]
fn an_interface_that_was_down_carries_again() {
    for mode in ["io=thread", "io=inline"] {
        let net = Net::with(mode, "io=thread", &LoopOptions::default());
        let (mut near, mut far) = (net.near(), net.far());
        near.tx.send(b"before", far.local).unwrap();
        assert_eq!(collect(&mut far, 1)[0].0, b"before");
        net.cable.set(CableState::Down);
        let until = std::time::Instant::now() + PATIENCE;
        let error = loop {
            let _ = near.rx.recv_batch(Duration::ZERO);
            match near.tx.send(b"lost", far.local) {
                Err(error) => break error,
                Ok(()) => assert!(std::time::Instant::now() < until, "{mode}"),
            }
        };
        assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN), "{mode}");
        assert_eq!(far.rx.recv_batch(Duration::from_millis(5)).unwrap(), 0, "no error to receive");
        net.cable.set(CableState::Up);
        loop {
            let _ = near.rx.recv_batch(Duration::from_millis(1));
            let sent = near.tx.send(b"after", far.local).is_ok();
            let count = far.rx.recv_batch(Duration::from_millis(10)).unwrap();
            let payload = |index| far.rx.datagram(index).payload;
            if sent && (0..count).any(|index| payload(index) == b"after") {
                break;
            }
            assert!(std::time::Instant::now() < until, "{mode}");
        }
    }
}
