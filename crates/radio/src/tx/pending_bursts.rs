//! The samples that came to the device after their time.
//!
//! The device drops each late packet and reports that, without the packet's number. Messages come
//! in the order of the packets, and the end of each burst has one: its acknowledgement, or the
//! report that its last packet was late. So the packets between two acknowledgements are a *span*,
//! and the late ones among them are as many as the reports in it.
//!
//! Which ones they are is known where only one assignment is possible: each burst before the
//! acknowledged one was late as a whole, and of that one the first packets were. Everywhere else
//! (the network changed the order, a message is missing, a burst ran dry) the number of samples has
//! bounds: so many packets of the smallest size, to so many of the largest.

use std::collections::VecDeque;

use super::progress::DeviceProgress;

/// The most bursts that are stored; with more, the oldest ends its span.
const BURSTS: usize = 4096;

/// The messages that a radio keeps for its host; it loses further ones. So many are in the queue of
/// errors of the FPGA's `radio_tx_core`.
const HELD: u64 = 32;

/// How far from the last sample the time of an acknowledgement may be, ticks: a radio reads its
/// clock when the sample has left. An exact one has priority.
const ACK_SLACK_TICKS: u64 = 64;

/// The least and the largest number of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub min: u64,
    pub max: u64,
}

/// A burst that was sent, or the part of it that was sent so far.
#[derive(Debug, Clone, Copy)]
struct SentBurst {
    /// The number of its first packet.
    first: u64,
    packets: u64,
    samples: u64,
    /// The sizes of its packets, without the last one, and that of the last one.
    sizes: Bounds,
    last: u64,
    /// Time of the radio's last sample, ticks, in a burst that has time.
    last_ticks: Option<u64>,
    has_end: bool,
    /// The messages that had come when its first packet was sent.
    messages_before: u64,
    /// It was acknowledged, after these messages.
    acknowledged: Option<Messages>,
}

impl SentBurst {
    fn end(&self) -> u64 {
        self.first + self.packets
    }

    /// Returns the sizes of all its packets.
    fn all_sizes(&self) -> Bounds {
        widen(self.sizes, Bounds { min: self.last, max: self.last })
    }
}

/// The messages since the last acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
struct Messages {
    lates: u64,
    /// A burst ran dry, or an acknowledgement belongs to no burst: the late packets may be any.
    is_unclear: bool,
    /// All messages since the stream began.
    total: u64,
    /// Those up to the last one that was no acknowledgement.
    faults: u64,
    /// Messages that never came, since the stream began.
    missed: u64,
    /// What the device had taken twice, and behind later packets, since the stream began.
    copies: u64,
    came_late: u64,
}

/// The packets between two acknowledgements, once their late samples are counted.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    first: u64,
    /// Its samples, where its acknowledgement may have been that of an earlier burst.
    unsure_samples: u64,
    sizes: Bounds,
    /// What the device had taken twice, and behind later packets, before it.
    copies: u64,
    came_late: u64,
    missed: u64,
}

/// The bursts in flight, and the late samples of those before.
#[derive(Debug)]
pub(super) struct PendingBursts {
    full: u64,
    ticks_per_sample: u64,
    bursts: VecDeque<SentBurst>,
    messages: Messages,
    /// The span before the one in progress, and what held at the end of it.
    before: Span,
    now: Span,
    /// Packets with time were sent: only those can be late unnoticed.
    has_times: bool,
    late: Bounds,
    /// The messages about packets that came again may be missing.
    hides_copies: bool,
}

impl PendingBursts {
    /// Returns an empty list; `full` is the samples of a full packet, each of which lasts
    /// `ticks_per_sample` ticks of the radio.
    pub fn new(full: u64, ticks_per_sample: u64) -> Self {
        Self {
            full,
            ticks_per_sample,
            bursts: VecDeque::with_capacity(BURSTS),
            messages: Messages::default(),
            before: Span::default(),
            now: Span::default(),
            has_times: false,
            late: Bounds::default(),
            hides_copies: false,
        }
    }

