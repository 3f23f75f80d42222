//! `millstream-lab latency launch`: how near to its launch time a packet leaves.

mod record;
mod text;

use crate::bench::places;
use crate::interrupt;
use crate::live::Steps;
use crate::network::SideArgs;
use crate::numbers::{one_of, seconds, seconds_or_0, whole, within};
use crate::output::{Report, note, now};
use millstream_lab::packets::launch::{LaunchTable, LaunchVia, Launching, launch};
use millstream_lab::packets::{StageError, TestNetwork, Testbed};
use millstream_measure::Measured;
use serde_json::json;
use std::time::{Duration, Instant};

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

/// Succeeds when a way other than a sleeping thread was measured, or none was requested.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let how = args.check()?;
    interrupt::install();
    let mut stage = args.seats.set(&TestNetwork::Private { mtu: 1500 })?;
    note(format_args!("{}", places(stage.places())));
    let (mut table, mut records) = (LaunchTable::default(), Vec::new());
    let ended = args.measure(&how, &mut stage, &mut table, &mut records);
    let asked = || table.lines.iter().filter(|line| line.via != LaunchVia::Thread);
    let nothing = asked().count() > 0 && asked().all(|line| line.sent == 0);
    let why = asked().find_map(|line| line.refused.clone()).filter(|_| nothing);
    let failure = ended.err().map(|error| error.to_string()).or(why);
    let results = json!({
        "places": stage.places(), "frame_bytes": args.size, "count": args.count,
        "interval_s": args.interval, "lead_s": args.lead, "batch": args.batch,
        "tolerance_s": args.tolerance, "repetitions": args.repeat, "rows": table.lines,
        "records": records,
    });
    Ok(Report { text: text::table(&args, &table), results, failure })
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

    fn measure(
        &self,
        how: &Launching,
        stage: &mut Testbed,
        table: &mut LaunchTable,
        records: &mut Vec<Measured>,
    ) -> Result<(), StageError> {
        let mut steps = Steps::new(self.repeat as usize * self.via.len());
        for _ in 0..self.repeat {
            for via in &self.via {
                let line = table.line(*via);
                if line.refused.is_some() {
                    steps.skip();
                    continue;
                }
                steps.next(|| via.name().to_owned());
                let (started, begun) = (now(), Instant::now());
                match launch(stage, *via, how) {
                    Ok(found) => {
                        line.add(&found);
                        let seconds = begun.elapsed().as_secs_f64();
                        records.extend(record::measured(*via, how, &found, started, seconds));
                    }
                    Err(StageError::Refused(reason)) => line.refused = Some(reason),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}
