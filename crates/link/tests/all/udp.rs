//! The special properties of kernel UDP ports: offloads, exact drop counters, holders of ports. The
//! rules of every port are in the conformance suite of `net`.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millstream_link::fault::{FaultEffect, FaultRule, FaultSwitch};
use millstream_link::port::{Port, PortOptions};
use millstream_link::{LinkError, capture, open};
use millstream_testkit::netns::{PairOptions, VethPair};

const LINKS: [&str; 7] = [
    "udp",
    "udp:gro=off",
    "udp:gso=off",
    "udp:gro=off,gso=off",
    "udp:wait=spin",
    "udp:wait=adaptive",
    "udp:launch=fq",
];
const SOON: Duration = Duration::from_secs(5);

fn loopback() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)
}

fn port(link: &str, options: &PortOptions) -> Port {
    open(link, loopback(), options).unwrap()
}

fn big() -> PortOptions {
    PortOptions { datagram_bytes_max: 65_507, ..PortOptions::default() }
}

/// Receives until `wanted` datagrams have come or no more arrive.
fn collect(port: &mut Port, wanted: usize) -> Vec<(Vec<u8>, SocketAddrV4)> {
    let mut all = Vec::new();
    while all.len() < wanted {
        let count = port.rx.recv_batch(SOON).unwrap();
        if count == 0 {
            break;
        }
        assert!(count <= port.rx.capabilities().batch_max);
        for index in 0..count {
            let datagram = port.rx.datagram(index);
            all.push((datagram.payload.to_vec(), datagram.source));
        }
    }
    all
}

