//! The cause of a gap.

use super::tracker::{Arrival, PacketGap};
use crate::{Cause, Ledger};

/// What counted in the gap at a new set-up of the stream, samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetUpGap {
    pub network: u64,
    pub unknown: u64,
    /// What was not sent, and the cause of that.
    pub unsent: u64,
    pub cause: Cause,
    /// The times at which the run before it overran, if the device reported that, and at which the
    /// run behind it began, ticks: what was sent in between is not counted as sent.
    pub hidden: Option<(u64, u64)>,
}

/// The events that may explain the next gap.
#[derive(Debug, Clone)]
pub(super) struct Losses {
    samples_per_packet: u64,
    /// The most packets that one drop of the queue can take: a GRO batch counts once.
    packets_per_drop: u64,
    /// Packets of unknown number that could not be decoded since the last good one.
    malformed: u64,
    /// Samples that came while the stream was set up again, and those that came damaged.
    passed_over: u64,
    damaged_over: u64,
    /// The gap at the newest set-up, if it is in the ledger: packets may still come that were
    /// delayed over the set-up.
    set_up_gap: Option<SetUpGap>,
    /// Drops of the queue that are not yet assigned to a gap.
    drops: u64,
    drops_seen: u64,
}

impl Losses {
    pub fn new(samples_per_packet: u64, packets_per_drop: u64) -> Self {
        Self {
            samples_per_packet,
            packets_per_drop,
            malformed: 0,
            passed_over: 0,
            damaged_over: 0,
            set_up_gap: None,
            drops: 0,
            drops_seen: 0,
        }
    }

    /// Counts a packet of the stream that could not be decoded, including its number.
    pub fn note_malformed(&mut self, packets: u64) {
        self.malformed = self.malformed.saturating_add(packets);
    }

    /// Clears the malformed packets: a good packet came without a gap before it, so they did not
    /// belong to the stream.
    pub fn clear_malformed(&mut self) {
        self.malformed = 0;
    }

    /// Counts samples that came while the stream was set up again, and were skipped.
    pub fn pass_over(&mut self, samples: u64) {
        self.passed_over += samples;
    }

    /// Counts samples of packets that came damaged while the stream was set up again.
    pub fn pass_over_damaged(&mut self, samples: u64) {
        self.damaged_over += samples;
    }

    /// Returns the samples that came while the stream was set up again, whole or damaged, and are
    /// not in the ledger.
    pub fn passed_over(&self) -> u64 {
        self.passed_over + self.damaged_over
    }

    /// Enters `gap` into the ledger. `queue_drops` is the port's current counter. Returns the
    /// samples that count as lost in the network.
    ///
    /// Damaged packets are known individually. The next ones are those that the queue dropped; the
    /// remaining missing packets were lost in the network. Samples that the device never sent have
    /// the cause `unsent`.
    pub fn book(
        &mut self,
        gap: &PacketGap,
        unsent: Cause,
        queue_drops: u64,
        ledger: &mut Ledger,
    ) -> u64 {
        self.drops += queue_drops.saturating_sub(self.drops_seen);
        self.drops_seen = self.drops_seen.max(queue_drops);

        let damaged = gap.damaged.div_ceil(self.samples_per_packet).min(gap.packets);
        let malformed = self.malformed.min(gap.packets - damaged);
        let left = gap.packets - damaged - malformed;
        let dropped = self.drops.saturating_mul(self.packets_per_drop).min(left);
        self.malformed = 0;
        self.drops -= dropped.div_ceil(self.packets_per_drop);

        let mut left = gap.in_packets;
        let mut book = |cause, samples: u64| {
            let samples = samples.min(left);
            ledger.lose(cause, samples);
            left -= samples;
            samples
        };
        book(Cause::Late, std::mem::take(&mut self.passed_over));
        book(Cause::Malformed, std::mem::take(&mut self.damaged_over));
        book(Cause::Malformed, gap.damaged);
        book(Cause::Malformed, malformed.saturating_mul(self.samples_per_packet));
        book(Cause::HostQueueDrop, dropped.saturating_mul(self.samples_per_packet));
        let network = book(Cause::NetworkLoss, u64::MAX);
        ledger.lose(unsent, gap.unsent);
        network
    }

    /// Counts samples that came during a new set-up of the stream. The gap there is still open.
    pub fn begin_set_up(&mut self, samples: u64) {
        self.pass_over(samples);
        self.set_up_gap = None;
    }

    /// Keeps what counts in the gap at a new set-up.
    pub fn note_set_up(&mut self, gap: SetUpGap) {
        self.set_up_gap = Some(gap);
    }

