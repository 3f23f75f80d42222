//! `millstream-lab latency launch`: how near to its launch time a packet leaves.

use crate::bench::{places, refusals};
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::interrupt;
use crate::network::SideArgs;
use crate::numbers::{one_of, seconds, seconds_or_0, whole, within};
use crate::output::{Report, note};
use crate::samples::entries;
use crate::table::Table;
use millstream_lab::packets::launch::{LaunchFigures, LaunchLine, LaunchVia, Launching, launch};
use millstream_lab::packets::testbed::SideSetup;
use millstream_lab::packets::{TestNetwork, Testbed};
use millstream_measure::picture::short_time;
use millstream_measure::{Measured, Observed};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Measures how near to their launch times packets leave (SO_TXTIME). Needs root.
///
/// A launch time is the time at which the kernel should send a packet. The program hands packets
/// over earlier, and the queue of the interface sends each at its time: fq at the time or later,
/// etf at the time or earlier. etf drops packets that it would send too late, and reports them. The
/// receiver, at the other end of a temporary veth pair, compares the kernel's time stamp of each
/// packet with its launch time. Four seconds a row.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream-lab latency launch
  sudo millstream-lab latency launch --via thread,fq --interval 100us --batch 16
  sudo millstream-lab latency launch --via fq --lead 0   every packet comes late to the queue
  sudo millstream-lab latency launch --via none              a queue without launch times")]
pub struct Args {
    /// What keeps the launch times.
    #[arg(long, value_name = "VIA,…", value_delimiter = ',', default_value = "thread,fq,etf",
          value_parser = one_of(&VIAS))]
    via: Vec<LaunchVia>,

    /// Number of packets in each measurement.
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = whole::<u64>(10..=10_000_000))]
    count: u64,

    /// Time between two launch times.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = seconds)]
    interval: f64,

    /// How long before the first launch time of a batch the program hands the batch over.
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = seconds_or_0)]
    lead: f64,

    /// Number of packets handed over in one system call. A thread sends one by one.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = whole::<u32>(1..=64))]
    batch: u32,

    /// A packet that leaves within this time before or after its launch time is in time. The queue
    /// etf may send this much too early (its delta), and drops what it cannot send in time.
    #[arg(long, value_name = "TIME", default_value = "200us", value_parser = seconds)]
    tolerance: f64,

    /// Size of each packet as an Ethernet frame, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = whole::<u32>(60..=1514))]
    size: u32,

    /// Number of times that each row is measured.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>(1..=1000))]
    repeat: u32,

    #[command(flatten)]
    seats: SideArgs,
}

/// The ways to keep launch times.
const VIAS: [(&str, &str, LaunchVia); 4] = [
    ("thread", "A thread sleeps until each launch time, and sends then", LaunchVia::Thread),
    ("fq", "The queue fq", LaunchVia::Fq),
    ("etf", "The queue etf", LaunchVia::Etf),
    ("none", "No queue that knows launch times: packets leave at once", LaunchVia::None),
];

/// The most packets of one flow that `fq` keeps (its `flow_limit`).
const WAITING_MAX: f64 = 100.0;

/// The longest that a packet of `fq` may be ahead, seconds (its `horizon`).
const AHEAD_MAX_S: f64 = 10.0;

crate::results! {
    /// How near to their launch times packets left.
    struct LaunchResults<'a> {
        /// The set-ups of the sending and the receiving side.
        places: &'a [SideSetup; 2],
        /// Bytes of each packet as an Ethernet frame.
        frame_bytes: u32,
        /// Packets of each measurement.
        count: u64,
        /// Time between two launch times, seconds.
        interval_s: f64,
        /// How long before its first launch time a batch was handed over, seconds.
        lead_s: f64,
        /// Packets of a batch.
        batch: u32,
        /// A packet within this time of its launch time is in time, seconds.
        tolerance_s: f64,
        /// Measurements of each row.
        repetitions: u32,
        /// Each way to keep launch times.
        rows: &'a [LaunchLine],
        /// A record for each round of each row: distances from the launch times.
        records: &'a [Measured],
    }
}

