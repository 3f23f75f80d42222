//! `millstream-lab latency udp|link`: round trips between two processes, over ports or bare frames.

use super::explain;
use super::late::LateArgs;
use crate::bench::{places, refusals};
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::interrupt;
use crate::network::{NetworkArgs, RowArgs};
use crate::numbers::{rate, whole};
use crate::output::{Report, note, percent};
use crate::samples::entries;
use crate::table::Table;
use millstream_lab::CaseRuns;
use millstream_lab::explain::RoundTripMonitor;
use millstream_lab::packets::job::RoundTrips;
use millstream_lab::packets::round_trips::{PATIENCE, QUANTILES, TripLine, trip};
use millstream_lab::packets::rows::round_trip;
use millstream_lab::packets::testbed::SideSetup;
use millstream_lab::packets::{Carriage, PathRow, Round, Testbed};
use millstream_measure::explained::Explained;
use millstream_measure::picture::{draw, short_spread, short_time};
use millstream_measure::{Measured, Observed};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Both verbs' options.
#[derive(clap::Args)]
pub struct TripArgs {
    #[command(flatten)]
    ground: NetworkArgs,

    /// Size of each packet as an Ethernet frame, in bytes. A UDP payload is 42 bytes smaller.
    #[arg(long, value_name = "BYTES", default_value_t = 64,
          value_parser = whole::<u32>(60..=65_535))]
    size: u32,

    /// Number of round trips in each measurement.
    #[arg(long, value_name = "N", default_value_t = 5000,
          value_parser = whole::<u64>(10..=100_000_000))]
    count: u64,

    /// Number of times that each row is measured.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>(1..=1000))]
    repeat: u32,

    /// Send this many probes per second, even if earlier ones are not back yet. A latency then
    /// counts from the planned time of the probe, which corrects for coordinated omission. By
    /// default the next probe leaves when the last one is back.
    #[arg(long, value_name = "PPS", value_parser = rate)]
    packet_rate: Option<f64>,

    /// Send this much other traffic beside the probes, in packets per second. Several values give a
    /// curve. The probes then leave at 2000 a second, or at --packet-rate.
    #[arg(long, value_name = "PPS,…", value_delimiter = ',', value_parser = rate)]
    load: Vec<f64>,

    #[command(flatten)]
    rows: RowArgs,

    /// Use another link on the side that answers.
    #[arg(long, value_name = "LINK", requires = "link")]
    peer_link: Option<String>,

    #[command(flatten)]
    late: LateArgs,

    /// Draw the distribution of each row.
    #[arg(long)]
    histograms: bool,
}

/// Probes per second beside load.
const PROBES_PPS: f64 = 2000.0;

/// Succeeds when at least one row beside the base could be measured.
pub fn run(args: &TripArgs, path: Carriage) -> anyhow::Result<Report> {
    interrupt::install();
    let rows = args.rows(path)?;
    let mut stage = args.ground.set()?;
    note(format_args!("{}", places(stage.places())));
    let open = |us| RoundTripMonitor::open(us * 1000, args.late.outliers);
    let watch = args.late.above_us()?.map(open).transpose()?;
    let mut trips = Trips { args, stage: &mut stage, watch };
    let cases = args.cases(&rows);
    let all = in_rounds(&mut trips, &cases, args.repeat as usize);
    let base = PathRow::base().name;
    let taken: Vec<_> = all.cases.iter().map(FoundTrips::trips).collect();
    let of_base = |load_pps| {
        let is_it = |case: &TripCase| case.row.name == base && case.load_pps == load_pps;
        cases.iter().position(is_it).map(|at| &taken[at])
    };
    let lines = cases.iter().zip(&taken).map(|(TripCase { row, load_pps }, taken)| {
        TripLine::of(&row.name, load_pps.unwrap_or(0.0), taken, of_base(*load_pps))
    });
    let lines: Vec<_> = lines.collect();
    // Beside the base, unless only the base was requested.
    let mut counting = lines.iter().filter(|line| rows.len() == 1 || line.name != base);
    let measured = counting.clone().any(|line| !line.runs.is_empty());
    let nothing = (!measured).then(|| {
        let why = counting.find_map(|line| line.refused.as_deref());
        format!("no row could be measured: {}", why.unwrap_or("no row is left"))
    });
    let results = TripResults {
        places: stage.places(),
        frame_bytes: args.size,
        probes_pps: args.probes_pps(),
        count: args.count,
        repetitions: args.repeat,
        fifo: args.ground.seats.fifo(),
        quantiles: QUANTILES,
        rows: &lines,
        topology: stage.topology(),
        records: &all.records,
    };
    let text = text(args, stage.topology(), &lines) + &explain::table::of_records(&all.records);
    Ok(Report::of(text, &results).failing(all.error().or(nothing)))
}

