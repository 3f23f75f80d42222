//! `millstream latency radio`: the turnaround from received samples to the earliest answer that a
//! radio still transmits at its time.

mod compare;
mod page;
mod stations;
mod text;

use super::samples;
use crate::child_radio::{ChildRadioOptions, RadioUnderTest};
use crate::dashboard::WebArgs;
use crate::interrupt;
use crate::live::Steps;
use crate::numbers::{rate, seconds, whole};
use crate::output::{Report, note, now};
use millstream_emulator::DeviceKind;
use millstream_lab::turnaround::{
    Answer, LeadResult, Turnaround, TurnaroundSpec, leads_s, never_late,
};
use millstream_measure::{Histogram, Measured, Observed};
use millstream_radio::{Device, DeviceArgs};
use page::TurnaroundPage;
use serde_json::json;
use std::time::{Duration, Instant};

/// The part of the time for the first part, where there is a second one.
const FIRST_PART: f64 = 0.5;
/// What an interrupt comes before.
const UNTIL: &str = "the measurement had a result";
/// The counter of a sample that an error ended.
const CUT_SHORT: &str = "ended early";

/// Measures the turnaround of a radio and this host: the time from the newest received sample to
/// the earliest answer that is not late.
///
/// In the first part every answer is late on purpose, and the radio reports by how much. In the
/// second part the command tries several lead times, and finds the shortest one at which no answer
/// is late. All of it takes half a minute at most. Without --args the command starts an emulated
/// radio with DDC and DUC in a separate process.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream latency radio                        this machine's kernel sockets
  sudo millstream latency radio --stations        and where the time passes
  sudo millstream latency radio --compare udp,udp-spin,xdp")]
pub struct Args {
    #[arg(
        long,
        value_name = "ARGS",
        help = "Device arguments: addr=IPV4[,rpc_port=N][,link=LINK]"
    )]
    args: Option<DeviceArgs>,

    /// Sample rate, in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 10e6, value_parser = rate)]
    rate: f64,

    /// Longest time of both parts together. A slow host makes fewer tries in it.
    #[arg(short = 'D', long, value_name = "TIME", default_value = "24s", value_parser = seconds)]
    duration: f64,

    /// Number of turnarounds to measure.
    #[arg(long, value_name = "N", default_value_t = 2000,
          value_parser = whole::<u64>(10..=10_000_000))]
    count: u64,

    /// Number of times to make the measurement: 1 by default, 6 with --compare.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=100_000))]
    repeat: Option<u32>,

    /// Number of lead times (from sending an answer to its time) to try; 0: none.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = whole::<u64>(0..=1000))]
    leads: u64,

    /// Number of answers at each lead time.
    #[arg(long, value_name = "N", default_value_t = 200,
          value_parser = whole::<u64>(1..=1_000_000))]
    count_per_lead: u64,

    /// Length of each received burst in samples, at most one packet.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = whole::<u32>(1..=1000))]
    rx_samples: u32,

    /// Length of each answer in samples, at most one packet.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = whole::<u32>(1..=1000))]
    tx_samples: u32,

    /// Time between two answers. A host that is too slow for it takes longer.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = seconds)]
    interval: f64,

    /// Channel to receive and transmit on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    channel: usize,

    /// Never sleep while waiting for samples. The thread then needs a whole core and answers
    /// sooner.
    #[arg(long)]
    spin: bool,

    /// Show where the time passes: record the wake-ups of both threads in the kernel's trace, in
    /// tries of their own. Needs root and an emulated radio, and no --spin.
    #[arg(long, conflicts_with_all = ["args", "spin"])]
    stations: bool,

    /// Compare links in turns, between two network namespaces joined by a veth pair. Needs root.
    /// Both sides poll, except with udp, where both sleep.
    #[arg(long, value_name = "WAY,…", value_delimiter = ',', conflicts_with_all = [
              "args", "spin", "stations", "leads", "count_per_lead", "web"], value_enum)]
    compare: Vec<compare::ComparedLink>,

    #[command(flatten)]
    web: WebArgs,
}

impl Args {
    /// How often a measurement is made.
    fn repeats(&self) -> u32 {
        self.repeat.unwrap_or(if self.compare.is_empty() { 1 } else { 6 })
    }
}

/// Succeeds when every try was answered; with a sweep, when a lead was never late.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    if !args.compare.is_empty() {
        return compare::run(&args);
    }
    let options = radio_options();
    let mut radio = RadioUnderTest::start(args.args.as_ref(), options)?;
    note(radio.describe());
    measure(&args, &radio).map_err(|error| radio.explain(error))
}

