//! `millstream bench packets`: packets a second over any link, and their cost.

mod choose;
mod text;

pub use text::{places, refusals};

use crate::interrupt;
use crate::live::Steps;
use crate::network::NetworkArgs;
use crate::numbers::{rate, seconds};
use crate::output::{Report, note};
use crate::wait::WaitArg;
use millstream_lab::packets::measure::How;
use millstream_lab::packets::rows::{self, throughput};
use millstream_lab::packets::{
    Carriage, PacketTable, PathRow, RowResults, Span, StageError, TestNetwork, Testbed, Workload,
    measure, untraceable,
};
use millstream_link::registry::find;
use serde_json::json;
use std::time::Duration;

/// Measures packets a second over any link: receive and drop, transmit only, MAC swap.
///
/// All links are measured in interleaved rounds; ratios are to plain kernel UDP (sendmmsg to
/// recvmmsg) in the same round. Two processes, a CPU each, talk over a veth pair between two
/// network namespaces; all of that is temporary. "frames" are bare frames on the link, "port" is
/// the whole path with our UDP/IP stack. It shows its progress; all links take about four minutes,
/// and --choose takes about half a minute.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream bench packets
  sudo millstream bench packets --size 64 --only xdp --only 'kernel UDP' --workload drop,swap
  sudo millstream bench packets --link xdp:mode=native --path both --wait spin --layout same
  sudo millstream bench packets --choose --size 1514 --packet-rate 200k --max-latency 50us \
    --interface eth1 --peer eth2                  eth1 and eth2 are wired to each other
  millstream bench packets --loopback")]
pub struct Args {
    #[command(flatten)]
    ground: NetworkArgs,

    /// Workload of packets.
    #[arg(
        long,
        value_name = "WORKLOAD,…",
        value_delimiter = ',',
        value_enum,
        default_value = "drop"
    )]
    workload: Vec<WorkloadArg>,

    /// Bytes of each packet as an Ethernet frame; a UDP payload is 42 less.
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', default_value = "64,1514,8042",
          value_parser = clap::value_parser!(u32).range(60..=65_535))]
    size: Vec<u32>,

    /// Repetitions of each row.
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,

    /// Length of each repetition.
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = seconds)]
    duration: f64,

    /// Packets per second offered, by default as many as the link takes; with --choose: needed.
    #[arg(long, value_name = "PPS", value_parser = rate)]
    packet_rate: Option<f64>,

    /// Only rows whose name contains this; plain kernel UDP is always among them.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,

    /// A link to measure instead of all rows, such as xdp:mode=native; the interface is added.
    #[arg(long, value_name = "LINK")]
    link: Vec<String>,

    /// Use of such a link: bare frames, a port, or both.
    #[arg(long, value_name = "LAYER", value_enum, default_value = "both", requires = "link")]
    path: PathArg,

    /// How such a link waits.
    #[arg(long, value_name = "WAIT", value_enum, default_value = "spin", requires = "link")]
    wait: WaitArg,

    /// Leave out the extra run of each row that counts system calls.
    #[arg(long)]
    no_trace: bool,

    /// Recommend the safest link that is good enough for packets of --size at --packet-rate, and
    /// store it for the link `auto`.
    #[arg(long, conflicts_with_all = ["only", "link", "workload", "loopback"])]
    choose: bool,

    /// With --choose: largest 99th percentile of round trips.
    #[arg(long, value_name = "TIME", requires = "choose", value_parser = seconds)]
    max_latency: Option<f64>,

    /// With --choose: the interface that the choice is stored for; by default that of --interface.
    /// A card must be that one: a veth pair says nothing about its driver.
    #[arg(long = "for", value_name = "INTERFACE", requires = "choose")]
    store_for: Option<String>,
}

/// Workload of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum WorkloadArg {
    /// One side sends, the other receives and drops.
    Drop,
    /// One side sends; no receiver.
    Transmit,
    /// The other side returns all packets.
    Swap,
}

/// Uses of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PathArg {
    Frames,
    Port,
    Both,
}

impl From<WorkloadArg> for Workload {
    fn from(arg: WorkloadArg) -> Self {
        match arg {
            WorkloadArg::Drop => Self::Drop,
            WorkloadArg::Transmit => Self::Transmit,
            WorkloadArg::Swap => Self::Swap,
        }
    }
}

