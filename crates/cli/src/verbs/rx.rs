//! `millstream rx`: records a radio's samples. Reception and disk are partitions of their own, with a
//! ring between them, so that a slow disk costs no sample until the ring is full.

use crate::graph_run::{self, LedgerReport};
use crate::live::Live;
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
#[derive(clap::Args)]
pub struct Args {
    /// The device: addr=IPV4[,rpc_port=N][,discovery_port=N][,link=LINK].
    #[arg(long, value_name = "ARGS")]
    args: DeviceArgs,

    /// Sample rate, Hz.
    #[arg(long)]
    rate: f64,

    /// How many samples to record.
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    nsamps: Option<u64>,

    /// How many seconds to record; until SIGINT when neither is given.
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,

    /// Receive channel, from 0.
    #[arg(long, default_value_t = 0)]
    channel: usize,

    /// Where to write: .sc16 and .cf32 are raw, .sigmf-meta or .sigmf-data make a SigMF recording.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Samples in the file: sc16 as on the wire, or cf32. From the extension by default.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
}

/// Formats of a recording.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Interleaved little-endian 16-bit I and Q, as on the wire.
    Sc16,
    /// Interleaved little-endian 32-bit floats, full scale 1.
    Cf32,
}

impl Format {
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
        let data = if meta.is_some() { out.with_extension("sigmf-data") } else { out.to_owned() };
        Ok(Self { data, meta, format: format.or(implied).unwrap_or(Format::Sc16) })
    }
}

/// Records until the end asked for, or until somebody ends it; succeeds when the ledger balances.
pub fn run(args: Args, json: bool) -> anyhow::Result<Report> {
    let target = Target::of(&args.out, args.format)?;
    let mut device = Device::open(args.args.clone())?;
    let rate_hz = device.set_rate(args.rate)?;
    let samples = samples_wanted(&args, rate_hz)?;
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
    let run = graph_run::run(graph, &plan(), &mut live, show)?;
    let ledger = run
        .snapshot
        .block("radio")
        .and_then(LedgerReport::of)
        .context("the radio source published no ledger")?;
    let segments: Vec<Segment> = segments.try_iter().collect();
    if let Some(meta) = &target.meta {
        let datatype = target.format.datatype();
        let recording =
            Recording { datatype, rate_hz, hardware: &hardware, began, segments: &segments };
        sigmf::write_meta(meta, &recording)?;
    }
    if !json {
        println!("{}: {} segments; {}", target.data.display(), segments.len(), ledger.summary());
    }
    let ok = ledger.balances;
    Report::new(
        ok,
        json!({
            "data": target.data, "meta": target.meta, "rate_hz": rate_hz,
            "segments": segments.len(), "ledger": ledger, "run": run,
        }),
    )
}

fn samples_wanted(args: &Args, rate_hz: f64) -> anyhow::Result<Option<u64>> {
    let samples = match (args.nsamps, args.duration) {
        (Some(samples), _) => Some(samples),
        (None, Some(seconds)) if seconds.is_finite() && seconds > 0.0 => {
            Some((seconds * rate_hz).round() as u64)
        }
        (None, Some(seconds)) => anyhow::bail!("--duration {seconds}: give more than 0 seconds"),
        (None, None) => None,
    };
    anyhow::ensure!(samples != Some(0), "nothing to record: ask for at least one sample");
    Ok(samples)
}

fn connect<T: WireSample + bytemuck::NoUninit>(
    graph: &mut Graph,
    device: Device,
    stream: millstream_radio::RxStreamer,
    samples: Option<u64>,
    path: &Path,
) -> anyhow::Result<Receiver<Segment>> {
    let (source, segments) = RadioSource::<T>::new(device, stream, samples);
    graph.add("radio", source)?;
    graph.add("file", FileSink::<T>::new(path))?;
    graph.connect("radio.out", "file.in")?;
    Ok(segments)
}

/// Two threads, and between them half a second of 16-bit samples at 32 MS/s.
fn plan() -> Plan {
    let partition = |name: &str| Partition {
        name: name.to_owned(),
        blocks: vec![name.to_owned()],
        cpu: None,
        wait: WaitMode::Park,
    };
    let buffers = Buffers { between_bytes: 64 << 20, ..Buffers::default() };
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
