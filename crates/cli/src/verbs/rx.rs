//! `millstream rx`: records a radio's samples. Reception and disk are partitions of their own, with
//! a ring between them, so that a slow disk costs no sample until the ring is full, and from then
//! on only those for which there is no room.

use crate::graph_run::{self, LedgerReport};
use crate::interrupt;
use crate::live::Live;
use crate::numbers::positive;
use crate::output::Report;
use crate::sigmf::{self, Recording};
use anyhow::Context;
use millstream_flow::blocks::FileSink;
use millstream_flow::{Buffers, Graph, Partition, Plan, Snapshot, WaitMode};
use millstream_radio::block::{RadioSource, Segment, WireSample};
use millstream_radio::{Complex32, Device, DeviceArgs, RxArgs};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Records samples from a radio to a file.
///
/// The file is called FILE.part until it is whole; when the radio stops answering, that is what
/// remains. SIGINT ends a recording in order.
#[derive(clap::Args)]
pub struct Args {
    #[arg(
        long,
        value_name = "ARGS",
        help = "The device: addr=IPV4[,rpc_port=N][,discovery_port=N][,claim_wait_s=SECONDS]\
                [,recv_queue_bytes=N][,link=LINK]"
    )]
    args: DeviceArgs,

    /// Sample rate, Hz.
    #[arg(long, value_name = "HZ", value_parser = positive, allow_negative_numbers = true)]
    rate: f64,

    /// How many samples to record.
    #[arg(long, value_name = "N", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..))]
    nsamps: Option<u64>,

    /// How many seconds to record; until SIGINT when neither is given.
    #[arg(long, value_name = "SECONDS", value_parser = positive, allow_negative_numbers = true)]
    duration: Option<f64>,

    /// Receive channel, from 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    channel: usize,

    /// Where to write: .sc16 and .cf32 are raw, .sigmf-meta or .sigmf-data make a SigMF recording.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Samples in the file: what the extension says by default, sc16 in SigMF.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// What may wait for the disk, MiB. When it is full, samples are lost and counted.
    #[arg(long, value_name = "MIB", default_value_t = 64,
          value_parser = clap::value_parser!(u16).range(1..))]
    queue: u16,
}

/// Formats of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Interleaved little-endian 16-bit I and Q, as on the wire.
    Sc16,
    /// Interleaved little-endian 32-bit floats, full scale 1.
    Cf32,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Sc16 => "sc16",
            Self::Cf32 => "cf32",
        }
    }

    /// SigMF's name of it.
    fn datatype(self) -> &'static str {
        match self {
            Self::Sc16 => "ci16_le",
            Self::Cf32 => "cf32_le",
        }
    }
}

/// Where the recording goes.
struct Target {
    data: PathBuf,
    meta: Option<PathBuf>,
    format: Format,
}

impl Target {
    fn of(out: &Path, format: Option<Format>) -> anyhow::Result<Self> {
        let extension = out.extension().and_then(|extension| extension.to_str());
        let (meta, implied) = match extension {
            Some("sigmf-meta" | "sigmf-data") => (Some(out.with_extension("sigmf-meta")), None),
            Some("sc16") => (None, Some(Format::Sc16)),
            Some("cf32" | "fc32") => (None, Some(Format::Cf32)),
            _ if format.is_some() => (None, None),
            _ => anyhow::bail!(
                "{}: the extension does not say how to write samples: use .sc16, .cf32 or \
                 .sigmf-meta, or give --format sc16 or --format cf32",
                out.display()
            ),
        };
        if let (Some(given), Some(implied)) = (format, implied)
            && given != implied
        {
            anyhow::bail!(
                "{}: the name says {}, but --format says {}: change one of them",
                out.display(),
                implied.name(),
                given.name()
            );
        }
        let data = if meta.is_some() { out.with_extension("sigmf-data") } else { out.to_owned() };
        Ok(Self { data, meta, format: format.or(implied).unwrap_or(Format::Sc16) })
    }
}

/// Records until the end asked for, or until somebody ends it; succeeds when that end was reached
/// and the ledger balances.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let target = Target::of(&args.out, args.format)?;
    // Before the claim, so that it is given back when somebody asks early.
    interrupt::install();
    let mut device = Device::open(args.args.clone())?;
    let rate_hz = device.set_rate(args.rate)?;
    let samples = samples_wanted(&args, rate_hz);
    let stream = device.rx_stream(RxArgs::new(args.channel))?;
    let hardware = format!("{} at {}", device.info().product(), device.address());

    let mut graph = Graph::new();
    let segments = match target.format {
        Format::Sc16 => connect::<[i16; 2]>(&mut graph, device, stream, samples, &target.data)?,
        Format::Cf32 => connect::<Complex32>(&mut graph, device, stream, samples, &target.data)?,
    };
    let mut live = Live::new();
    let show = |elapsed, snapshot: &Snapshot| status(elapsed, snapshot, samples);
    let began = std::time::SystemTime::now();
    let run = graph_run::run(graph, &plan(args.queue), &mut live, show)
        .map_err(|error| graph_run::with_part(error, &target.data))?;
    let ledger = run
        .snapshot
        .block("radio")
        .and_then(LedgerReport::of)
        .context("the radio source published no ledger")?;
    let segments: Vec<Segment> = segments.try_iter().collect();
    // Without a sample there is no data file, and an older one keeps what describes it.
    let meta = target.meta.filter(|_| ledger.delivered > 0);
    if let Some(meta) = &meta {
        let datatype = target.format.datatype();
        let recording = Recording {
            datatype,
            rate_hz,
            hardware: &hardware,
            began,
            segments: &segments,
            samples: ledger.delivered,
        };
        sigmf::write_meta(meta, &recording)?;
    }
    let data = target.data.display().to_string();
    let count = segments.len();
    let plural = if count == 1 { "" } else { "s" };
    Ok(Report {
        text: format!("{data}: {count} segment{plural}; {}\n", ledger.summary()),
        failure: failure(run.interrupted, samples, &ledger, &data),
        results: json!({
            "data": data, "meta": meta.map(|meta| meta.display().to_string()),
            "rate_hz": rate_hz, "segments": count, "ledger": ledger, "run": run,
        }),
    })
}

