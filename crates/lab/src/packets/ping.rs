//! Round trips: one after the other, or by the clock, alone or with load.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

use millstream_cpu::usage::process_cpu_time;

use crate::explain::{LateTrip, OneShotTrigger, Stop};
use millstream_cpu::alarm::now_ns;
use millstream_stats::Histogram;

use super::end::{BATCH, Look, PathEnd};
use super::job::{JobResult, PingPlan, RoundTrips};
use super::pace::{Pace, PollPolicy};
use super::plan::PacketWait;
use super::side::{LOOKS_PER_CLOCK, PacketSide, ns_since};

/// Largest number of probes in flight.
const UNDER_WAY_MAX: usize = 4096;
/// Longest sleep; probes that are due sooner are waited for without one.
const SLEEP_NS: u64 = 20_000_000;

/// The state of all probes: those in flight since when, and the times of the others. It reads no
/// clock: time is an argument.
#[derive(Debug)]
pub struct Probes {
    pace: Option<Pace>,
    warm: u64,
    patience_ns: u64,
    next: u64,
    /// Number, when it was due, when it was sent.
    under_way: VecDeque<(u64, u64, u64)>,
    trips: RoundTrips,
}

impl Probes {
    /// Creates probes by `pace`, or each when the last one is back; the first `warm` do not count,
    /// and a probe not back after `patience_ns` is lost.
    #[must_use]
    pub fn new(pace: Option<Pace>, warm: u64, patience_ns: u64) -> Self {
        let under_way = VecDeque::with_capacity(UNDER_WAY_MAX);
        Self { pace, warm, patience_ns, next: 0, under_way, trips: RoundTrips::default() }
    }

    /// The number of the probe to send now, if one is due.
    #[must_use]
    pub fn due(&self, now_ns: u64) -> Option<u64> {
        let due = match self.pace {
            Some(pace) => now_ns >= pace.time_of(self.next),
            None => self.under_way.is_empty(),
        };
        (due && self.under_way.len() < UNDER_WAY_MAX).then_some(self.next)
    }

    /// Time until a probe is due.
    #[must_use]
    pub fn wait_ns(&self, now_ns: u64) -> u64 {
        self.pace.map_or(u64::MAX, |pace| pace.time_of(self.next).saturating_sub(now_ns))
    }

    /// Records that the next probe was sent.
    pub fn sent(&mut self, now_ns: u64) {
        let due_ns = self.pace.map_or(now_ns, |pace| pace.time_of(self.next));
        self.under_way.push_back((self.next, due_ns, now_ns));
        self.next += 1;
    }

    /// Records that a probe is back; returns when it was due, if it counts. A number that is not in
    /// flight (a copy, or given up) does not count.
    pub fn back(&mut self, number: u64, now_ns: u64) -> Option<u64> {
        let at = self.under_way.iter().position(|probe| probe.0 == number)?;
        let (_, due_ns, sent_ns) = self.under_way.remove(at)?;
        if number < self.warm {
            return None;
        }
        self.trips.from_sent.record(now_ns - sent_ns);
        self.trips.from_due.record(now_ns - due_ns);
        Some(due_ns)
    }

    /// Gives up probes that are too old. A loss counts as a round trip of that length, too: it took
    /// at least that long.
    pub fn give_up(&mut self, now_ns: u64) {
        while let Some((number, due_ns, sent_ns)) = self.under_way.front().copied() {
            if now_ns - sent_ns < self.patience_ns {
                break;
            }
            self.under_way.pop_front();
            if number >= self.warm {
                self.trips.lost += 1;
                self.trips.from_sent.record(now_ns - sent_ns);
                self.trips.from_due.record(now_ns - due_ns);
            }
        }
    }

    /// Probes sent so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.next
    }

    /// Whether all probes sent are back or given up.
    #[must_use]
    pub fn all_back(&self) -> bool {
        self.under_way.is_empty()
    }

    /// The round trips.
    #[must_use]
    pub fn trips(self) -> RoundTrips {
        self.trips
    }

    /// Round trips counted so far.
    #[must_use]
    pub fn histogram(&self) -> &Histogram {
        &self.trips.from_due
    }
}

