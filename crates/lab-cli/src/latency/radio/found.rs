//! What a measurement of turnarounds has found so far.

use super::stations::StationMedians;
use super::{Args, UNTIL, text};
use crate::interrupt;
use crate::live::Steps;
use crate::output::{Report, now};
use crate::samples;
use millstream_lab::turnaround::{Answer, LeadResult, TurnaroundSpec, leads_s, never_late};
use millstream_measure::{Measured, Observed};
use millstream_stats::Histogram;
use std::time::{Duration, Instant};

crate::results! {
    also [super::stations::results, super::compare::results],
    /// Turnarounds.
    pub struct Turnarounds<'a> {
        /// The parameters.
        plan: TurnaroundSpec,
        /// Turnarounds that were measured.
        tries: u64,
        /// Whether the host never slept.
        spin: bool,
        /// All turnarounds.
        histogram: Histogram,
        /// The same in short, seconds.
        turnaround_s: TurnaroundQuantiles,
        /// The tries with each lead time.
        leads: &'a [LeadResult],
        /// The shortest lead time that was never late, seconds.
        never_late_s: Option<f64>,
        /// A record for each repetition.
        records: Vec<Measured>,
        /// With `--stations`: where the time passes.
        #[serde(skip_serializing_if = "Option::is_none")]
        stations: Option<StationMedians>,
    }

    /// Turnarounds in short, seconds.
    pub struct TurnaroundQuantiles {
        /// The shortest.
        min: f64,
        /// The median.
        median: f64,
        /// The 90th percentile.
        p90: f64,
        /// The 99th percentile.
        p99: f64,
        /// The 99.9th percentile.
        p99_9: f64,
        /// The longest.
        max: f64,
    }
}

/// The part of the time for the first part, where there is a second one.
const FIRST_PART: f64 = 0.5;
/// The counter of a sample that an error ended.
const CUT_SHORT: &str = "ended early";

/// One try with a lead.
type Attempt<'a> = dyn FnMut(u64) -> anyhow::Result<Answer> + 'a;

/// Looks at the measurements behind a try, with its lead and its answer.
type Look<'a> = dyn FnMut(u64, Answer, &Found) + 'a;

/// The measurements so far.
pub struct Found {
    plan: TurnaroundSpec,
    /// Ticks per second of the radio's time.
    ticks_hz: f64,
    /// The repetitions that are over, and the one that is under way.
    records: Vec<Measured>,
    current: Option<Repetition>,
    leads: Vec<LeadResult>,
}

/// A repetition of the first part.
struct Repetition {
    observed: Observed,
    started: String,
    begun: Instant,
}

impl Repetition {
    fn begin() -> Self {
        Self { observed: Observed::default(), started: now(), begun: Instant::now() }
    }

    fn measured(&self, plan: &TurnaroundSpec) -> Measured {
        Measured {
            measurement: "radio".to_owned(),
            series: if plan.spin { "spinning" } else { "sleeping" }.to_owned(),
            parameters: samples::entries(plan),
            started: self.started.clone(),
            seconds: self.begun.elapsed().as_secs_f64(),
            observed: self.observed.clone(),
            ..Measured::default()
        }
    }
}

impl Found {
    pub fn new(plan: TurnaroundSpec, ticks_hz: f64) -> Self {
        Self { plan, ticks_hz, records: Vec::new(), current: None, leads: Vec::new() }
    }

    /// Measures all samples and the sweep; measurements before an error remain.
    pub fn take(
        &mut self,
        args: &Args,
        attempt: &mut Attempt<'_>,
        look: &mut Look<'_>,
    ) -> anyhow::Result<()> {
        let repeats = args.repeats();
        let tries = args.count * u64::from(repeats) + args.leads * args.count_per_lead;
        let mut steps = Steps::new(Some(tries as usize));
        let start = Instant::now();
        // The part of the time that the first `done` repetitions may use.
        let until = |done: u32| {
            let share = if args.leads > 0 { FIRST_PART } else { 1.0 };
            let share = share * f64::from(done) / f64::from(repeats);
            start + Duration::from_secs_f64(share * args.duration)
        };
        for repeat in 1..=repeats {
            self.current = Some(Repetition::begin());
            let ended = self.distribution(args.count, until(repeat), attempt, look, &mut steps);
            let done = self.current.take().filter(|one| one.observed.histogram.count() > 0);
            if let Some(repetition) = done {
                let mut record = repetition.measured(&self.plan);
                record.counters.extend(ended.is_err().then(|| (CUT_SHORT.to_owned(), 1)));
                self.records.push(record);
            }
            ended?;
        }
        let until = start + Duration::from_secs_f64(args.duration);
        self.sweep(args, until, attempt, look, &mut steps)
    }

