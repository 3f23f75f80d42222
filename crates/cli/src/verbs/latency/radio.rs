//! `millstream latency radio`: the turnaround from received samples to the earliest answer that a
//! radio still transmits at its time.

use crate::child_radio::{ChildRadio, Options};
use crate::interrupt;
use crate::live::Live;
use crate::numbers::positive;
use crate::output::{Report, note, now};
use millstream_lab::picture::{draw, short_time};
use millstream_lab::turnaround::{Answer, LeadResult, Plan, Turnaround, leads_s, never_late};
use millstream_lab::{Histogram, Measured, Observed, buffer};
use millstream_radio::{Device, DeviceArgs};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

/// Measures the turnaround of a radio and this host: from the time of the newest received sample
/// to the earliest time at which an answer is not late.
///
/// First every answer is sent too late on purpose: the radio says by how much, and those times are
/// the distribution. Then a sweep of lead times shows which answers were late indeed, and which
/// lead never was. Without --args the radio is an emulated one in a process of its own.
#[derive(clap::Args)]
pub struct Args {
    #[arg(
        long,
        value_name = "ARGS",
        help = "The device: addr=IPV4[,rpc_port=N][,link=LINK]; without it, an emulated radio"
    )]
    args: Option<DeviceArgs>,

    /// Samples per second.
    #[arg(long, value_name = "HZ", default_value_t = 10e6, value_parser = positive,
          allow_negative_numbers = true)]
    rate: f64,

    /// Turnarounds to measure.
    #[arg(long, value_name = "N", default_value_t = 2000,
          value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    tries: u64,

    /// Samples, one after the other, of so many turnarounds each.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    samples: u32,

    /// Lead times in the sweep; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 12,
          value_parser = clap::value_parser!(u64).range(0..=1000))]
    leads: u64,

    /// Answers for each lead time.
    #[arg(long, value_name = "N", default_value_t = 200,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    tries_per_lead: u64,

    /// Samples of a received burst; at most a packet.
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rx_samples: u32,

    /// Samples of an answer; at most a packet.
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    tx_samples: u32,

    /// Between two tries, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1e-3, value_parser = positive,
          allow_negative_numbers = true)]
    interval: f64,

    /// Receive and transmit channel.
    #[arg(long, value_name = "N", default_value_t = 0)]
    channel: usize,

    /// Never sleep while waiting for samples: burns a core, and is quicker.
    #[arg(long)]
    spin: bool,
}

/// Succeeds when every try was answered; with a sweep, when a lead was never late.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    let mut emulated = match &args.args {
        Some(_) => None,
        None => {
            let options = ["--serial", "LATENCY", "--rx-antenna", "ramp"].map(str::to_owned).into();
            Some(ChildRadio::start(&Options { args: options, ..Options::default() })?)
        }
    };
    let device = match (&args.args, &emulated) {
        (Some(given), _) => given.clone(),
        (None, Some(radio)) => DeviceArgs::new(radio.addr()),
        (None, None) => anyhow::bail!("there is no radio"),
    };
    note(format_args!("radio   {device:?}"));
    let outcome = measure(&args, device);
    match (outcome, &mut emulated) {
        (Err(error), Some(radio)) => Err(radio.explain(error)),
        (outcome, _) => outcome,
    }
}

fn measure(args: &Args, device: DeviceArgs) -> anyhow::Result<Report> {
    let plan = Plan {
        channels: (args.channel, args.channel),
        rate_hz: args.rate,
        rx_samples: args.rx_samples,
        tx_samples: args.tx_samples,
        interval_s: args.interval,
        spin: args.spin,
    };
    let mut device = Device::open(device)?;
    let mut turnaround = Turnaround::open(&mut device, plan)?;
    let (mut records, mut histogram) = (Vec::new(), Histogram::default());
    for _ in 0..args.samples {
        let (started, begun) = (now(), Instant::now());
        let observed = distribution(args, &mut turnaround)?;
        histogram.merge(&observed.histogram);
        records.push(measured(&plan, observed, started, begun.elapsed().as_secs_f64()));
    }
    let leads = sweep(args, &mut turnaround, &histogram)?;
    let safe = never_late(&leads);
    let failure = (args.leads > 0 && safe.is_none())
        .then(|| "every lead of the sweep was late at least once: the machine is busy".to_owned());
    let quantile = |share| histogram.quantile_ns(share) as f64 / 1e9;
    let results = json!({
        "plan": plan, "tries": histogram.count(), "spin": args.spin, "histogram": histogram,
        "turnaround_s": {
            "min": histogram.min_ns() as f64 / 1e9, "median": quantile(0.5), "p90": quantile(0.9),
            "p99": quantile(0.99), "p99_9": quantile(0.999),
            "max": histogram.max_ns() as f64 / 1e9,
        },
        "leads": leads, "never_late_s": safe, "records": records,
    });
    Ok(Report { text: text(args, &histogram, &leads, safe), results, failure })
}

