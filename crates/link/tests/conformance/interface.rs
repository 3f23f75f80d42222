//! The interface below a link: other traffic, sleeping, going down, removal.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use millstream_link::frame::FrameLink;
use millstream_link::frame::Steer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::wire::{ETHERTYPE, ETHERTYPE_UNWANTED, PATIENCE, Wire, number, numbers};

/// Wanted types arrive, others need not; the selection can be changed.
pub fn only_what_is_wanted_comes(wire: &mut Wire) {
    let everything = Steer { everything: true, ..Steer::default() };
    let ours = Steer { ethertypes: vec![ETHERTYPE], ..Steer::default() };
    let none = Steer::default();
    for (turn, (steer, wanted)) in
        [(&ours, true), (&none, false), (&everything, true), (&ours, true)].into_iter().enumerate()
    {
        wire.rx().steer(steer).unwrap();
        let first = 100 * turn as u64;
        let mut frames = Vec::new();
        assert!(wire.write_as(&mut frames, 99, 60, ETHERTYPE_UNWANTED));
        wire.tx().transmit(&mut frames).unwrap();
        wire.send(first..first + 10, 60);
        if wanted {
            assert!(numbers(&wire.collect(10)).eq(first..first + 10), "turn {turn}");
        } else {
            // A link may deliver more than is wanted.
            wire.collect_for(10, Duration::from_millis(20));
        }
    }
}

fn readable(end: &dyn FrameLink, wait: Duration) -> bool {
    let Some(fd) = end.poll_fd() else { return true };
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    poll(&mut fds, Some(&wait)).unwrap() > 0
}

pub fn a_sleeper_wakes_when_frames_come(wire: &mut Wire) {
    if wire.rx().poll_fd().is_none() {
        return;
    }
    for turn in 0..50 {
        // Until nothing is left, as a user does before it sleeps.
        let until = Instant::now() + PATIENCE;
        loop {
            let quiet = wire.collect_for(usize::MAX, Duration::ZERO).is_empty();
            let mut frames = Vec::new();
            let none = wire.rx().receive(&mut frames).unwrap() == 0;
            wire.rx().give_back(&mut frames);
            if quiet && none && !readable(wire.rx(), Duration::ZERO) {
                break;
            }
            assert!(Instant::now() < until, "readable although nothing is there");
        }
        wire.send(turn..turn + 1, 60);
        assert!(readable(wire.rx(), PATIENCE), "turn {turn}: a frame wakes");
        assert_eq!(number(&wire.collect(1)[0]), turn);
    }
}

/// Returns `NetworkDown` from one call or the other while it is down; then everything works again.
pub fn an_interface_that_was_down_carries_again(wire: &mut Wire) {
    if !wire.has_cable() {
        return;
    }
    wire.send(0..10, 60);
    assert!(numbers(&wire.collect(10)).eq(0..10));
    for turn in 1..4u64 {
        wire.set_up(false);
        let told = meets(wire, io::ErrorKind::NetworkDown);
        assert!(told, "nobody said that the interface is down");
        wire.balanced();
        wire.set_up(true);
        // The first calls may still report the old state.
        let (mut next, until) = (1000 * turn, Instant::now() + PATIENCE);
        let mut frames = Vec::new();
        while frames.is_empty() {
            assert!(Instant::now() < until, "{next} frames went nowhere");
            let _ = try_send(wire, next);
            thread::sleep(Duration::from_millis(1));
            let _ = wire.rx().receive(&mut frames);
            next += 1;
        }
        wire.rx().give_back(&mut frames);
        wire.collect_for(usize::MAX, Duration::from_millis(20));
        wire.send(next..next + 100, 60);
        assert!(numbers(&wire.collect(100)).eq(next..next + 100));
        wire.balanced();
    }
}

pub fn an_interface_that_is_gone_says_so(wire: &mut Wire) {
    if !wire.has_cable() {
        return;
    }
    wire.send(0..10, 60);
    wire.delete();
    assert!(meets(wire, io::ErrorKind::NotFound), "nobody said that the interface is gone");
    // Closing a removed interface's link causes no error either.
}

/// Sends one frame; returns whether it was taken.
fn try_send(wire: &mut Wire, number: u64) -> io::Result<()> {
    let mut frames = Vec::new();
    wire.write(&mut frames, number, 60);
    let done = wire.tx().transmit(&mut frames).and_then(|_| wire.tx().flush());
    wire.tx().give_back(&mut frames);
    done
}

/// Whether sending or receiving ends with this error, within a bound.
fn meets(wire: &mut Wire, kind: io::ErrorKind) -> bool {
    let until = Instant::now() + PATIENCE;
    let mut frames = Vec::new();
    while Instant::now() < until {
        let sent = try_send(wire, 0);
        let received = wire.rx().receive(&mut frames);
        wire.rx().give_back(&mut frames);
        let errors = [sent.err(), received.err()];
        if errors.iter().flatten().any(|error| error.kind() == kind) {
            return true;
        }
        thread::sleep(Duration::from_millis(1));
    }
    false
}

pub fn a_closed_link_opens_again_at_once(wire: &mut Wire) {
    for turn in 0..10u64 {
        wire.send(turn * 10..turn * 10 + 10, 60);
        assert!(numbers(&wire.collect(10)).eq(turn * 10..turn * 10 + 10), "turn {turn}");
        if !wire.reopen() {
            return;
        }
    }
}