fn failure(
    interrupted: bool,
    wanted: Option<u64>,
    ledger: &LedgerReport,
    data: &str,
) -> Option<String> {
    if !ledger.balances {
        return Some(ledger.defect());
    }
    if !interrupted && ledger.delivered == 0 {
        return Some("no sample came: check the rate, the cable and the firewall".to_owned());
    }
    let wanted = wanted.filter(|wanted| interrupted && ledger.expected < *wanted)?;
    let delivered = ledger.delivered;
    Some(format!("interrupted: {data} has {delivered} of the {wanted} samples asked for"))
}

/// At least one sample, or no end.
fn samples_wanted(args: &Args, rate_hz: f64) -> Option<u64> {
    let of_seconds = |seconds: f64| ((seconds * rate_hz).round() as u64).max(1);
    args.nsamps.or(args.duration.map(of_seconds))
}

fn connect<T: WireSample + Default + bytemuck::NoUninit>(
    graph: &mut Graph,
    device: Device,
    stream: millstream_radio::RxStreamer,
    samples: Option<u64>,
    path: &Path,
) -> anyhow::Result<Receiver<Segment>> {
    let (source, segments) = RadioSource::<T>::new(device, stream, samples);
    graph.add("radio", source.without_waiting())?;
    graph.add("file", FileSink::<T>::new(path))?;
    graph.connect("radio.out", "file.in")?;
    Ok(segments)
}

/// Two threads, and a queue between them.
fn plan(queue_mib: u16) -> Plan {
    let partition = |name: &str| Partition {
        name: name.to_owned(),
        blocks: vec![name.to_owned()],
        cpu: None,
        wait: WaitMode::Park,
    };
    let buffers = Buffers { between_bytes: usize::from(queue_mib) << 20, ..Buffers::default() };
    Plan { partitions: vec![partition("radio"), partition("file")], buffers }
}

fn status(elapsed: Duration, snapshot: &Snapshot, samples: Option<u64>) -> String {
    let Some(ledger) = snapshot.block("radio").and_then(LedgerReport::of) else {
        return String::new();
    };
    let rate = ledger.delivered as f64 / elapsed.as_secs_f64().max(1e-3);
    let share = samples.map_or(String::new(), |samples| {
        format!("{:3.0} %  ", 100.0 * ledger.delivered as f64 / samples as f64)
    });
    format!(
        "{share}{:.2} MS/s  {} samples  {} lost",
        rate / 1e6,
        ledger.delivered,
        ledger.lost_total()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(
        out: &str,
        format: Option<Format>,
    ) -> Result<(String, Option<String>, Format), String> {
        let name = |path: PathBuf| path.display().to_string();
        Target::of(Path::new(out), format)
            .map(|target| (name(target.data), target.meta.map(name), target.format))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_name_says_how_to_write() {
        use Format::{Cf32, Sc16};
        assert_eq!(target("a/b.sc16", None), Ok(("a/b.sc16".into(), None, Sc16)));
        assert_eq!(target("b.fc32", None), Ok(("b.fc32".into(), None, Cf32)));
        assert_eq!(target("/dev/null", Some(Cf32)), Ok(("/dev/null".into(), None, Cf32)));
        let pair = |format| Ok(("b.sigmf-data".into(), Some("b.sigmf-meta".into()), format));
        assert_eq!(target("b.sigmf-meta", None), pair(Sc16));
        assert_eq!(target("b.sigmf-data", Some(Cf32)), pair(Cf32));
    }

    #[test]
    fn a_name_that_says_nothing_or_something_else_is_refused() {
        let error = target("b.wav", None).unwrap_err();
        assert!(error.ends_with("or give --format sc16 or --format cf32"), "{error}");
        let error = target("b.sc16", Some(Format::Cf32)).unwrap_err();
        let expected = "b.sc16: the name says sc16, but --format says cf32: change one of them";
        assert_eq!(error, expected);
    }

    #[test]
    fn only_an_end_that_was_asked_for_can_be_missed() {
        let ledger = LedgerReport {
            expected: 10,
            delivered: 9,
            lost: [("discarded", 1)].into(),
            balances: true,
        };
        let failure = |interrupted, wanted| failure(interrupted, wanted, &ledger, "x.sc16");
        assert_eq!(failure(true, None), None);
        assert_eq!(failure(true, Some(10)), None, "all were there when it was interrupted");
        let short = "interrupted: x.sc16 has 9 of the 20 samples asked for";
        assert_eq!(failure(true, Some(20)).as_deref(), Some(short));
        assert_eq!(failure(false, Some(20)), None);
        let nothing = LedgerReport { delivered: 0, lost: [("discarded", 10)].into(), ..ledger };
        let text = super::failure(false, Some(10), &nothing, "x.sc16").unwrap();
        assert!(text.starts_with("no sample came: "), "{text}");
    }
}
