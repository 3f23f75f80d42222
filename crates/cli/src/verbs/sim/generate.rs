//! `millstream sim generate`: a recording of a television channel, impaired in known ways.

use crate::force::ForceArgs;
use crate::live::{Live, left};
use crate::numbers::{decibels, finite, format, frequency, number, positive, rate, seconds, whole};
use crate::output::{Report, note};
use crate::{interrupt, stdout};
use anyhow::{Context, ensure};
use millstream_atsc::blocks::Packets;
use millstream_atsc::params::PACKET_BYTES;
use millstream_atsc::tx::{
    Adjacent, Echo, Impairments, Numbered, RecordingResult, TestSignal, TsSource, TxConfig, record,
};
use millstream_flow::blocks::SampleFormat;
use millstream_output::OutputFile;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Seconds without --duration, and after the end of a transport stream that is sent once.
const DURATION_S: f64 = 1.0;
const TAIL_S: f64 = 0.1;

/// Makes a recording of an ATSC 8-VSB television channel with impairments, for tests.
///
/// The middle of the channel is at 0 Hz. The options add noise, echoes, offsets and other
/// impairments to the signal. The same seed makes the same file. C/N is the power of the signal
/// with its pilot, divided by the power of the noise in the channel's 6 MHz.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream sim generate --out tv.sc16 --cn 20 --echo 5.6us:-10dB --offset 12e3 --sent sent.ts
  millstream sim generate --out tv.cf32 --ts film.ts --rate 25e6 --adjacent +1:20dB --level 0.03
  millstream run graphs/atsc-rx.toml --set in=tv.sc16 --set out=tv.ts")]
pub struct Args {
    /// File to write. Its extension chooses the format: .sc16 or .cf32. `-` writes to standard
    /// output, which needs --format.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Format of the samples, if the file name does not show it: sc16 or cf32.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<SampleFormat>,

    /// Sample rate, in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 6.25e6, value_parser = rate)]
    rate: f64,

    /// Length of the signal. The default is 1 s, or the length of --ts.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    duration: Option<f64>,

    /// Transport stream to transmit; with --duration it is repeated as needed. By default the
    /// packets contain their number and random bytes.
    #[arg(long, value_name = "FILE.ts")]
    ts: Option<PathBuf>,

    /// Transmit the built-in test picture.
    #[arg(long, conflicts_with = "ts")]
    test_picture: bool,

    /// Also write the transmitted packets to this file.
    #[arg(long, value_name = "FILE.ts")]
    sent: Option<PathBuf>,

    /// Seed of the random packets and of the noise.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(..))]
    seed: u64,

    /// Root mean square of the signal, where full scale is 1. Peaks are about three times higher.
    #[arg(long, value_name = "RMS", default_value_t = 0.2, value_parser = positive)]
    level: f64,

    #[command(flatten)]
    force: ForceArgs,

    #[command(flatten)]
    channel: Channel,
}

/// Impairments of the signal.
#[derive(clap::Args)]
#[command(next_help_heading = "Changes of the signal")]
struct Channel {
    /// Carrier-to-noise ratio in 6 MHz, in dB.
    #[arg(long, value_name = "DB", value_parser = decibels)]
    cn: Option<f64>,

    /// Add an echo: delay (negative means before the signal), level, and optionally phase and
    /// Doppler shift, for example 5.6us:-10dB:90deg:2Hz. Repeat the option for more.
    #[arg(long = "echo", value_name = "ECHO", allow_hyphen_values = true)]
    echoes: Vec<Echo>,

    /// Carrier offset, in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 0.0, value_parser = frequency)]
    offset: f64,

    /// How much faster the transmitter's clock is than the receiver's, in ppm.
    #[arg(long, value_name = "PPM", default_value_t = 0.0, value_parser = finite)]
    clock_ppm: f64,

    /// Add a neighbouring channel: distance in channels, and level relative to the signal, for
    /// example +1:20dB. Repeat the option for more.
    #[arg(long, value_name = "CHANNELS:DB", value_parser = adjacent, allow_hyphen_values = true)]
    adjacent: Vec<Adjacent>,