    /// Returns the late samples of the bursts whose messages have come.
    pub fn late(&self) -> Bounds {
        self.late
    }

    /// Returns whether packets that came again may have been late.
    pub fn may_hide_copies(&self) -> bool {
        self.hides_copies || self.late.max > 0
    }

    /// Returns whether the end of a burst has neither been acknowledged nor reported late.
    pub fn is_unacknowledged(&self) -> bool {
        self.unacknowledged().next().is_some()
    }

    /// Returns whether late packets may be the ends of all bursts that are not acknowledged.
    pub fn may_all_be_late(&self) -> bool {
        self.messages.lates >= self.unacknowledged().count() as u64
    }

    /// Returns whether no more bursts can be sent before the device has passed the oldest one.
    pub fn is_full(&self, progress: &DeviceProgress) -> bool {
        self.bursts.len() + BURSTS / 8 >= BURSTS
            && self.bursts.front().is_some_and(|burst| burst.end() > progress.decided())
    }

    fn unacknowledged(&self) -> impl Iterator<Item = (usize, &SentBurst)> {
        let bursts = self.bursts.iter().enumerate();
        bursts.filter(|(_, burst)| burst.has_end && burst.acknowledged.is_none())
    }

    /// Counts packet `number` of the stream; with `eob` it ends its burst. `ticks` is the time of
    /// its first sample.
    pub fn send(&mut self, number: u64, samples: u64, ticks: Option<u64>, eob: bool) {
        self.has_times |= ticks.is_some();
        if self.bursts.back().is_none_or(|burst| burst.has_end) {
            if self.bursts.len() == BURSTS {
                self.forget();
            }
            self.bursts.push_back(SentBurst {
                first: number,
                packets: 0,
                samples: 0,
                sizes: NO_SIZES,
                last: 0,
                last_ticks: None,
                has_end: false,
                messages_before: self.messages.total,
                acknowledged: None,
            });
        }
        let Some(burst) = self.bursts.back_mut() else { return };
        if burst.packets > 0 {
            burst.sizes = burst.all_sizes();
        }
        burst.packets += 1;
        burst.samples += samples;
        burst.last = samples;
        // A packet without samples of the caller ends with one zero sample.
        let last = samples.max(1).wrapping_mul(self.ticks_per_sample) - 1;
        burst.last_ticks = ticks.map(|ticks| ticks.wrapping_add(last));
        burst.has_end = eob;
    }

    /// Ends the span of the oldest burst without knowing anything about it.
    fn forget(&mut self) {
        let Some(burst) = self.bursts.pop_front() else { return };
        let max = if self.has_times { burst.samples } else { 0 };
        self.late.max += max;
        self.messages.lates = 0;
    }

    /// Counts a report that a burst ran dry.
    pub fn run_dry(&mut self) {
        self.fault();
        self.messages.is_unclear = true;
    }

    /// Counts a late packet.
    pub fn report_late(&mut self) {
        self.fault();
        self.messages.lates += 1;
    }

    fn fault(&mut self) {
        self.messages.total += 1;
        self.messages.faults = self.messages.total;
    }

    /// Notes the messages that never came, `missed` since the stream began.
    pub fn miss(&mut self, missed: u64) {
        self.messages.missed = missed;
    }

    /// Counts the acknowledgement of the burst whose last sample was at `ticks`.
    pub fn acknowledge(&mut self, ticks: u64, progress: &DeviceProgress) {
        self.messages.total += 1;
        self.messages.copies = progress.outcomes().copies;
        self.messages.came_late = progress.outcomes().came_late;
        let away = |burst: &SentBurst| {
            burst.last_ticks.map_or(0, |last| (ticks.wrapping_sub(last) as i64).unsigned_abs())
        };
        let within = |slack| self.unacknowledged().find(|(_, burst)| away(burst) <= slack);
        // The device's clock was set since: an only burst is known all the same.
        let only = || self.unacknowledged().next().filter(|_| self.unacknowledged().count() == 1);
        let found = within(0).or_else(|| within(ACK_SLACK_TICKS)).or_else(only);
        let Some(index) = found.map(|(index, _)| index) else {
            self.messages.is_unclear = true;
            return;
        };
        self.bursts[index].acknowledged = Some(self.messages);
        (self.messages.lates, self.messages.is_unclear) = (0, false);
    }