/// Succeeds when a way other than a sleeping thread was measured, or none was requested.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let how = args.check()?;
    interrupt::install();
    let mut stage = args.seats.set(&TestNetwork::Private { mtu: 1500 })?;
    note(format_args!("{}", places(stage.places())));
    let mut launches = Launches { how: &how, stage: &mut stage };
    let all = in_rounds(&mut launches, &args.via, args.repeat as usize);
    let rows = args.via.iter().zip(&all.cases).map(|(via, taken)| LaunchLine::of(*via, taken));
    let rows: Vec<_> = rows.collect();
    let asked = || rows.iter().filter(|line| line.via != LaunchVia::Thread);
    let nothing = asked().count() > 0 && asked().all(|line| line.sent == 0);
    let why = asked().find_map(|line| line.refused.clone()).filter(|_| nothing);
    let failure = all.error().or(why);
    let results = LaunchResults {
        places: stage.places(),
        frame_bytes: args.size,
        count: args.count,
        interval_s: args.interval,
        lead_s: args.lead,
        batch: args.batch,
        tolerance_s: args.tolerance,
        repetitions: args.repeat,
        rows: &rows,
        records: &all.records,
    };
    Ok(Report::of(text(&args, &rows), &results).failing(failure))
}

impl Args {
    fn check(&self) -> anyhow::Result<Launching> {
        within("--interval", (self.interval, " s"), 1e-6..=10.0, "1us to 10s")?;
        within("--lead", (self.lead, " s"), 0.0..=5.0, "0 to 5s")?;
        within("--tolerance", (self.tolerance, " s"), 1e-6..=1.0, "1us to 1s")?;
        let is_fq = self.via.contains(&LaunchVia::Fq);
        let waiting = self.lead / self.interval + f64::from(self.batch);
        let ahead_s = self.lead + f64::from(self.batch) * self.interval;
        anyhow::ensure!(
            !is_fq || ahead_s <= AHEAD_MAX_S,
            "the last packet of a batch would be sent {ahead_s} s ahead, but fq drops those more \
             than {AHEAD_MAX_S} s ahead: give a shorter --lead or --interval, or a smaller --batch"
        );
        anyhow::ensure!(
            !is_fq || waiting <= WAITING_MAX,
            "{waiting:.0} packets would wait in the queue, but fq keeps {WAITING_MAX} of one flow: \
             give a shorter --lead, a longer --interval or a smaller --batch"
        );
        let time = Duration::from_secs_f64;
        Ok(Launching {
            frame_bytes: self.size as usize,
            count: self.count,
            interval: time(self.interval),
            lead: time(self.lead),
            batch: self.batch as usize,
            tolerance: time(self.tolerance),
            fifo: self.seats.fifo(),
        })
    }
}

/// The measurement of launch times.
struct Launches<'a> {
    how: &'a Launching,
    stage: &'a mut Testbed,
}

impl Experiment for Launches<'_> {
    type Case = LaunchVia;
    type Outcome = LaunchFigures;

    fn name(&self, via: &LaunchVia) -> String {
        via.name().to_owned()
    }

    fn step(&mut self, via: &LaunchVia, _: usize) -> Result<LaunchFigures, Unmeasured> {
        Ok(launch(self.stage, *via, self.how)?)
    }

    fn records(&self, via: &LaunchVia, found: &LaunchFigures) -> Vec<Measured> {
        measured(*via, self.how, found).into_iter().collect()
    }
}

