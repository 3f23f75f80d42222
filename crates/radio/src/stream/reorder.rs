//! The reorder buffer: packets that came early, because a network may reorder a few.

use std::time::{Duration, Instant};

/// The most packets that wait for an earlier one. With more, that one is given up.
pub(super) const WINDOW: usize = 32;

/// How far ahead of it they may be, in the device's time, which does not depend on this machine's
/// delays.
const AHEAD_S: f64 = 10e-3;

/// The same in packets, for long ones.
const AHEAD_PACKETS: u64 = 4;

/// The time limit of their wait when no other packet comes.
const QUIET: Duration = Duration::from_millis(100);

/// Returns how far ahead of a missing packet, ticks, later packets wait for it.
pub(super) fn ahead_max(rate_hz: f64, packet_ticks: u64) -> u64 {
    ((AHEAD_S * rate_hz) as u64).max(AHEAD_PACKETS * packet_ticks)
}

/// Copies of packets that came early.
#[derive(Debug)]
pub(super) struct ReorderBuffer {
    bytes: Box<[u8]>,
    frame_bytes: usize,
    waiting: [Option<Waiting>; WINDOW],
    count: usize,
    /// The awaited packet does not come: the waiting ones continue without it.
    given_up: bool,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    seq: u16,
    length: usize,
    since: Instant,
}

impl ReorderBuffer {
    /// Allocates space for packets of up to `frame_bytes`.
    pub fn new(frame_bytes: usize) -> Self {
        let bytes = vec![0; WINDOW * frame_bytes].into_boxed_slice();
        Self { bytes, frame_bytes, waiting: [None; WINDOW], count: 0, given_up: false }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns whether there is space for a packet of this length.
    pub fn takes(&self, packet: &[u8]) -> bool {
        packet.len() <= self.frame_bytes && !self.given_up
    }

    /// Stores a copy of a packet that came at `now` and for which there is space; returns false for
    /// one that is stored already. Taking the last free place releases all of them.
    pub fn put(&mut self, seq: u16, packet: &[u8], now: Instant) -> bool {
        if self.place_of(seq).is_some() {
            return false;
        }
        if let Some(place) = self.waiting.iter().position(Option::is_none) {
            let length = packet.len();
            self.bytes[place * self.frame_bytes..][..length].copy_from_slice(packet);
            self.waiting[place] = Some(Waiting { seq, length, since: now });
            self.count += 1;
        }
        self.given_up |= self.count == WINDOW;
        true
    }

    /// Replaces the stored packet of this number.
    pub fn replace(&mut self, seq: u16, packet: &[u8]) {
        let place = self.place_of(seq);
        let Some((place, waiting)) = place.zip(place.and_then(|at| self.waiting[at].as_mut()))
        else {
            return;
        };
        waiting.length = packet.len();
        self.bytes[place * self.frame_bytes..][..packet.len()].copy_from_slice(packet);
    }

    /// Returns how long the packets may still wait when no other comes; `None` without packets.
    pub fn left(&self, now: Instant) -> Option<Duration> {
        let since = self.waiting.iter().flatten().map(|waiting| waiting.since).min()?;
        Some(QUIET.saturating_sub(now.saturating_duration_since(since)))
    }

    /// Gives up the awaited packet. Returns true when packets wait.
    pub fn give_up(&mut self) -> bool {
        self.given_up = !self.is_empty();
        self.given_up
    }

    /// Returns the place of the packet to be processed next when `next_seq` is due.
    pub fn due_index(&self, next_seq: u16) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let ahead = |place: &usize| self.waiting[*place].map(|w| w.seq.wrapping_sub(next_seq));
        let first = (0..WINDOW).filter(|place| ahead(place).is_some()).min_by_key(ahead)?;
        (self.given_up || ahead(&first) == Some(0)).then_some(first)
    }

    /// Returns the place of the packet with this number.
    pub fn place_of(&self, seq: u16) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.is_some_and(|waiting| waiting.seq == seq))
    }

    /// Returns the packet at a place.
    pub fn packet(&self, place: usize) -> &[u8] {
        let length = self.waiting[place].map_or(0, |waiting| waiting.length);
        &self.bytes[place * self.frame_bytes..][..length]
    }

    /// Returns all waiting packets, unordered.
    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        (0..WINDOW).filter(|place| self.waiting[*place].is_some()).map(|place| self.packet(place))
    }

    /// Frees the place of a packet.
    pub fn free(&mut self, place: usize) {
        self.count -= usize::from(self.waiting[place].take().is_some());
        self.given_up &= !self.is_empty();
    }

    /// Drops all packets.
    pub fn clear(&mut self) {
        (self.waiting, self.count, self.given_up) = ([None; WINDOW], 0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_wait_for_their_turn_across_the_wrap() {
        let (mut aside, now) = (ReorderBuffer::new(8), Instant::now());
        assert_eq!(aside.left(now), None);
        for (late_ms, seq) in [(0, 1), (1, u16::MAX), (2, 0)] {
            assert!(aside.put(seq, &seq.to_le_bytes(), now + Duration::from_millis(late_ms)));
        }
        assert!(!aside.put(0, &[], now), "it waits already");
        aside.replace(0, &[7; 3]);
        assert_eq!(aside.packet(aside.place_of(0).unwrap()), [7; 3]);
        aside.replace(0, &[0; 2]);
        aside.replace(9, &[1]);
        assert_eq!(aside.left(now + QUIET / 2), Some(QUIET / 2));
        assert_eq!(aside.left(now + 2 * QUIET), Some(Duration::ZERO));
        assert!(aside.takes(&[0; 8]) && !aside.takes(&[0; 9]));
        assert_eq!(aside.due_index(u16::MAX - 1), None);
        for seq in [u16::MAX, 0, 1] {
            let place = aside.due_index(seq).unwrap();
            assert_eq!(
                (aside.packet(place), aside.place_of(seq)),
                (&seq.to_le_bytes()[..], Some(place))
            );
            aside.free(place);
        }
        assert!(aside.is_empty() && aside.left(now).is_none());
    }

    #[test]
    fn slow_streams_wait_for_a_few_packets_and_fast_ones_for_ten_milliseconds() {
        assert_eq!((ahead_max(50e6, 2000), ahead_max(2e6, 500)), (500_000, 20_000));
        assert_eq!(ahead_max(100e3, 2000), 8000);
    }

    #[test]
    fn a_full_window_goes_in_order() {
        let (mut aside, now) = (ReorderBuffer::new(8), Instant::now());
        let seqs = (0..WINDOW as u16).map(|n| (n ^ 5) * 2 + 1);
        for seq in seqs {
            assert!(aside.takes(&[]) && aside.put(seq, &seq.to_le_bytes(), now));
        }
        assert!(!aside.takes(&[]), "they go first");
        for turn in 0..WINDOW as u16 {
            let place = aside.due_index(turn * 2).unwrap();
            assert_eq!(aside.packet(place), (turn * 2 + 1).to_le_bytes());
            aside.free(place);
        }
        assert!(aside.is_empty() && aside.takes(&[]));
    }
}
