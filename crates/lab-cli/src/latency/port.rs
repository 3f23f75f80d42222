//! `millstream-lab latency port`: round trips through a port with other traffic.

use crate::bench::places;
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::interrupt;
use crate::network::SideArgs;
use crate::numbers::{cpu, one_of, positive, rate, whole};
use crate::output::{Report, note, percent};
use crate::samples::entries;
use crate::table::Table;
use millstream_lab::packets::port::{
    Against, Bound, Bulk, CaseResults, PortCase, PortFigures, PortTopology, Probing, QueueLimit,
    came_ns, frame_ns, through,
};
use millstream_lab::packets::testbed::{ActivePorts, SideSetup};
use millstream_lab::packets::{TestNetwork, Testbed};
use millstream_measure::picture::{short_spread, short_time};
use millstream_measure::{Measured, Observed};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Measures round trips through an Ethernet port that also carries other traffic (bulk). Needs
/// root.
///
/// The command makes temporary veth pairs and limits them to the rate of a real port (the kernel's
/// htb). It measures four cases: the measured packets (probes) have a port of their own, share an
/// idle port, wait behind bulk in order of arrival, or have priority over bulk. It compares the
/// result with the time that the frames take on the wire. It measures kernel UDP only, because
/// frame links bypass the kernel's queues. All rows take about two minutes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream-lab latency port
  sudo millstream-lab latency port --link-rate 100M,1G --share 0.5,0.8,1.1 --burst 1,8,32
  sudo millstream-lab latency port --topology bulk --queue 1000
  sudo millstream-lab lab run plans/port.toml")]
pub struct Args {
    /// Rates of the port in bits per second, 100k to 100G.
    #[arg(long, value_name = "BIT/S,…", value_delimiter = ',', default_value = "100M",
          value_parser = link_rate)]
    link_rate: Vec<f64>,

    /// How probes and bulk (the other traffic) use the port. Separate ports, the base of the
    /// comparison, are always measured.
    #[arg(long, value_name = "TOPOLOGY,…", value_delimiter = ',',
          default_value = "shared,bulk,priority", value_parser = one_of(&TOPOLOGIES))]
    topology: Vec<PortTopology>,

    /// Rate of the bulk divided by the rate of the port: below 1, or at least 1.02, which fills the
    /// queue before the measurement begins.
    #[arg(long, value_name = "SHARE,…", value_delimiter = ',', default_value = "0.8,1.1",
          value_parser = share)]
    share: Vec<f64>,

    /// Number of bulk frames that come at once, if --share is below 1.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,16",
          value_parser = whole::<u32>(1..=1000))]
    burst: Vec<u32>,

    /// Size of the IP packets of the bulk, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1500,
          value_parser = whole::<u32>(60..=1500))]
    bulk_size: u32,

    /// Longest queue, in packets. More packets are dropped.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole::<u32>(1..=5000))]
    queue: u32,

    /// Size of each probe as an Ethernet frame, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = whole::<u32>(60..=1514))]
    size: u32,

    /// Number of probes in each measurement.
    #[arg(long, value_name = "N", default_value_t = 2000,
          value_parser = whole::<u64>(10..=100_000_000))]
    count: u64,

    /// Number of probes per second.
    #[arg(long, value_name = "PPS", default_value_t = 500.0, value_parser = rate)]
    packet_rate: f64,

    /// Number of times that each row is measured.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>(1..=1000))]
    repeat: u32,

    #[command(flatten)]
    seats: SideArgs,

    /// CPU of the process that sends the bulk. The default is the CPU of the side that answers.
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    bulk_cpu: Option<usize>,
}

/// Shares of a port.
const TOPOLOGIES: [(&str, &str, PortTopology); 4] = [
    ("separate", "The bulk has a port of its own. This is always measured", PortTopology::Separate),
    ("shared", "The port carries no bulk", PortTopology::Shared),
    ("bulk", "The port carries bulk, and packets wait in order of arrival", PortTopology::Bulk),
    ("priority", "The port carries bulk, and probes have priority", PortTopology::Priority),
];