    /// Add a tone: frequency from the middle of the channel in Hz, and level relative to the
    /// signal, for example 1e6:-10dB. Repeat the option for more.
    #[arg(long = "tone", value_name = "HZ:DB", value_parser = tone, allow_hyphen_values = true)]
    tones: Vec<[f64; 2]>,

    /// I/Q imbalance: gain of Q relative to I, and phase error, for example 0.5dB:2deg.
    #[arg(long, value_name = "DB:DEG", value_parser = iq, allow_hyphen_values = true)]
    iq: Option<[f64; 2]>,

    /// DC offset of I and of Q, where full scale is 1, for example 0.01:-0.02.
    #[arg(long, value_name = "I:Q", value_parser = dc, allow_hyphen_values = true)]
    dc: Option<[f64; 2]>,

    /// Number of bits of the imitated converter, 2 to 16.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(..))]
    bits: Option<u32>,
}

impl Channel {
    fn impairments(self) -> Impairments {
        let [iq_gain_db, iq_phase_deg] = self.iq.unwrap_or_default();
        Impairments {
            clock_ppm: self.clock_ppm,
            echoes: self.echoes,
            adjacent: self.adjacent,
            tones: self.tones,
            offset_hz: self.offset,
            cn_db: self.cn,
            iq_gain_db,
            iq_phase_deg,
            dc: self.dc.unwrap_or_default().map(|part| part as f32),
            bits: self.bits,
        }
    }
}

crate::results! {
    /// A recording of a television channel.
    struct GeneratedRecording {
        /// Its file.
        out: String,
        /// Samples per second.
        rate_hz: f64,
        /// Its length, seconds.
        seconds: f64,
        /// The seed of its random impairments.
        seed: u64,
        /// What was recorded.
        recorded: RecordingResult,
        /// Transport packets in the file of sent packets.
        packets_sent: Option<u64>,
    }
}

/// Writes the recording, and the packets if requested.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let format = args.format.or_else(|| by_name(&args.out)).with_context(|| {
        format!(
            "{}: the sample format is unknown: add --format sc16 or cf32, or use a name that ends \
             in .sc16 or .cf32",
            args.out.display()
        )
    })?;
    let out = stdout::for_data(&args.out)?;
    let shown = stdout::name(&out).map_or_else(|| out.display().to_string(), str::to_owned);
    let config = TxConfig { sample_rate_hz: args.rate, rms: args.level as f32 };
    let impairments = args.channel.impairments();
    let mut signal = TestSignal::new(config, &impairments, args.seed)?;
    let (mut packets, length_s) =
        match packets(args.ts.as_deref(), args.test_picture, args.duration)? {
            Some(stream) => {
                let length_s = stream.duration_s() + TAIL_S;
                (Packets::Stream(Box::new(stream)), length_s)
            }
            None => (Packets::Numbered(Numbered::new(args.seed)), DURATION_S),
        };
    let duration_s = args.duration.unwrap_or(length_s);
    ensure!(duration_s <= 86_400.0, "--duration is {duration_s} s: give at most a day");
    let mut sent = args.sent.as_deref().map(|path| Sent::create(path, args.force)).transpose()?;
    let mut file = args.force.create(&out)?;
    let samples = (duration_s * args.rate).round() as u64;
    interrupt::install();
    let mut live = Live::seldom();
    let mut next = |packet: &mut [u8; PACKET_BYTES]| {
        packets.next_packet(packet);
        if let Some(sent) = &mut sent {
            sent.add(packet);
        }
    };
    let begun = Instant::now();
    let recorded = record(
        &mut file,
        format,
        samples,
        |block| signal.generate(&mut next, block),
        |done| {
            let passed = begun.elapsed();
            if passed > Duration::from_secs(1) {
                live.show(Instant::now(), || {
                    let left = left(passed, done, samples);
                    format!("{:.1} of {duration_s:.1} s of signal{left}", done as f64 / args.rate)
                });
            }
            !interrupt::asked()
        },
    )
    .map_err(|error| file.fail(error))?;
    live.end();
    file.complete()?;
    let packets_sent = sent.map(Sent::finish).transpose()?;
    if recorded.clipped > 0 {
        let level = args.level;
        note(format_args!(
            "millstream: {} parts of samples are beyond full scale and were cut: give a --level \
             below {level}",
            recorded.clipped
        ));
    }
    let level_db = 10.0 * recorded.power.max(1e-30).log10();
    let seconds = recorded.samples as f64 / args.rate;
    let text = format!(
        "{shown}: {seconds:.3} s, {} samples, {level_db:+.1} dB of full scale, seed {}\n",
        recorded.samples, args.seed
    );
    let failure = interrupt::asked().then(|| "interrupted before the end".to_owned());
    let (out, rate_hz, seed) = (shown.to_string(), args.rate, args.seed);
    let results = GeneratedRecording { out, rate_hz, seconds, seed, recorded, packets_sent };
    Ok(Report::of(text, &results).failing(failure))
}

