//! Users that are slow lose counted frames, and nothing stalls.

use millstream_link::frame::Frame;
use std::time::{Duration, Instant};

use crate::wire::{PATIENCE, Wire, number, numbers};

/// Long enough for frames in flight to arrive.
const SETTLED: Duration = Duration::from_millis(30);

/// Returns the known losses: at the receiver, or at the sender where both share a ring in memory.
fn lost(wire: &mut Wire) -> u64 {
    let sent = wire.tx().counters().tx_dropped;
    let counters = wire.rx().counters();
    counters.rx_ring_full + counters.rx_starved + counters.rx_dropped + sent
}

/// Sends a hundred frames from number `first` on, all of which must come, in order. Earlier ones
/// may still be in flight on a busy machine.
#[track_caller]
fn all_come_from(wire: &mut Wire, first: u64) {
    let end = first + 100;
    wire.send(first..end, 60);
    let mut all = wire.collect(1);
    while all.last().is_some_and(|frame| number(frame) + 1 < end) {
        let more = wire.collect(1);
        assert!(!more.is_empty(), "frame {} does not come", end - 1);
        all.extend(more);
    }
    assert!(numbers(&all).skip_while(|number| *number < first).eq(first..end));
}

/// The user takes frames and gives none back: the ring starves, and recovers by itself.
pub fn a_user_that_keeps_everything_loses_counted_frames(wire: &mut Wire) {
    let info = wire.rx().info();
    // As many as its rings hold, or as there are buffers to refill them from.
    let most = (3 * info.receive_frames).max(info.receive_parts) as u64;
    let before = lost(wire);
    // A ring of bytes, not slots, holds more frames than stated if they are short.
    let longest = wire.frame_bytes_max();
    let (sent, mut held) = (most + 1000, Vec::new());
    let mut next = 0;
    while next < sent {
        wire.send(next..next + 50, longest);
        next += 50;
        wire.rx().receive(&mut held).unwrap();
        wire.balanced();
    }
    let kept_of = |held: &[_]| held.iter().filter(|f: &&Frame| !f.continues()).count() as u64;
    let (settled, patience) = (Instant::now() + SETTLED, Instant::now() + PATIENCE);
    while Instant::now() < settled
        || (wire.exact && kept_of(&held) + lost(wire) - before < next && Instant::now() < patience)
    {
        wire.rx().receive(&mut held).unwrap();
    }
    let (known, kept) = (lost(wire) - before, kept_of(&held));
    println!("{next} sent, {kept} kept, {known} counted as lost");
    assert!(known > 0 && kept < next, "starved: {:?}", wire.rx().counters());
    if wire.exact {
        assert_eq!(kept + known, next);
    }
    let started = Instant::now();
    wire.rx().give_back(&mut held);
    wire.at_rest();
    let (mut frames, mut tries) = (Vec::new(), 0);
    // Frames flow again at once, without an action of the user.
    while frames.is_empty() && started.elapsed() < PATIENCE {
        wire.send(next..next + 1, 60);
        wire.rx().receive(&mut frames).unwrap();
        (next, tries) = (next + 1, tries + 1);
    }
    println!("recovered after {:?}, {tries} frames", started.elapsed());
    assert!(!frames.is_empty());
    wire.rx().give_back(&mut frames);
    all_come_from(wire, next);
}

/// The user does not poll at all.
pub fn a_user_that_does_not_look_loses_counted_frames(wire: &mut Wire) {
    let most = wire.rx().info().receive_frames as u64;
    let before = lost(wire);
    let sent = 3 * most + 1000;
    let longest = wire.frame_bytes_max();
    wire.send(0..sent, longest);
    let mut got = wire.collect_for(usize::MAX, SETTLED);
    let patience = Instant::now() + PATIENCE;
    while wire.exact && got.len() as u64 + lost(wire) - before < sent && Instant::now() < patience {
        got.extend(wire.collect_for(usize::MAX, SETTLED));
    }
    let (known, kept) = (lost(wire) - before, got.len() as u64);
    println!("{sent} sent, {kept} kept, {known} counted as lost");
    assert!(got.windows(2).all(|pair| number(&pair[0]) < number(&pair[1])), "in order");
    assert!(known > 0 && kept > 0 && kept < sent, "{:?}", wire.rx().counters());
    if wire.exact {
        assert_eq!(kept + known, sent);
    }
    // As if nothing had happened.
    all_come_from(wire, sent);
}

/// The transmit ring is filled completely before the kernel is called.
pub fn a_sender_that_does_not_flush_fills_the_ring(wire: &mut Wire) {
    let (mut frames, mut written, mut all) = (Vec::new(), 0u64, Vec::new());
    for _ in 0..3 {
        loop {
            let room = wire.write(&mut frames, written, 100);
            written += u64::from(room);
            wire.tx().transmit(&mut frames).unwrap();
            // A link that needs no call never fills up.
            if !room || !frames.is_empty() || written % 500 == 0 {
                break;
            }
        }
        wire.balanced();
        let until = Instant::now() + PATIENCE;
        while (all.len() as u64) < written && Instant::now() < until {
            wire.tx().transmit(&mut frames).unwrap();
            wire.tx().flush().unwrap();
            all.extend(wire.collect_for(1, SETTLED));
        }
        assert!(frames.is_empty());
        assert!(numbers(&all).eq(0..written), "{} of {written}", all.len());
    }
}
