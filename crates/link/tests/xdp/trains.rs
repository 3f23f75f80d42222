//! Trains (UDP) from a sender on the same machine.

use std::net::SocketAddrV4;
use std::time::Instant;

use millstream_link::frame::FrameLink;
use millstream_link::open;
use millstream_link::port::PortOptions;

use crate::bench::{Bench, PATIENCE, PORT};

/// Sends a train of twenty datagrams from the kernel, by one call.
fn train(bench: &Bench) {
    let [from, to] = [&bench.pair.left, &bench.pair.right].map(|side| side.address);
    let bind = SocketAddrV4::new(from, 0);
    let port = bench.pair.left.run(|| open("udp", bind, &PortOptions::default()));
    let content: Vec<u8> = (0..20_000u32).map(|at| (at / 1000) as u8).collect();
    port.unwrap().tx.send_train(&content, 1000, SocketAddrV4::new(to, PORT)).unwrap();
}

#[test]
fn trains_that_come_uncut_are_counted_and_explained() {
    for mtu in [1500, 9000] {
        let Some(mut bench) = Bench::new("mode=generic", mtu, 1) else { return };
        assert_eq!(bench.link.explain(), None);
        train(&bench);
        let until = Instant::now() + PATIENCE;
        while bench.link.counters().rx_dropped == 0 {
            assert!(bench.look().is_empty(), "MTU {mtu}: a train is no datagram");
            assert!(Instant::now() < until, "{:?}", bench.link.counters());
        }
        let text = bench.link.explain().expect("it is explained");
        assert!(text.contains("mode=native") && text.contains("gso=off"), "{text}");
        // Datagrams that are not joined arrive.
        bench.offer(b"alone");
        assert_eq!(bench.collect(1)[0][..5], *b"alone");
    }
}

#[test]
fn in_native_mode_the_sender_cuts_trains() {
    for mtu in [1500, 9000] {
        let Some(mut bench) = Bench::new("mode=native", mtu, 1) else { return };
        train(&bench);
        for (turn, payload) in bench.collect(20).iter().enumerate() {
            assert_eq!(*payload, [turn as u8; 1000], "MTU {mtu}");
        }
        assert_eq!((bench.link.counters().rx_dropped, bench.link.explain()), (0, None));
    }
}