    /// Corrects the ledger for a packet that came after it was counted as missing; `damaged`: an
    /// earlier copy of it came damaged.
    pub fn found(&mut self, samples: u64, damaged: bool, ledger: &mut Ledger) {
        let order = if damaged {
            [Cause::Malformed, Cause::NetworkLoss, Cause::HostQueueDrop]
        } else {
            [Cause::NetworkLoss, Cause::HostQueueDrop, Cause::Malformed]
        };
        let Some(from) = order.into_iter().find(|from| ledger.lost(*from) >= samples) else {
            return;
        };
        ledger.relabel(from, Cause::Late, samples);
        // The queue then dropped another packet.
        self.drops += u64::from(from == Cause::HostQueueDrop && self.packets_per_drop == 1);
    }

    /// Corrects the ledger for a packet that was delayed over a new set-up, and came when the gap
    /// there was in the ledger.
    pub fn found_behind_set_up(&mut self, arrival: &Arrival, ledger: &mut Ledger) {
        let Some(gap) = &mut self.set_up_gap else { return };
        // It is of a run that was unknown.
        let is_hidden = gap.hidden.zip(arrival.ticks).is_some_and(|((overrun, begun), ticks)| {
            ticks.wrapping_sub(overrun) < begun.wrapping_sub(overrun)
        });
        let mut order = [
            (Cause::NetworkLoss, &mut gap.network),
            (Cause::Unknown, &mut gap.unknown),
            (gap.cause, &mut gap.unsent),
        ];
        order.rotate_left(is_hidden.into());
        let mut samples = arrival.samples;
        for (cause, left) in order {
            let some = samples.min(*left).min(ledger.lost(cause));
            ledger.relabel(cause, Cause::Late, some);
            (*left, samples) = (*left - some, samples - some);
        }
    }

