//! `millstream rx --dest`: the radio sends its samples to another host.

use super::Args;
use crate::front_end::ChannelTuning;
use crate::numbers::{destination, whole};
use crate::output::Report;
use crate::{interrupt, start};
use anyhow::{Context, ensure};
use millstream_radio::graph::StreamDirection;
use millstream_radio::{Device, RemoteDestination, RemoteRxStream, RxArgs};
use std::fmt::Write;
use std::net::SocketAddrV4;
use std::num::NonZero;
use std::thread;
use std::time::Duration;

/// The time of the device from the commands to the start, so that all channels start together.
const LEAD_S: f64 = 0.1;

/// How often the device's time is read meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// Where the samples go in place of a file.
#[derive(clap::Args)]
pub struct RemoteArgs {
    /// Have the radio send the samples to this host as UDP datagrams, instead of recording them
    /// here; one for each channel. Each sample is two 16-bit integers, the lower byte first. The
    /// radio does not wait for that host. It needs UHD 4.4 or newer on the radio.
    #[arg(long, value_name = "IPV4:PORT", value_delimiter = ',', value_parser = destination,
          conflicts_with_all = ["out", "force", "format", "buffer", "reopen", "reorder_window",
                                "max_lost"])]
    dest: Vec<SocketAddrV4>,

    /// The address of that host's network card, as AA:BB:CC:DD:EE:FF. Without this option the radio
    /// finds it out.
    #[arg(long, value_name = "MAC", requires = "dest")]
    dest_mac: Option<String>,

    /// The most samples of a datagram. Without this option as many as fit the path from the radio
    /// to this machine; the path to the other host may carry less.
    #[arg(long, value_name = "N", requires = "dest", value_parser = whole::<u32>(1..))]
    packet_samples: Option<u32>,

    /// Send whole CHDR packets, with their headers.
    #[arg(long, requires = "dest")]
    full_packets: bool,
}

impl RemoteArgs {
    fn destination(&self, socket: SocketAddrV4) -> RemoteDestination {
        let mut to = RemoteDestination::new(socket);
        to.mac.clone_from(&self.dest_mac);
        to.full_packets = self.full_packets;
        to
    }
}

crate::results! {
    /// Samples that the radio sent to another host.
    struct SentElsewhere {
        /// Samples per second.
        rate_hz: f64,
        /// Ticks of the radio's clock per sample.
        ticks_per_sample: NonZero<u32>,
        /// Whether whole CHDR packets were sent.
        full_packets: bool,
        /// Overruns of all channels.
        overruns: u64,
        /// Commands that came too late, of all channels.
        late_commands: u64,
        /// Each channel.
        channels: Vec<SentChannel>,
    }

    /// A channel that was sent.
    struct SentChannel {
        /// Its number.
        channel: usize,
        /// The host.
        dest: SocketAddrV4,
        /// The settings of its front end.
        tuned: ChannelTuning,
        /// The start, ticks.
        start_ticks: Option<u64>,
        /// Samples sent.
        samples: u64,
        /// Whether that is exact: it is not.
        exact: bool,
        /// Samples of a datagram.
        samples_per_packet: u32,
        /// Times that the radio could not send in time.
        overruns: u64,
        /// Commands that came too late.
        late_commands: u64,
    }
}

/// Has the radio send until the requested end, or until the user ends it; succeeds when the radio
/// could send all that time.
pub fn run(args: &Args) -> anyhow::Result<Report> {
    let (dest, channels) = (&args.remote.dest, &args.channel);
    ensure!(args.args.len() <= 1, "--dest is for one radio: give one --args");
    ensure!(
        !args.web.is_wanted(),
        "--web shows samples, and with --dest none come here: leave one out"
    );
    ensure!(
        dest.len() == channels.len(),
        "--dest names {} destinations for {} channels: give one for each, such as \
         10.0.0.9:5000,10.0.0.9:5001",
        dest.len(),
        channels.len()
    );
    interrupt::install();
    let mut devices = start::open(&args.front_end.with_sources(&args.args), args.rate)?;
    let counts: Vec<_> = devices.devices().iter().map(Device::rx_channels).collect();
    let places = start::locate(channels, &counts)?;
    let tuned = args.front_end.apply(&mut devices, StreamDirection::Rx, &places)?;
    let device = devices.devices().first().context("no device")?;
    let open = |(&channel, &socket): (&usize, &SocketAddrV4)| {
        let mut rx = RxArgs::new(channel);
        rx.samples_per_packet = args.remote.packet_samples;
        device.remote_rx_stream(rx, &args.remote.destination(socket))
    };
    let mut streams: Vec<RemoteRxStream> =
        channels.iter().zip(dest).map(open).collect::<Result<_, _>>()?;
    let rate = streams[0].rate();
    let wanted = super::samples_wanted(args, rate.samples_hz());
    let at = match args.at_pps {
        true => start::next_pps(&devices)?.0,
        false => device.time_ticks()?.wrapping_add((LEAD_S * device.tick_rate_hz()) as u64),
    };
    for stream in &mut streams {
        match wanted {
            Some(samples) => stream.start_finite(samples, Some(at))?,
            None => stream.start_continuous(Some(at))?,
        }
    }
    wait(device, &streams, wanted)?;
    let now = device.time_ticks()?;
    let sent: Vec<_> = streams.iter().map(|stream| stream.samples_about(now)).collect();
    streams.iter_mut().try_for_each(RemoteRxStream::stop)?;
    let overruns: u64 = streams.iter().map(RemoteRxStream::overruns).sum();
    let late: u64 = streams.iter().map(RemoteRxStream::late_commands).sum();
    let what = if args.remote.full_packets { "CHDR packets" } else { "samples only" };
    let (mut text, mut each) = (String::new(), Vec::new());
    for (index, (stream, sent)) in streams.iter().zip(&sent).enumerate() {
        let (channel, to) = (channels[index], dest[index]);
        writeln!(text, "channel {channel}  about {sent} samples sent to {to} ({what})")?;
        each.push(SentChannel {
            channel,
            dest: to,
            tuned: tuned[index].clone(),
            start_ticks: stream.start_ticks(),
            samples: *sent,
            exact: false,
            samples_per_packet: stream.samples_per_packet(),
            overruns: stream.overruns(),
            late_commands: stream.late_commands(),
        });
    }
    let results = SentElsewhere {
        rate_hz: rate.samples_hz(),
        ticks_per_sample: rate.ticks_per_sample,
        full_packets: args.remote.full_packets,
        overruns,
        late_commands: late,
        channels: each,
    };
    let failure = match (overruns, late) {
        (0, 0) => None,
        (0, _) => Some("the start came too late for the radio: try again".to_owned()),
        _ => Some(format!(
            "the radio could not send in time and stopped ({overruns} overruns): use a lower rate, \
             or a faster network"
        )),
    };
    Ok(Report::of(text, &results).failing(failure))
}

/// Waits for the end by the device's time, for a command of the user, or for trouble.
fn wait(device: &Device, streams: &[RemoteRxStream], wanted: Option<u64>) -> anyhow::Result<()> {
    loop {
        let now = device.time_ticks()?;
        if interrupt::asked() || streams.iter().any(|stream| !stream.is_running(now)) {
            return Ok(());
        }
        let sent = streams[0].samples_about(now);
        let left =
            wanted.map_or(LOOK, |wanted| streams[0].duration(wanted.saturating_sub(sent).max(1)));
        thread::sleep(left.min(LOOK));
    }
}