fn link_rate(text: &str) -> Result<f64, String> {
    let bits_per_s = rate(text)?;
    let in_range = (1e5..=1e11).contains(&bits_per_s);
    in_range.then_some(bits_per_s).ok_or("give 100k to 100G".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = positive(text)?;
    if (1.0..FULL).contains(&share) {
        return Err(format!("give less than 1, or at least {FULL}, which fills the queue"));
    }
    // The resolution of shares in names of rows.
    let share = (share * 1e6).round() / 1e6;
    (0.001..=100.0).contains(&share).then_some(share).ok_or("give 0.001 to 100".to_owned())
}

/// The smallest share that fills a queue.
const FULL: f64 = 1.02;
/// Longest time to wait for a queue to fill, seconds.
const FILLS_S: f64 = 60.0;
/// Largest share of a port for probes: predictions ignore them.
const PROBES_SHARE: f64 = 0.1;

crate::results! {
    /// Round trips through a port, beside their prediction.
    struct PortResults<'a> {
        /// The set-ups of the asking and the answering side.
        places: &'a [SideSetup; 2],
        /// Bytes of each probe as an Ethernet frame.
        frame_bytes: u32,
        /// Probes per second.
        probes_pps: f64,
        /// Probes of each measurement.
        count: u64,
        /// Measurements of each row.
        repetitions: u32,
        /// Each case.
        rows: &'a [CaseResults],
        /// A record for each round of each case.
        records: &'a [Measured],
    }
}

/// Succeeds when all cases were measured.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let cases = args.cases();
    args.check(&cases)?;
    interrupt::install();
    let mut stage = args.seats.set(&TestNetwork::Ports)?;
    note(format_args!("{}", places(stage.places())));
    let mut ports = stage.ports(args.bulk_cpu.or(stage.places()[1].cpu))?;
    let how = Probing {
        frame_bytes: args.size as usize,
        count: args.count,
        rate_pps: args.packet_rate,
        fifo: args.seats.fifo(),
    };
    let mut probes = PortProbes { how, stage: &mut stage, ports: &mut ports };
    let all = in_rounds(&mut probes, &cases, args.repeat as usize);
    let separate = |rate_bps| {
        let is_it =
            |case: &PortCase| case.topology == PortTopology::Separate && case.rate_bps == rate_bps;
        cases.iter().position(is_it).map(|at| &all.cases[at])
    };
    let rows = cases.iter().zip(&all.cases).filter(|(_, taken)| !taken.runs.is_empty());
    let rows = rows.map(|(case, taken)| CaseResults::of(case, taken, separate(case.rate_bps)));
    let rows: Vec<_> = rows.collect();
    let results = PortResults {
        places: stage.places(),
        frame_bytes: args.size,
        probes_pps: args.packet_rate,
        count: args.count,
        repetitions: args.repeat,
        rows: &rows,
        records: &all.records,
    };
    Ok(Report::of(text(&args, &rows), &results).failing(all.failure()))
}

/// The measurement of round trips through a port.
struct PortProbes<'a> {
    how: Probing,
    stage: &'a mut Testbed,
    ports: &'a mut ActivePorts,
}

impl Experiment for PortProbes<'_> {
    type Case = PortCase;
    type Outcome = PortFigures;

    fn name(&self, case: &PortCase) -> String {
        case.name()
    }

    fn step(&mut self, case: &PortCase, _: usize) -> Result<PortFigures, Unmeasured> {
        Ok(through(self.stage, self.ports, case, &self.how)?)
    }

    fn records(&self, case: &PortCase, found: &PortFigures) -> Vec<Measured> {
        vec![measured(case, &self.how, found)]
    }
}

