//! Kernel UDP ports over loopback: what arrives is what was sent, whatever the offloads.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use millstream_link::port::{Port, PortOptions};
use millstream_link::{LinkError, open};

const LINKS: [&str; 4] = ["udp", "udp:gro=off", "udp:gso=off", "udp:gro=off,gso=off"];
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

/// Receives until `wanted` datagrams are there or nothing comes any more.
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

/// A train whose every byte tells its place.
fn train(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

#[test]
fn every_size_from_nothing_to_the_largest_arrives_whole() {
    for link in LINKS {
        let (mut a, mut b) = (port(link, &big()), port(link, &big()));
        let content = train(65_507);
        for size in [0, 1, 2, 7, 8, 63, 64, 548, 1471, 1472, 1473, 8016, 9000, 65_506, 65_507] {
            a.tx.send(&content[..size], b.local).unwrap();
            let got = collect(&mut b, 1);
            assert_eq!(got.len(), 1, "{link}, {size} bytes");
            assert_eq!(got[0].0, content[..size], "{link}, {size} bytes");
            assert_eq!(got[0].1, a.local);
        }
        assert!(a.tx.send(&[0; 65_508], b.local).is_err());
    }
}

#[test]
fn trains_arrive_in_order_and_cut_where_they_should() {
    for link in LINKS {
        let (mut a, mut b) = (port(link, &big()), port(link, &big()));
        for (segment, total) in [
            (1, 200),
            (22, 22 * 300 + 5),
            (1472, 1472 * 40),
            (8016, 8016 * 30 + 8),
            (40_000, 90_000),
        ] {
            let content = train(total);
            a.tx.send_train(&content, segment, b.local).unwrap();
            let want: Vec<_> = content.chunks(segment).collect();
            let got = collect(&mut b, want.len());
            assert_eq!(got.len(), want.len(), "{link}, {segment} of {total}");
            assert!(got.iter().zip(&want).all(|(got, want)| got.0 == *want), "{link}, {segment}");
        }
    }
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
fn a_batch_larger_than_the_table_is_lent_in_parts() {
    let (mut a, mut b) = (port("udp", &big()), port("udp", &big()));
    let batch_max = b.rx.capabilities().batch_max;
    let content = train(batch_max * 3);
    a.tx.send_train(&content, 1, b.local).unwrap();
    let got = collect(&mut b, content.len());
    assert!(got.iter().map(|got| got.0[0]).eq(content.iter().copied()));
}

#[test]
fn a_datagram_longer_than_expected_is_cut_with_and_without_coalescing() {
    let short = PortOptions { datagram_bytes_max: 100, ..PortOptions::default() };
    for link in ["udp", "udp:gro=off"] {
        let (mut a, mut b) = (port("udp", &big()), port(link, &short));
        let content = train(3000);
        a.tx.send_train(&content, 1000, b.local).unwrap();
        let got = collect(&mut b, 3);
        let want: Vec<_> = content.chunks(1000).map(|whole| &whole[..100]).collect();
        assert!(got.iter().map(|got| &got.0[..]).eq(want), "{link}");
    }
}

#[test]
fn waiting_ends_when_the_time_is_up() {
    let mut quiet = port("udp", &PortOptions::default());
    let started = Instant::now();
    assert_eq!(quiet.rx.recv_batch(Duration::ZERO).unwrap(), 0);
    assert_eq!(quiet.rx.recv_batch(Duration::from_millis(30)).unwrap(), 0);
    assert!(started.elapsed() >= Duration::from_millis(30));
}

#[test]
fn a_datagram_wakes_a_waiting_receiver() {
    let Port { local, mut rx, .. } = port("udp", &PortOptions::default());
    let waiter = std::thread::spawn(move || rx.recv_batch(Duration::MAX).unwrap());
    port("udp", &PortOptions::default()).tx.send(b"wake", local).unwrap();
    assert_eq!(waiter.join().unwrap(), 1);
}

#[test]
fn nothing_is_missed_between_quiet_and_busy_times() {
    for link in LINKS {
        let (mut a, mut b) = (port("udp:gso=off", &big()), port(link, &big()));
        // Fewer and more messages than one call of the kernel can bring, with quiet in between.
        for (turn, wanted) in [0, 1, 3, 200, 1, 0, 70, 500, 2].into_iter().enumerate() {
            let content = train(wanted * 300);
            a.tx.send_train(&content, 300, b.local).unwrap();
            let got = collect(&mut b, wanted);
            assert!(got.iter().map(|got| &got.0[..]).eq(content.chunks(300)), "{link}, {turn}");
            assert_eq!(b.rx.recv_batch(Duration::from_millis(2)).unwrap(), 0);
            assert_eq!(b.rx.recv_batch(Duration::ZERO).unwrap(), 0);
        }
        assert_eq!(b.rx.queue_drops(), 0);
    }
}

#[test]
fn nobody_listening_costs_the_sender_nothing() {
    let (mut a, gone) = (port("udp", &big()), port("udp", &big()).local);
    for _ in 0..5 {
        a.tx.send(b"hello?", gone).unwrap();
        a.tx.send_train(b"hello? hello?", 4, gone).unwrap();
        assert_eq!(a.rx.recv_batch(Duration::from_millis(1)).unwrap(), 0);
    }
    let mut b = port("udp", &big());
    a.tx.send(b"still here", b.local).unwrap();
    assert_eq!(collect(&mut b, 1)[0].0, b"still here");
}

#[test]
fn a_closed_port_can_be_opened_again_at_once() {
    let first = port("udp", &PortOptions::default());
    let address = first.local;
    let Port { rx, tx, .. } = first;
    drop(rx);
    let error = open("udp", address, &PortOptions::default()).err().unwrap().to_string();
    assert!(error.contains("in use"), "one half still holds it: {error}");
    drop(tx);
    assert_eq!(open("udp", address, &PortOptions::default()).unwrap().local, address);
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