    /// Counts the late samples of the spans whose packets the device has passed.
    pub fn settle(&mut self, progress: &DeviceProgress) {
        loop {
            let acknowledged = self.bursts.iter().position(|burst| burst.acknowledged.is_some());
            let front = self.bursts.front();
            let late = front.filter(|burst| self.is_all_late(burst, progress));
            let index = match (acknowledged, late) {
                (Some(index), _) => index,
                (None, Some(_)) => 0,
                (None, None) => return,
            };
            if self.bursts[index].end() > progress.decided() {
                return;
            }
            self.end_span(index + 1, progress);
        }
    }

    /// Returns whether the first burst, which is not acknowledged, can only be late as a whole.
    fn is_all_late(&self, burst: &SentBurst, progress: &DeviceProgress) -> bool {
        burst.has_end
            && burst.acknowledged.is_none()
            && self.messages.lates >= burst.packets
            && self.messages.total - burst.messages_before < HELD
            && self.is_clear(&self.messages, progress)
    }

    /// Returns whether nothing has changed the order of packets and messages since the beginning of
    /// the span before this one, so that each message is about this span.
    fn is_clear(&self, messages: &Messages, progress: &DeviceProgress) -> bool {
        let in_order = self.before.first >= progress.trouble_to();
        in_order && !messages.is_unclear && messages.missed == self.now.missed
    }

    /// Counts the late samples of the span of the first bursts, `count` of them.
    fn end_span(&mut self, count: usize, progress: &DeviceProgress) {
        let end = self.bursts[count - 1];
        let messages = end.acknowledged.unwrap_or(self.messages);
        let is_clear = self.is_clear(&messages, progress);
        let exact = if is_clear { self.assign(count, messages.lates, progress) } else { None };
        let bounds = match exact {
            Some((samples, _)) => Bounds { min: samples, max: samples },
            None => self.bounds(count, &messages, progress),
        };
        let first = self.bursts[0];
        // Only so many messages wait in the device; others are lost.
        let lacks = messages.faults > first.messages_before
            && messages.total - first.messages_before >= HELD;
        let (samples, sizes) = self.extent(count);
        let open = if lacks && self.has_times { samples + self.before.unsure_samples } else { 0 };
        self.add(Bounds { max: bounds.max.max(open), ..bounds });
        let is_sure = count == 1 || self.assign(count, messages.lates, progress).is_some();
        if end.acknowledged.is_none() {
            // Its end was late, and the reports go on.
            self.messages.lates -= end.packets;
        }
        self.bursts.drain(..count);
        let unsure_samples = if is_sure { 0 } else { samples };
        let in_order = self.before.first >= progress.trouble_to();
        self.before = Span { first: first.first, unsure_samples, sizes, ..self.now };
        self.now.copies = messages.copies;
        if in_order {
            // Otherwise the messages about packets that came late may be still to come.
            self.now.came_late = messages.came_late;
        }
        self.now.missed = messages.missed;
    }

    fn add(&mut self, bounds: Bounds) {
        self.late.min += bounds.min;
        self.late.max += bounds.max;
    }

    /// Returns the samples of the first `count` bursts, and the sizes of their packets.
    fn extent(&self, count: usize) -> (u64, Bounds) {
        let bursts = self.bursts.range(..count);
        let sizes = bursts.clone().map(SentBurst::all_sizes).fold(NO_SIZES, widen);
        (bursts.map(|burst| burst.samples).sum(), sizes)
    }

