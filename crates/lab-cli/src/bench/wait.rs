//! `millstream-lab bench wait`: the price of each wait mode.

use super::{places, refusals};
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::interrupt;
use crate::network::SideArgs;
use crate::numbers::{rate, seconds, whole, within};
use crate::output::{Report, note, percent};
use crate::table::Table;
use millstream_lab::packets::testbed::SideSetup;
use millstream_lab::packets::waiting::{Wait, WaitCase, WaitFigures, WaitLine, wait};
use millstream_lab::packets::{TestNetwork, Testbed};
use millstream_measure::picture::short_time;
use std::time::Duration;

/// Measures what each wait mode costs a thread that receives, and how soon it has a packet. Needs
/// root.
///
/// One side sends packets at a rate over a temporary veth pair. The other side waits for them at a
/// port: it spins (polls without a pause), parks (sleeps in the kernel), or is adaptive (spins for
/// 20 µs at most, yields for 30 µs more, then sleeps; when that is in vain, it sleeps at once). The
/// output shows the share of a CPU that the waiting thread takes, and the delay from the sending of
/// a packet until the thread has it. All rows take half a minute.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream-lab bench wait
  sudo millstream-lab bench wait --link udp --link xdp:mode=native --packet-rate 100,10k,200k
  sudo millstream-lab bench wait --class fifo:50 --repeat 7")]
pub struct Args {
    /// Packets per second.
    #[arg(long, value_name = "PPS,…", value_delimiter = ',', default_value = "1k,10k,100k",
          value_parser = rate)]
    packet_rate: Vec<f64>,

    /// Link to wait at, without interface and wait mode. On a link of frames the receiving thread
    /// drives the link itself, as an I/O thread would. Repeat the option for more.
    #[arg(long, value_name = "LINK", default_value = "udp")]
    link: Vec<String>,

    /// Length of each measurement.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    measure: f64,

    /// Number of times that each row is measured.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>(1..=1000))]
    repeat: u32,

    #[command(flatten)]
    seats: SideArgs,
}

crate::results! {
    /// What each wait mode costs, and how soon it sees a packet.
    struct WaitResults<'a> {
        /// The set-ups of the sending and the receiving side.
        places: &'a [SideSetup; 2],
        /// Length of each measurement, seconds.
        measure_s: f64,
        /// Measurements of each row.
        repetitions: u32,
        /// The real-time priority of both sides.
        fifo: Option<u32>,
        /// Each wait mode on each link at each rate.
        rows: &'a [WaitLine],
    }
}

/// Succeeds when every row was measured.
pub fn run(args: Args) -> anyhow::Result<Report> {
    within("--measure", (args.measure, " s"), 0.05..=60.0, "50ms to 60s")?;
    for rate in &args.packet_rate {
        within("--packet-rate", (*rate, ""), 1.0..=1e6, "1 to 1M")?;
    }
    interrupt::install();
    let mut stage = args.seats.set(&TestNetwork::Private { mtu: 1500 })?;
    note(format_args!("{}", places(stage.places())));
    let cases = args.cases();
    let mut waiting = Waiting { args: &args, stage: &mut stage };
    let all = in_rounds(&mut waiting, &cases, args.repeat as usize);
    let rows = cases.iter().zip(&all.cases).map(|(case, taken)| WaitLine::of(case, taken));
    let rows: Vec<_> = rows.collect();
    let results = WaitResults {
        places: stage.places(),
        measure_s: args.measure,
        repetitions: args.repeat,
        fifo: args.seats.fifo(),
        rows: &rows,
    };
    Ok(Report::of(text(&args, &rows), &results).failing(all.failure()))
}

/// The measurement of wait modes.
struct Waiting<'a> {
    args: &'a Args,
    stage: &'a mut Testbed,
}

impl Experiment for Waiting<'_> {
    type Case = WaitCase;
    type Outcome = WaitFigures;

    fn name(&self, case: &WaitCase) -> String {
        format!("{}, {}", case.link, case.wait.name())
    }

    fn step(&mut self, case: &WaitCase, _: usize) -> Result<WaitFigures, Unmeasured> {
        let span = Duration::from_secs_f64(self.args.measure);
        Ok(wait(self.stage, case, span, self.args.seats.fifo())?)
    }
}

impl Args {
    fn cases(&self) -> Vec<WaitCase> {
        let mut cases = Vec::new();
        for link in &self.link {
            for rate_pps in &self.packet_rate {
                let case = |wait| WaitCase { link: link.clone(), wait, rate_pps: *rate_pps };
                cases.extend(Wait::ALL.map(case));
            }
        }
        cases
    }
}

fn text(args: &Args, rows: &[WaitLine]) -> String {
    let class = args.seats.fifo().map_or("SCHED_OTHER".to_owned(), |p| format!("SCHED_FIFO {p}"));
    let mut text = format!("\nwait modes of a thread that receives packets, {class}\n");
    let delay = |share| move |line: &WaitLine| short_time(line.delays.quantile_ns(share));
    let spread = |line: &WaitLine| {
        line.cpu_share.map_or("?".to_owned(), |share| {
            format!("{} ({} to {})", percent(share.median), percent(share.min), percent(share.max))
        })
    };
    let measured: Vec<_> = rows.iter().filter(|line| line.sent > 0).collect();
    text += &Table::of(measured.iter().copied())
        .left("link", |line| line.link.clone())
        .right("packets/s", |line| format!("{:.0}", line.rate_pps))
        .left("wait", |line| line.wait)
        .right("CPU", spread)
        .right("p50", delay(0.5))
        .right("p99", delay(0.99))
        .right("max", delay(1.0))
        .right("sleeps/s", |line| line.sleeps_hz.map_or("?".to_owned(), |hz| format!("{hz:.0}")))
        .right("lost", WaitLine::lost)
        .text();
    let name = |line: &WaitLine| format!("{}, {}", line.link, line.wait);
    let names: Vec<_> = rows.iter().map(name).collect();
    let reasons = rows.iter().map(|line| line.refused.as_deref());
    text += &refusals(names.iter().map(String::as_str).zip(reasons));
    text += "\nCPU: of the waiting thread, the median of the repetitions and their range. p50 to \
             max: from the\nsending of a packet until the thread has it, all repetitions together. \
             sleeps/s: how often the\nthread went to sleep. ?: too few packets came.\n";
    text
}
