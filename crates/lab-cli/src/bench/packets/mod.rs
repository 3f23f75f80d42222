//! `millstream-lab bench packets`: packets a second over any link, and their cost.

mod budget;
mod choose;
mod record;
mod text;

pub use text::{places, refusals};

use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::interrupt;
use crate::network::{NetworkArgs, RowArgs};
use crate::numbers::{one_of, rate, seconds, whole, within};
use crate::output::{Report, note, now};
use millstream_host::doctor::measure::system_call_ns;
use millstream_lab::packets::measure::How;
use millstream_lab::packets::rows::throughput;
use millstream_lab::packets::testbed::SideSetup;
use millstream_lab::packets::{
    Carriage, PacketTable, PathRow, RowResults, RowRun, Span, StageError, Testbed, Workload,
    measure, untraceable,
};
use millstream_measure::Measured;
use std::time::Duration;

/// Measures how many packets a second each link carries.
///
/// Two processes, each on its own CPU, exchange packets over a temporary veth pair between two
/// network namespaces. All links are measured in several rounds, one after the other. Each result
/// is also given as a ratio to plain kernel UDP (sendmmsg to recvmmsg) in the same round. Rows with
/// "frames" measure bare Ethernet frames; rows with "port" include Millstream's UDP/IP stack. All
/// links take about four minutes, and --choose takes about half a minute.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream-lab bench packets
  sudo millstream-lab bench packets --size 64 --only xdp --only 'kernel UDP' --workload drop,swap
  sudo millstream-lab bench packets --link xdp:mode=native --path both --wait spin --layout same
  sudo millstream-lab bench packets --choose --size 1514 --packet-rate 200k --max-latency 50us \
    --interface eth1 --peer eth2                  eth1 and eth2 are wired to each other
  millstream-lab bench packets --loopback
  sudo millstream-lab bench packets --per-packet --packet-rate 50k --size 1514
  millstream-lab bench packets --loopback --workload transmit --size 64 --batch 1 \\
    --only 'kernel UDP'")]
pub struct Args {
    #[command(flatten)]
    ground: NetworkArgs,

    /// What the receiving side does with the packets.
    #[arg(long, value_name = "WORKLOAD,…", value_delimiter = ',', default_value = "drop",
          value_parser = one_of(&WORKLOADS))]
    workload: Vec<Workload>,

    /// Size of each packet as an Ethernet frame, in bytes. A UDP payload is 42 bytes smaller.
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', default_value = "64,1514,8042",
          value_parser = whole::<u32>(60..=65_535))]
    size: Vec<u32>,

    /// Number of times that each row is measured.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole::<u32>(1..=1000))]
    repeat: u32,

    /// Length of each measurement.
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = seconds)]
    duration: f64,

    /// Packets per second to send. The default is as many as the link accepts. With --choose: the
    /// packet rate that you need.
    #[arg(long, value_name = "PPS", value_parser = rate)]
    packet_rate: Option<f64>,

    /// The most packets that the sender gives to one system call or ring operation. By default it
    /// gives as many as the link takes at once. Plain kernel UDP also receives no more with a call.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=256))]
    batch: Option<u32>,

    /// Number of packets that the receiver takes with each system call. It lets packets gather in
    /// the socket's queue, so that the calls are full. By default it takes packets as they come.
    /// Only plain kernel sockets have this, and only the workload drop: give --only 'kernel UDP'.
    #[arg(long, value_name = "N", conflicts_with_all = ["batch", "choose", "link"],
          value_parser = whole::<u32>(1..=64))]
    receive_batch: Option<u32>,

    #[command(flatten)]
    rows: RowArgs,

    /// With --link: measure bare frames, a port, or both.
    #[arg(long, value_name = "LAYER", default_value = "both", requires = "link",
          value_parser = one_of(&LAYERS))]
    path: &'static [Carriage],

    /// Print the budget of a packet too: its system calls, copies, wake-ups and delay.
    #[arg(long, conflicts_with = "choose")]
    per_packet: bool,

    /// Leave out the extra run of each row that counts system calls.
    #[arg(long)]
    no_trace: bool,

    /// Recommend a link for packets of --size at --packet-rate, and store it for the link `auto`.
    /// The command takes the link with the least risk for other traffic that is fast enough.
    #[arg(long, conflicts_with_all = ["only", "link", "workload", "loopback", "batch"])]
    choose: bool,

    /// With --choose: the longest allowed round trip, as 99th percentile.
    #[arg(long, value_name = "TIME", requires = "choose", value_parser = seconds)]
    max_latency: Option<f64>,

    /// With --choose: store the choice for this interface. The default is --interface. For a
    /// network card this must be the same card, because a veth pair says nothing about its driver.
    #[arg(long = "for", value_name = "INTERFACE", requires = "choose")]
    store_for: Option<String>,
}

