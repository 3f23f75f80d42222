//! `millstream inspect`: the content of a recording.

mod atsc;
mod capture;
mod power;
mod samples;
mod sigmf;
mod wav;

use crate::force::ForceArgs;
use crate::numbers::{format, rate};
use crate::output::{self, Report, shown};
use anyhow::{Context, bail, ensure};
use atsc::ReceptionReport;
use millstream_blocks::sigmf::{SigmfRecording, read_metadata};
use millstream_flow::blocks::SampleFormat;
use millstream_output::whole_of;
use power::Power;
use samples::RawLayout;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, stdin};
use std::path::{Path, PathBuf};

/// Bytes of a WAV file within which its samples have to begin.
const WAV_HEADER_BYTES_MAX: u64 = 1 << 20;

/// Shows a recording: format, length, sample rate, metadata, and the power of its samples.
///
/// It reads SigMF, WAV and raw samples. 0 dBFS is the power of a tone whose I and Q reach full
/// scale. It also reads captures of a radio's packets (pcapng and pcap, e.g. of tcpdump), and says
/// for each stream of any program what was lost, and where.
///
/// If the recording begins with ATSC television, it says so. With --atsc it decodes the whole
/// recording and draws one picture: spectrum, echoes, symbols over time, histogram of the
/// eight symbol levels, modulation error ratio over time, and taps of the equaliser.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream inspect recording.sigmf-meta
  millstream inspect recording.sc16 --rate 10M
  millstream rx --args addr=192.168.10.2 --rate 1M --duration 2 --out - --format sc16 | \\
    millstream inspect - --format sc16
  sudo tcpdump -i eth0 -s 256 -w radio.pcap udp & rx_samples_to_file …; \
    millstream inspect radio.pcap
  millstream sim generate --out tv.sc16 --cn 22 --echo 5.6us:-10dB
  millstream inspect tv.sc16 --atsc --picture tv.png")]
pub struct Args {
    /// The recording: a SigMF file (.sigmf-meta or .sigmf-data, also with .part), a .wav file, raw
    /// samples (.sc16 or .cf32), or a capture (.pcapng or .pcap); - reads raw samples from standard
    /// input.
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,

    /// Format of raw samples, if the file name does not show it: sc16 or cf32.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<SampleFormat>,

    /// Sample rate in Hz, if no metadata contains it. With --atsc the default is 6.25e6.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,

    /// Decode ATSC television and draw a picture. The middle of the channel must be at 0 Hz.
    #[arg(long)]
    atsc: bool,

    /// File for the picture. The default is RECORDING.png.
    #[arg(long, value_name = "FILE.png", requires = "atsc")]
    picture: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArgs,
}

crate::results! {
    also [power::results, sigmf::results, capture::results],

    /// A recording.
    struct InspectedRecording {
        /// Its file; `-` is standard input.
        recording: String,
        /// SigMF, WAV or raw samples.
        kind: &'static str,
        /// Whether its values are floats; else they are 16-bit integers.
        floats: bool,
        /// Values of a sample.
        values: usize,
        /// Its samples.
        samples: u64,
        /// Samples per second.
        rate_hz: Option<f64>,
        /// Its length, seconds.
        seconds: Option<f64>,
        /// The power of its samples.
        power: power::PowerFigures,
        /// Its metadata.
        #[serde(skip_serializing_if = "Option::is_none")]
        sigmf: Option<sigmf::FoundMetadata>,
        /// Whether it begins with ATSC television.
        #[serde(skip_serializing_if = "Option::is_none")]
        atsc: Option<bool>,
        /// The file of the picture, with --atsc.
        #[serde(skip_serializing_if = "Option::is_none")]
        picture: Option<String>,
        /// What was received, with --atsc.
        #[serde(skip_serializing_if = "Option::is_none")]
        survey: Option<ReceptionReport>,
    }
}

/// Reads the recording; with --atsc it fails where nothing was received.
pub fn run(args: Args) -> anyhow::Result<Report> {
    if let Some(out) = &args.picture {
        atsc::check_picture(out)?;
    }
    if args.recording == Path::new("-") {
        return piped(&args);
    }
    if args.format.is_none() && capture::is_capture(&args.recording) {
        ensure!(!args.atsc, "--atsc reads recordings, and this is a capture: leave it out");
        return capture::inspect(&args.recording);
    }
    // What a killed process has left is named by what it would have become.
    let whole = whole_of(&args.recording);
    if args.format.is_none() && is_wav(whole.as_deref().unwrap_or(&args.recording)) {
        return wave(&args, whole.is_some());
    }
    let by_name = || SampleFormat::from_name(whole.as_ref()?.extension()?.to_str()?);
    let source = SigmfRecording::open(&args.recording, args.format.or_else(by_name))?;
    let name = args.recording.display().to_string();
    let rate_hz = match (args.rate, source.rate_hz) {
        (Some(said), Some(found)) if said != found => {
            bail!(
                "{name} already contains its sample rate, {found} samples a second: leave out \
                 --rate"
            )
        }
        (said, found) => said.or(found),
    };
    let layout = layout(source.format);
    let meta = match source.global {
        Some(_) => {
            let json = read_metadata(&args.recording)?;
            Some(sigmf::Metadata { source: &source, json })
        }
        None => None,
    };
    let kind = if meta.is_some() { "SigMF" } else { "raw samples" };
    let file = File::open(&source.data).with_context(|| name.clone())?;
    let bytes = source.samples * layout.sample_bytes() as u64;
    // Bytes behind the samples are none.
    let file = file.take(bytes);
    let power = samples::power(file, layout, Some(bytes)).with_context(|| name.clone())?;
    let mut text = head(&name, kind, layout, source.samples, rate_hz);
    let mut results = facts(&args.recording, kind, layout, rate_hz, &power);
    if let Some(meta) = &meta {
        text += &meta.words();
        results.sigmf = Some(meta.document());
    }
    text += &power.words();
    let mut failure = None;
    if args.atsc {
        let picture = args.picture.unwrap_or_else(|| {
            let mut name = args.recording.clone().into_os_string();
            name.push(".png");
            name.into()
        });
        let rate_hz = rate_hz.unwrap_or(atsc::USUAL_RATE_HZ);
        let received = atsc::receive(&source, &name, rate_hz, (picture, args.force))?;
        text += &received.text;
        results.picture = Some(shown(&received.picture));
        results.survey = Some(received.survey);
        failure = received.failure;
    } else if let Some(rate_hz) = rate_hz {
        let found = atsc::recognise(&source, rate_hz);
        results.atsc = Some(found.is_some());
        text += &found.unwrap_or_default();
    }
    Ok(Report::of(text, &results).failing(failure))
}

