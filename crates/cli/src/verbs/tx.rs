//! `millstream tx`: transmits a recording or standard input. A thread of its own reads ahead.

mod page;
mod report;
mod source;

use crate::dashboard::WebArgs;
use crate::front_end::FrontEndArgs;
use crate::live::Live;
use crate::numbers::{DeviceMoment, device_moment, format, positive, rate, seconds, whole};
use crate::output::{Report, note, short};
use crate::playback::{Piece, Playback, PlaybackStep, Samples};
use crate::{interrupt, start};
use anyhow::Context;
use millstream_flow::blocks::SampleFormat;
use millstream_radio::graph::StreamDirection;
use millstream_radio::tx::{TX_CHANNELS_MAX, TxArgs, TxMetadata, TxStreamer};
use millstream_radio::{Complex32, Device, DeviceArgs, DeviceSet};
use page::TxPage;
use report::{Events, Played, TxLimits};
use source::Source;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest wait for the device or the file before the other work.
const SLICE: Duration = Duration::from_millis(100);

/// Interval of looks for a client that lets the transmission go on.
const HELD_SLICE: Duration = Duration::from_millis(20);

/// How long after the last sample's time its acknowledgement may come, seconds.
const ACK_PATIENCE_S: f64 = 2.0;

/// After a request to end, the wait for the device's buffer: its length and this, seconds; not
/// until its time, which may be far away.
const END_PATIENCE_S: f64 = 1.0;

/// Transmits a recording: SigMF or raw samples.
///
/// The whole recording is one burst. With --timed every capture of a SigMF recording is a burst at
/// its own time, as its core:global_index says, so the gaps of the recording stay gaps. After
/// SIGINT (Ctrl-C) the command ends the burst properly.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream tx --args addr=127.0.0.2 --in recording.sigmf-meta
  millstream tx --args addr=127.0.0.2 --in recording.sigmf-meta --timed --lead 0.2
  millstream tx --args addr=127.0.0.2 --in tone.cf32 --rate 1e6 --repeat 0 --scale 0.5
  millstream tx --args addr=127.0.0.2 --in tone.cf32 --rate 1e6 --at +2s
  millstream tx --args addr=192.168.10.2 --in tone.cf32 --rate 1M --freq 915M --gain 20
  millstream tx --args addr=127.0.0.2 --in - --format cf32 --rate 1e6")]
pub struct Args {
    #[arg(
        long,
        value_name = "ARGS",
        default_value = "",
        hide_default_value = true,
        help = "Device arguments; without them the only radio that answers. Repeat the option for \
                more devices that share a PPS: \
                addr=IPV4[,serial=SERIAL][,master_clock_rate=HZ][,link=LINK]"
    )]
    args: Vec<DeviceArgs>,

    /// The recording: .sc16 and .cf32 are raw samples, .sigmf-meta or .sigmf-data is a SigMF
    /// recording, and `-` is standard input.
    #[arg(long = "in", value_name = "FILE")]
    input: PathBuf,

    /// Format of raw samples, if the extension does not show it: sc16 or cf32.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<SampleFormat>,

    /// Sample rate, in Hz. The default is the rate of the recording.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,

    /// Transmit channels, for example 0,1. Numbers continue from the first device to the next one.
    /// All channels transmit the same samples at the same moments.
    #[arg(long, value_name = "N", default_value = "0", value_delimiter = ',',
          value_parser = whole::<usize>(..))]
    channel: Vec<usize>,

    /// Number of times to transmit the recording; 0 repeats it until Ctrl-C.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(..))]
    repeat: u64,

    /// Factor for every sample. Results beyond full scale are set to full scale.
    #[arg(long, value_name = "FACTOR", value_parser = positive)]
    scale: Option<f64>,

    #[command(flatten)]
    front_end: FrontEndArgs,

    /// Make every capture of a SigMF recording a burst at its own time.
    #[arg(long)]
    timed: bool,

    /// Time of the first sample: on the device's clock (12.5s, or its ticks), or from now (+2s).
    #[arg(long, value_name = "DEVICE_TIME", value_parser = device_moment)]
    at: Option<DeviceMoment>,

    /// Time from now to the first sample, by the device's clock. The default with --timed is 0.5.
    #[arg(long, value_name = "TIME", value_parser = seconds,
          conflicts_with = "at")]
    lead: Option<f64>,

    /// Start at the next PPS edge.
    #[arg(long, conflicts_with_all = ["at", "lead"])]
    at_pps: bool,

    /// Fail if the device reports more than N underflows.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(..))]
    max_underflows: Option<u64>,

    /// Fail if the device reports more than N late packets.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(..))]
    max_lates: Option<u64>,

    /// Fail if more than N samples are lost or in an unknown state. Without this option only
    /// unknown samples are a failure.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(..))]
    max_lost: Option<u64>,

    #[command(flatten)]
    web: WebArgs,
}

crate::results! { also [report::results], }

