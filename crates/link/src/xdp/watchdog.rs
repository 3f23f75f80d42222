//! Detects stopped rings, which ring stopped, and when it continued. A pure calculation: the
//! observations and the time are arguments.
//!
//! | ring | reason | remedy |
//! | --- | --- | --- |
//! | fill | the kernel has no buffer to receive into: the user holds all | giving frames back |
//! | receive | it is full: `receive` is not called, frames are lost, counted | calling it |
//! | transmit | nothing leaves: the kernel was not called, or the link is down | calling it |
//! | completion | it is full: the kernel cannot transmit | reclaiming: every call does |

use std::time::Duration;

/// A ring of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueRing {
    /// Buffers on their way to the kernel.
    Fill,
    /// Received frames.
    Receive,
    /// Frames to transmit.
    Transmit,
    /// Transmitted frames.
    Completion,
}

const RINGS: [QueueRing; 4] =
    [QueueRing::Fill, QueueRing::Receive, QueueRing::Transmit, QueueRing::Completion];

/// The time after which frames that do not leave count as a stall: far longer than any
/// transmission.
const TRANSMIT_PATIENCE: Duration = Duration::from_millis(20);

/// The positions of the rings of one queue: entries that wait to be taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct RingPositions {
    /// Buffers waiting for the kernel.
    pub fill: u32,
    /// Frames waiting for us.
    pub receive: u32,
    /// The size of that ring.
    pub receive_entries: u32,
    /// Frames waiting for the kernel.
    pub transmit: u32,
    /// The number of frames that the kernel has ever taken, modulo 2^32.
    pub transmit_taken: u32,
    /// Buffers waiting for us.
    pub completion: u32,
    /// The size of that ring.
    pub completion_entries: u32,
}

/// A stopped ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingStall {
    /// The queue of the interface.
    pub queue: u32,
    /// Its ring.
    pub ring: QueueRing,
    /// The duration of the stop when it was last seen, or in total.
    pub lasted: Duration,
    /// Whether the ring has continued.
    pub over: bool,
}

/// A watchdog of one queue.
#[derive(Debug)]
pub struct Watchdog {
    queue: u32,
    /// The time since when each ring has stopped.
    stopped: [Option<Duration>; 4],
    /// The taken frames when the transmit ring last moved, and the time.
    moved: (u32, Duration),
    last: Option<RingStall>,
    recoveries: u64,
}

impl Watchdog {
    /// Creates the watchdog of a queue.
    pub fn new(queue: u32) -> Self {
        let (stopped, moved) = ([None; 4], (0, Duration::ZERO));
        Self { queue, stopped, moved, last: None, recoveries: 0 }
    }

    /// Checks the rings at time `now`. Returns whether any ring stands still.
    pub fn look(&mut self, now: Duration, seen: RingPositions) -> bool {
        if seen.transmit == 0 || seen.transmit_taken != self.moved.0 {
            self.moved = (seen.transmit_taken, now);
        }
        for (index, ring) in RINGS.into_iter().enumerate() {
            let stopped = match ring {
                QueueRing::Fill => seen.fill == 0 && seen.receive < seen.receive_entries,
                QueueRing::Receive => seen.receive >= seen.receive_entries,
                QueueRing::Transmit => now.saturating_sub(self.moved.1) >= TRANSMIT_PATIENCE,
                QueueRing::Completion => seen.completion >= seen.completion_entries,
            };
            self.note(index, ring, stopped, now);
        }
        self.stopped.iter().any(Option::is_some)
    }

    fn note(&mut self, index: usize, ring: QueueRing, stopped: bool, now: Duration) {
        let began = self.stopped[index];
        self.stopped[index] = if stopped { Some(began.unwrap_or(now)) } else { None };
        let Some(began) = began.or(self.stopped[index]) else { return };
        self.recoveries += u64::from(!stopped);
        let lasted = now.saturating_sub(began);
        self.last = Some(RingStall { queue: self.queue, ring, lasted, over: !stopped });
    }

    /// Returns the stall seen last, if there was one.
    pub fn last(&self) -> Option<RingStall> {
        self.last
    }

    /// Returns the number of stalls that have ended.
    pub fn recoveries(&self) -> u64 {
        self.recoveries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: RingPositions = RingPositions {
        fill: 64,
        receive: 3,
        receive_entries: 64,
        transmit: 0,
        transmit_taken: 0,
        completion: 0,
        completion_entries: 32,
    };

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn rings_that_move_are_no_stall() {
        let mut dog = Watchdog::new(0);
        for ms in 0..100 {
            // As many as before, but different ones.
            let transmit_taken = (u32::MAX - 50).wrapping_add(ms);
            let seen = RingPositions { transmit: 5, transmit_taken, ..WELL };
            assert!(!dog.look(at(ms.into()), seen));
        }
        assert_eq!((dog.last(), dog.recoveries()), (None, 0));
    }

    #[test]
    fn each_ring_is_named_and_its_recovery_timed() {
        let full = RingPositions { receive: 64, fill: 0, ..WELL };
        for (ring, seen) in [
            (QueueRing::Fill, RingPositions { fill: 0, ..WELL }),
            (QueueRing::Receive, full),
            (QueueRing::Completion, RingPositions { completion: 32, ..WELL }),
        ] {
            let mut dog = Watchdog::new(3);
            assert!(!dog.look(at(1), WELL));
            assert!(dog.look(at(2), seen) && dog.look(at(7), seen));
            let stall = RingStall { queue: 3, ring, lasted: at(5), over: false };
            assert_eq!(dog.last(), Some(stall));
            assert!(!dog.look(at(12), WELL));
            assert_eq!(dog.last(), Some(RingStall { lasted: at(10), over: true, ..stall }));
            assert_eq!(dog.recoveries(), 1);
        }
    }

    #[test]
    fn frames_that_do_not_leave_are_a_stall_after_a_while() {
        let mut dog = Watchdog::new(0);
        let stuck = RingPositions { transmit: 7, transmit_taken: 40, ..WELL };
        assert!(!dog.look(at(100), stuck));
        // A larger number is not a movement.
        assert!(!dog.look(at(119), RingPositions { transmit: 8, ..stuck }));
        assert!(dog.look(at(120), stuck));
        assert_eq!(dog.last().unwrap().ring, QueueRing::Transmit);
        assert!(!dog.look(at(130), RingPositions { transmit_taken: 41, ..stuck }));
        assert_eq!((dog.recoveries(), dog.last().unwrap().lasted), (1, at(10)));
    }
}