crate::results! {
    /// Round trips of each row.
    struct TripResults<'a> {
        /// The set-ups of the asking and the answering side.
        places: &'a [SideSetup; 2],
        /// Bytes of each packet as an Ethernet frame.
        frame_bytes: u32,
        /// Probes per second; none: one after the other.
        probes_pps: Option<f64>,
        /// Round trips of each measurement.
        count: u64,
        /// Measurements of each row.
        repetitions: u32,
        /// The real-time priority of both sides.
        fifo: Option<u32>,
        /// The quantiles of the rows' rounds; the last is the maximum.
        quantiles: [f64; QUANTILES.len()],
        /// Each row beside each load.
        rows: &'a [TripLine],
        /// The way of packets between the sides.
        topology: &'a str,
        /// A record for each round of each row.
        records: &'a [Measured],
    }
}

/// The measurement of round trips.
struct Trips<'a> {
    args: &'a TripArgs,
    stage: &'a mut Testbed,
    watch: Option<RoundTripMonitor>,
}

/// A row beside a load, packets per second.
struct TripCase {
    row: PathRow,
    load_pps: Option<f64>,
}

/// What a round found, and the way of its packets.
struct FoundTrips {
    /// The round trips.
    trips: RoundTrips,
    /// The topology.
    topology: String,
    /// Frames that the bridge between both sides received meanwhile, if there is one.
    bridged: Option<u64>,
    /// Why a round trip was late.
    explained: Option<Explained>,
}

impl FoundTrips {
    fn trips(taken: &CaseRuns<Self>) -> CaseRuns<RoundTrips> {
        let runs = taken.runs.iter().map(|(round, found)| (*round, found.trips.clone()));
        CaseRuns { runs: runs.collect(), refused: taken.refused.clone() }
    }
}

impl Experiment for Trips<'_> {
    type Case = TripCase;
    type Outcome = FoundTrips;

    fn name(&self, case: &TripCase) -> String {
        case.row.name.clone()
    }

    fn step(&mut self, case: &TripCase, _: usize) -> Result<FoundTrips, Unmeasured> {
        let before = self.stage.bridged()?;
        let stop = self.watch.as_mut().map_or(Ok(None), RoundTripMonitor::begin)?;
        let trips = trip(self.stage, &case.row, &self.args.round(case.load_pps), stop)?;
        let explained = match &mut self.watch {
            Some(watch) => watch.end(trips.late, self.stage.pids())?,
            None => None,
        };
        let (topology, after) = (self.stage.topology().to_owned(), self.stage.bridged()?);
        let bridged = after.zip(before).map(|(after, before)| after - before);
        Ok(FoundTrips { trips, topology, bridged, explained })
    }

    fn records(&self, case: &TripCase, found: &FoundTrips) -> Vec<Measured> {
        vec![measured(&case.row, &self.args.round(case.load_pps), found)]
    }
}

impl TripArgs {
    fn cases(&self, rows: &[PathRow]) -> Vec<TripCase> {
        let loads: Vec<_> = match &self.load[..] {
            [] => vec![None],
            loads => loads.iter().copied().map(Some).collect(),
        };
        let case = |load_pps| rows.iter().map(move |row| TripCase { row: row.clone(), load_pps });
        loads.into_iter().flat_map(case).collect()
    }

    fn round(&self, load_pps: Option<f64>) -> Round {
        Round {
            frame_bytes: self.size as usize,
            count: self.count,
            rate_pps: self.probes_pps(),
            load_pps,
            fifo: self.ground.seats.fifo(),
            patience: PATIENCE,
        }
    }

