//! The reorder buffer: packets that came early, because a network may reorder a few.

use std::time::{Duration, Instant};

use super::rate::StreamRate;

/// The usual number of packets that wait for an earlier one. With more, that one is given up.
const PACKETS: usize = 32;

/// The most packets that may wait, however long the window is: the limit of its memory.
const PACKETS_MAX: usize = 2048;

/// How far ahead of an earlier packet they may usually be, in the device's time, which does not
/// depend on this machine's delays.
const AHEAD: Duration = Duration::from_millis(10);

/// The same in packets, for long ones: at least.
const AHEAD_PACKETS: u64 = 4;

/// The time limit of their wait when no other packet comes, at least.
const QUIET: Duration = Duration::from_millis(100);

/// How far packets may come out of their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReorderWindow {
    /// The most packets that wait.
    packets: usize,
    /// How far ahead of a missing packet later ones wait for it, ticks.
    ticks: u64,
    quiet: Duration,
}

impl ReorderWindow {
    /// Returns the window of a stream with full packets of `samples` samples; `asked` is the time
    /// that its user chose.
    pub fn new(asked: Option<Duration>, rate: StreamRate, samples: u64) -> Self {
        let time = asked.unwrap_or(AHEAD);
        let packet_ticks = rate.ticks(samples).max(1);
        let ticks = (time.as_secs_f64() * rate.ticks_hz) as u64;
        let ticks = if time.is_zero() { 0 } else { ticks.max(AHEAD_PACKETS * packet_ticks) };
        let packets = match asked {
            None => PACKETS,
            // The packet that ends the window waits too.
            Some(_) if ticks > 0 => (ticks / packet_ticks + 1).min(PACKETS_MAX as u64) as usize,
            Some(_) => 0,
        };
        Self { packets, ticks, quiet: QUIET.max(time) }
    }

    /// Returns whether packets that are so many ticks ahead wait no longer.
    pub fn ends_at(&self, ahead: u64) -> bool {
        (self.ticks..1 << 63).contains(&ahead)
    }
}

/// Copies of packets that came early.
#[derive(Debug)]
pub(super) struct ReorderBuffer {
    window: ReorderWindow,
    bytes: Box<[u8]>,
    frame_bytes: usize,
    /// Places by the low bits of a packet's number.
    waiting: Box<[Option<Waiting>]>,
    count: usize,
    /// The awaited packet does not come: the waiting ones continue without it.
    given_up: bool,
    /// The one packet here has a doubtful time, and its turn comes with the next one.
    doubted: bool,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    seq: u16,
    length: usize,
    since: Instant,
}

impl ReorderBuffer {
    /// Allocates space for packets of up to `frame_bytes`.
    pub fn new(window: ReorderWindow, frame_bytes: usize) -> Self {
        let places = window.packets.next_power_of_two();
        let bytes = vec![0; places * frame_bytes].into_boxed_slice();
        let waiting = vec![None; places].into_boxed_slice();
        Self { window, bytes, frame_bytes, waiting, count: 0, given_up: false, doubted: false }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns whether a packet may wait here, with `missing` missing ones before it.
    pub fn takes(&self, seq: u16, packet: &[u8], missing: u64) -> bool {
        let window = self.window.packets as u64;
        let waiting = &self.waiting[self.slot(seq)];
        packet.len() <= self.frame_bytes
            && !self.given_up
            && (1..=window).contains(&missing)
            && waiting.is_none_or(|waiting| waiting.seq == seq)
    }

    /// Stores a copy of a packet that came at `now`, `ahead` ticks ahead of the awaited one, and
    /// that may wait; returns false for one that is stored already. The end of the window releases
    /// all of them.
    pub fn put(&mut self, seq: u16, packet: &[u8], ahead: u64, now: Instant) -> bool {
        if self.place_of(seq).is_some() {
            return false;
        }
        let place = self.slot(seq);
        self.waiting[place] = Some(Waiting { seq, length: packet.len(), since: now });
        self.bytes[place * self.frame_bytes..][..packet.len()].copy_from_slice(packet);
        self.count += 1;
        self.given_up |= self.count >= self.window.packets || self.window.ends_at(ahead);
        true
    }

    /// Stores a copy of the awaited packet, whose time is doubtful: another one may confirm it.
    pub fn doubt(&mut self, seq: u16, packet: &[u8], now: Instant) {
        self.put(seq, packet, 0, now);
        self.doubted = true;
    }

    /// Returns whether only a packet with a doubtful time is here: the next one may confirm it.
    pub fn is_in_doubt(&self) -> bool {
        self.doubted && self.count == 1
    }

    /// Returns how long the packets may still wait when no other comes; `None` without packets.
    pub fn left(&self, now: Instant) -> Option<Duration> {
        if self.is_empty() {
            return None;
        }
        let since = self.waiting.iter().flatten().map(|waiting| waiting.since).min()?;
        Some(self.window.quiet.saturating_sub(now.saturating_duration_since(since)))
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
        if !self.given_up {
            return self.place_of(next_seq).filter(|_| !self.is_in_doubt());
        }
        let mut seqs = (0..=self.waiting.len() as u16).map(|ahead| next_seq.wrapping_add(ahead));
        let first = seqs.find_map(|seq| self.place_of(seq));
        // The numbers may have jumped past those that wait.
        first.or_else(|| self.waiting.iter().position(Option::is_some))
    }

    fn slot(&self, seq: u16) -> usize {
        usize::from(seq) & (self.waiting.len() - 1)
    }

    /// Returns the place of the packet with this number.
    pub fn place_of(&self, seq: u16) -> Option<usize> {
        let place = self.slot(seq);
        self.waiting[place].is_some_and(|waiting| waiting.seq == seq).then_some(place)
    }

    /// Returns the packet at a place.
    pub fn packet(&self, place: usize) -> &[u8] {
        let length = self.waiting[place].map_or(0, |waiting| waiting.length);
        &self.bytes[place * self.frame_bytes..][..length]
    }

    /// Returns all waiting packets, unordered.
    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let places = if self.is_empty() { 0 } else { self.waiting.len() };
        (0..places).filter(|place| self.waiting[*place].is_some()).map(|place| self.packet(place))
    }