    /// Returns the samples that `lates` reports in the span of the first `count` bursts are about,
    /// where only one assignment is possible, and the reports that it needs.
    fn assign(&self, count: usize, lates: u64, progress: &DeviceProgress) -> Option<(u64, u64)> {
        let (mut left, mut samples) = (lates, 0);
        for burst in self.bursts.range(..count) {
            if burst.acknowledged.is_none() {
                left = left.checked_sub(burst.packets)?;
                samples += burst.samples;
                continue;
            }
            if left >= burst.packets {
                return None;
            }
            samples += match burst.sizes {
                _ if left == 0 => 0,
                Bounds { min, max } if min == max => left * max,
                _ => progress.samples_of(burst.first, left)?,
            };
            left = 0;
        }
        Some((samples, lates - left))
    }

    /// Returns the bounds of the late samples of the first `count` bursts, of which the last one
    /// may be acknowledged.
    fn bounds(&self, count: usize, messages: &Messages, progress: &DeviceProgress) -> Bounds {
        let in_order = self.before.first >= progress.trouble_to();
        let mut sizes = NO_SIZES;
        for burst in self.bursts.range(..count) {
            // The last packet of an acknowledged burst was not late, but its copy may have been.
            let of_burst = match burst.acknowledged {
                Some(_) if in_order => burst.sizes,
                _ => burst.all_sizes(),
            };
            sizes = widen(sizes, of_burst);
        }
        if !in_order {
            sizes = widen(sizes, self.before.sizes);
        }
        if sizes.min > sizes.max {
            sizes = Bounds { min: 0, max: self.full };
        }
        let copies = progress.outcomes().copies - self.before.copies;
        let missed = messages.missed.saturating_sub(self.now.missed);
        let max = (messages.lates + missed).saturating_mul(sizes.max);
        // While a report was missing, copies came that are not in their count.
        let certain = match progress.outcomes().is_blurred {
            true => 0,
            false => messages.lates.saturating_sub(copies),
        };
        let min = certain.saturating_mul(sizes.min).min(max);
        Bounds { min, max }
    }

    /// Ends the reports. What came late in bursts that are not acknowledged has bounds.
    pub fn close(&mut self, progress: &DeviceProgress) {
        let acknowledged = |burst: &SentBurst| burst.acknowledged.is_some();
        while let Some(index) = self.bursts.iter().position(acknowledged) {
            self.end_span(index + 1, progress);
        }
        let count = self.bursts.len();
        let Bounds { max, .. } = self.bounds(count, &self.messages, progress);
        // No report follows that would count a copy which a message is about.
        let mut bounds = Bounds { min: 0, max };
        let exact = self.assign(count, self.messages.lates, progress);
        let needed = exact.filter(|&(_, lates)| lates == self.messages.lates);
        match needed.filter(|_| self.is_clear(&self.messages, progress)) {
            Some((samples, _)) => bounds = Bounds { min: samples, max: samples },
            None if self.has_times => {
                // The message about the end is missing, and may be about any packet.
                let (samples, _) = self.extent(count);
                bounds.max = bounds.max.max(samples + self.before.unsure_samples);
            }
            None => {}
        }
        let came_late = progress.outcomes().came_late - self.before.came_late;
        if self.has_times {
            // Behind the last acknowledgement no message shows that one is missing.
            bounds.max += came_late;
            self.hides_copies |= progress.outcomes().copies > self.before.copies;
        }
        self.add(bounds);
        self.bursts.clear();
        (self.messages.lates, self.messages.is_unclear) = (0, false);
        self.now.missed = self.messages.missed;
        // The numbers may begin anew.
        (self.now.copies, self.now.came_late) =
            (progress.outcomes().copies, progress.outcomes().came_late);
        self.before = Span { first: 0, ..self.now };
    }
}

/// The sizes of no packet.
const NO_SIZES: Bounds = Bounds { min: u64::MAX, max: 0 };

fn widen(one: Bounds, other: Bounds) -> Bounds {
    Bounds { min: one.min.min(other.min), max: one.max.max(other.max) }
}

#[cfg(test)]
impl PendingBursts {
    /// Returns the end of bursts with so many late samples.
    pub fn with_late(late: Bounds) -> Self {
        Self { late, ..Self::new(100, 1) }
    }
}