    /// Answers without any lead: all are late, and the lateness is the turnaround.
    fn distribution(
        &mut self,
        wanted: u64,
        until: Instant,
        attempt: &mut Attempt<'_>,
        look: &mut Look<'_>,
        steps: &mut Steps,
    ) -> anyhow::Result<()> {
        let mut count = 0;
        while count < wanted {
            interrupt::check(UNTIL)?;
            if count > 0 && Instant::now() >= until {
                (count..wanted).for_each(|_| steps.skip());
                break;
            }
            steps.next(|| format!("turnarounds, {count} of {wanted} found"));
            let answer = attempt(0)?;
            if let (Answer::Late { ticks }, Some(current)) = (answer, &mut self.current) {
                let value_ns = (ticks as f64 * 1e9 / self.ticks_hz).round() as u64;
                current.observed.record(value_ns, current.begun.elapsed().as_nanos() as u64);
                count += 1;
            }
            look(0, answer, self);
        }
        Ok(())
    }

    /// Tries all leads in interleaved rounds, so that a disturbance does not hit one of them alone.
    fn sweep(
        &mut self,
        args: &Args,
        until: Instant,
        attempt: &mut Attempt<'_>,
        look: &mut Look<'_>,
        steps: &mut Steps,
    ) -> anyhow::Result<()> {
        let histogram = self.histogram();
        let wanted = args.leads as usize;
        let leads = if wanted == 0 { Vec::new() } else { leads_s(&histogram, wanted) };
        let predicted = |lead_s| beyond(&histogram, lead_s);
        let result =
            |lead_s| LeadResult { lead_s, tries: 0, late: 0, predicted: predicted(lead_s) };
        self.leads.extend(leads.into_iter().map(result));
        for round in 0..args.count_per_lead {
            if round > 0 && Instant::now() >= until {
                break;
            }
            for index in 0..self.leads.len() {
                interrupt::check(UNTIL)?;
                steps.next(|| format!("sweep, round {} of {}", round + 1, args.count_per_lead));
                let lead = (self.leads[index].lead_s * self.ticks_hz).ceil() as u64;
                let answer = attempt(lead)?;
                self.leads[index].tries += 1;
                self.leads[index].late += u64::from(matches!(answer, Answer::Late { .. }));
                look(lead, answer, self);
            }
        }
        Ok(())
    }

    /// All turnarounds so far.
    fn histogram(&self) -> Histogram {
        let mut all = Histogram::default();
        let current = self.current.iter().map(|one| &one.observed);
        let observed = self.records.iter().map(|record| &record.observed).chain(current);
        observed.for_each(|one| all.merge(&one.histogram));
        all
    }

    /// The results so far, or at the end of a measurement that was made as a whole: only a sweep of
    /// whole rounds shows that a lead is safe.
    pub fn results(&self, is_whole: bool) -> Turnarounds<'_> {
        let histogram = self.histogram();
        let current = self.current.iter().filter(|one| one.observed.histogram.count() > 0);
        let records: Vec<Measured> = (self.records.iter().cloned())
            .chain(current.map(|one| one.measured(&self.plan)))
            .collect();
        let quantile = |share| histogram.quantile_ns(share) as f64 / 1e9;
        Turnarounds {
            plan: self.plan,
            tries: histogram.count(),
            spin: self.plan.spin,
            turnaround_s: TurnaroundQuantiles {
                min: histogram.min_ns() as f64 / 1e9,
                median: quantile(0.5),
                p90: quantile(0.9),
                p99: quantile(0.99),
                p99_9: quantile(0.999),
                max: histogram.max_ns() as f64 / 1e9,
            },
            histogram,
            leads: &self.leads,
            never_late_s: self.safe_s(is_whole),
            records,
            stations: None,
        }
    }

    /// The shortest lead that was never late.
    fn safe_s(&self, is_whole: bool) -> Option<f64> {
        let rounds = self.leads.first().map_or(0, |lead| lead.tries);
        let is_whole = is_whole && self.leads.iter().all(|lead| lead.tries == rounds);
        never_late(&self.leads).filter(|_| is_whole)
    }

    /// The result, also of a measurement that an error ended: its figures are of the tries before.
    /// `stations` makes the tries of `--stations`, and tells them in words, too.
    pub fn report(
        self,
        args: &Args,
        ended: anyhow::Result<()>,
        stations: impl FnOnce() -> anyhow::Result<Option<(String, StationMedians)>>,
    ) -> anyhow::Result<Report> {
        let histogram = self.histogram();
        let (count, wanted) = (histogram.count(), args.count * u64::from(args.repeats()));
        let is_cut = ended.is_ok() && count < wanted;
        let failure = match ended {
            Err(error) if count == 0 => return Err(error),
            Err(error) => Some(format!(
                "{error:#}; the figures are those measured before: {count} of {wanted} \
                 turnarounds{}",
                if self.leads.is_empty() { "" } else { " and a part of the sweep" }
            )),
            Ok(()) => (args.leads > 0 && never_late(&self.leads).is_none()).then(|| {
                "every lead of the sweep was late at least once: the machine is busy".to_owned()
            }),
        };
        let is_whole = failure.is_none();
        let mut text = text::of(args, &histogram, &self.leads, self.safe_s(is_whole));
        if is_cut {
            let limit_s = args.duration;
            text += &format!(
                "{count} of {wanted} turnarounds were measured within --duration, {limit_s} s, and \
                 the figures are of these: give a longer --duration for all\n"
            );
        }
        let stations = stations()?;
        text += stations.as_ref().map_or("", |(words, _)| words);
        let stations = stations.map(|(_, stations)| stations);
        let results = Turnarounds { stations, ..self.results(is_whole) };
        Ok(Report::of(text, &results).failing(failure))
    }
}

