//! `millstream relay`: one receive channel to several receivers, in packets of VITA 49.2.

use crate::front_end::{self, ChannelTuning, FrontEndArgs};
use crate::graph_report::{self, GraphReport, LedgerReport};
use crate::graph_run;
use crate::live::Live;
use crate::numbers::{one_of, rate, seconds, whole};
use crate::output::{Report, last_words, note};
use crate::{interrupt, start};
use anyhow::{Context, anyhow};
use millstream_flow::{Buffers, Graph, Partition, Plan, Snapshot, WaitMode};
use millstream_publish::{Publications, PublishLedger, ReceiverAddress, Vita49Options, Vita49Sink};
use millstream_radio::block::RadioSource;
use millstream_radio::graph::StreamDirection;
use millstream_radio::{DeviceArgs, RxArgs};
use millstream_wire::vita49::Epoch;
use std::time::Duration;

/// Epochs by name.
const EPOCHS: [(&str, &str, Epoch); 3] = [
    ("other", "an epoch of its own", Epoch::Other),
    ("utc", "coordinated universal time", Epoch::Utc),
    ("gps", "GPS time", Epoch::Gps),
];

/// Receives a channel of a radio once, and sends its samples to several receivers on the network,
/// in packets of VITA 49.2 (the profile of DIFI).
///
/// Each receiver has a queue and a ledger of its own: one that is slow or away loses packets, which
/// are counted, and disturbs no other. Missing samples are not replaced: timestamps jump, and a
/// context packet marks the loss. Ends after the requested length by the radio's clock, or on
/// SIGINT (Ctrl-C).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream relay --args addr=192.168.10.2 --rate 1M --freq 98.5M --to 192.168.20.3:4991
  millstream relay --args addr=192.168.10.2 --rate 1M --to 192.168.20.3:4991 \\
    --to tcp:192.168.20.4:4991 --duration 10")]
pub struct Args {
    /// Device arguments; without them the only radio that answers.
    #[arg(long, value_name = "ARGS", default_value = "", hide_default_value = true)]
    args: DeviceArgs,

    /// Sample rate, in Hz.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: f64,

    /// A receiver: ADDR:PORT by UDP, tcp:ADDR:PORT by TCP. Repeat the option for more receivers.
    #[arg(long, value_name = "RECEIVER", required = true)]
    to: Vec<ReceiverAddress>,

    /// Number of samples to send.
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = whole::<u64>(1..))]
    nsamps: Option<u64>,

    /// How long to send.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    duration: Option<f64>,

    /// Receive channel.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<usize>(..))]
    channel: usize,

    #[command(flatten)]
    front_end: FrontEndArgs,

    /// Samples of a packet. 360 fit into frames of 1500 bytes, 2230 into those of 9000.
    #[arg(long, value_name = "N", default_value_t = 360, value_parser = whole::<u16>(1..=16_000))]
    packet_samples: u16,

    /// Number of the stream in its packets.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(..))]
    stream_id: u32,

    /// What the radio's clock counts from.
    #[arg(long, value_name = "EPOCH", default_value = "other", value_parser = one_of(&EPOCHS))]
    epoch: Epoch,

    /// Time between two context packets, which tell rate, frequency, bandwidth and gain.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    interval: f64,

    /// Memory for packets that wait for a receiver, in MiB for each.
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = whole::<u16>(1..=4095))]
    buffer: u16,

    /// Fail if more than N samples of the radio are lost. Without this option losses with a known
    /// cause are not a failure.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(..))]
    max_lost: Option<u64>,
}

crate::results! {
    also [graph_report::results, front_end::results],

    /// What was received and sent on.
    struct Relayed<'a> {
        /// Samples per second.
        rate_hz: f64,
        /// The settings of the front end.
        tuned: &'a ChannelTuning,
        /// The samples of the radio.
        ledger: LedgerReport,
        /// The packets of each receiver.
        receivers: &'a [PublishLedger],
        /// Wall-clock time, seconds.
        elapsed_s: f64,
        /// CPU time of the process, seconds.
        cpu_s: f64,
        /// Whether the user ended it.
        interrupted: bool,
    }
}

