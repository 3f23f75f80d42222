//! `millstream-lab bench buffer`: the buffer law as a calculator. Worst-case latency × rate =
//! buffer.

mod check;
mod search;
mod series;

use super::way::DIRECTIONS;
use crate::force::ForceArgs;
use crate::numbers::{one_of, positive, rate, seconds, whole, within};
use crate::output::{Report, count};
use anyhow::{Context, bail};
use millstream_lab::trial::BufferTrial;
use millstream_lab::{Direction, EthernetLink, LinkBudget, WireFormat, buffer};
use millstream_measure::picture::short_time;
use millstream_radio::DeviceArgs;
use millstream_stats::Histogram;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Calculates a buffer size or a latency: buffer = worst latency × sample rate.
///
/// Give a latency, a buffer size or both. With both, the command says whether the buffer is large
/// enough, and fails if it is not. The latency can come from a measured histogram.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("known").required(true).multiple(true)
          .args(["latency", "buffer_samples", "histogram"])),
    group(clap::ArgGroup::new("trial").args(["check", "search", "series"])), after_help = "Examples:
  millstream-lab bench buffer --rate 250e6 --latency 300e-6
  millstream-lab bench buffer --rate 250e6 --buffer-samples 65536
  millstream-lab bench buffer --rate 250e6 --buffer-samples 65536 --latency 80e-6
  millstream-lab bench buffer --rate 250e6 --buffer-samples 65536 --latency 300e-6 --check
  millstream-lab bench buffer --rate 250e6 --latency 300e-6 --search
  sudo millstream-lab bench buffer --rate 10M --latency 1ms --search --time-scale 1 --link xdp
  millstream-lab bench buffer --rate 250e6 --latency 300e-6 --series --picture delays.svg
  millstream-lab bench buffer --rate 25e6 --histogram latency.json --probability 1e-4
  millstream-lab bench buffer --rate 250e6 --latency 80e-6 --streams 2 --link-rate 20G --mtu 9000")]
pub struct Args {
    /// Sample rate of each channel, in samples per second.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: f64,

    /// The longest latency that the buffer must cover.
    #[arg(long, value_name = "TIME", value_parser = seconds,
          conflicts_with = "histogram")]
    latency: Option<f64>,

    /// Size of the buffer of each channel, in samples.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..))]
    buffer_samples: Option<u64>,

    /// Measured latencies: the output of `millstream-lab latency … --json`.
    #[arg(long, value_name = "FILE.json", requires = "probability")]
    histogram: Option<PathBuf>,

    /// Share of the latencies that may be too long for the buffer, for example 1e-6.
    #[arg(long, value_name = "P", value_parser = positive,
          requires = "histogram")]
    probability: Option<f64>,

    /// Format of the samples in packets.
    #[arg(long, value_name = "FORMAT", default_value = "sc16",
          value_parser = one_of(&WIRE_FORMATS))]
    wire_format: WireFormat,

    /// Number of streams on the link. Each stream has one channel.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(1..=1024))]
    streams: u64,

    /// Speed of the link in bits per second. If there are several links, give the sum of their
    /// speeds.
    #[arg(long, value_name = "BIT/S", default_value_t = 10e9, value_parser = rate)]
    link_rate: f64,

    /// Size of the largest IP packet of the link, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 9000,
          value_parser = whole::<u64>(1..=65_535))]
    mtu: u64,

    /// Check the calculation with an emulated radio whose clock runs more slowly.
    #[arg(long, requires_all = ["buffer_samples", "latency"])]
    check: bool,

    /// Find the smallest buffer that holds, by trials with an emulated radio, and show it beside
    /// the calculated one.
    #[arg(long, requires = "latency", conflicts_with = "buffer_samples")]
    search: bool,

    /// With --search: use this link, between two network namespaces joined by a veth pair, which
    /// needs root. Repeat the option for more links. The command adds the interface.
    #[arg(long, value_name = "LINK", requires = "search")]
    link: Vec<String>,

    /// Measure with larger and larger transmit buffers how long after its sending a sample leaves
    /// the antenna. The first buffer is the calculated one.
    #[arg(long, requires = "latency", conflicts_with = "buffer_samples")]
    series: bool,

    /// With --series: draw the delays.
    #[arg(long, value_name = "FILE.svg", requires = "series")]
    picture: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArgs,

    /// With --check: use this emulated radio, which has the same buffer and time scale.
    #[arg(long, value_name = "ARGS", requires = "check")]
    args: Option<DeviceArgs>,

    /// What to try: the credit window of the host (rx), the transmit buffer of the radio (tx), or
    /// both.
    #[arg(long, value_name = "DIRECTION", default_value = "both", requires = "trial",
          conflicts_with = "series",
          value_parser = one_of(&DIRECTIONS))]
    direction: &'static [Direction],

    /// Speed of the emulated radio's clock in trials, relative to real time.
    #[arg(long, value_name = "FACTOR", default_value_t = 0.002, value_parser = positive,
          requires = "trial")]
    time_scale: f64,

    /// Length of the stream in each trial, by the radio's clock.
    #[arg(long, value_name = "TIME", default_value = "6ms", value_parser = seconds,
          requires = "trial", conflicts_with = "series")]
    check_duration: f64,
}

