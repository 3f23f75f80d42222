//! Each ring is starved once: losses are counted, and the traffic resumes by itself.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use millstream_link::frame::{Frame, FrameLink};
use millstream_link::xdp::{QueueRing, RingStall};

use crate::bench::{Bench, PATIENCE};

const MODES: [&str; 2] = ["mode=generic", "mode=native"];

/// Returns the time until a datagram that is sent now arrives.
fn recovery(bench: &mut Bench) -> Duration {
    let began = Instant::now();
    while bench.look().is_empty() {
        assert!(began.elapsed() < PATIENCE, "{:?}", bench.link.counters());
        bench.offer(b"are you there?");
    }
    began.elapsed()
}

/// Returns the ended stall of a ring, as the watchdog saw it.
#[track_caller]
fn recovered(bench: &mut Bench, ring: QueueRing) -> RingStall {
    let until = Instant::now() + PATIENCE;
    loop {
        // Right after the interface was down a call may still return that error.
        let _ = bench.link.receive(&mut Vec::new());
        let found = bench.link.stalls().find(|stall| stall.ring == ring && stall.over);
        if let Some(stall) = found {
            assert!(bench.link.counters().recoveries > 0);
            return stall;
        }
        let seen: Vec<_> = bench.link.stalls().collect();
        assert!(Instant::now() < until, "no stall of {ring:?}: {seen:?}");
    }
}

#[test]
fn a_user_that_holds_every_buffer_starves_the_fill_ring() {
    for mode in MODES {
        let Some(mut bench) = Bench::new(mode, 1500, 1) else { return };
        let (mut held, until): (Vec<Frame>, _) = (Vec::new(), Instant::now() + PATIENCE);
        while bench.link.counters().rx_starved == 0 || bench.link.stalls().next().is_none() {
            assert!(Instant::now() < until, "{:?}", bench.link.counters());
            (0..64).for_each(|_| bench.offer(b"more"));
            bench.link.receive(&mut held).unwrap();
            thread::sleep(Duration::from_micros(100));
        }
        assert_eq!(bench.link.census().receiving, 0, "{:?}", bench.link.census());
        assert_eq!(bench.link.stalls().next().unwrap().ring, QueueRing::Fill);
        // Held frames are unchanged.
        let whole = held.iter().all(|frame| bench.link.memory().bytes(frame).ends_with(b"more"));
        assert!(whole, "a frame was overwritten while it was held");
        // Giving back is enough: `receive` is not called before a frame came.
        bench.link.give_back(&mut held);
        let time = recovery(&mut bench);
        let stall = recovered(&mut bench, QueueRing::Fill);
        let counters = bench.link.counters();
        println!(
            "{mode}: fill ring: on again after {time:?}, {} lost, {stall:?}",
            counters.rx_starved
        );
        assert_eq!(counters.rx_ring_full, 0, "{counters:?}");
        bench.at_rest();
    }
}

/// A forwarder gives nothing back: its buffers return by the completion ring.
#[test]
fn buffers_that_were_transmitted_feed_the_fill_ring_at_once() {
    for mode in MODES {
        let Some(mut bench) = Bench::new(mode, 1500, 1) else { return };
        let (mut held, until): (Vec<Frame>, _) = (Vec::new(), Instant::now() + PATIENCE);
        while bench.link.census().receiving > 0 {
            assert!(Instant::now() < until, "{:?}", bench.link.census());
            (0..64).for_each(|_| bench.offer(b"there and back"));
            bench.link.receive(&mut held).unwrap();
        }
        while !held.is_empty() {
            assert!(Instant::now() < until, "{:?}", bench.link.counters());
            bench.link.transmit(&mut held).unwrap();
            bench.link.flush().unwrap();
        }
        // Before anything was received, and so before the watchdog checked.
        assert!(bench.link.census().receiving > 0, "{:?}", bench.link.census());
        recovery(&mut bench);
        bench.at_rest();
    }
}

#[test]
fn a_user_that_does_not_look_fills_the_receive_ring() {
    for mode in MODES {
        let Some(mut bench) = Bench::new(mode, 1500, 1) else { return };
        let until = Instant::now() + PATIENCE;
        let mut offered = 0;
        while bench.link.counters().rx_ring_full == 0 {
            assert!(Instant::now() < until, "{:?}", bench.link.counters());
            (0..64).for_each(|_| bench.offer(b"unseen"));
            offered += 64;
        }
        let mut received = bench.look().len() as u64;
        let time = Instant::now();
        while received + bench.link.counters().rx_ring_full < offered {
            assert!(Instant::now() < until, "{received} of {offered}: {:?}", bench.link.counters());
            received += bench.look().len() as u64;
        }
        let time = time.elapsed() + recovery(&mut bench);
        let counters = bench.link.counters();
        println!("{mode}: receive ring: {received} kept, {} lost, {time:?}", counters.rx_ring_full);
        assert_eq!(received, bench.link.info().receive_frames as u64, "the ring was full of them");
        assert_eq!((counters.rx_starved, counters.rx_dropped), (0, 0), "{counters:?}");
        bench.at_rest();
    }
}

#[test]
fn frames_queued_while_the_interface_is_down_leave_when_it_is_up() {
    for mode in MODES {
        let Some(mut bench) = Bench::new(mode, 1500, 1) else { return };
        bench.send(b"before");
        bench.link.flush().unwrap();
        bench.pair.right.sh("ip link set veth0 down");
        (0..10).for_each(|_| bench.send(b"during"));
        let until = Instant::now() + PATIENCE;
        let stuck = loop {
            let told = bench.link.flush().unwrap_err();
            assert_eq!(told.kind(), io::ErrorKind::NetworkDown);
            let _ = bench.link.receive(&mut Vec::new());
            if let Some(stall) = bench.link.stalls().find(|stall| stall.ring == QueueRing::Transmit)
            {
                break stall;
            }
            assert!(Instant::now() < until, "nobody saw that nothing leaves");
        };
        assert!(!stuck.over && bench.link.census().transmitting >= 10);
        bench.pair.right.sh("ip link set veth0 up");
        let began = Instant::now();
        // Only the watchdog calls the kernel.
        while bench.link.census().transmitting > 0 {
            let _ = bench.link.receive(&mut Vec::new());
            assert!(Instant::now() < until, "{:?}", bench.link.census());
        }
        println!("{mode}: transmit ring: on again after {:?}", began.elapsed());
        println!("{:?}", recovered(&mut bench, QueueRing::Transmit));
        bench.at_rest();
    }
}

/// The completion ring cannot be starved from outside: every call that transmits also reclaims.
#[test]
fn a_user_that_only_sends_never_fills_the_completion_ring() {
    for mode in MODES {
        let Some(mut bench) = Bench::new(mode, 1500, 1) else { return };
        for turn in 0..5000u32 {
            bench.send(&turn.to_le_bytes());
            if turn % 16 == 15 {
                bench.link.flush().unwrap();
            }
        }
        bench.link.flush().unwrap();
        bench.look();
        assert!(bench.link.stalls().all(|stall| stall.ring != QueueRing::Completion));
        assert_eq!(bench.link.counters().tx_frames, 5000);
        bench.at_rest();
    }
}