/// Workloads of packets.
const WORKLOADS: [(&str, &str, Workload); 3] = [
    ("drop", "One side sends; the other side receives the packets and drops them", Workload::Drop),
    ("transmit", "One side sends; nothing receives", Workload::Transmit),
    ("swap", "The other side swaps the addresses of each packet and sends it back", Workload::Swap),
];

/// Uses of a link.
const LAYERS: [(&str, &str, &[Carriage]); 3] = [
    ("frames", "", &[Carriage::Frames]),
    ("port", "", &[Carriage::Port]),
    ("both", "", &[Carriage::Frames, Carriage::Port]),
];

crate::results! {
    also [choose::results],
    /// The packet rates of links, and what a packet costs.
    struct PacketResults<'a> {
        /// The set-ups of the sending and the receiving side.
        places: &'a [SideSetup; 2],
        /// The way of packets between the sides.
        topology: &'a str,
        /// Whether each side has its own CPU: `split` or `same`.
        layout: &'a str,
        /// Length of each measurement, seconds.
        duration_s: f64,
        /// Packets per second to send; none: as many as the link accepts.
        offered_pps: Option<f64>,
        /// The tables of each workload.
        workloads: Vec<WorkloadTables>,
        /// Why the kernel did not count system calls.
        untraced: Option<String>,
        /// The time of an empty system call, nanoseconds.
        system_call_ns: f64,
        /// The most packets of one call of the sender.
        batch: Option<u32>,
        /// The packets of each call of the receiver, if given.
        receive_batch: Option<u32>,
        /// The CPU time of a packet on each side of each row, for each round.
        records: Vec<Measured>,
    }

    /// The rows of one workload.
    struct WorkloadTables {
        /// What the receiving side did with the packets.
        workload: Workload,
        /// A table for each size of packets.
        tables: Vec<PacketTable>,
    }
}

/// Succeeds when at least one row beside the base could be measured.
pub fn run(args: Args) -> anyhow::Result<Report> {
    within("--duration", (args.duration, " s"), 0.01..=600.0, "0.01 to 600 seconds")?;
    choose::check(&args, std::path::Path::new("/sys"))?;
    interrupt::install();
    let mut stage = args.ground.set()?;
    note(format_args!("{}", places(stage.places())));
    if args.choose {
        return choose::run(&args, &mut stage);
    }
    let untraced = if args.no_trace { None } else { untraceable() };
    let (started, call_ns) = (now(), system_call_ns());
    let traces = !args.no_trace && untraced.is_none();
    let mut cases = Vec::new();
    for (at, workload) in args.workload.iter().enumerate() {
        let rows = args.receiving(*workload, args.rows(*workload))?;
        let matches =
            |row: &PathRow| args.rows.only.iter().any(|only| row.name.contains(only.as_str()));
        let found = args.rows.only.is_empty() || rows.iter().any(matches);
        anyhow::ensure!(
            found,
            "no row has a name that contains {}: run the command without --only to see all names",
            args.rows.only.join(" or ")
        );
        for size in 0..args.size.len() {
            let case = |row: &PathRow| PacketCase { row: row.clone(), workload: at, size };
            cases.extend(rows.iter().map(case));
        }
    }
    let mut rates = PacketRates { args: &args, stage: &mut stage };
    let all = in_rounds(&mut rates, &cases, args.turns(traces));
    let error = all.error();
    let (mut text, mut failure) = (String::new(), None);
    let (mut workloads, mut records) = (Vec::new(), Vec::new());
    let mut taken: Vec<_> = cases.into_iter().zip(all.cases).collect();
    for (at, workload) in args.workload.iter().copied().enumerate() {
        let mut tables = Vec::new();
        for (size, frame_bytes) in args.size.iter().enumerate() {
            let own = |(case, _): &mut (PacketCase, _)| (case.workload, case.size) == (at, size);
            let rows = taken.extract_if(.., own).map(|(case, runs)| (case.row.name, runs));
            let table = PacketTable::of(*frame_bytes as usize, rows.collect());
            text += &text::table(workload, &table, text::layout(stage.places()));
            if args.per_packet {
                text += &budget::table(&table);
            }
            records.extend(record::of(&args, workload, &table, stage.topology(), &started));
            tables.push(table);
        }
        // Beside the base, unless only the base was requested.
        let base = PathRow::base().name;
        let measured = |table: &PacketTable| {
            let only_base = args.rows.link.is_empty() && table.lines.len() == 1;
            let counts = |line: &&RowResults| only_base || line.name != base;
            table.lines.iter().filter(counts).any(|line| line.ratio.is_some())
        };
        if !tables.iter().any(measured) {
            failure = Some("no row could be measured".to_owned());
        }
        workloads.push(WorkloadTables { workload, tables });
    }
    text += &text::call(call_ns);
    text += &untraced.as_deref().map_or(String::new(), text::untraced);
    let results = PacketResults {
        places: stage.places(),
        topology: stage.topology(),
        layout: text::layout(stage.places()),
        duration_s: args.duration,
        offered_pps: args.packet_rate,
        workloads,
        untraced,
        system_call_ns: call_ns,
        batch: args.batch,
        receive_batch: args.receive_batch,
        records,
    };
    Ok(Report::of(text, &results).failing(error.or(failure)))
}