/// Returns the options of the emulated radio.
fn radio_options() -> ChildRadioOptions<'static> {
    let options = ChildRadioOptions::new("--serial 1A7E --rx-antenna ramp");
    ChildRadioOptions { device: DeviceKind::E320, ..options }
}

fn measure(args: &Args, radio: &RadioUnderTest) -> anyhow::Result<Report> {
    let plan = TurnaroundSpec {
        channels: (args.channel, args.channel),
        rate_hz: args.rate,
        rx_samples: args.rx_samples,
        tx_samples: args.tx_samples,
        interval_s: args.interval,
        spin: args.spin,
    };
    let mut device = Device::open(radio.device_args())?;
    let title = format!("{} at {}", device.info().product(), device.address());
    let mut turnaround = Turnaround::open(&mut device, plan)?;
    let mut found = Found::new(turnaround.ticks_hz());
    let mut page = TurnaroundPage::start(args, title, found.ticks_hz)?;
    let ended = found.take(args, &plan, &mut |lead| {
        let answer = turnaround.attempt(lead)?;
        page.note(lead, answer);
        Ok(answer)
    });
    page.end();
    let mut report = found.report(args, &plan, ended)?;
    if let (true, RadioUnderTest::Emulated(radio)) = (args.stations, radio) {
        stations::add(&mut report, radio, || Ok(turnaround.attempt(0)?))?;
    }
    Ok(report)
}

/// One try with a lead.
type Attempt<'a> = dyn FnMut(u64) -> anyhow::Result<Answer> + 'a;

/// The measurements so far.
struct Found {
    /// Ticks per second of the radio's time.
    ticks_hz: f64,
    records: Vec<Measured>,
    /// All turnarounds.
    histogram: Histogram,
    leads: Vec<LeadResult>,
}

impl Found {
    fn new(ticks_hz: f64) -> Self {
        Self { ticks_hz, records: Vec::new(), histogram: Histogram::default(), leads: Vec::new() }
    }

    /// Measures all samples and the sweep; measurements before an error remain.
    fn take(
        &mut self,
        args: &Args,
        plan: &TurnaroundSpec,
        attempt: &mut Attempt<'_>,
    ) -> anyhow::Result<()> {
        let repeats = args.repeats();
        let tries = args.count * u64::from(repeats) + args.leads * args.count_per_lead;
        let mut steps = Steps::new(tries as usize);
        let start = Instant::now();
        // The part of the time that the first `done` repetitions may use.
        let until = |done: u32| {
            let share = if args.leads > 0 { FIRST_PART } else { 1.0 };
            let share = share * f64::from(done) / f64::from(repeats);
            start + Duration::from_secs_f64(share * args.duration)
        };
        for repeat in 1..=repeats {
            let (started, begun) = (now(), Instant::now());
            let mut observed = Observed::default();
            let until = until(repeat);
            let ended =
                distribution(args, self.ticks_hz, attempt, until, &mut observed, &mut steps);
            self.histogram.merge(&observed.histogram);
            if observed.histogram.count() > 0 {
                let seconds = begun.elapsed().as_secs_f64();
                let mut record = measured(plan, observed, started, seconds);
                record.counters.extend(ended.is_err().then(|| (CUT_SHORT.to_owned(), 1)));
                self.records.push(record);
            }
            ended?;
        }
        let until = start + Duration::from_secs_f64(args.duration);
        sweep(args, self.ticks_hz, attempt, until, &self.histogram, &mut self.leads, &mut steps)
    }

    /// The result, also of a measurement that an error ended: its figures are of the tries before.
    fn report(
        self,
        args: &Args,
        plan: &TurnaroundSpec,
        ended: anyhow::Result<()>,
    ) -> anyhow::Result<Report> {
        let Self { records, histogram, leads, .. } = self;
        let (count, wanted) = (histogram.count(), args.count * u64::from(args.repeats()));
        let is_cut = ended.is_ok() && count < wanted;
        let failure = match ended {
            Err(error) if count == 0 => return Err(error),
            Err(error) => Some(format!(
                "{error:#}; the figures are those measured before: {count} of {wanted} \
                 turnarounds{}",
                if leads.is_empty() { "" } else { " and a part of the sweep" }
            )),
            Ok(()) => (args.leads > 0 && never_late(&leads).is_none()).then(|| {
                "every lead of the sweep was late at least once: the machine is busy".to_owned()
            }),
        };
        // Only a sweep of whole rounds shows that a lead is safe.
        let rounds = leads.first().map_or(0, |lead| lead.tries);
        let is_whole = failure.is_none() && leads.iter().all(|lead| lead.tries == rounds);
        let safe = never_late(&leads).filter(|_| is_whole);
        let quantile = |share| histogram.quantile_ns(share) as f64 / 1e9;
        let results = json!({
            "plan": plan, "tries": count, "spin": args.spin, "histogram": histogram,
            "turnaround_s": {
                "min": histogram.min_ns() as f64 / 1e9, "median": quantile(0.5),
                "p90": quantile(0.9), "p99": quantile(0.99), "p99_9": quantile(0.999),
                "max": histogram.max_ns() as f64 / 1e9,
            },
            "leads": leads, "never_late_s": safe, "records": records,
        });
        let mut text = text::of(args, &histogram, &leads, safe);
        if is_cut {
            let limit_s = args.duration;
            text += &format!("{wanted} turnarounds need more time than --duration, {limit_s} s\n");
        }
        Ok(Report { text, results, failure })
    }
}