impl Args {
    /// Rejects cases that could not be measured correctly.
    fn check(&self, cases: &[PortCase]) -> anyhow::Result<()> {
        for case in cases {
            let mbit = case.rate_bps / 1e6;
            let most_pps = PROBES_SHARE * 1e9 / frame_ns(case.rate_bps, self.size as usize);
            anyhow::ensure!(
                self.packet_rate <= most_pps,
                "--packet-rate is {}: probes of {} bytes would take more than a tenth of a port \
                 of {mbit} Mbit/s; give {} or less",
                self.packet_rate,
                self.size,
                (most_pps * 10.0).floor() / 10.0
            );
            anyhow::ensure!(
                case.topology != PortTopology::Bulk || !case.is_full() || case.fills_s() <= FILLS_S,
                "{}: a queue of {} packets would need {:.0} s to fill: give a smaller --queue or \
                 a larger --share",
                case.name(),
                case.queue,
                case.fills_s()
            );
        }
        Ok(())
    }

    /// Separate ports first: their bulk is that of the first row with bulk.
    fn cases(&self) -> Vec<PortCase> {
        let frame_bytes = self.bulk_size as usize + 14;
        let mut bulks = Vec::new();
        for share in &self.share {
            let bursts = if *share < 1.0 { &self.burst[..] } else { &[1] };
            bulks.extend(bursts.iter().map(|burst| Bulk {
                frame_bytes,
                share: *share,
                burst: *burst,
            }));
        }
        let mut cases = Vec::new();
        for rate_bps in &self.link_rate {
            let (rate_bps, queue) = (*rate_bps, self.queue);
            let case = |topology, bulk| PortCase { topology, rate_bps, bulk, queue };
            cases.push(case(PortTopology::Separate, bulks[0]));
            for way in &self.topology {
                let count = match way {
                    PortTopology::Separate => 0,
                    PortTopology::Shared => 1,
                    PortTopology::Bulk | PortTopology::Priority => bulks.len(),
                };
                cases.extend(bulks[..count].iter().map(|bulk| case(*way, *bulk)));
            }
        }
        cases
    }
}

/// One repetition of a case.
fn measured(case: &PortCase, how: &Probing, found: &PortFigures) -> Measured {
    let bulk = (case.topology != PortTopology::Shared).then_some(case.bulk);
    let queue = (case.topology == PortTopology::Bulk).then_some(case.queue);
    let parameters = Parameters {
        topology: case.topology,
        port_bps: case.rate_bps,
        frame_bytes: how.frame_bytes,
        rate_pps: how.rate_pps,
        bulk_frame_bytes: bulk.map(|bulk| bulk.frame_bytes),
        bulk_share: bulk.map(|bulk| bulk.share),
        bulk_burst: bulk.map(|bulk| bulk.burst),
        queue_packets: queue,
        class: how.fifo.map(|priority| format!("fifo:{priority}")),
    };
    // The predicted waits for other frames.
    let waits = case.waits(found.busy);
    let wait_ns = |quantile| waits.quantile_ns(quantile);
    let details = Details {
        cpu_share: found.trips.cpu_share,
        bound: case.bound(),
        busy: found.busy,
        wait_ns: PortWait { p50: wait_ns(0.5), p99: wait_ns(0.99) },
        bulk_offered: found.offered,
        port_sent_packets: found.queued.packets.into(),
        port_sent_bytes: found.queued.bytes,
        queue: &found.queued.kind,
    };
    Measured {
        measurement: "port".to_owned(),
        series: case.name(),
        parameters: entries(&parameters),
        observed: Observed::from(found.trips.from_due.clone()),
        counters: BTreeMap::from([
            ("lost".to_owned(), found.trips.lost),
            ("dropped by the port's queue".to_owned(), u64::from(found.queued.drops)),
        ]),
        details: entries(&details),
        ..Measured::default()
    }
}

#[derive(Serialize)]
struct Parameters {
    topology: PortTopology,
    port_bps: f64,
    frame_bytes: usize,
    rate_pps: f64,
    bulk_frame_bytes: Option<usize>,
    bulk_share: Option<f64>,
    bulk_burst: Option<u32>,
    queue_packets: Option<u32>,
    class: Option<String>,
}