/// Succeeds when at least one row beside the base could be measured.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let in_range = (0.01..=600.0).contains(&args.duration);
    anyhow::ensure!(in_range, "--duration {}: give 0.01 to 600 seconds", args.duration);
    choose::check(&args, std::path::Path::new("/sys"))?;
    interrupt::install();
    let mut stage = args.ground.set()?;
    note(format_args!("{}", places(stage.places())));
    if args.choose {
        return choose::run(&args, &mut stage);
    }
    let untraced = if args.no_trace { None } else { untraceable() };
    let mut report = Report::done(String::new(), json!({}));
    let mut results = Vec::new();
    let trace = !args.no_trace && untraced.is_none();
    let work = args.workload.iter().map(|arg| Workload::from(*arg));
    let work: Vec<_> = work.map(|workload| (workload, args.rows(workload))).collect();
    let rows: usize = work.iter().map(|(_, rows)| rows.len()).sum();
    let mut steps = Steps::new(args.turns(trace) * args.size.len() * rows);
    for (workload, rows) in work {
        let matches = |row: &PathRow| args.only.iter().any(|only| row.name.contains(only.as_str()));
        let found = args.only.is_empty() || rows.iter().any(matches);
        anyhow::ensure!(found, "no row's name contains {}", args.only.join(" or "));
        let mut tables: Vec<_> =
            args.size.iter().map(|size| PacketTable::new(*size as usize)).collect();
        let how = (workload, trace);
        let ended = measure_all(&args, &mut stage, how, &rows, &mut tables, &mut steps);
        steps.end();
        for table in &mut tables {
            table.sum_up();
            report.text += &text::table(workload, table, text::layout(stage.places()));
        }
        results.push(json!({ "workload": workload, "tables": tables }));
        if let Err(error) = ended {
            report.failure = Some(error.to_string());
            break;
        }
        // Beside the base, unless only the base was requested.
        let base = PathRow::base().name;
        let measured = |table: &PacketTable| {
            let all = args.link.is_empty() && rows.len() == 1;
            let counts = |line: &&RowResults| all || line.name != base;
            table.lines.iter().filter(counts).any(|line| line.ratio.is_some())
        };
        if !tables.iter().any(measured) {
            report.failure = Some("no row could be measured".to_owned());
        }
    }
    report.results = json!({
        "places": stage.places(), "layout": text::layout(stage.places()),
        "duration_s": args.duration, "offered_pps": args.packet_rate, "workloads": results,
        "untraced": untraced,
    });
    if let Some(why) = untraced {
        report.text += &text::untraced(&why);
    }
    Ok(report)
}

/// Measures all rows in interleaved rounds, each size after the other within a repetition.
fn measure_all(
    args: &Args,
    stage: &mut Testbed,
    (workload, traces): (Workload, bool),
    rows: &[PathRow],
    tables: &mut [PacketTable],
    steps: &mut Steps,
) -> Result<(), StageError> {
    for turn in 0..args.turns(traces) {
        let trace = turn == args.repeat as usize;
        for table in &mut *tables {
            for row in rows {
                let line = table.line(&row.name);
                if line.refused.is_some() {
                    steps.skip();
                    continue;
                }
                steps.next(|| format!("{}, {} bytes", row.name, table.frame_bytes));
                let how = args.how(workload, table.frame_bytes, trace);
                let line = table.line(&row.name);
                match measure::measure(stage, row, &how) {
                    Ok(measured) if trace => line.traced = Some(measured),
                    Ok(measured) => line.runs.push((turn, measured)),
                    // A trace needs rights that the measurement does not.
                    Err(StageError::Refused(reason)) if trace => line.untraced = Some(reason),
                    Err(StageError::Refused(reason)) => line.refused = Some(reason),
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(())
}

impl Args {
    /// Number of measurements of each row: with a trace one more, which does not count.
    fn turns(&self, trace: bool) -> usize {
        self.repeat as usize + usize::from(trace)
    }

    fn rows(&self, workload: Workload) -> Vec<PathRow> {
        let mut rows = if self.link.is_empty() {
            throughput(workload)
        } else {
            let wait = self.wait.into();
            let row = |link: &String| {
                let paths = match self.path {
                    PathArg::Frames => &[Carriage::Frames][..],
                    PathArg::Port => &[Carriage::Port],
                    PathArg::Both => &[Carriage::Frames, Carriage::Port],
                };
                // Some links have no frames: the kernel's sockets.
                let ports_only = find(link).is_ok_and(|entry| !entry.carries_frames());
                let fits = |path: &&Carriage| **path == Carriage::Port || !ports_only;
                let rows = paths
                    .iter()
                    .filter(fits)
                    .map(|path| PathRow::of_links(link, link, *path, wait));
                rows.collect::<Vec<_>>()
            };
            std::iter::once(PathRow::base()).chain(self.link.iter().flat_map(row)).collect()
        };
        // A named link reports itself why it is not available there.
        let interfaces = self.ground.ground() != TestNetwork::Loopback || !self.link.is_empty();
        rows::choose(&mut rows, &self.only, interfaces);
        rows
    }

    /// The interface of a choice.
    fn interface(&self) -> Option<String> {
        let given = self.ground.interface();
        self.store_for.clone().or_else(|| given.map(str::to_owned))
    }

    fn how(&self, workload: Workload, frame_bytes: usize, trace: bool) -> How {
        let span = Span::of(Duration::from_secs_f64(self.duration));
        How {
            workload,
            frame_bytes,
            span,
            rate_pps: self.packet_rate,
            trace,
            fifo: self.ground.seats.fifo(),
        }
    }
}