fn measured(plan: &TurnaroundSpec, observed: Observed, started: String, seconds: f64) -> Measured {
    Measured {
        measurement: "radio".to_owned(),
        series: if plan.spin { "spinning" } else { "sleeping" }.to_owned(),
        parameters: samples::entries(json!(plan)),
        started,
        seconds,
        observed,
        ..Measured::default()
    }
}

/// Answers without any lead: all are late, and the lateness is the turnaround.
fn distribution(
    args: &Args,
    ticks_hz: f64,
    attempt: &mut Attempt<'_>,
    until: Instant,
    observed: &mut Observed,
    steps: &mut Steps,
) -> anyhow::Result<()> {
    let begun = Instant::now();
    while observed.histogram.count() < args.count {
        interrupt::check(UNTIL)?;
        let count = observed.histogram.count();
        if count > 0 && Instant::now() >= until {
            (count..args.count).for_each(|_| steps.skip());
            break;
        }
        steps.next(|| format!("turnarounds, {count} of {} found", args.count));
        if let Answer::Late { ticks } = attempt(0)? {
            let value_ns = (ticks as f64 * 1e9 / ticks_hz).round() as u64;
            observed.record(value_ns, begun.elapsed().as_nanos() as u64);
        }
    }
    Ok(())
}

/// Tries all leads in interleaved rounds, so that a disturbance does not hit one of them alone.
fn sweep(
    args: &Args,
    ticks_hz: f64,
    attempt: &mut Attempt<'_>,
    until: Instant,
    histogram: &Histogram,
    results: &mut Vec<LeadResult>,
    steps: &mut Steps,
) -> anyhow::Result<()> {
    let leads = if args.leads == 0 { Vec::new() } else { leads_s(histogram, args.leads as usize) };
    let result =
        |lead_s| LeadResult { lead_s, tries: 0, late: 0, predicted: beyond(histogram, lead_s) };
    results.extend(leads.into_iter().map(result));
    for round in 0..args.count_per_lead {
        if round > 0 && Instant::now() >= until {
            break;
        }
        for result in &mut *results {
            interrupt::check(UNTIL)?;
            steps.next(|| format!("sweep, round {} of {}", round + 1, args.count_per_lead));
            let answer = attempt((result.lead_s * ticks_hz).ceil() as u64)?;
            result.tries += 1;
            result.late += u64::from(matches!(answer, Answer::Late { .. }));
        }
    }
    Ok(())
}

/// Share of turnarounds that are longer than `lead_s`.
fn beyond(histogram: &Histogram, lead_s: f64) -> f64 {
    let longer = histogram.classes().filter(|class| class.0 as f64 / 1e9 > lead_s);
    longer.map(|class| class.1).sum::<u64>() as f64 / histogram.count().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// The result of a measurement whose tries end with an error after this many.
    fn ending_after(tries: u32) -> anyhow::Result<Report> {
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
        let (mut found, mut left) = (Found::new(10e6), tries);
        let ended = found.take(&args, &plan, &mut |lead| {
            left = left.checked_sub(1).ok_or_else(|| anyhow::anyhow!("captures came too late"))?;
            Ok(if lead == 0 { Answer::Late { ticks: 500 } } else { Answer::InTime })
        });
        found.report(&args, &plan, ended)
    }

    #[test]
    fn what_was_measured_before_an_error_is_the_result_with_the_error() {
        assert!(ending_after(0).is_err(), "nothing was measured");
        let report = ending_after(17).unwrap();
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
        let report = ending_after(20 + 3).unwrap();
        assert!(report.failure.unwrap().contains("20 of 20 turnarounds and a part of the sweep"));
        assert_eq!(report.results["never_late_s"], serde_json::Value::Null);
        assert!(ending_after(u32::MAX).unwrap().failure.is_none());
    }
}