/// Stops a ring of trace events at the first round trip that is too long.
struct Watch {
    trip: OneShotTrigger,
    threshold_ns: u64,
    begun_ns: u64,
    late: Option<LateTrip>,
}

impl Watch {
    fn new(stop: Option<&Stop>) -> Self {
        let trip = OneShotTrigger::default();
        if let Some(stop) = stop {
            trip.arm(OpenOptions::new().write(true).open(&stop.switch).ok());
        }
        let threshold_ns = stop.map_or(u64::MAX, |stop| stop.threshold_ns);
        Self { trip, threshold_ns, begun_ns: now_ns(), late: None }
    }

    fn note(&mut self, due_ns: u64, now_ns: u64) -> io::Result<()> {
        if now_ns - due_ns > self.threshold_ns && self.trip.pull()? {
            let at = |ns| self.begun_ns + ns;
            let (due_ns, back_ns) = (at(due_ns), at(now_ns));
            self.late = Some(LateTrip { begun_ns: self.begun_ns, due_ns, back_ns });
        }
        Ok(())
    }
}

/// Measures round trips with the side's end.
pub(super) fn run(side: &mut PacketSide<'_>, plan: &PingPlan) -> io::Result<JobResult> {
    let mut probes = Probes::new(plan.rate_pps.map(Pace::new), plan.warm, plan.patience_ns);
    let load = plan.load_pps.map(Pace::new);
    let mut governor = PollPolicy::new(side.wait);
    let mut numbers = Vec::with_capacity(4 * BATCH);
    let mut watch = Watch::new(plan.stop.as_ref());
    let (start, cpu_before) = (Instant::now(), process_cpu_time());
    let (mut load_due, mut load_sent) = (0u64, 0u64);
    let all = plan.count + plan.warm;
    let mut look = Look::Glance;
    while probes.count() < all || !probes.all_back() {
        if side.stop.load(Ordering::Relaxed) {
            break;
        }
        let now_ns = ns_since(start);
        if let Some(load) = load {
            let count = (load.due(now_ns) - load_due).min(BATCH as u64) as usize;
            // Packets that the link refuses are not offered again: the rate is by the clock.
            load_due += count as u64;
            let end: &mut dyn PathEnd = side.load.as_deref_mut().unwrap_or(&mut *side.end);
            load_sent += if count > 0 { end.send(count)? as u64 } else { 0 };
        }
        if probes.count() < all
            && let Some(number) = probes.due(now_ns)
        {
            let sent_ns = ns_since(start);
            if side.end.send_numbered(number)? {
                probes.sent(sent_ns);
            }
        }
        let soon = load.is_some() || probes.count() < all && probes.wait_ns(now_ns) < SLEEP_NS;
        // By the clock, a sleep would end too late, because the kernel's timers are imprecise.
        let look_now = if soon && side.wait != PacketWait::Block { Look::Glance } else { look };
        let look_now = if load.is_some() { Look::Glance } else { look_now };
        side.end.take_numbers(look_now, &mut numbers)?;
        // There is no other work than to poll for the probe in flight.
        let alone = look_now == Look::Glance && load.is_none() && plan.rate_pps.is_none();
        let mut looks = if alone { LOOKS_PER_CLOCK - 1 } else { 0 };
        while looks > 0 && numbers.is_empty() {
            side.end.take_numbers(look_now, &mut numbers)?;
            looks -= 1;
        }
        let now_ns = ns_since(start);
        look = governor.next(now_ns, !numbers.is_empty());
        for number in numbers.drain(..) {
            let due_ns = probes.back(number, now_ns);
            due_ns.map_or(Ok(()), |due_ns| watch.note(due_ns, now_ns))?;
        }
        probes.give_up(now_ns);
    }
    let seconds = start.elapsed().as_secs_f64();
    let cpu_s = (process_cpu_time() - cpu_before).as_secs_f64();
    let total = probes.count();
    let late = watch.late;
    let trips = RoundTrips { load_sent, cpu_share: cpu_s / seconds, late, ..probes.trips() };
    let events = side.end.events();
    Ok(JobResult { total, events, trips: Some(trips), ..JobResult::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that takes `service_ns` a packet and stands still at times; returns when the probe
    /// that arrives at each of `arrivals_ns` is done, by Lindley's recursion.
    fn departures(arrivals_ns: &[u64], service_ns: u64, stalls: &[(u64, u64)]) -> Vec<u64> {
        let mut free_ns = 0;
        let depart = |arrival_ns: &u64| {
            let mut begin_ns = free_ns.max(*arrival_ns);
            for (from_ns, to_ns) in stalls {
                if (*from_ns..*to_ns).contains(&begin_ns) {
                    begin_ns = *to_ns;
                }
            }
            free_ns = begin_ns + service_ns;
            free_ns
        };
        arrivals_ns.iter().map(depart).collect()
    }

    const SERVICE_NS: u64 = 2_000;
    const STALLS: [(u64, u64); 2] = [(20_000_000, 30_000_000), (70_000_000, 75_000_000)];
    const COUNT: u64 = 10_000;
    const PATIENCE_NS: u64 = 200_000_000;

    /// The times of a client that never waits.
    fn truth(pace: Pace) -> Histogram {
        let arrivals_ns: Vec<_> = (0..COUNT).map(|number| pace.time_of(number)).collect();
        let mut histogram = Histogram::default();
        for (from, to) in arrivals_ns.iter().zip(departures(&arrivals_ns, SERVICE_NS, &STALLS)) {
            histogram.record(to - from);
        }
        histogram
    }

    #[test]
    fn a_client_that_waits_sees_the_truth_only_from_when_probes_were_due() {
        let pace = Pace::new(100e3);
        let mut probes = Probes::new(Some(pace), 0, PATIENCE_NS);
        let mut now_ns = 0;
        for number in 0..COUNT {
            // This client has one probe in flight: it cannot send while the server stands still.
            now_ns = now_ns.max(pace.time_of(number));
            assert_eq!(probes.due(now_ns), Some(number));
            probes.sent(now_ns);
            now_ns = departures(&[now_ns], SERVICE_NS, &STALLS)[0];
            probes.back(number, now_ns);
        }
        let trips = probes.trips();
        let truth = truth(pace);
        let p99 = |histogram: &Histogram| histogram.quantile_ns(0.99);
        assert_eq!(p99(&trips.from_sent), SERVICE_NS + 15, "it hides the stalls");
        let (found, expected) = (p99(&trips.from_due) as f64, p99(&truth) as f64);
        assert!((found / expected - 1.0).abs() < 0.05, "{found} {expected}");
        assert!(expected > 1e6, "the stalls matter");
    }

    #[test]
    fn a_client_that_does_not_wait_sees_the_truth_either_way() {
        let pace = Pace::new(100e3);
        let mut probes = Probes::new(Some(pace), 0, PATIENCE_NS);
        let arrivals_ns: Vec<_> = (0..COUNT).map(|number| pace.time_of(number)).collect();
        let back_ns = departures(&arrivals_ns, SERVICE_NS, &STALLS);
        let mut answers = back_ns.iter().enumerate().peekable();
        for at_ns in arrivals_ns {
            while let Some((number, back_ns)) = answers.next_if(|(_, back_ns)| **back_ns <= at_ns) {
                probes.back(number as u64, *back_ns);
            }
            assert!(probes.due(at_ns).is_some());
            probes.sent(at_ns);
        }
        for (number, back_ns) in answers {
            probes.back(number as u64, *back_ns);
        }
        let trips = probes.trips();
        assert_eq!(trips.from_due, truth(pace));
        assert_eq!(trips.from_sent, trips.from_due);
    }

    #[test]
    fn the_lost_are_counted_and_copies_are_not() {
        let mut probes = Probes::new(None, 1, PATIENCE_NS);
        for number in 0..4 {
            let at_ns = number * PATIENCE_NS * 2;
            assert_eq!(probes.due(at_ns), Some(number));
            probes.sent(at_ns);
            assert_eq!(probes.due(at_ns), None, "one at a time");
            if number != 2 {
                probes.back(number, at_ns + 10);
                probes.back(number, at_ns + 11);
            }
            probes.give_up(at_ns + PATIENCE_NS);
        }
        assert!(probes.all_back());
        let trips = probes.trips();
        assert_eq!((trips.lost, trips.from_sent.count()), (1, 3), "the first only warmed");
        assert_eq!(trips.from_sent.max_ns(), PATIENCE_NS);
    }
}