/// Transmits until the end, or until the user ends it; succeeds when the ledger balances and no
/// limit is exceeded.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let source = Source::open(&args)?;
    let rate_hz = args.rate.or(source.rate_hz);
    let unknown = || format!("{} does not contain its sample rate: add --rate", source.name);
    let rate_hz = rate_hz.with_context(unknown)?;
    if let Some(own_hz) = source.rate_hz.filter(|own_hz| (rate_hz / own_hz - 1.0).abs() > 1e-9) {
        let speed = short(rate_hz / own_hz);
        note(format_args!("rate    the recording has {own_hz} Hz: it plays {speed} times as fast"));
    }
    // Before the claim, so that it is released when the user asks early.
    interrupt::install();
    let mut devices = start::open(&args.front_end.with_sources(&args.args), rate_hz)?;
    let counts: Vec<_> = devices.devices().iter().map(Device::tx_channels).collect();
    let places = start::locate(&args.channel, &counts)?;
    let tuned = args.front_end.apply(&mut devices, StreamDirection::Tx, &places)?;
    let stream = streams(&args, &devices, places)?;
    let rate = stream.rate();
    let start_ticks = start_ticks(&args, &devices, rate.ticks_hz)?;
    let page = TxPage::start(&args, &source, &stream, tuned.first())?;
    let played = Played {
        input: &source.name,
        rate_hz: rate.samples_hz(),
        tuned,
        start_ticks,
        wanted: source.samples.map(|samples| samples.saturating_mul(stream.members().len() as u64)),
        elapsed_s: 0.0,
        interrupted: false,
        reader_waits: 0,
        events: Events::default(),
        counters: stream.counters(),
        ledger: stream.ledger(),
        limits: TxLimits {
            underflows: args.max_underflows,
            lates: args.max_lates,
            lost: args.max_lost,
        },
    };
    let mut player = Player {
        stream,
        played,
        scaled: args.scale.is_some(),
        floats: Vec::new(),
        live: Live::new(),
        page,
        began: Instant::now(),
    };
    let duration_ticks = source.duration_samples.map(|samples| rate.ticks(samples));
    let end_ticks = start_ticks.zip(duration_ticks).map(|(at, ticks)| at.saturating_add(ticks));
    let mut playback = (source.start)()?;
    player.play(&mut playback)?;
    player.wait_for_acks(end_ticks)?;
    player.live.end();
    player.played.reader_waits = playback.waits;
    player.note()?;
    let Player { stream, mut played, page, .. } = player;
    let in_device_s = (stream.members()[0].credit_window_bytes() / 4) as f64 / rate.samples_hz();
    let patience = Duration::from_secs_f64(in_device_s + END_PATIENCE_S);
    played.ledger =
        if played.interrupted { stream.finish_within(patience) } else { stream.finish() };
    if let Some(mut page) = page {
        page.publish(&played, true);
    }
    Ok(report::report(played))
}

/// Opens the channels.
fn streams(
    args: &Args,
    devices: &DeviceSet,
    places: Vec<(usize, usize)>,
) -> anyhow::Result<TxStreamer> {
    anyhow::ensure!(
        places.len() <= TX_CHANNELS_MAX,
        "too many channels are given: one command can transmit on at most {TX_CHANNELS_MAX}"
    );
    let channel = |(device, channel)| {
        let mut args_of_it = TxArgs::new(channel);
        args_of_it.scale *= args.scale.unwrap_or(1.0) as f32;
        (device, args_of_it)
    };
    let channels: Vec<_> = places.into_iter().map(channel).collect();
    Ok(devices.tx_group(&channels)?)
}

/// The time of the first sample, where it is needed.
fn start_ticks(args: &Args, devices: &DeviceSet, ticks_hz: f64) -> anyhow::Result<Option<u64>> {
    if args.at_pps {
        return Ok(Some(start::next_pps(devices)?.0));
    }
    let lead_s = args.lead.or((args.timed && args.at.is_none()).then_some(0.5));
    let Some(moment) = args.at.or(lead_s.map(DeviceMoment::FromNow)) else { return Ok(None) };
    Ok(Some(start::at_moment(&devices.devices()[0], moment, ticks_hz)?))
}

/// A stream and its parallel work.
struct Player<'a> {
    stream: TxStreamer,
    /// What became of the samples, as of the last [`Player::note`].
    played: Played<'a>,
    /// Whether 16-bit samples have to be multiplied.
    scaled: bool,
    /// The converted samples.
    floats: Vec<Complex32>,
    live: Live,
    page: Option<TxPage>,
    began: Instant,
}