    fn probes_pps(&self) -> Option<f64> {
        self.packet_rate.or((!self.load.is_empty()).then_some(PROBES_PPS))
    }

    fn rows(&self, path: Carriage) -> anyhow::Result<Vec<PathRow>> {
        let mut rows =
            if self.rows.link.is_empty() { round_trip(path) } else { vec![PathRow::base()] };
        for link in &self.rows.link {
            let fits = path != Carriage::Frames || RowArgs::has_frames(link);
            anyhow::ensure!(
                fits,
                "--link {link} carries no Ethernet frames: use `millstream-lab latency udp`"
            );
            let peer = self.peer_link.as_deref().unwrap_or(link);
            rows.push(PathRow::of_links(link, peer, path, self.rows.wait));
        }
        Ok(self.rows.choose(rows, &self.ground))
    }
}

/// One repetition of a row.
fn measured(row: &PathRow, round: &Round, found: &FoundTrips) -> Measured {
    let FoundTrips { trips, topology, bridged, explained } = found;
    let frames = matches!(row.active.path, Carriage::Frames | Carriage::IpFrames);
    let beside = round.load_pps.map_or(String::new(), |load| format!(" beside {load:.0} pps"));
    let parameters = Parameters {
        row: &row.name,
        link: &row.active.link,
        frame_bytes: round.frame_bytes,
        rate_pps: round.rate_pps,
        load_pps: round.load_pps,
        class: round.fifo.map(|priority| format!("fifo:{priority}")),
    };
    let details = Details { cpu_share: trips.cpu_share, bridge_frames: *bridged };
    Measured {
        measurement: if frames { "link" } else { "udp" }.to_owned(),
        series: format!("{}{beside}", row.name),
        parameters: entries(&parameters),
        topology: topology.clone(),
        observed: Observed::from(trips.from_due.clone()),
        counters: BTreeMap::from([("lost".to_owned(), trips.lost)]),
        details: entries(&details),
        outliers: explained.iter().cloned().collect(),
        ..Measured::default()
    }
}

#[derive(Serialize)]
struct Parameters<'a> {
    row: &'a str,
    link: &'a str,
    frame_bytes: usize,
    rate_pps: Option<f64>,
    load_pps: Option<f64>,
    class: Option<String>,
}

#[derive(Serialize)]
struct Details {
    cpu_share: f64,
    bridge_frames: Option<u64>,
}

/// All rows, the repetitions of each together.
fn text(args: &TripArgs, topology: &str, lines: &[TripLine]) -> String {
    let class =
        args.ground.seats.fifo().map_or("SCHED_OTHER".to_owned(), |p| format!("SCHED_FIFO {p}"));
    let pace = match args.probes_pps() {
        Some(pps) => format!("{pps} probes a second by the clock, from when each was due"),
        None => "one after the other".to_owned(),
    };
    let size = args.size;
    let mut text =
        format!("\nround trips over {topology}, frames of {size} bytes, {pace}, {class}\n");
    let measured = || lines.iter().filter(|line| !line.runs.is_empty());
    let mut rows = Table::of(measured()).left("", |line| &line.name);
    for (share, name) in QUANTILES.into_iter().zip(["p50", "p90", "p99", "p99.9", "max"]) {
        rows = rows.right(name, |line| short_time(line.histogram.quantile_ns(share)));
    }
    if !args.load.is_empty() {
        rows = rows
            .right("beside", |line| format!("{:.0} kpps", line.load_pps / 1e3))
            .right("load taken", |line| line.load_sent);
    }
    text += &rows
        .right("to kernel UDP", |line| {
            line.ratio.map_or(String::new(), |ratio| short_spread(&ratio))
        })
        .right("CPU", |line| percent(line.cpu_share.unwrap_or(0.0)))
        .right("lost", |line| line.lost)
        .text();
    text += &refusals(lines.iter().map(|line| (&*line.name, line.refused.as_deref())));
    if args.histograms {
        for line in measured() {
            let _ = write!(text, "\n{}\n{}", line.name, draw(&line.histogram));
        }
    }
    text
}
