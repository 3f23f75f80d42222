//! `millstream-lab latency udp|link`: round trips between two processes, over ports or bare frames.

mod record;
mod text;

use super::explain;
use super::late::LateArgs;
use crate::bench::places;
use crate::interrupt;
use crate::live::Steps;
use crate::network::{NetworkArgs, RowArgs};
use crate::numbers::{rate, whole};
use crate::output::{Report, note, now};
use millstream_lab::explain::RoundTripMonitor;
use millstream_lab::packets::round_trips::{PATIENCE, trip};
use millstream_lab::packets::rows::round_trip;
use millstream_lab::packets::{Carriage, PathRow, Round, StageError, Testbed, TripTable};
use millstream_measure::Measured;
use record::FoundTrips;
use serde_json::json;
use std::time::Instant;

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
    let mut table = TripTable::default();
    let mut records = Vec::new();
    let open = |us| RoundTripMonitor::open(us * 1000, args.late.outliers);
    let mut watch = args.late.above_us()?.map(open).transpose()?;
    let ended = args.measure(&mut stage, &rows, &mut watch, &mut table, &mut records);
    table.sum_up();
    // Beside the base, unless only the base was requested.
    let base = PathRow::base().name;
    let mut counting = table.lines.iter().filter(|line| rows.len() == 1 || line.name != base);
    let measured = counting.clone().any(|line| !line.runs.is_empty());
    let nothing = (!measured).then(|| {
        let why = counting.find_map(|line| line.refused.as_deref());
        format!("no row could be measured: {}", why.unwrap_or("no row is left"))
    });
    let results = json!({
        "places": stage.places(), "frame_bytes": args.size, "probes_pps": args.probes_pps(),
        "count": args.count, "repetitions": args.repeat, "fifo": args.ground.seats.fifo(),
        "quantiles": millstream_lab::packets::round_trips::QUANTILES, "rows": table.lines,
        "topology": stage.topology(), "records": records,
    });
    let failure = ended.err().map(|error| error.to_string()).or(nothing);
    let text = text::table(args, stage.topology(), &table) + &explain::table::of_records(&records);
    Ok(Report { text, results, failure })
}

impl TripArgs {
    fn measure(
        &self,
        stage: &mut Testbed,
        rows: &[PathRow],
        watch: &mut Option<RoundTripMonitor>,
        table: &mut TripTable,
        records: &mut Vec<Measured>,
    ) -> anyhow::Result<()> {
        let loads: Vec<_> = match &self.load[..] {
            [] => vec![None],
            loads => loads.iter().copied().map(Some).collect(),
        };
        let repeat = self.repeat as usize;
        let mut steps = Steps::new(repeat * loads.len() * rows.len());
        for turn in 0..repeat {
            for load_pps in &loads {
                for row in rows {
                    let line = table.line(&row.name, load_pps.unwrap_or(0.0));
                    if line.refused.is_some() {
                        steps.skip();
                        continue;
                    }
                    steps.next(|| row.name.clone());
                    let (round, started) = (self.round(*load_pps), now());
                    let begun = Instant::now();
                    let before = stage.bridged()?;
                    let stop = watch.as_mut().map_or(Ok(None), RoundTripMonitor::begin)?;
                    match trip(stage, row, &round, stop) {
                        Ok(trips) => {
                            line.add(turn, &trips);
                            let seconds = begun.elapsed().as_secs_f64();
                            let (topology, after) = (stage.topology(), stage.bridged()?);
                            let bridged = after.zip(before).map(|(after, before)| after - before);
                            let found = FoundTrips { trips: &trips, topology, bridged };
                            let mut record =
                                record::measured(row, &round, &found, started, seconds);
                            if let Some(watch) = watch {
                                record.outliers.extend(watch.end(trips.late, stage.pids())?);
                            }
                            records.push(record);
                        }
                        Err(StageError::Refused(reason)) => line.refused = Some(reason),
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Ok(())
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
