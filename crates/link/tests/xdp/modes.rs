//! Every mode, queue count, MTU and memory layout carries the kernel's datagrams in both
//! directions.

use std::time::Instant;

use millstream_link::frame::{FrameLink, Mode};

use crate::bench::{Bench, HEADERS};

/// Exchanges datagrams of every relevant length in both directions; returns false where there are
/// no namespaces.
#[track_caller]
fn carries(options: &str, mtu: usize, queues: usize) -> Option<Bench> {
    let mut bench = Bench::new(options, mtu, queues)?;
    println!("MTU {mtu}: {}", bench.link.info().detail);
    let part = bench.link.info().part_bytes_max - HEADERS;
    let longest = mtu - 28;
    let around = [part - 1, part, part + 1, 2 * part].map(|bytes| bytes.min(longest));
    for (turn, bytes) in [1, 18, 1000, longest].into_iter().chain(around).enumerate() {
        let payload: Vec<u8> = (0..bytes).map(|at| (at * 7 + turn) as u8).collect();
        bench.offer(&payload);
        assert_eq!(bench.collect(1)[0][..bytes], payload, "{options}: {bytes} bytes received");
        bench.send(&payload);
        bench.link.flush().unwrap();
        let mut back = vec![0; 10_000];
        assert_eq!(bench.peer.recv(&mut back).unwrap(), bytes, "{options}: {bytes} bytes sent");
        assert_eq!(back[..bytes], payload);
    }
    // In bursts: the order is preserved.
    for turn in 0..20u32 {
        let numbers: Vec<u32> = (0..64).map(|index| turn * 64 + index).collect();
        numbers.iter().for_each(|number| bench.offer(&number.to_le_bytes()));
        let got = bench.collect(64);
        assert!(got.iter().zip(&numbers).all(|(got, number)| got[..4] == number.to_le_bytes()));
    }
    bench.link.receive(&mut Vec::new()).unwrap();
    bench.at_rest();
    let counters = bench.link.counters();
    let lost = [counters.rx_starved, counters.rx_ring_full, counters.rx_dropped];
    assert_eq!((lost, counters.tx_invalid, counters.unwatched), ([0; 3], 0, 0), "{counters:?}");
    Some(bench)
}

#[test]
fn every_mode_carries_every_mtu_over_one_queue_and_four() {
    for mode in ["generic", "native"] {
        for (mtu, queues) in [(1500, 1), (1500, 4), (3400, 1), (9000, 1), (9000, 4)] {
            let Some(bench) = carries(&format!("mode={mode}"), mtu, queues) else { return };
            assert_eq!(bench.link.info().queues, queues);
            assert_eq!(bench.link.info().mode == Mode::Generic, mode == "generic");
        }
    }
}

#[test]
fn chunks_of_every_size_and_alignment_carry_frames() {
    for (options, mtu) in [
        ("chunk=2048", 3400),
        ("chunk=2048", 9000),
        ("chunk=4096", 1500),
        ("unaligned=on", 1500),
        ("unaligned=on,chunk=3008", 1500),
        ("unaligned=on,chunk=3008,mode=generic", 9000),
        ("huge=on", 9000),
    ] {
        if carries(options, mtu, 1).is_none() {
            return;
        }
    }
}

#[test]
fn automatic_mode_says_what_it_tried() {
    let Some(bench) = carries("mode=auto", 1500, 1) else { return };
    let info = bench.link.info();
    assert_eq!(info.mode, Mode::NativeCopy);
    let detail = &info.detail;
    assert!(detail.starts_with("native copy (probed), driver veth, 1 of 1 queues"), "{detail}");
    assert!(detail.contains("zero-copy"), "{detail}");
}

#[test]
fn without_need_wakeup_every_flush_calls_the_kernel() {
    for (options, least) in [("wakeup=on", 0), ("wakeup=off", 0), ("busy_poll_us=20", 1)] {
        let Some(mut bench) = carries(options, 1500, 1) else { return };
        let before = bench.link.counters().syscalls;
        (0..1000).for_each(|_| assert!(bench.look().is_empty()));
        // An idle link sometimes checks that its interface exists; with busy polling, in each call.
        let calls = bench.link.counters().syscalls - before;
        assert!(calls >= least * 1000 && (least > 0 || calls < 100), "{options}: {calls} calls");
    }
}