    /// Frees the place of a packet.
    pub fn free(&mut self, place: usize) {
        self.count -= usize::from(self.waiting[place].take().is_some());
        self.given_up &= !self.is_empty();
        self.doubted = false;
    }

    /// Drops all packets.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.waiting.fill(None);
        }
        (self.count, self.given_up, self.doubted) = (0, false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer() -> ReorderBuffer {
        ReorderBuffer::new(ReorderWindow::new(None, StreamRate::of_radio(1e6), 10), 8)
    }

    #[test]
    fn packets_wait_for_their_turn_across_the_wrap() {
        let (mut aside, now) = (buffer(), Instant::now());
        assert_eq!(aside.left(now), None);
        for (late_ms, seq) in [(0, 1), (1, u16::MAX), (2, 0)] {
            assert!(aside.put(seq, &seq.to_le_bytes(), 9, now + Duration::from_millis(late_ms)));
        }
        assert!(!aside.put(0, &[], 9, now), "it waits already");
        assert_eq!(aside.left(now + QUIET / 2), Some(QUIET / 2));
        assert_eq!(aside.left(now + 2 * QUIET), Some(Duration::ZERO));
        assert!(aside.takes(5, &[0; 8], 32) && !aside.takes(5, &[0; 9], 1));
        assert!(!aside.takes(5, &[], 33) && !aside.takes(33, &[], 1), "its place is taken");
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
    fn the_window_is_a_time_and_at_least_a_few_packets() {
        let of = |asked_ms: Option<u64>, rate_hz, samples| {
            let asked = asked_ms.map(Duration::from_millis);
            let ReorderWindow { packets, ticks, quiet } =
                ReorderWindow::new(asked, StreamRate::of_radio(rate_hz), samples);
            (packets, ticks, quiet.as_millis())
        };
        assert_eq!(of(None, 50e6, 2000), (32, 500_000, 100));
        assert_eq!(of(None, 100e3, 2000), (32, 8000, 100));
        assert_eq!(of(Some(10), 50e6, 2000), (251, 500_000, 100));
        assert_eq!(of(Some(1), 100e3, 2000), (5, 8000, 100));
        assert_eq!(of(Some(500), 200e6, 2000), (PACKETS_MAX, 100_000_000, 500));
        assert_eq!(of(Some(0), 50e6, 2000), (0, 0, 100));
    }

    #[test]
    fn a_window_of_no_time_takes_no_packet() {
        let window = ReorderWindow::new(Some(Duration::ZERO), StreamRate::of_radio(1e6), 10);
        let mut aside = ReorderBuffer::new(window, 8);
        assert!(!aside.takes(8, &[], 1) && !aside.give_up());
        assert_eq!(aside.due_index(7), None);
    }

    #[test]
    fn a_packet_at_the_end_of_the_window_releases_all() {
        let (mut aside, now) = (buffer(), Instant::now());
        assert!(aside.put(5, &[5], 9_999, now));
        assert_eq!(aside.due_index(3), None);
        assert!(aside.put(7, &[7], 10_000, now));
        for seq in [5, 7] {
            let place = aside.due_index(3).unwrap();
            assert_eq!(aside.packet(place), [seq]);
            aside.free(place);
        }
    }

    #[test]
    fn a_full_window_goes_in_order() {
        let (mut aside, now) = (buffer(), Instant::now());
        let seqs = (0..PACKETS as u16).map(|n| (n ^ 5) + 1);
        for seq in seqs {
            assert!(aside.takes(seq, &[], 1) && aside.put(seq, &seq.to_le_bytes(), 9, now));
        }
        assert!(!aside.takes(1, &[], 1), "they go first");
        for turn in 0..PACKETS as u16 {
            let place = aside.due_index(turn).unwrap();
            assert_eq!(aside.packet(place), (turn + 1).to_le_bytes());
            aside.free(place);
        }
        assert!(aside.is_empty() && aside.takes(1, &[], 1));
    }
}
