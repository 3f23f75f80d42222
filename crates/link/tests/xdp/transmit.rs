//! Frames that leave on several queues: each flow on one, in order, and counted.

use std::net::UdpSocket;

use millstream_link::frame::{Frame, FrameLink};

use crate::bench::{Bench, PATIENCE, try_open};

/// Sends `flows` flows to sockets of the kernel, in rotation; returns how many queues carried
/// frames.
#[track_caller]
fn carries_in_order(options: &str, mtu: usize, bytes: usize, queues: usize) -> Option<usize> {
    const FLOWS: usize = 16;
    const ROUNDS: u64 = 50;
    let mut bench = Bench::new(options, mtu, queues)?;
    // With a program that passes all frames to the kernel the other end counts by queue.
    let _passes = try_open(&bench.pair.left, "mode=native").unwrap();
    let before = received(&bench, queues);
    let address = bench.pair.left.address;
    let peers: Vec<UdpSocket> = (0..FLOWS)
        .map(|_| bench.pair.left.run(|| UdpSocket::bind((address, 0)).unwrap()))
        .collect();
    for round in 0..ROUNDS {
        let mut frames: Vec<Frame> = Vec::new();
        for turn in 0..3u64 {
            for peer in &peers {
                let mut payload = vec![0; bytes];
                payload[..8].copy_from_slice(&(round * 3 + turn).to_le_bytes());
                bench.peer = peer.try_clone().unwrap();
                bench.write(&mut frames, &payload);
            }
            let until = std::time::Instant::now() + PATIENCE;
            while !frames.is_empty() {
                bench.link.transmit(&mut frames).unwrap();
                bench.link.flush().unwrap();
                assert!(std::time::Instant::now() < until, "{} are not taken", frames.len());
            }
        }
        for peer in &peers {
            peer.set_read_timeout(Some(PATIENCE)).unwrap();
            for turn in 0..3u64 {
                let mut got = vec![0; 10_000];
                assert_eq!(peer.recv(&mut got).unwrap(), bytes);
                let number = u64::from_le_bytes(got[..8].try_into().unwrap());
                assert_eq!(number, round * 3 + turn, "{options}: in order");
            }
        }
    }
    let sent: Vec<_> = bench.link.sent().collect();
    println!("{options}: {sent:?}");
    let total = ROUNDS * 3 * FLOWS as u64;
    assert_eq!(sent.iter().map(|(_, frames)| frames).sum::<u64>(), total);
    assert_eq!(bench.link.counters().tx_frames, total);
    let after = received(&bench, queues);
    for (queue, frames) in &sent {
        let queue = *queue as usize;
        // The kernel may send frames of its own meanwhile.
        assert!(after[queue] - before[queue] >= *frames, "{sent:?}, {before:?} to {after:?}");
    }
    bench.link.receive(&mut Vec::new()).unwrap();
    bench.at_rest();
    Some(sent.iter().filter(|(_, frames)| *frames > 0).count())
}

/// Returns the frames that came to the other end on each of its queues.
fn received(bench: &Bench, queues: usize) -> Vec<u64> {
    let text = bench.pair.left.sh("ethtool -S veth0");
    let count = |queue| {
        let name = format!("rx_queue_{queue}_xdp_packets: ");
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name.as_str()));
        line.and_then(|count| count.parse().ok()).unwrap_or(0)
    };
    (0..queues).map(count).collect()
}

#[test]
fn flows_are_spread_over_the_queues_that_transmit_and_keep_their_order() {
    for mode in ["generic", "native"] {
        for (tx_queues, mtu, bytes) in
            [(1, 1500, 100), (2, 1500, 100), (4, 1500, 1400), (4, 9000, 8000)]
        {
            let options = format!("mode={mode},tx_queues={tx_queues}");
            let Some(used) = carries_in_order(&options, mtu, bytes, 4) else { return };
            // Sixteen flows miss one of four queues once in twenty-five runs.
            assert!(used >= tx_queues.min(2), "{options}: {used} queues carried something");
        }
    }
}

#[test]
fn more_queues_to_transmit_than_are_served_are_refused() {
    let Some(bench) = Bench::new("queues=0-1,tx_queues=2", 1500, 4) else { return };
    let detail = bench.link.info().detail.clone();
    assert!(detail.contains("2 of 4 queues, 2 of them transmit"), "{detail}");
    let Bench { pair, link, .. } = bench;
    drop(link);
    let error = try_open(&pair.right, "queues=0-1,tx_queues=3").err().unwrap().to_string();
    assert!(error.contains("\"tx_queues=3\": is more than the 2 that are served"), "{error}");
}

#[test]
fn a_checksum_beyond_its_frame_stops_nothing() {
    for mode in ["generic", "native"] {
        let Some(mut bench) = Bench::new(&format!("mode={mode}"), 1500, 1) else { return };
        let mut frames: Vec<Frame> = Vec::new();
        for (number, start) in [(1, 250), (2, 52), (3, 0)] {
            bench.write(&mut frames, &[number; 10]);
            frames.last_mut().unwrap().complete_checksum(start, 6);
        }
        assert_eq!(bench.link.transmit(&mut frames).unwrap(), 3);
        bench.link.flush().unwrap();
        for number in 1..=3 {
            let mut got = [0; 20];
            assert_eq!(bench.peer.recv(&mut got).unwrap(), 10, "{mode}");
            assert_eq!(got[..10], [number; 10], "{mode}");
        }
        bench.at_rest();
    }
}