/// Raw samples on standard input.
fn piped(args: &Args) -> anyhow::Result<Report> {
    let Some(format) = args.format else {
        bail!(
            "standard input has no file extension that shows the sample format: add --format sc16 \
             or --format cf32"
        )
    };
    ensure!(
        !args.atsc,
        "--atsc reads a recording twice, which standard input does not allow: write it to a file \
         first"
    );
    let layout = layout(format);
    let power =
        samples::power(stdin().lock(), layout, None).context("cannot read standard input")?;
    let kind = "raw samples";
    let text = head("standard input", kind, layout, power.samples, args.rate) + &power.words();
    Ok(Report::of(text, &facts(&args.recording, kind, layout, args.rate, &power)))
}

/// A WAV file.
fn wave(args: &Args, is_part: bool) -> anyhow::Result<Report> {
    ensure!(!args.atsc, "--atsc reads SigMF and raw samples, but not WAV: convert the file first");
    let name = args.recording.display().to_string();
    let mut file = File::open(&args.recording).with_context(|| format!("cannot read {name}"))?;
    let mut start = Vec::new();
    file.by_ref().take(WAV_HEADER_BYTES_MAX).read_to_end(&mut start).context(name.clone())?;
    let header =
        wav::read(&start).map_err(|why| anyhow::anyhow!("{name} is not a WAV file: {why}"))?;
    let said = f64::from(header.rate_hz);
    if args.rate.is_some_and(|rate| rate != said) {
        bail!("{name} already contains its sample rate, {said} samples a second: leave out --rate");
    }
    let layout = match (header.values, header.bits, header.channels) {
        (kind @ wav::WavValues::Integer, 16, 1 | 2) | (kind @ wav::WavValues::Float, 32, 1 | 2) => {
            let floats = kind == wav::WavValues::Float;
            RawLayout { floats, values: header.channels.into() }
        }
        _ => bail!(
            "{name} has {} channels of {} values of {} bits, which cannot be read: give a file \
             with 1 or 2 channels of 16-bit integers or 32-bit floats",
            header.channels,
            header.values,
            header.bits
        ),
    };
    let there = file.metadata()?.len().saturating_sub(header.data_at);
    let (bytes, wrong) = header.data_bytes_of(there, is_part);
    if let Some(wrong) = wrong {
        output::note(format_args!("millstream: {name}: {wrong}"));
    }
    let bytes = bytes - bytes % layout.sample_bytes() as u64;
    file.seek(SeekFrom::Start(header.data_at))?;
    let power = samples::power(file.take(bytes), layout, Some(bytes)).context(name.clone())?;
    let text = head(&name, "WAV", layout, power.samples, Some(said)) + &power.words();
    Ok(Report::of(text, &facts(&args.recording, "WAV", layout, Some(said), &power)))
}

/// Whether its extension is that of WAV.
fn is_wav(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("wav"))
}

fn layout(format: SampleFormat) -> RawLayout {
    RawLayout { floats: format != SampleFormat::Sc16, values: 2 }
}

fn head(name: &str, kind: &str, layout: RawLayout, samples: u64, rate_hz: Option<f64>) -> String {
    let values = match (layout.floats, layout.values) {
        (false, 1) => "16-bit integers",
        (false, _) => "pairs of 16-bit integers (I, Q)",
        (true, 1) => "32-bit floats",
        (true, _) => "pairs of 32-bit floats (I, Q)",
    };
    let length = match rate_hz {
        Some(rate_hz) => {
            format!(
                "{:.3} s at {} samples a second",
                samples as f64 / rate_hz,
                output::short(rate_hz)
            )
        }
        None => "the rate is not known (--rate)".to_owned(),
    };
    format!("recording    {name}: {kind}, {values}\nlength       {samples} samples, {length}\n")
}

fn facts(
    path: &Path,
    kind: &'static str,
    layout: RawLayout,
    rate_hz: Option<f64>,
    power: &Power,
) -> InspectedRecording {
    InspectedRecording {
        recording: shown(path),
        kind,
        floats: layout.floats,
        values: layout.values,
        samples: power.samples,
        rate_hz,
        seconds: rate_hz.map(|rate_hz| power.samples as f64 / rate_hz),
        power: power.figures(),
        sigmf: None,
        atsc: None,
        picture: None,
        survey: None,
    }
}