/// Succeeds when all ledgers balance, and no more was lost than allowed.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    let device_args = args.front_end.with_sources(std::slice::from_ref(&args.args));
    let mut devices = start::open(&device_args, args.rate)?;
    let places = [(0, args.channel)];
    let tuned = args.front_end.apply(&mut devices, StreamDirection::Rx, &places)?;
    let tuned = tuned.into_iter().next().unwrap_or_default();
    let device = devices.into_devices().pop().context("no device")?;
    let stream = device.rx_stream(RxArgs::new(args.channel))?;
    let rate_hz = stream.rate().samples_hz();
    let of_seconds = |seconds: f64| ((seconds * rate_hz).round() as u64).max(1);
    let wanted = args.nsamps.or(args.duration.map(of_seconds));
    let hardware = format!("{} at {}", device.info().product(), device.address());
    let (source, _report) = RadioSource::<[i16; 2]>::new(device, stream, wanted);

    let publications = Publications::new();
    let receivers = args.to.iter().map(|to| to.outlet()).collect();
    let sink = Vita49Sink::new(receivers, options(&args, rate_hz, &tuned), &publications)
        .map_err(|error| anyhow!(error))?;
    let mut graph = Graph::new();
    graph.add("radio", source.without_waiting())?;
    graph.add("relay", sink)?;
    graph.connect("radio.out", "relay.in")?;
    // Scripts wait for this line.
    note(format_args!("ready: {hardware} to {} receivers", args.to.len()));
    let run = run_graph(graph, &publications)?;
    report(&args, rate_hz, &tuned, &run, &publications.ledgers())
}

/// Runs the graph with a status line, and tells which receivers go away and come back.
fn run_graph(graph: Graph, publications: &Publications) -> anyhow::Result<GraphReport> {
    let mut live = Live::new();
    let run = graph_run::attended(graph, &plan(), |now, elapsed, running| {
        graph_run::tell_notes(publications, &mut live);
        live.show(now, || status(elapsed, &running.snapshot(), &publications.ledgers()));
        Ok(())
    });
    live.end();
    graph_run::tell_notes(publications, &mut live);
    graph_run::plain(run)
}

fn options(args: &Args, rate_hz: f64, tuned: &ChannelTuning) -> Vita49Options {
    Vita49Options {
        stream: args.stream_id,
        epoch: args.epoch,
        samples: args.packet_samples.into(),
        rate_hz,
        // Without a filter of a known bandwidth the samples have all that their rate can hold.
        bandwidth_hz: tuned.bandwidth_hz.map_or(rate_hz, |bandwidth_hz| bandwidth_hz.min(rate_hz)),
        frequency_hz: tuned.freq_hz,
        gain_db: tuned.gain_db,
        context_every: Duration::from_secs_f64(args.interval),
        queue_bytes: usize::from(args.buffer) << 20,
        linger: Duration::from_secs(2),
    }
}

/// Two threads, so that reception does not wait for packets to be written.
fn plan() -> Plan {
    let partition = |name: &str| Partition {
        name: name.to_owned(),
        blocks: vec![name.to_owned()],
        cpu: None,
        wait: WaitMode::Park,
    };
    let buffers = Buffers { between_bytes: 16 << 20, ..Buffers::default() };
    let partitions = vec![partition("radio"), partition("relay")];
    Plan { partitions, buffers, ..Plan::default() }
}

fn status(elapsed: Duration, snapshot: &Snapshot, receivers: &[PublishLedger]) -> String {
    let radio = snapshot.block("radio").and_then(LedgerReport::of).unwrap_or_default();
    let rate = radio.delivered as f64 / elapsed.as_secs_f64().max(1e-3) / 1e6;
    let dropped: Vec<_> =
        receivers.iter().map(|ledger| ledger.dropped_total().to_string()).collect();
    let (lost, dropped) = (radio.lost_total(), dropped.join(", "));
    format!("{rate:.2} MS/s  {lost} samples lost  packets dropped: {dropped}")
}

fn report(
    args: &Args,
    rate_hz: f64,
    tuned: &ChannelTuning,
    run: &GraphReport,
    receivers: &[PublishLedger],
) -> anyhow::Result<Report> {
    let ledger = run.snapshot.block("radio").and_then(LedgerReport::of);
    let ledger =
        ledger.context("the radio source kept no ledger, which is a defect of Millstream")?;
    let mut text = format!("radio: {}\n", ledger.summary());
    for receiver in receivers {
        text += &format!("{}: {}\n", receiver.to, receiver.summary().replace("message", "packet"));
    }
    text += &format!("{:.2} s, {:.2} s of CPU\n", run.elapsed_s, run.cpu_s);
    let unbalanced = receivers.iter().find(|receiver| !receiver.balances);
    let lost = ledger.lost_total();
    let failure = if !ledger.balances {
        Some(ledger.defect())
    } else if let Some(receiver) = unbalanced {
        Some(receiver.defect())
    } else if args.max_lost.is_some_and(|most| lost > most) {
        let most = args.max_lost.unwrap_or_default();
        Some(format!("{lost} samples were lost, more than the {most} that --max-lost allows"))
    } else {
        None
    };
    let GraphReport { elapsed_s, cpu_s, interrupted, .. } = *run;
    let relayed = Relayed { rate_hz, tuned, ledger, receivers, elapsed_s, cpu_s, interrupted };
    Ok(Report::of(last_words(&text), &relayed).failing(failure))
}
