//! `millstream-lab latency port`: round trips through a port with other traffic.

mod record;
mod text;

use crate::bench::places;
use crate::interrupt;
use crate::live::Steps;
use crate::network::SideArgs;
use crate::numbers::{cpu, one_of, positive, rate, whole};
use crate::output::{Report, note, now};
use millstream_lab::packets::TestNetwork;
use millstream_lab::packets::port::{
    Bulk, PortCase, PortTable, PortTopology, Probing, frame_ns, through,
};
use millstream_lab::packets::testbed::ActivePorts;
use millstream_lab::packets::{StageError, Testbed};
use millstream_measure::Measured;
use serde_json::json;
use std::time::Instant;

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

/// Succeeds when all cases were measured.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let cases = args.cases();
    args.check(&cases)?;
    interrupt::install();
    let mut stage = args.seats.set(&TestNetwork::Ports)?;
    note(format_args!("{}", places(stage.places())));
    let mut ports = stage.ports(args.bulk_cpu.or(stage.places()[1].cpu))?;
    let (mut table, mut records) = (PortTable::default(), Vec::new());
    let ended = args.measure(&cases, &mut stage, &mut ports, &mut table, &mut records);
    table.sum_up();
    let results = json!({
        "places": stage.places(), "frame_bytes": args.size, "probes_pps": args.packet_rate,
        "count": args.count, "repetitions": args.repeat, "rows": table.lines, "records": records,
    });
    let failure = ended.err().map(|error| error.to_string());
    Ok(Report { text: text::table(&args, &table), results, failure })
}

impl Args {
    fn measure(
        &self,
        cases: &[PortCase],
        stage: &mut Testbed,
        ports: &mut ActivePorts,
        table: &mut PortTable,
        records: &mut Vec<Measured>,
    ) -> Result<(), StageError> {
        let mut steps = Steps::new(self.repeat as usize * cases.len());
        let how = Probing {
            frame_bytes: self.size as usize,
            count: self.count,
            rate_pps: self.packet_rate,
            fifo: self.seats.fifo(),
        };
        for turn in 0..self.repeat as usize {
            for case in cases {
                steps.next(|| case.name());
                let (started, begun) = (now(), Instant::now());
                let found = through(stage, ports, case, &how)?;
                table.add(case, turn, &found);
                let seconds = begun.elapsed().as_secs_f64();
                records.push(record::measured(case, &how, &found, started, seconds));
            }
        }
        Ok(())
    }

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