/// Malformed runs of parts: valid frames are sent, and no buffer is lost.
#[test]
fn empty_parts_are_left_out_and_end_their_frame() {
    for mode in ["generic", "native"] {
        let Some(mut bench) = Bench::new(&format!("mode={mode}"), 9000, 1) else { return };
        let frame = bench.datagram_to_peer(b"in two parts and an empty one");
        let mut frames = Vec::new();
        assert_eq!(bench.link.reserve(&mut frames, 8), 8);
        for (index, frame_part) in frames.iter_mut().enumerate() {
            let piece = match index % 4 {
                0 => &frame[..50],
                2 => &frame[50..],
                _ => &[],
            };
            frame_part.set_len(piece.len());
            frame_part.set_continues(index % 4 < 3);
            bench.link.memory().bytes_mut(frame_part).copy_from_slice(piece);
        }
        assert_eq!(bench.link.transmit(&mut frames).unwrap(), 8);
        bench.link.flush().unwrap();
        for _ in 0..2 {
            let mut got = [0; 64];
            let count = bench.peer.recv(&mut got).unwrap();
            assert_eq!(&got[..count], b"in two parts and an empty one", "{mode}");
        }
        let counters = bench.link.counters();
        assert_eq!((counters.tx_frames, counters.tx_invalid), (2, 4));
        bench.at_rest();
    }
}

/// A socket buffer has 17 fragments and a head: a frame with more parts is refused, and only that
/// frame.
#[test]
fn a_frame_of_too_many_parts_costs_itself_alone() {
    for (parts, arrives) in [(18, true), (19, false)] {
        let Some(mut bench) = Bench::new("mode=native", 9000, 1) else { return };
        let frame = bench.datagram_to_peer(&[7; 1000]);
        let mut frames = Vec::new();
        assert_eq!(bench.link.reserve(&mut frames, parts), parts);
        for (index, piece) in frame.chunks(frame.len().div_ceil(parts)).enumerate() {
            frames[index].set_len(piece.len());
            frames[index].set_continues(index + 1 < parts);
            bench.link.memory().bytes_mut(&mut frames[index]).copy_from_slice(piece);
        }
        assert_eq!(bench.link.transmit(&mut frames).unwrap(), parts);
        bench.send(b"next");
        bench.link.flush().unwrap();
        let lengths: &[usize] = if arrives { &[1000, 4] } else { &[4] };
        for length in lengths {
            assert_eq!(bench.peer.recv(&mut [0; 2000]).unwrap(), *length, "{parts} parts");
        }
        assert_eq!(bench.link.counters().tx_invalid > 0, !arrives);
        bench.at_rest();
    }
}

#[test]
fn frames_are_received_without_calling_the_kernel() {
    for mode in ["generic", "native"] {
        let Some(mut bench) = Bench::new(&format!("mode={mode}"), 1500, 1) else { return };
        let (began, before) = (Instant::now(), bench.link.counters().syscalls);
        for _ in 0..100 {
            (0..64).for_each(|_| bench.offer(b"no call"));
            bench.collect(64);
        }
        let calls = bench.link.counters().syscalls - before;
        // But an idle link checks its interface 20 times a second.
        let asked = 2 + began.elapsed().as_millis() as u64 / 50;
        println!("{mode}: {calls} calls for 6400 frames");
        assert!(calls <= asked, "{mode}: {calls} calls, {asked} at most to ask");
        bench.at_rest();
    }
}

/// Copy mode must be called to transmit, whichever side has set the flag; but once for a batch.
#[test]
fn a_batch_of_frames_takes_one_call() {
    let Some(mut bench) = Bench::new("mode=generic", 1500, 1) else { return };
    let before = bench.link.counters().syscalls;
    for _ in 0..100 {
        (0..32).for_each(|_| bench.send(b"batch"));
        bench.link.flush().unwrap();
    }
    let counters = bench.link.counters();
    assert_eq!(counters.tx_frames, 3200);
    let calls = counters.syscalls - before;
    println!("{:.3} calls a frame", calls as f64 / 3200.0);
    assert!(calls <= 220, "{calls} calls for 100 batches");
}