/// One repetition; nothing where no packet came, because a record has latencies.
fn measured(via: LaunchVia, how: &Launching, found: &LaunchFigures) -> Option<Measured> {
    let parameters = Parameters {
        via: via.name(),
        frame_bytes: how.frame_bytes,
        batch: how.batch,
        interval_ns: how.interval.as_nanos() as u64,
        lead_ns: how.lead.as_nanos() as u64,
        tolerance_ns: how.tolerance.as_nanos() as u64,
        class: how.fifo.map(|priority| format!("fifo:{priority}")),
    };
    let (sent, arrived) = (&found.sent, &found.arrived);
    let quantile = |share| arrived.offsets.quantile_ns(share);
    let offset_ns =
        Offsets { min: quantile(0.0), p50: quantile(0.5), p99: quantile(0.99), max: quantile(1.0) };
    let queue = found.queued.as_ref().map(|queued| &*queued.kind);
    let details = Details { cpu_s: sent.cpu_s, queue, offset_ns };
    let counters = [
        ("early", arrived.early),
        ("late", arrived.late),
        ("refused at the queue", sent.refusals.invalid),
        ("missed in the queue", sent.refusals.missed),
        ("dropped by the queue", found.dropped()),
        ("lost", found.lost()),
    ];
    (arrived.offsets.count() > 0).then(|| Measured {
        measurement: "launch".to_owned(),
        series: via.name().to_owned(),
        parameters: entries(&parameters),
        observed: Observed::from(arrived.offsets.distances()),
        counters: BTreeMap::from(counters.map(|(name, count)| (name.to_owned(), count))),
        details: entries(&details),
        ..Measured::default()
    })
}

#[derive(Serialize)]
struct Parameters {
    via: &'static str,
    frame_bytes: usize,
    batch: usize,
    interval_ns: u64,
    lead_ns: u64,
    tolerance_ns: u64,
    class: Option<String>,
}

#[derive(Serialize)]
struct Details<'a> {
    cpu_s: f64,
    queue: Option<&'a str>,
    offset_ns: Offsets,
}

#[derive(Serialize)]
struct Offsets {
    min: Option<i64>,
    p50: Option<i64>,
    p99: Option<i64>,
    max: Option<i64>,
}

/// All rows, the repetitions of each together.
fn text(args: &Args, rows: &[LaunchLine]) -> String {
    let time = |seconds: f64| short_time((seconds * 1e9).round() as u64);
    let mut text = format!(
        "\npackets with launch times, {} bytes, every {}, handed over {} before in batches of {}\n",
        args.size,
        time(args.interval),
        time(args.lead),
        args.batch
    );
    let offset = |share| {
        move |line: &LaunchLine| {
            line.offsets.quantile_ns(share).map_or("-".to_owned(), |ns| {
                let sign = if ns < 0 { "-" } else { "" };
                format!("{sign}{}", short_time(ns.unsigned_abs()))
            })
        }
    };
    let measured: Vec<_> = rows.iter().filter(|line| line.sent > 0).collect();
    text += &Table::of(measured.iter().copied())
        .left("", |line| line.via.name())
        .right("min", offset(0.0))
        .right("p50", offset(0.5))
        .right("p99", offset(0.99))
        .right("max", offset(1.0))
        .right("early", |line| line.early)
        .right("in time", |line| line.in_time())
        .right("late", |line| line.late)
        .right("dropped", |line| line.dropped)
        .right("lost", |line| line.lost)
        .right("CPU", |line| short_time(line.cpu_ns.unwrap_or(0.0) as u64))
        .text();
    text += &refusals(rows.iter().map(|line| (line.via.name(), line.refused.as_deref())));
    for line in measured.iter().filter(|line| line.refusals.total() > 0) {
        text += &format!(
            "{}: of the dropped packets, {} came too late to the queue, {} missed their time in \
             it\n",
            line.via.name(),
            line.refusals.invalid,
            line.refusals.missed
        );
    }
    text += &format!(
        "\nmin to max: from the launch time until the packet came out of the interface; negative: \
         before.\nearly, late: more than {} before or after it. dropped: by the queue. CPU: of the \
         sending thread,\nfor each packet.\n",
        time(args.tolerance)
    );
    text
}