/// Returns a batch in which every byte encodes its position.
fn train(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

#[test]
fn offloads_change_nothing_that_the_receiver_sees() {
    let content = train(1472 * 100 + 33);
    let seen: Vec<_> = LINKS
        .iter()
        .map(|link| {
            let (mut a, mut b) = (port(link, &big()), port(link, &big()));
            a.tx.send_train(&content, 1472, b.local).unwrap();
            a.tx.send(b"single", b.local).unwrap();
            a.tx.send_train(&content[..3000], 1000, b.local).unwrap();
            collect(&mut b, 101 + 1 + 3).into_iter().map(|got| got.0).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(seen[0].len(), 105);
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_wait_ends_in_time_while_nothing_but_too_long_datagrams_come() {
    let short = PortOptions { datagram_bytes_max: 100, ..PortOptions::default() };
    for link in LINKS {
        let (mut a, mut b) = (port("udp", &big()), port(link, &short));
        let (to, content) = (b.local, train(1000));
        // A thread of a busy machine may begin after the waits below.
        a.tx.send(&content, to).unwrap();
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let flood = std::thread::spawn(move || {
            let mut sent = 1u64;
            while !ended.load(Ordering::Relaxed) {
                a.tx.send(&content, to).unwrap();
                sent += 1;
            }
            sent
        });
        for _ in 0..3 {
            assert_eq!(b.rx.recv_batch(Duration::from_millis(20)).unwrap(), 0, "{link}");
        }
        end.store(true, Ordering::Relaxed);
        let sent = flood.join().unwrap();
        while b.rx.recv_batch(Duration::from_millis(20)).unwrap() > 0 {}
        let (long, full) = (b.rx.too_long(), b.rx.queue_drops());
        assert!(long > 0 && long + full <= sent, "{link}: {sent} sent, {long} and {full} dropped");
    }
}

#[test]
fn a_port_in_use_names_its_holder_and_the_errno() {
    let holder = port("udp", &PortOptions::default());
    let error = open("udp", holder.local, &PortOptions::default()).err().unwrap();
    assert!(matches!(error, LinkError::Bind { address, .. } if address == holder.local));
    let text = error.to_string();
    let me = format!("(process {}) holds it", std::process::id());
    for part in [holder.local.to_string().as_str(), "os error 98", &me, "choose another"] {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}

#[test]
fn an_address_of_another_machine_says_so() {
    let far = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 0);
    let error = open("udp", far, &PortOptions::default()).err().unwrap().to_string();
    assert!(error.contains("not on this machine"), "{error}");
}

#[test]
fn busy_polling_is_had_or_refused_with_the_reason() {
    match open("udp:busy_poll_us=50", loopback(), &PortOptions::default()) {
        Ok(mut port) => assert_eq!(port.rx.recv_batch(Duration::from_millis(1)).unwrap(), 0),
        Err(error) => assert!(error.to_string().contains("CAP_NET_ADMIN"), "{error}"),
    }
}

/// Sends without receiving until the queue must have overflowed, then accounts for every datagram.
fn overflow(link: &str, bytes: usize, sent: usize) -> (usize, u64) {
    let small = PortOptions { recv_queue_bytes: 256 << 10, ..PortOptions::default() };
    let (mut a, mut b) = (port("udp:gso=off", &big()), port(link, &small));
    assert!(b.rx.capabilities().recv_queue_bytes >= 256 << 10);
    for _ in 0..sent {
        a.tx.send(&vec![7; bytes], b.local).unwrap();
    }
    let mut kept = 0;
    loop {
        match b.rx.recv_batch(Duration::from_millis(20)).unwrap() {
            0 => break,
            count => kept += count,
        }
    }
    (kept, b.rx.queue_drops())
}

#[test]
fn a_dropped_train_counts_once_where_trains_arrive_joined() {
    let small = PortOptions { recv_queue_bytes: 64 << 10, ..PortOptions::default() };
    let (mut a, mut b) = (port("udp", &big()), port("udp", &small));
    let (segment, segments, trains) = (8000, 8, 100);
    let content = train(segment * segments);
    for _ in 0..trains {
        a.tx.send_train(&content, segment, b.local).unwrap();
    }
    let mut kept = 0;
    while let count @ 1.. = b.rx.recv_batch(Duration::from_millis(20)).unwrap() {
        kept += count;
    }
    let (lost, drops) = (trains * segments - kept, b.rx.queue_drops() as usize);
    assert!(drops > 0 && drops <= lost && lost <= drops * segments, "{lost} lost, {drops} drops");
}

#[test]
fn an_overflowing_queue_counts_every_datagram_it_drops() {
    for link in ["udp", "udp:gro=off"] {
        for (bytes, sent) in [(8000, 200), (1472, 2000), (64, 5000)] {
            let (kept, drops) = overflow(link, bytes, sent);
            println!("{link}: {bytes} B, kept {kept} ({} bytes), dropped {drops}", kept * bytes);
            assert!(drops > 0, "{link}: the queue held {sent} datagrams of {bytes} bytes");
            assert_eq!(kept + drops as usize, sent, "{link}, {bytes} bytes");
        }
    }
}

#[test]
fn a_send_that_may_not_wait_says_that_there_is_no_room() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    // The kernel keeps the datagrams for an ARP answer that never comes, which fills the queue.
    let nobody = SocketAddrV4::new(Ipv4Addr::new(10, 99, 0, 77), 4000);
    for (link, behind) in
        LINKS.iter().flat_map(|link| [(link, ""), (link, "capture"), (link, "fault")])
    {
        let mut port = pair.left.run(|| {
            let options = PortOptions { send_queue_bytes: 1, ..PortOptions::default() };
            open(link, SocketAddrV4::new(pair.left.address, 0), &options).unwrap()
        });
        match behind {
            "capture" => port = capture::port(port, "/dev/null", "udp").unwrap(),
            "fault" => {
                let switch = FaultSwitch::new(|| 0);
                switch.add(FaultRule::new(|_| false, FaultEffect::Lose)).unwrap();
                port.tx = switch.wrap_tx(port.tx);
            }
            _ => {}
        }
        let refusal = (0..100).find_map(|_| port.tx.try_send(&[0; 1000], nobody).err());
        let kind = refusal.map(|error| error.kind());
        assert_eq!(kind, Some(std::io::ErrorKind::WouldBlock), "{link} {behind}");
    }
}
