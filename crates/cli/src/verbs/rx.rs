//! `millstream rx`: records a radio's samples. Reception and disk are partitions of their own, with
//! a ring between them, so that a slow disk costs no sample until the ring is full, and from then
//! on only those without room.

mod record;
mod remote;
mod report;
mod target;

use crate::dashboard::{Dashboard, DashboardPlan, DashboardTopic, WebArgs};
use crate::force::ForceArgs;
use crate::front_end::{ChannelTuning, FrontEndArgs};
use crate::graph_run;
use crate::live::Live;
use crate::numbers::{one_of, rate, seconds, seconds_or_0, whole};
use crate::output::{Report, document};
use crate::{interrupt, start, stdout};
use anyhow::ensure;
use millstream_flow::blocks::SampleFormat;
use millstream_flow::{Buffers, Graph, Partition, Plan, Snapshot, WaitMode};
use millstream_radio::block::StartSettings;
use millstream_radio::graph::StreamDirection;
use millstream_radio::{Complex32, Device, DeviceArgs, DeviceSet, StreamRate};
use millstream_web::StreamFacts;
use record::{ChannelFacts, RecordingTarget, ReopenPlan};
use remote::RemoteArgs;
use report::{FinishedRecording, RecordedChannel};
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;
use target::{FORMATS, RecordingFiles};

/// Records samples from a radio to a file.
///
/// The recording ends after the requested length by the radio's clock. Lost samples are counted
/// with their cause, annotated and not replaced, and the recording continues after them. Several
/// channels are recorded at the same moments, each to its own file (x-ch0.sc16, x-ch1.sc16, …).
///
/// The file is called FILE.part until it is complete; if the radio stops answering, the .part file
/// remains. After SIGINT (Ctrl-C) the command completes the file and ends.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream rx --args addr=192.168.10.2 --rate 10e6 --duration 5 --out recording.sigmf-meta
  millstream rx --args addr=192.168.10.2 --rate 6.25M --nsamps 1000000 --out recording.cf32
  millstream rx --args addr=192.168.10.2 --rate 1M --freq 98.5M --gain 40 --duration 2 --out fm.sc16
  millstream rx --args addr=192.168.10.2 --rate 10M --channel 0,1 --at-pps --out both.sigmf-meta
  millstream rx --args addr=192.168.10.2 --rate 1M --duration 2 --out - --format sc16 > x.sc16
  millstream rx --args addr=192.168.10.2 --rate 10M --dest 192.168.10.9:5000
  millstream rx --args addr=192.168.10.2,link=xdp:eth1 --rate 50M --max-lost 0 --out fast.sc16")]
pub struct Args {
    #[arg(
        long,
        value_name = "ARGS",
        default_value = "",
        hide_default_value = true,
        help = "Device arguments; without them the only radio that answers. Repeat the option for \
                more devices that share a PPS: \
                addr=IPV4[,serial=SERIAL][,master_clock_rate=HZ][,claim_wait_s=SECONDS]\
                [,recv_queue_bytes=N][,link=LINK]"
    )]
    args: Vec<DeviceArgs>,

    /// Sample rate, in Hz.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: f64,

    /// Number of samples to record.
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = whole::<u64>(1..))]
    nsamps: Option<u64>,

    /// How long to record. Without --nsamps and --duration the recording ends on SIGINT (Ctrl-C).
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    duration: Option<f64>,

    /// Receive channels, for example 0,1. Numbers continue from the first device to the next one.
    #[arg(long, value_name = "N", default_value = "0", value_delimiter = ',',
          value_parser = whole::<usize>(..))]
    channel: Vec<usize>,

    #[command(flatten)]
    front_end: FrontEndArgs,

    /// Start at the next PPS edge.
    #[arg(long)]
    at_pps: bool,

    /// If the radio stops answering, for example after a reboot, open it again and go on; fail if
    /// it is not back after TIME. For one radio.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    reopen: Option<f64>,

    /// File to write: .sc16 and .cf32 are raw samples; .sigmf-meta or .sigmf-data makes a SigMF
    /// recording. With - samples go to standard output, which needs --format, and the summary goes
    /// to standard error. With /dev/null they are only counted.
    #[arg(long, value_name = "FILE", required_unless_present = "dest")]
    out: Option<PathBuf>,

    #[command(flatten)]
    remote: RemoteArgs,

    #[command(flatten)]
    force: ForceArgs,

    /// Format of the samples. The default follows from the file's extension; for SigMF it is sc16.
    #[arg(long, value_name = "FORMAT", value_parser = one_of(&FORMATS))]
    format: Option<SampleFormat>,

    /// Memory for samples that wait for the disk, in MiB for each channel. When it is full, samples
    /// are lost and counted.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = whole::<u16>(1..=65_535))]
    buffer: u16,

    /// How long later packets wait for one that the network delays; 0 for not at all. Without this
    /// option: 10 ms, and at most 32 packets.
    #[arg(long, value_name = "TIME", value_parser = seconds_or_0)]
    reorder_window: Option<f64>,

    /// Fail if more than N samples are lost. Without this option losses with a known cause are not
    /// a failure.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(..))]
    max_lost: Option<u64>,

    #[command(flatten)]
    web: WebArgs,
}

