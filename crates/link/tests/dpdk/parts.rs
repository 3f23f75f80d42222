//! Frames in several parts, from a peer with longer buffers.

use std::time::Instant;

use millstream_link::frame::{Frame, FrameLink};

use crate::role::{PATIENCE, open};

/// One frame of many parts must not make every later batch shorter.
#[test]
fn a_frame_in_many_parts_costs_the_batches_behind_it_nothing() {
    crate::run("parts", &crate::shared_name());
}

/// Sends `count` frames of this length.
fn send(link: &mut dyn FrameLink, bytes: usize, count: usize) {
    let (mut frames, mut sent) = (Vec::new(), 0);
    let until = Instant::now() + PATIENCE;
    while sent < count {
        assert!(Instant::now() < until, "{sent} of {count} were taken");
        let missing = count - sent - frames.len();
        link.reserve(&mut frames, missing);
        frames.iter_mut().for_each(|frame: &mut Frame| frame.set_len(bytes));
        sent += link.transmit(&mut frames).unwrap_or(0);
        let _ = link.flush();
    }
}

/// Returns the parts of each batch, until `count` frames have come.
fn batches(link: &mut dyn FrameLink, count: u64) -> Vec<usize> {
    let (mut frames, mut all) = (Vec::new(), Vec::new());
    let (wanted, until) = (link.counters().rx_frames + count, Instant::now() + PATIENCE);
    while link.counters().rx_frames < wanted {
        assert!(Instant::now() < until, "{all:?}: {:?}", link.counters());
        match link.receive(&mut frames) {
            Ok(0) | Err(_) => {}
            Ok(parts) => all.push(parts),
        }
        link.give_back(&mut frames);
    }
    all
}

pub fn play(socket: &str) {
    let mut ours = open(&format!("dpdk:memif0,role=server,socket={socket},mtu=1500,ring=1024"))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut theirs = open(&format!("dpdk:memif1,socket={socket},mtu=16000,ring=1024"))
        .unwrap_or_else(|error| panic!("{error}"));
    let until = Instant::now() + PATIENCE;
    let mut frames = Vec::new();
    while ours.receive(&mut frames).is_err() || theirs.receive(&mut frames).is_err() {
        assert!(Instant::now() < until, "they do not connect");
    }
    ours.give_back(&mut frames);
    send(&mut *theirs, 200, 64);
    assert_eq!(batches(&mut *ours, 64), [64], "as many as there are");
    send(&mut *theirs, 16_000, 3);
    let parts: usize = batches(&mut *ours, 3).iter().sum();
    assert!(parts >= 3 * 7, "{parts} parts of 2 KiB");
    for _ in 0..3 {
        send(&mut *theirs, 200, 64);
        assert_eq!(batches(&mut *ours, 64), [64], "as before");
    }
    // A batch that does not fit loses no frame, and its order is preserved.
    send(&mut *theirs, 16_000, 20);
    assert_eq!(batches(&mut *ours, 20).iter().sum::<usize>(), 20 * parts / 3);
    assert_eq!((ours.counters().rx_dropped, ours.census().lent), (0, 0));
}