/// The measurement of rows. The round after the last repetition is that in which the kernel counts
/// system calls.
struct PacketRates<'a> {
    args: &'a Args,
    stage: &'a mut Testbed,
}

/// A row, and the positions of its workload and size.
struct PacketCase {
    row: PathRow,
    workload: usize,
    size: usize,
}

impl Experiment for PacketRates<'_> {
    type Case = PacketCase;
    type Outcome = RowRun;

    fn name(&self, case: &PacketCase) -> String {
        format!("{}, {} bytes", case.row.name, self.args.size[case.size])
    }

    fn step(&mut self, case: &PacketCase, round: usize) -> Result<RowRun, Unmeasured> {
        let trace = round == self.args.repeat as usize;
        let (workload, size) = (self.args.workload[case.workload], self.args.size[case.size]);
        let how = self.args.how(workload, size as usize, trace);
        match measure::measure(self.stage, &case.row, &how) {
            // A trace needs rights that the measurement does not.
            Err(StageError::Refused(why)) if trace => Ok(RowRun::Untraced(why)),
            measured if trace => Ok(RowRun::Traced(Box::new(measured?))),
            measured => Ok(RowRun::Counted(Box::new(measured?))),
        }
    }
}

impl Args {
    /// Number of measurements of each row: with a trace one more, which does not count.
    fn turns(&self, trace: bool) -> usize {
        self.repeat as usize + usize::from(trace)
    }

    fn rows(&self, workload: Workload) -> Vec<PathRow> {
        let rows = if self.rows.link.is_empty() {
            throughput(workload)
        } else {
            let wait = self.rows.wait;
            let row = |link: &String| {
                let fits = |path: &&Carriage| **path == Carriage::Port || RowArgs::has_frames(link);
                let rows = self
                    .path
                    .iter()
                    .filter(fits)
                    .map(|path| PathRow::of_links(link, link, *path, wait));
                rows.collect::<Vec<_>>()
            };
            std::iter::once(PathRow::base()).chain(self.rows.link.iter().flat_map(row)).collect()
        };
        self.rows.choose(rows, &self.ground)
    }

    /// Gives the receivers the number of packets of each of their calls, if there is one.
    fn receiving(
        &self,
        workload: Workload,
        mut rows: Vec<PathRow>,
    ) -> anyhow::Result<Vec<PathRow>> {
        let Some(takes) = self.receive_batch else { return Ok(rows) };
        anyhow::ensure!(
            workload == Workload::Drop,
            "--receive-batch {takes} needs a side that receives and sends nothing: leave out \
             --workload, or give --workload drop"
        );
        for row in &mut rows {
            anyhow::ensure!(
                row.passive.path == Carriage::Kernel,
                "--receive-batch {takes}: only plain kernel sockets receive so, and {} does not: \
                 add --only 'kernel UDP'",
                row.name
            );
            row.passive.call_takes = Some(takes as usize);
        }
        Ok(rows)
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
            batch_max: self.batch.map_or(usize::MAX, |batch| batch as usize),
            stamped: self.per_packet,
            trace,
            fifo: self.ground.seats.fifo(),
        }
    }
}