/// How to open the only radio again, with all settings.
fn reopen(
    args: &Args,
    places: &[(usize, usize)],
    patience: Duration,
) -> anyhow::Result<ReopenPlan> {
    ensure!(args.args.len() == 1, "--reopen is for one radio: leave it out, or give one --args");
    let (front_end, rate_hz) = (args.front_end.clone(), args.rate);
    let (devices, places) = (front_end.with_sources(&args.args), places.to_vec());
    let open = move || -> anyhow::Result<DeviceSet> {
        let mut devices = DeviceSet::open(devices.iter().cloned())?;
        devices.set_rate(rate_hz)?;
        front_end.apply(&mut devices, StreamDirection::Rx, &places)?;
        Ok(devices)
    };
    Ok(ReopenPlan { open: Box::new(open), patience })
}

crate::results! {
    also [report::results, remote::results],

    /// What the dashboard shows from the start.
    struct ShownRx<'a> {
        /// Samples per second.
        rate_hz: f64,
        /// Ticks of the radio's clock per sample.
        ticks_per_sample: NonZero<u32>,
        /// The settings of each channel.
        tuned: &'a [ChannelTuning],
    }
}

/// Records until the requested end, or until the user ends it; succeeds when that end was reached,
/// the ledger balances, and no more was lost than allowed.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let Some(out) = &args.out else { return remote::run(&args) };
    let out = stdout::for_data(out)?;
    let targets = RecordingFiles::for_each(&args.channel, &out, args.format)?;
    targets.iter().flat_map(RecordingFiles::all).try_for_each(|path| args.force.check(path))?;
    // Before the claim, so that it is released when the user asks early.
    interrupt::install();
    let mut devices = start::open(&args.front_end.with_sources(&args.args), args.rate)?;
    let counts: Vec<_> = devices.devices().iter().map(Device::rx_channels).collect();
    let places = start::locate(&args.channel, &counts)?;
    let tuned = args.front_end.apply(&mut devices, StreamDirection::Rx, &places)?;
    let named = |(device, _): &(usize, usize)| {
        let device = &devices.devices()[*device];
        format!("{} at {}", device.info().product(), device.address())
    };
    let hardware: Vec<_> = places.iter().map(named).collect();
    // A channel that does not exist is refused below.
    let rate =
        places.first().and_then(|(device, channel)| devices.devices()[*device].rx_rate(*channel));
    let rate = rate.unwrap_or(StreamRate::of_radio(args.rate));
    let wanted = samples_wanted(&args, rate.samples_hz());
    let facts = channel_facts(&args.channel, &hardware, &tuned);
    let is_live = args.web.is_wanted() && start::runs_in_real_time(&devices.devices()[0])?;

    let mut graph = Graph::new();
    let reopen = match args.reopen {
        Some(patience_s) => Some(reopen(&args, &places, Duration::from_secs_f64(patience_s))?),
        None => None,
    };
    let record = RecordingTarget {
        devices,
        places,
        reopen,
        samples: wanted,
        at_pps: args.at_pps,
        // A recording has one rate.
        may_change_rate: targets.iter().all(RecordingFiles::keeps_nothing),
        reorder_window: args.reorder_window.map(Duration::from_secs_f64),
        targets: &targets,
        channels: facts,
        existing: args.force.existing(),
    };
    let (told, (at, _)) = match targets[0].format {
        SampleFormat::Sc16 => record.connect::<[i16; 2]>(&mut graph)?,
        _ => record.connect::<Complex32>(&mut graph)?,
    };
    let title = hardware.first().cloned().unwrap_or_default();
    let mut dashboard = match args.web.plan() {
        Some(plan) => Some(dashboard(plan, &mut graph, (rate, is_live), &tuned, title)?),
        None => None,
    };
    let mut live = Live::new();
    let channels = targets.len() as u64;
    let show = |elapsed, snapshot: &Snapshot| report::status(elapsed, snapshot, channels, wanted);
    let run = graph_run::run(
        graph,
        &plan(args.buffer, targets.len()),
        (&mut live, &mut dashboard),
        Vec::new,
        show,
    )
    .map_err(|error| report::with_part(error, &targets))?;
    let (segments, ledgers) = record::collect(&told)?;
    let all = args.channel.into_iter().zip(targets).zip(ledgers);
    let channel =
        |(((number, target), ledger), tuned)| RecordedChannel { number, target, tuned, ledger };
    let channels = all.zip(tuned).map(channel).collect();
    Ok(report::report(FinishedRecording {
        channels,
        rate,
        start_ticks: at,
        segments,
        wanted,
        max_lost: args.max_lost,
        run,
    }))
}

