//! The samples that a stream should have had, from time stamps alone.

use super::rate::StreamRate;
use super::tracker::{Arrival, PacketGap};

/// The expected side of the ledger. It measures from the start of a burst to the end of its newest
/// packet, and so does not depend on the counting of packets and gaps.
///
/// It counts modulo 2⁶⁴, as the ledger does: a faulty device time can overflow.
#[derive(Debug, Clone, Default)]
pub(super) struct Expectation {
    /// Samples before the current span.
    before: u64,
    /// The beginning of the current span of continuous time, ticks.
    start: Option<u64>,
    /// Samples of the current span.
    span: u64,
}

impl Expectation {
    /// Begins a burst, at a known time or with its first packet.
    pub fn begin(&mut self, ticks: Option<u64>) {
        (self.before, self.span, self.start) = (self.total(), 0, ticks);
    }

    /// Returns the samples of the current burst so far.
    pub fn total(&self) -> u64 {
        self.before.wrapping_add(self.span)
    }

    /// Counts a packet that came behind `gap`.
    pub fn arrive(&mut self, arrival: &Arrival, gap: Option<&PacketGap>, rate: StreamRate) {
        let missing = gap.map_or(0, PacketGap::samples);
        let Some(ticks) = arrival.ticks else {
            self.span = self.span.wrapping_add(missing).wrapping_add(arrival.samples);
            return;
        };
        // Behind a clock that was set, time is measured from a new start.
        if gap.is_some_and(|gap| gap.jump != 0) {
            self.add(missing);
            self.start = Some(ticks);
        }
        // Samples without time before it are part of the span, too.
        let before = self.span.wrapping_add(missing);
        let start = *self.start.get_or_insert(ticks.wrapping_sub(rate.ticks(before)));
        let since = ticks.wrapping_sub(start);
        // A packet in its place needs no division.
        let since = if since == rate.ticks(self.span) { self.span } else { rate.samples(since) };
        self.span = since.wrapping_add(arrival.samples);
    }

    /// Adds requested samples that will not come; or, modulo 2⁶⁴, removes samples that came and are
    /// not expected.
    pub fn add(&mut self, samples: u64) {
        (self.before, self.span, self.start) = (self.total().wrapping_add(samples), 0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per(ticks_per_sample: u32) -> StreamRate {
        let ticks_per_sample = ticks_per_sample.try_into().unwrap();
        StreamRate { ticks_hz: 1.0, ticks_per_sample }
    }

    fn at(ticks: Option<u64>) -> Arrival {
        Arrival { seq: 0, ticks, samples: 10 }
    }

    fn gap(packets: u64) -> PacketGap {
        PacketGap { packets, in_packets: 10 * packets, ..PacketGap::default() }
    }

    #[test]
    fn time_is_measured_from_the_start_of_the_burst() {
        let mut expectation = Expectation::default();
        expectation.begin(Some(100));
        expectation.arrive(&at(Some(140)), Some(&gap(2)), per(2));
        assert_eq!(expectation.total(), 30);
        expectation.arrive(&at(Some(160)), None, per(2));
        assert_eq!(expectation.total(), 40);
        // Another burst, whose start is unknown.
        expectation.begin(None);
        expectation.arrive(&at(Some(1000)), Some(&gap(1)), per(2));
        assert_eq!(expectation.total(), 60);
        expectation.add(5);
        assert_eq!(expectation.total(), 65);
    }

    #[test]
    fn a_clock_set_back_begins_a_new_span() {
        let mut expectation = Expectation::default();
        expectation.arrive(&at(Some(1000)), None, per(1));
        let set = |gap: PacketGap| Some(PacketGap { jump: -1005, ..gap });
        expectation.arrive(&at(Some(5)), set(gap(0)).as_ref(), per(1));
        expectation.arrive(&at(Some(15)), None, per(1));
        assert_eq!(expectation.total(), 30);
        // Two packets were lost there.
        expectation.arrive(&at(Some(3)), set(gap(2)).as_ref(), per(1));
        assert_eq!(expectation.total(), 60);
    }

    #[test]
    fn a_packet_without_time_before_those_with_time_counts() {
        let mut expectation = Expectation::default();
        expectation.arrive(&at(None), None, per(1));
        expectation.arrive(&at(Some(500)), Some(&gap(1)), per(1));
        expectation.arrive(&at(Some(510)), None, per(1));
        assert_eq!(expectation.total(), 40);
    }

    #[test]
    fn without_time_packets_are_added_up() {
        let mut expectation = Expectation::default();
        expectation.arrive(&at(None), None, per(1));
        expectation.arrive(&at(None), Some(&gap(1)), per(1));
        assert_eq!(expectation.total(), 30);
    }
}