impl Args {
    /// Returns the trial of a buffer of so many samples.
    fn trial(&self, direction: Direction, samples: u64, latency_s: f64) -> BufferTrial {
        BufferTrial {
            direction,
            rate_hz: self.rate,
            samples,
            latency_s,
            duration_s: self.check_duration,
            time_scale: self.time_scale,
        }
    }

    /// Checks limits beyond which a figure would be meaningless.
    fn check_bounds(&self) -> anyhow::Result<()> {
        let rates = "1 to 1e12 samples a second";
        within("--rate", (self.rate, ""), 1.0..=1e12, rates)?;
        within("--link-rate", (self.link_rate, ""), 1.0..=1e15, "1 to 1e15 bits a second")?;
        within("--latency", (self.latency.unwrap_or(0.0), " s"), 0.0..=86_400.0, "at most a day")?;
        Ok(())
    }
}

/// Formats on the wire.
const WIRE_FORMATS: [(&str, &str, WireFormat); 3] = [
    ("sc16", "16 bits for I and 16 bits for Q", WireFormat::Sc16),
    ("sc12", "12 bits for I and 12 bits for Q", WireFormat::Sc12),
    ("sc8", "8 bits for I and 8 bits for Q", WireFormat::Sc8),
];

crate::results! {
    also [check::results, search::results, series::results],
    /// A buffer, a latency or both.
    struct BufferResults {
        /// Samples per second of each channel.
        rate_hz: f64,
        /// The longest latency that the buffer must cover, seconds.
        latency_s: Option<f64>,
        /// The share of latencies that may be too long, of a histogram.
        probability: Option<f64>,
        /// Samples that the buffer needs.
        samples_needed: Option<u64>,
        /// The same in bytes.
        bytes_needed: Option<u64>,
        /// Samples of the given buffer.
        samples: Option<u64>,
        /// The same in bytes.
        bytes: Option<u64>,
        /// How long it lasts, seconds.
        slack_s: Option<f64>,
        /// Whether it is large enough.
        holds: Option<bool>,
        /// The highest rate at which it is, samples per second.
        rate_max_hz: Option<f64>,
        /// The format of samples in packets.
        format: WireFormat,
        /// Channels on the link.
        channels: u64,
        /// The link.
        link: EthernetLink,
        /// The load of the channels on the link.
        budget: LinkBudget,
    }
}