fn measured(plan: &Plan, observed: Observed, started: String, seconds: f64) -> Measured {
    let parameters = match serde_json::to_value(plan) {
        Ok(Value::Object(parameters)) => parameters,
        _ => Map::new(),
    };
    Measured {
        measurement: "radio".to_owned(),
        series: if plan.spin { "spinning" } else { "sleeping" }.to_owned(),
        parameters,
        started,
        seconds,
        observed,
        counters: BTreeMap::new(),
        stages: Vec::new(),
        outliers: Vec::new(),
        details: Map::new(),
    }
}

/// Answers without any lead: all are late, and by how much is the turnaround.
fn distribution(args: &Args, turnaround: &mut Turnaround<'_>) -> anyhow::Result<Observed> {
    let mut observed = Observed::default();
    let begun = Instant::now();
    let mut live = Live::on_terminal_only();
    while observed.histogram.count() < args.tries {
        check_interrupt()?;
        if let Answer::Late { ticks } = turnaround.attempt(0)? {
            let value_ns = (ticks as f64 * 1e9 / args.rate).round() as u64;
            observed.record(value_ns, begun.elapsed().as_nanos() as u64);
        }
        let count = observed.histogram.count();
        live.show(Instant::now(), || format!("{count} of {} tries", args.tries));
    }
    Ok(observed)
}

/// Each lead in turn, and again, so that a disturbance does not hit one of them alone.
fn sweep(
    args: &Args,
    turnaround: &mut Turnaround<'_>,
    histogram: &Histogram,
) -> anyhow::Result<Vec<LeadResult>> {
    let leads = if args.leads == 0 { Vec::new() } else { leads_s(histogram, args.leads as usize) };
    let mut results: Vec<_> = leads
        .into_iter()
        .map(|lead_s| LeadResult {
            lead_s,
            tries: 0,
            late: 0,
            predicted: beyond(histogram, lead_s),
        })
        .collect();
    let mut live = Live::on_terminal_only();
    for round in 0..args.tries_per_lead {
        for result in &mut results {
            check_interrupt()?;
            let answer = turnaround.attempt((result.lead_s * args.rate).ceil() as u64)?;
            result.tries += 1;
            result.late += u64::from(matches!(answer, Answer::Late { .. }));
        }
        live.show(Instant::now(), || format!("sweep {round} of {}", args.tries_per_lead));
    }
    Ok(results)
}

fn check_interrupt() -> anyhow::Result<()> {
    anyhow::ensure!(!interrupt::asked(), "ended before the measurement was");
    Ok(())
}

/// Share of turnarounds that are longer than `lead_s`.
fn beyond(histogram: &Histogram, lead_s: f64) -> f64 {
    let longer = histogram.classes().filter(|class| class.0 as f64 / 1e9 > lead_s);
    longer.map(|class| class.1).sum::<u64>() as f64 / histogram.count().max(1) as f64
}

fn text(args: &Args, histogram: &Histogram, leads: &[LeadResult], safe: Option<f64>) -> String {
    let (rate_mhz, wait) = (args.rate / 1e6, if args.spin { "spinning" } else { "sleeping" });
    let mut text = format!(
        "turnaround at {rate_mhz} MS/s, {wait} host, {} tries\n{}",
        histogram.count(),
        draw(histogram)
    );
    let quantiles = [("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
    let quantiles = quantiles
        .map(|(name, share)| format!("{name} {}", short_time(histogram.quantile_ns(share))));
    let (min, max) = (short_time(histogram.min_ns()), short_time(histogram.max_ns()));
    let _ = writeln!(text, "min {min}  {}  max {max}", quantiles.join("  "));
    if !leads.is_empty() {
        text += "\n        lead     late  predicted\n";
    }
    for lead in leads {
        let _ = writeln!(
            text,
            "  {:>10}  {:>5.1} %  {:>7.1} %",
            short_time((lead.lead_s * 1e9) as u64),
            lead.late as f64 / lead.tries.max(1) as f64 * 100.0,
            lead.predicted * 100.0
        );
    }
    if let Some(safe_s) = safe {
        let _ = writeln!(
            text,
            "smallest lead that was never late in {} tries: {} ({} samples)",
            args.tries_per_lead,
            short_time((safe_s * 1e9) as u64),
            buffer::samples_for(safe_s, args.rate)
        );
    }
    text
}