/// What the recordings say of their channels.
fn channel_facts(
    channels: &[usize],
    hardware: &[String],
    tuned: &[ChannelTuning],
) -> Vec<ChannelFacts> {
    let count = channels.len();
    let facts = |((number, hardware), tuned): ((&usize, &String), &ChannelTuning)| ChannelFacts {
        hardware: hardware.clone(),
        description: (count > 1)
            .then(|| format!("channel {number}, one of {count} recorded at the same moments")),
        settings: StartSettings {
            freq_hz: tuned.freq_hz,
            gain_db: tuned.gain_db,
            antenna: tuned.antenna.clone(),
            bandwidth_hz: tuned.bandwidth_hz,
        },
    };
    channels.iter().zip(hardware).zip(tuned).map(facts).collect()
}

/// Shows the channels in the dashboard.
fn dashboard(
    mut plan: DashboardPlan,
    graph: &mut Graph,
    (rate, is_live): (StreamRate, bool),
    tuned: &[ChannelTuning],
    title: String,
) -> anyhow::Result<Dashboard> {
    for (index, tuned) in tuned.iter().enumerate() {
        let output =
            if tuned_alone(graph) { "radio.out".to_owned() } else { format!("radio.out{index}") };
        let facts = StreamFacts {
            rate_hz: Some(rate.samples_hz()),
            centre_hz: tuned.freq_hz,
            ticks_hz: Some(rate.ticks_hz),
            is_live,
        };
        plan.show(graph, &output, facts)?;
    }
    let (rate_hz, ticks_per_sample) = (rate.samples_hz(), rate.ticks_per_sample);
    let results = document(&ShownRx { rate_hz, ticks_per_sample, tuned });
    let results = results.as_object().cloned().unwrap_or_default();
    plan.start(graph, DashboardTopic { verb: "rx", title, results, ..DashboardTopic::default() })
}

/// Whether the radio's block has one output.
fn tuned_alone(graph: &Graph) -> bool {
    graph.output_item("radio.out").is_ok()
}

/// At least one sample, or `None` without end.
fn samples_wanted(args: &Args, rate_hz: f64) -> Option<u64> {
    let of_seconds = |seconds: f64| ((seconds * rate_hz).round() as u64).max(1);
    args.nsamps.or(args.duration.map(of_seconds))
}

/// Two threads, and a queue between them for each channel.
fn plan(queue_mib: u16, channels: usize) -> Plan {
    let partition = |name: &str, blocks| Partition {
        name: name.to_owned(),
        blocks,
        cpu: None,
        wait: WaitMode::Park,
    };
    let files = (0..channels).map(|index| format!("file{index}")).collect();
    let buffers = Buffers { between_bytes: usize::from(queue_mib) << 20, ..Buffers::default() };
    let radio = partition("radio", vec!["radio".to_owned()]);
    Plan { partitions: vec![radio, partition("file", files)], buffers, ..Plan::default() }
}