/// The stream to send; `None` for numbered packets.
fn packets(
    ts: Option<&Path>,
    picture: bool,
    duration: Option<f64>,
) -> anyhow::Result<Option<TsSource>> {
    let repeat = duration.is_some();
    Ok(match ts {
        Some(path) => Some(TsSource::open(path, repeat)?),
        None if picture => Some(TsSource::new(crate::verbs::demo::TEST_PICTURE, repeat)?),
        None => None,
    })
}

/// The file of the sent packets.
struct Sent {
    out: BufWriter<OutputFile>,
    packets: u64,
    failed: Option<std::io::Error>,
}

impl Sent {
    fn create(path: &Path, force: ForceArgs) -> anyhow::Result<Self> {
        Ok(Self { out: BufWriter::new(force.create(path)?), packets: 0, failed: None })
    }

    fn add(&mut self, packet: &[u8; PACKET_BYTES]) {
        self.packets += 1;
        if let Err(error) = self.out.write_all(packet) {
            self.failed.get_or_insert(error);
        }
    }

    fn finish(mut self) -> anyhow::Result<u64> {
        let flushed = self.out.flush();
        let written = self.failed.take().map_or(flushed, Err);
        written.map_err(|error| self.out.get_ref().fail(error))?;
        // What could not be flushed was an error above.
        self.out.into_parts().0.complete()?;
        Ok(self.packets)
    }
}

fn by_name(path: &Path) -> Option<SampleFormat> {
    path.extension().and_then(|extension| SampleFormat::from_name(extension.to_str()?))
}

/// Two numbers with optional units.
fn pair(text: &str, units: [&str; 2], example: &str) -> Result<[f64; 2], String> {
    let number = |text: &str, unit: &str| {
        let text = text.trim();
        number(text.strip_suffix(unit).unwrap_or(text).trim_end())
    };
    let both =
        text.split_once(':').and_then(|(a, b)| Some([number(a, units[0])?, number(b, units[1])?]));
    both.ok_or_else(|| format!("write two numbers, for example {example}"))
}

fn adjacent(text: &str) -> Result<Adjacent, String> {
    let [channels, level_db] = pair(text, ["", "dB"], "+1:20dB")?;
    if channels.fract() != 0.0 || channels == 0.0 || channels.abs() > 100.0 {
        return Err("give a whole number of channels up to 100 away, for example +1:20dB".into());
    }
    Ok(Adjacent { channels: channels as i32, level_db })
}

fn tone(text: &str) -> Result<[f64; 2], String> {
    pair(text, ["Hz", "dB"], "1e6:-10dB")
}

fn iq(text: &str) -> Result<[f64; 2], String> {
    pair(text, ["dB", "deg"], "0.5dB:2deg")
}

fn dc(text: &str) -> Result<[f64; 2], String> {
    pair(text, ["", ""], "0.01:-0.02")
}