    /// Corrects the ledger for a damaged packet that was counted as lost in the network.
    pub fn found_damaged(&mut self, ledger: &mut Ledger) {
        let samples = self.samples_per_packet.min(ledger.lost(Cause::NetworkLoss));
        ledger.relabel(Cause::NetworkLoss, Cause::Malformed, samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::StreamRate;
    use crate::stream::expectation::Expectation;
    use crate::stream::tracker::{PacketClass, Tracker};

    fn book(losses: &mut Losses, gap: PacketGap, drops: u64) -> [u64; 4] {
        let mut ledger = Ledger::default();
        losses.book(&gap, Cause::DeviceOverrun, drops, &mut ledger);
        [Cause::DeviceOverrun, Cause::NetworkLoss, Cause::HostQueueDrop, Cause::Malformed]
            .map(|cause| ledger.lost(cause))
    }

    fn gap(packets: u64, in_packets: u64, unsent: u64) -> PacketGap {
        PacketGap { packets, in_packets, unsent, ..PacketGap::default() }
    }

    #[test]
    fn a_device_whose_time_runs_wild_leaves_a_ledger_that_balances() {
        let mut tracker = Tracker::new(10, 1);
        let (mut expectation, mut losses) = (Expectation::default(), Losses::new(10, 1));
        let (mut ledger, mut ticks) = (Ledger::default(), 0u64);
        expectation.begin(None);
        for step in 0..200_000u64 {
            // Almost the longest jump that is accepted, sometimes back by as much.
            let jump = (1 << 48) - step;
            ticks = if step % 7 == 6 { ticks.wrapping_sub(jump) } else { ticks.wrapping_add(jump) };
            let seq = if step % 7 == 6 { tracker.next_seq() } else { (step * 3) as u16 };
            let arrival = Arrival { seq, ticks: Some(ticks), samples: 10 };
            let gap = match tracker.judge(&arrival) {
                PacketClass::Next => None,
                PacketClass::After(gap) => Some(gap),
                _ => continue,
            };
            expectation.arrive(&arrival, gap.as_ref(), StreamRate::of_radio(1.0));
            ledger.expected = expectation.total();
            ledger.hold(10);
            ledger.deliver(10);
            if let Some(gap) = gap {
                losses.book(&gap, Cause::DeviceOverrun, 0, &mut ledger);
            }
            assert_eq!(ledger.balance(), Ok(()), "step {step}");
        }
    }

    #[test]
    fn without_a_suspect_the_network_lost_it() {
        let mut losses = Losses::new(10, 1);
        assert_eq!(book(&mut losses, gap(3, 30, 0), 0), [0, 30, 0, 0]);
        assert_eq!(book(&mut losses, gap(0, 0, 7), 0), [7, 0, 0, 0]);
    }

    #[test]
    fn drops_of_the_queue_explain_as_many_packets_as_they_count() {
        let mut losses = Losses::new(10, 1);
        assert_eq!(book(&mut losses, gap(5, 50, 0), 3), [0, 20, 30, 0]);
        // The counter does not grow: these drops are used up.
        assert_eq!(book(&mut losses, gap(1, 10, 0), 3), [0, 10, 0, 0]);
        // Earlier drops explain the gaps behind them.
        assert_eq!(book(&mut losses, gap(1, 10, 0), 5), [0, 0, 10, 0]);
        assert_eq!(book(&mut losses, gap(1, 10, 0), 5), [0, 0, 10, 0]);
        assert_eq!(book(&mut losses, gap(1, 10, 0), 5), [0, 10, 0, 0]);
    }

    #[test]
    fn a_dropped_train_explains_all_its_packets() {
        let mut losses = Losses::new(10, 8);
        assert_eq!(book(&mut losses, gap(20, 200, 0), 2), [0, 40, 160, 0]);
        assert_eq!(book(&mut losses, gap(3, 30, 0), 3), [0, 0, 30, 0]);
        assert_eq!(book(&mut losses, gap(3, 30, 0), 3), [0, 30, 0, 0]);
    }

    #[test]
    fn damaged_packets_come_first_and_short_packets_end_exactly() {
        let mut losses = Losses::new(10, 1);
        losses.note_malformed(1);
        losses.note_malformed(1);
        assert_eq!(book(&mut losses, gap(4, 33, 2), 1), [2, 3, 10, 20]);
        losses.note_malformed(1);
        assert_eq!(book(&mut losses, gap(1, 4, 0), 1), [0, 0, 0, 4]);
        losses.note_malformed(1);
        losses.clear_malformed();
        assert_eq!(book(&mut losses, gap(1, 10, 0), 1), [0, 10, 0, 0]);
    }

    #[test]
    fn packets_that_come_after_all_are_late_and_not_lost() {
        let (mut losses, mut ledger) = (Losses::new(10, 1), Ledger::default());
        let gap = PacketGap { damaged: 10, ..gap(4, 40, 0) };
        losses.book(&gap, Cause::ClockJump, 1, &mut ledger);
        losses.found(10, false, &mut ledger);
        losses.found(10, true, &mut ledger);
        losses.found_damaged(&mut ledger);
        // None is left as lost in the network: the queue dropped another packet.
        losses.found(10, false, &mut ledger);
        let lost: Vec<_> = ledger.losses().filter(|loss| loss.1 > 0).collect();
        assert_eq!(lost, [(Cause::Late, 30), (Cause::Malformed, 10)]);
        assert_eq!(
            book(&mut losses, PacketGap { damaged: 0, packets: 1, in_packets: 10, ..gap }, 1),
            [0, 0, 10, 0]
        );
        // No more can come than were counted.
        (0..9).for_each(|_| losses.found(10, false, &mut ledger));
        assert_eq!(ledger.lost_total(), 40);
    }

    #[test]
    fn what_came_while_the_stream_was_set_up_was_not_lost_on_the_way() {
        let (mut losses, mut ledger) = (Losses::new(10, 1), Ledger::default());
        losses.pass_over(25);
        losses.pass_over_damaged(7);
        losses.book(&gap(4, 40, 3), Cause::DeviceOverrun, 0, &mut ledger);
        losses.book(&gap(4, 40, 0), Cause::DeviceOverrun, 0, &mut ledger);
        let causes = [Cause::Late, Cause::Malformed, Cause::NetworkLoss];
        assert_eq!(causes.map(|cause| ledger.lost(cause)), [25, 7, 48]);
    }

    #[test]
    fn what_comes_behind_the_gap_of_a_set_up_corrects_that_gap() {
        let (mut losses, mut ledger) = (Losses::new(10, 1), Ledger::default());
        let gap = gap(2, 20, 30);
        let network = losses.book(&gap, Cause::DeviceOverrun, 0, &mut ledger);
        let mut come = |ticks, losses: &mut Losses| {
            let arrival = Arrival { seq: 0, ticks: Some(ticks), samples: 10 };
            losses.found_behind_set_up(&arrival, &mut ledger);
            [Cause::NetworkLoss, Cause::DeviceOverrun, Cause::Late].map(|cause| ledger.lost(cause))
        };
        assert_eq!(come(990, &mut losses), [20, 30, 0], "no set-up");
        let (unsent, cause, hidden) = (gap.unsent, Cause::DeviceOverrun, Some((1000, 1030)));
        losses.note_set_up(SetUpGap { network, unknown: 0, unsent, cause, hidden });
        assert_eq!(come(1000, &mut losses), [20, 20, 10]);
        assert_eq!(come(1030, &mut losses), [10, 20, 20]);
        (0..9).for_each(|_| assert!(come(980, &mut losses)[2] <= 50));
        assert_eq!(come(980, &mut losses), [0, 0, 50], "no more than counted there");
    }
}