#[derive(Serialize)]
struct Details<'a> {
    cpu_share: f64,
    bound: Bound,
    busy: f64,
    wait_ns: PortWait,
    bulk_offered: u64,
    port_sent_packets: u64,
    port_sent_bytes: u64,
    queue: &'a str,
}

#[derive(Serialize)]
struct PortWait {
    p50: f64,
    p99: f64,
}

/// All rows, and their limits.
fn text(args: &Args, lines: &[CaseResults]) -> String {
    let mut text = format!(
        "\nround trips through a port, probes of {} bytes, {} a second by the clock, from when \
         each was due\nbulk of {} bytes an IP packet, a queue of {} packets\n",
        args.size, args.packet_rate, args.bulk_size, args.queue
    );
    text += &rows(lines);
    text += "\n";
    for line in lines {
        let _ = writeln!(text, "{}: {}", line.case.name(), limit(lines, line));
    }
    text += "\np50, p99, max: of those that came back, all repetitions together. by: predicted, \
             the round\ntrips over separate ports of the same repetition convolved with the waits \
             by the frames' times;\nthe median of the repetitions. over it: measured over \
             predicted within a repetition, median (least\nto most). \
             busy: the port with the bulk.\n";
    text
}

fn rows(lines: &[CaseResults]) -> String {
    let came = |line: &CaseResults, quantile| {
        came_ns(&line.histogram, line.lost, quantile).map_or("-".to_owned(), short_time)
    };
    let by = |against: Option<Against>| {
        against.map_or(String::new(), |against| short_time(against.predicted_ns as u64))
    };
    let over = |against: Option<Against>| {
        against.map_or(String::new(), |against| short_spread(&against.ratio))
    };
    Table::of(lines)
        .left("", |line| line.case.name())
        .right("p50", |line| came(line, 0.5))
        .right("by", |line| by(line.median))
        .right("over it", |line| over(line.median))
        .right("p99", |line| came(line, 0.99))
        .right("by", |line| by(line.tail))
        .right("over it", |line| over(line.tail))
        .right("max", |line| came(line, 1.0))
        .right("busy", |line| percent(line.busy))
        .right("lost", |line| line.lost)
        .text()
}

/// Whether the tail is bounded, and by what.
fn limit(lines: &[CaseResults], line: &CaseResults) -> String {
    let bound = line.bound;
    let wait = short_time(bound.wait_ns as u64);
    let said = match bound.by {
        QueueLimit::Nothing => "no queue to wait in; the tail is the machine's".to_owned(),
        QueueLimit::Burst => {
            format!("bounded by the burst, {} x {}", bound.frames, frame(line, &wait))
        }
        QueueLimit::Queue => {
            let slow = short_time((bound.wait_ns / line.busy) as u64);
            let slow = if line.case.is_full() && line.busy > 0.0 {
                format!(" ({slow} at its actual rate)")
            } else {
                String::new()
            };
            format!(
                "bounded by the queue, {} x {}{slow}, and then lost",
                bound.frames,
                frame(line, &wait)
            )
        }
        QueueLimit::Wire => format!("bounded by the one frame on the wire, {wait}"),
    };
    let is_apart = |other: &&CaseResults| {
        let PortCase { topology, rate_bps, .. } = other.case;
        topology == PortTopology::Separate && rate_bps == line.case.rate_bps
    };
    let apart_ns = lines.iter().find(is_apart).and_then(CaseResults::longest_ns);
    match (apart_ns, line.longest_ns()) {
        (Some(apart_ns), Some(longest_ns)) if line.case.topology != PortTopology::Separate => {
            let over = longest_ns as f64 / (apart_ns as f64 + bound.wait_ns);
            format!(
                "{said}; the longest was {over:.2} times that bound plus the longest on \
                 separate ports"
            )
        }
        _ => said,
    }
}

fn frame(line: &CaseResults, wait: &str) -> String {
    format!("{} = {wait}", short_time(line.case.frame_ns() as u64))
}