/// Fails when the given buffer does not hold; in trials, when the radio and the law disagree.
pub fn run(args: Args) -> anyhow::Result<Report> {
    args.check_bounds()?;
    if let (true, Some(samples), Some(latency_s)) = (args.check, args.buffer_samples, args.latency)
    {
        return check::run(&args, samples, latency_s);
    }
    if let (true, Some(latency_s)) = (args.search, args.latency) {
        return search::run(&args, latency_s);
    }
    if let (true, Some(latency_s)) = (args.series, args.latency) {
        return series::run(&args, latency_s);
    }
    let format = args.wire_format;
    let link = EthernetLink { bits_per_s: args.link_rate, mtu_bytes: args.mtu };
    let budget = LinkBudget::new(args.rate, args.streams, format, link)?;
    let latency_s = latency_s(&args)?;
    let wanted = latency_s.map(|latency_s| buffer::samples_for(latency_s, args.rate));

    let mut text = String::new();
    let rate_mhz = args.rate / 1e6;
    if let (Some(latency_s), Some(wanted)) = (latency_s, wanted) {
        let latency = short_time((latency_s * 1e9).round() as u64);
        let size = size(format.bytes(wanted));
        let _ = writeln!(text, "{latency} at {rate_mhz} MS/s take {wanted} samples ({size})");
    }
    let slack_s = args.buffer_samples.map(|samples| buffer::slack_s(samples, args.rate));
    if let (Some(samples), Some(slack_s)) = (args.buffer_samples, slack_s) {
        let (size, slack) =
            (size(format.bytes(samples)), short_time((slack_s * 1e9).round() as u64));
        let _ = writeln!(text, "{samples} samples ({size}) last {slack} at {rate_mhz} MS/s");
    }
    let holds = wanted.zip(args.buffer_samples).map(|(wanted, samples)| samples >= wanted);
    let rate_max_hz = latency_s.zip(args.buffer_samples).map(|(l, s)| buffer::rate_max_hz(s, l));
    text += &link_text(&args, &budget);
    let failure = match holds {
        Some(false) => Some(format!(
            "the buffer is too small for {rate_mhz} MS/s: it is enough up to {:.1} MS/s",
            rate_max_hz.unwrap_or_default() / 1e6
        )),
        Some(true) => {
            text += "the buffer holds\n";
            None
        }
        None => None,
    };
    let results = BufferResults {
        rate_hz: args.rate,
        latency_s,
        probability: args.probability,
        samples_needed: wanted,
        bytes_needed: wanted.map(|samples| format.bytes(samples)),
        samples: args.buffer_samples,
        bytes: args.buffer_samples.map(|samples| format.bytes(samples)),
        slack_s,
        holds,
        rate_max_hz,
        format,
        channels: args.streams,
        link,
        budget,
    };
    Ok(Report::of(text, &results).failing(failure))
}

fn link_text(args: &Args, budget: &LinkBudget) -> String {
    let (channels, link_gb) = (count(args.streams, "channel"), args.link_rate / 1e9);
    let verb = if args.streams == 1 { "uses" } else { "use" };
    let over = if budget.wire_share > 1.0 { ": too much" } else { "" };
    format!(
        "{channels} {verb} {:.1} % of a link of {link_gb} Gb/s{over} ({:.1} % are samples, {:.0} \
         packets/s of {} samples); the link carries at most {:.1} MS/s a channel\n",
        budget.wire_share * 100.0,
        budget.payload_share * 100.0,
        budget.packets_per_s,
        budget.samples_per_packet,
        budget.rate_max_hz / 1e6,
    )
}

/// The given latency, or that of a histogram and a probability.
fn latency_s(args: &Args) -> anyhow::Result<Option<f64>> {
    let (Some(path), Some(probability)) = (&args.histogram, args.probability) else {
        return Ok(args.latency);
    };
    let histogram = read_histogram(path)?;
    let (_, latency_ns) = buffer::samples_for_probability(&histogram, probability, args.rate)?;
    Ok(Some(latency_ns as f64 / 1e9))
}

/// Reads a histogram alone, or the one in a document of `--json`.
fn read_histogram(path: &Path) -> anyhow::Result<Histogram> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the histogram {}", path.display()))?;
    let document: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
    if let Some(error) = document["error"].as_str()
        && document.pointer("/results/histogram").is_none()
    {
        bail!(
            "{} is the output of a command that failed ({error}): repeat the measurement",
            path.display()
        );
    }
    let inner = document.pointer("/results/histogram").unwrap_or(&document);
    let histogram = serde_json::from_value(inner.clone());
    histogram.with_context(|| {
        format!(
            "{} contains no histogram: give a file that `millstream-lab latency radio --json` \
             printed",
            path.display()
        )
    })
}

/// Formats bytes with a unit.
fn size(bytes: u64) -> String {
    let kib = bytes as f64 / 1024.0;
    if kib < 1024.0 { format!("{kib:.0} KiB") } else { format!("{:.1} MiB", kib / 1024.0) }
}
