//! A frame has one owner at a time, and no frame is lost.

use std::time::{Duration, Instant};

use millstream_testkit::allocations;

use crate::wire::{ETHERTYPE, PATIENCE, Wire, number, numbers};

/// Received frames lie in the frame memory: they have not been copied out of it.
pub fn the_memory_is_where_frames_are(wire: &mut Wire) {
    wire.send(0..10, 200);
    let (mut frames, mut seen) = (Vec::new(), 0);
    let until = Instant::now() + PATIENCE;
    while seen < 10 && Instant::now() < until {
        seen += wire.rx().receive(&mut frames).unwrap();
    }
    assert_eq!(wire.rx().census().lent, frames.len());
    wire.balanced();
    let memory = wire.rx().memory().clone();
    for frame in &frames {
        let bytes = memory.bytes(frame);
        assert!(
            memory.contains(bytes.as_ptr()) && memory.contains(&raw const bytes[bytes.len() - 1])
        );
    }
    let mut places: Vec<_> = frames.iter().map(|frame| (frame.at(), frame.room())).collect();
    places.sort_unstable();
    let apart = places.windows(2).all(|pair| pair[0].0 + pair[0].1 as u64 <= pair[1].0);
    assert!(apart, "no two frames share a byte: {places:?}");
    wire.rx().give_back(&mut frames);
}

pub fn buffers_run_out_and_come_back(wire: &mut Wire) {
    let mut frames = Vec::new();
    let all = wire.tx().reserve(&mut frames, usize::MAX / 2);
    assert!(all > 0 && all == frames.len());
    let room = wire.tx().info().part_bytes_max;
    assert!(frames.iter().all(|frame| frame.room() >= room), "each holds the longest part");
    assert_eq!(wire.tx().reserve(&mut frames, 1), 0, "there are no more");
    assert_eq!(wire.tx().census().lent, all);
    wire.balanced();
    wire.tx().give_back(&mut frames);
    assert_eq!(wire.tx().reserve(&mut frames, all), all, "all of them are free again");
    wire.tx().give_back(&mut frames);
    wire.send(0..100, 300);
    assert!(numbers(&wire.collect(100)).eq(0..100));
}

pub fn frames_go_back_in_any_order(wire: &mut Wire) {
    let mut held = Vec::new();
    for turn in 0..200u64 {
        wire.send(turn * 10..turn * 10 + 10, 100);
        let until = Instant::now() + Duration::from_millis(50);
        let before = held.len();
        while held.len() < before + 10 && Instant::now() < until {
            wire.rx().receive(&mut held).unwrap();
        }
        if held.len() == before {
            // Where frames share blocks a few may occupy all: then every frame is given back.
            wire.rx().give_back(&mut held);
        }
        // Received and unused frames, oldest and newest, mixed.
        let mut back: Vec<_> = Vec::new();
        wire.rx().reserve(&mut back, 3);
        while held.len() > 20 {
            let which = (turn as usize * 7 + back.len() * 13) % held.len();
            back.insert(back.len() / 2, held.swap_remove(which));
        }
        wire.rx().give_back(&mut back);
        wire.balanced();
    }
    wire.rx().give_back(&mut held);
    wire.collect_for(usize::MAX, Duration::from_millis(50));
    wire.send(0..100, 100);
    assert!(numbers(&wire.collect(100)).eq(0..100), "all buffers are back");
}

/// Whole frames are taken off the front; the rest stays in order.
pub fn what_does_not_fit_stays_with_the_caller(wire: &mut Wire) {
    let mut frames = Vec::new();
    let mut written = 0;
    while written < 20_000 && wire.write(&mut frames, written, 60) {
        written += 1;
    }
    let (mut all, until) = (Vec::new(), Instant::now() + PATIENCE);
    while !frames.is_empty() || (all.len() as u64) < written {
        let before = frames.len();
        let taken = wire.tx().transmit(&mut frames).unwrap();
        assert_eq!(before - taken, frames.len());
        wire.tx().flush().unwrap();
        // Middleware may have taken more than the link has room for.
        all.extend(wire.collect_for(taken.max(1), Duration::from_millis(50)));
        assert!(Instant::now() < until, "{} of {written} came", all.len());
    }
    assert!(numbers(&all).eq(0..written));
}

/// MAC swap: the received frame itself is transmitted.
pub fn received_frames_forward_as_they_are(wire: &mut Wire) {
    if !wire.rx().info().forwards {
        return;
    }
    for turn in 0..50 {
        wire.send(turn..turn + 1, 400);
        let (mut frames, until) = (Vec::new(), Instant::now() + PATIENCE);
        while frames.is_empty() && Instant::now() < until {
            wire.rx().receive(&mut frames).unwrap();
        }
        let memory = wire.rx().memory().clone();
        let bytes = memory.bytes_mut(&mut frames[0]);
        let (to, from) = bytes[..12].split_at_mut(6);
        to.swap_with_slice(from);
        wire.rx().transmit(&mut frames).unwrap();
        wire.rx().flush().unwrap();
        wire.rx().give_back(&mut frames);
        let until = Instant::now() + PATIENCE;
        let back = loop {
            wire.tx().receive(&mut frames).unwrap();
            let ours = crate::wire::join(wire.tx(), &frames);
            wire.tx().give_back(&mut frames);
            let mut ours = ours.into_iter().filter(|f| f[12..14] == ETHERTYPE.to_be_bytes());
            match ours.next() {
                Some(frame) => break frame,
                None => assert!(Instant::now() < until, "it did not come back"),
            }
        };
        assert_eq!(number(&back), turn);
        wire.balanced();
    }
}

/// A frame returned to the wrong link would become a second frame over the same bytes there.
pub fn frames_of_another_link_are_refused(wire: &mut Wire) {
    let mut stranger = millstream_link::open_frames("null", &Default::default()).unwrap();
    let mut frames = Vec::new();
    assert_eq!(stranger.reserve(&mut frames, 1), 1);
    let back = std::panic::AssertUnwindSafe(|| wire.rx().give_back(&mut frames));
    let refused = std::panic::catch_unwind(back).unwrap_err();
    let text = refused.downcast_ref::<&str>().copied();
    assert_eq!(text, Some("a frame of another link"));
}

pub fn steady_state_allocates_nothing(wire: &mut Wire) {
    let mut frames = Vec::with_capacity(256);
    let mut exchange = || {
        wire.tx().reserve(&mut frames, 32);
        assert_eq!(frames.len(), 32);
        let (memory, to) = (wire.tx().memory().clone(), wire.rx().info().mac);
        for frame in &mut frames {
            frame.set_len(60);
            let bytes = memory.bytes_mut(frame);
            bytes[..6].copy_from_slice(&to);
            bytes[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        }
        let until = Instant::now() + PATIENCE;
        while !frames.is_empty() && Instant::now() < until {
            wire.tx().transmit(&mut frames).unwrap();
            wire.tx().flush().unwrap();
        }
        let mut seen = 0;
        while seen < 32 && Instant::now() < until {
            seen += wire.rx().receive(&mut frames).unwrap();
            wire.rx().give_back(&mut frames);
        }
        assert!(seen >= 32, "{seen} of 32 came");
    };
    exchange();
    let before = allocations();
    (0..200).for_each(|_| exchange());
    assert_eq!(allocations(), before);
}