impl Player<'_> {
    /// Sends all pieces; ends the burst when the user asks to end.
    fn play(&mut self, playback: &mut Playback) -> anyhow::Result<()> {
        let (mut first, rate) = (true, self.stream.rate());
        while !interrupt::asked() {
            match playback.next(SLICE)? {
                PlaybackStep::Wait => self.look()?,
                PlaybackStep::End => break,
                PlaybackStep::Piece(piece) => {
                    self.played.reader_waits = playback.waits;
                    let time_ticks = match (piece.offset_samples, self.played.start_ticks) {
                        (Some(offset), start) => {
                            start.map(|start| start.wrapping_add(rate.ticks(offset)))
                        }
                        (None, start) if first => start,
                        (None, _) => None,
                    };
                    first = false;
                    self.send(&piece, time_ticks)?;
                    playback.recycle(piece.samples);
                }
            }
        }
        // Only an interrupted burst is open here.
        self.end_burst()
    }

    /// Ends an open burst; the device takes the end as soon as it has room. When the user asks to
    /// end, a device without room is not awaited for long.
    fn end_burst(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        let waits = || !interrupt::asked() || began.elapsed().as_secs_f64() < ACK_PATIENCE_S;
        while self.stream.is_in_burst() && waits() {
            self.stream.end_burst(SLICE)?;
            self.look()?;
        }
        Ok(())
    }

    /// While a client of the dashboard holds the transmission: ends the burst, and waits. Returns
    /// false if the user asks to end meanwhile.
    fn hold(&mut self) -> anyhow::Result<bool> {
        while self.page.as_ref().is_some_and(TxPage::is_held) {
            if interrupt::asked() {
                return Ok(false);
            }
            self.end_burst()?;
            std::thread::sleep(HELD_SLICE);
            self.look()?;
        }
        Ok(true)
    }

    /// Sends a piece; does the other work while the device has no room.
    fn send(&mut self, piece: &Piece, time_ticks: Option<u64>) -> anyhow::Result<()> {
        let mut meta = TxMetadata { time_ticks, end_of_burst: piece.ends_burst };
        let mut done = 0;
        loop {
            if !self.hold()? {
                return Ok(());
            }
            let sent = match &piece.samples {
                Samples::Cf32(samples) => self.stream.send(&samples[done..], meta, SLICE)?,
                Samples::Sc16(samples) if !self.scaled => {
                    self.stream.send(&samples[done..], meta, SLICE)?
                }
                Samples::Sc16(samples) => {
                    to_floats(&samples[done..], &mut self.floats);
                    self.stream.send(&self.floats, meta, SLICE)?
                }
            };
            if let Some(page) = &mut self.page {
                page.show(&piece.samples, done..done + sent.samples);
            }
            done += sent.samples;
            if sent.samples > 0 {
                meta.time_ticks = None;
            }
            self.look()?;
            let ended = sent.end_of_burst || !meta.end_of_burst;
            if (done == piece.samples.len() && ended) || interrupt::asked() {
                return Ok(());
            }
        }
    }

    /// Takes events, and shows the progress.
    fn look(&mut self) -> anyhow::Result<()> {
        self.played.events.fetch(&mut self.stream)?;
        if let Some(page) = &mut self.page {
            page.follow(self.stream.members()[0].ledger());
            page.attend();
            if page.is_due() {
                self.note()?;
            }
        }
        if let Some(page) = self.page.as_mut().filter(|page| page.is_due()) {
            page.publish(&self.played, false);
        }
        let (stream, played) = (&self.stream, &self.played);
        let elapsed_s = self.began.elapsed().as_secs_f64();
        self.live.show(Instant::now(), || {
            report::status(&stream.ledger(), &played.events, played.wanted, elapsed_s)
        });
        Ok(())
    }

    /// Notes what became of the samples so far.
    fn note(&mut self) -> anyhow::Result<()> {
        self.played.events.fetch(&mut self.stream)?;
        self.played.ledger = self.stream.ledger();
        self.played.counters = self.stream.counters();
        self.played.elapsed_s = self.began.elapsed().as_secs_f64();
        self.played.interrupted = interrupt::asked();
        Ok(())
    }

    /// Waits until all bursts are acknowledged, or the device's own clock shows that they should
    /// have been; does not wait for a device whose clock stands still.
    fn wait_for_acks(&mut self, end_ticks: Option<u64>) -> anyhow::Result<()> {
        let rate = self.stream.rate();
        let in_device = rate.ticks(self.stream.members()[0].credit_window_bytes() / 4);
        let mut begun = None;
        let mut moved = (0, Instant::now());
        let waits = |stream: &TxStreamer| {
            let counters = stream.counters();
            counters.burst_acks < counters.bursts
        };
        while waits(&self.stream) {
            let now = self.stream.time_ticks()?;
            // After an interruption, later bursts do not matter.
            let end = end_ticks.filter(|_| !interrupt::asked()).unwrap_or(0);
            let patience = (ACK_PATIENCE_S * rate.ticks_hz) as u64;
            if now >= (*begun.get_or_insert(now) + in_device).max(end) + patience {
                break;
            }
            if now != moved.0 {
                moved = (now, Instant::now());
            } else if moved.1.elapsed().as_secs_f64() >= ACK_PATIENCE_S {
                break;
            }
            if let Some((_, event)) = self.stream.next_event(SLICE)? {
                self.played.events.count(event);
            }
            self.look()?;
        }
        Ok(())
    }
}

/// 16-bit samples as floats of full scale 1.
fn to_floats(samples: &[[i16; 2]], floats: &mut Vec<Complex32>) {
    use millstream_radio::convert::{Converter, SC16_SCALE, Wire};
    floats.resize(samples.len(), Complex32::default());
    Converter::new(Wire::Sc16).to_user(bytemuck::cast_slice(samples), floats, SC16_SCALE);
}