/// Share of turnarounds that are longer than `lead_s`.
fn beyond(histogram: &Histogram, lead_s: f64) -> f64 {
    let longer = histogram.classes().filter(|class| class.0 as f64 / 1e9 > lead_s);
    longer.map(|class| class.1).sum::<u64>() as f64 / histogram.count().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::document;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// The result of a measurement whose tries end with an error after this many, and what a page
    /// saw behind each of them.
    fn ending_after(tries: u32) -> anyhow::Result<(Report, Vec<serde_json::Value>)> {
        let words = ["x", "--count", "10", "--repeat", "2", "--leads", "2"];
        let args = Line::parse_from(words).args;
        let plan = TurnaroundSpec {
            channels: (0, 0),
            rate_hz: args.rate,
            rx_samples: 64,
            tx_samples: 64,
            interval_s: 1e-3,
            spin: true,
        };
        let (mut found, mut left) = (Found::new(plan, 10e6), tries);
        let mut attempt = |lead| {
            left = left.checked_sub(1).ok_or_else(|| anyhow::anyhow!("captures came too late"))?;
            Ok(if lead == 0 { Answer::Late { ticks: 500 } } else { Answer::InTime })
        };
        let mut seen = Vec::new();
        let mut look = |_, _: Answer, found: &Found| seen.push(document(&found.results(false)));
        let ended = found.take(&args, &mut attempt, &mut look);
        Ok((found.report(&args, ended, || Ok(None))?, seen))
    }

    #[test]
    fn what_was_measured_before_an_error_is_the_result_with_the_error() {
        assert!(ending_after(0).is_err(), "nothing was measured");
        let (report, _) = ending_after(17).unwrap();
        let failure = report.failure.unwrap();
        assert!(
            failure.starts_with("captures came too late; the figures are those measured before"),
            "{failure}"
        );
        assert!(failure.contains("17 of 20 turnarounds"), "{failure}");
        assert_eq!(report.results["tries"], 17);
        let records = report.results["records"].as_array().unwrap();
        let cut: Vec<_> = records.iter().map(|one| &one["counters"][CUT_SHORT]).collect();
        assert_eq!(cut, [&serde_json::Value::Null, &1.into()]);
        assert!(report.text.contains("median 50.0 µs"), "{}", report.text);
        // A part of the sweep does not show that a lead is safe.
        let (report, _) = ending_after(20 + 3).unwrap();
        assert!(report.failure.unwrap().contains("20 of 20 turnarounds and a part of the sweep"));
        assert_eq!(report.results["never_late_s"], serde_json::Value::Null);
        assert!(ending_after(u32::MAX).unwrap().0.failure.is_none());
    }

    #[test]
    fn what_a_page_sees_has_the_shape_of_the_result_and_grows() {
        fn names(value: &serde_json::Value) -> Vec<&String> {
            value.as_object().unwrap().keys().collect()
        }
        let (report, seen) = ending_after(u32::MAX).unwrap();
        assert!(seen.iter().all(|one| names(one) == names(&report.results)), "{seen:?}");
        let tries: Vec<_> = seen.iter().map(|one| one["tries"].as_u64().unwrap()).collect();
        assert_eq!((&tries[..3], tries[14], tries[19]), (&[1, 2, 3][..], 15, 20));
        // The repetition that is under way is a record of its own.
        let records = |at: usize| names(&seen[at]["records"][0]).len();
        assert_eq!((records(0), records(19)), (records(5), records(5)));
        assert_eq!(seen[14]["records"].as_array().unwrap().len(), 2);
        assert_eq!(seen[19]["turnaround_s"], report.results["turnaround_s"]);
        assert_eq!(seen[20]["leads"][0]["tries"], 1);
        // Which lead is safe is only known at the end.
        assert!(seen.iter().all(|one| one["never_late_s"].is_null()));
        assert!(report.results["never_late_s"].is_number(), "{}", report.results);
    }
}
