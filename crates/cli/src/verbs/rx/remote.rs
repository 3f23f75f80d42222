//! `millstream rx --dest`: the radio sends its samples to another host.

use super::Args;
use crate::numbers::destination;
use crate::output::Report;
use crate::{interrupt, start};
use anyhow::{Context, ensure};
use millstream_radio::graph::StreamDirection;
use millstream_radio::{Device, RemoteDestination, RemoteRxStream, RxArgs};
use serde_json::json;
use std::fmt::Write;
use std::net::SocketAddrV4;
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
          conflicts_with_all = ["out", "format", "reopen", "reorder_window", "max_lost"])]
    dest: Vec<SocketAddrV4>,

    /// The address of that host's network card, as AA:BB:CC:DD:EE:FF. Without this option the radio
    /// finds it out.
    #[arg(long, value_name = "MAC", requires = "dest")]
    dest_mac: Option<String>,

    /// The port of the radio that sends the samples, such as sfp0: that by whose address the radio
    /// was opened, with this option or without it.
    #[arg(long, value_name = "NAME", requires = "dest")]
    adapter: Option<String>,

    /// Send whole CHDR packets, with their headers.
    #[arg(long, requires = "dest")]
    full_packets: bool,
}

impl RemoteArgs {
    fn destination(&self, socket: SocketAddrV4) -> RemoteDestination {
        let mut to = RemoteDestination::new(socket);
        to.mac.clone_from(&self.dest_mac);
        to.adapter.clone_from(&self.adapter);
        to.full_packets = self.full_packets;
        to
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
        device.remote_rx_stream(RxArgs::new(channel), &args.remote.destination(socket))
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
    let sent = wait(device, &streams, (at, wanted))?;
    streams.iter_mut().try_for_each(RemoteRxStream::stop)?;
    let overruns: u64 = streams.iter().map(RemoteRxStream::overruns).sum();
    let late: u64 = streams.iter().map(RemoteRxStream::late_commands).sum();
    let what = if args.remote.full_packets { "CHDR packets" } else { "samples only" };
    let mut text = String::new();
    for (channel, to) in channels.iter().zip(dest) {
        writeln!(text, "channel {channel}  {sent} samples sent to {to} ({what})")?;
    }
    let each = channels.iter().zip(dest).zip(&tuned);
    let each: Vec<_> = each
        .map(|((channel, to), tuned)| json!({ "channel": channel, "dest": to, "tuned": tuned }))
        .collect();
    let results = json!({
        "rate_hz": rate.samples_hz(), "ticks_per_sample": rate.ticks_per_sample,
        "start_ticks": at, "samples": sent, "samples_per_packet": streams[0].samples_per_packet(),
        "full_packets": args.remote.full_packets, "overruns": overruns, "late_commands": late,
        "channels": each,
    });
    let failure = match (overruns, late) {
        (0, 0) => None,
        (0, _) => Some("the start came too late for the radio: try again".to_owned()),
        _ => Some(format!(
            "the radio could not send in time and stopped ({overruns} overruns): use a lower rate, \
             or a faster network"
        )),
    };
    Ok(Report { text, results, failure })
}

/// Waits for the end by the device's time, for a command of the user, or for trouble. Returns the
/// samples of each channel until then.
fn wait(
    device: &Device,
    streams: &[RemoteRxStream],
    (at, wanted): (u64, Option<u64>),
) -> anyhow::Result<u64> {
    let rate = streams[0].rate();
    loop {
        let passed = device.time_ticks()?.wrapping_sub(at).cast_signed().max(0).cast_unsigned();
        let sent = rate.samples(passed);
        let is_over = wanted.is_some_and(|wanted| sent > wanted);
        let is_broken = streams.iter().any(|stream| stream.overruns() + stream.late_commands() > 0);
        if is_over || is_broken || interrupt::asked() {
            return Ok(wanted.map_or(sent, |wanted| sent.min(wanted)));
        }
        let left = wanted.map_or(LOOK, |wanted| streams[0].duration(wanted - sent + 1));
        thread::sleep(left.min(LOOK));
    }
}
