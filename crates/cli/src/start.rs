//! Devices that begin together: one time for all of them, and the device of each channel.

use crate::output::note;
use anyhow::{Context, bail};
use millstream_net::choice::{AUTO, Chosen};
use millstream_net::engine::{self, LinkReport};
use millstream_radio::{Device, DeviceArgs, DeviceSet};
use std::time::Duration;

/// Time limit of a wait for a PPS edge; a real one comes once a second.
const PPS_TIMEOUT: Duration = Duration::from_secs(3);

/// Least time from now to a start at a PPS edge, seconds.
const LEAD_S: f64 = 0.25;

/// Opens the devices at a rate, or at the nearest one that they have; several get one time, 0 at a
/// PPS edge.
pub fn open(args: &[DeviceArgs], rate_hz: f64) -> anyhow::Result<DeviceSet> {
    args.iter().for_each(announce);
    let mut devices = DeviceSet::open(args.iter().cloned())?;
    let searched =
        args.iter().zip(devices.devices()).filter(|(args, _)| args.addr.is_unspecified());
    for (_, device) in searched {
        note(format_args!("radio   {} at {}", device.info().product(), device.address()));
    }
    note_links();
    let taken_hz = devices.set_rate(rate_hz)?;
    if (taken_hz / rate_hz - 1.0).abs() > 1e-9 {
        let [taken, wanted] = [taken_hz, rate_hz].map(|rate_hz| rate_hz / 1e6);
        note(format_args!("rate    {taken} MS/s: the radio does not have {wanted} MS/s"));
    }
    if args.len() > 1 {
        devices.sync_at_pps(0, PPS_TIMEOUT)?;
    }
    Ok(devices)
}

/// Prints the link of a device, where the arguments leave it open and there is a choice.
pub fn announce(args: &DeviceArgs) {
    let is_known = !args.addr.is_unspecified() && !args.addr.is_loopback();
    if args.link == AUTO && is_known {
        note(link_line(&args.chosen()));
    }
}

/// Describes the choice of the link `auto` in one line.
pub fn link_line(chosen: &Chosen) -> String {
    format!("link    {}: {}", chosen.link, chosen.reason)
}

/// Prints the state of the opened links: their mode, and the results of probes.
pub fn note_links() {
    for LinkReport { info, .. } in links() {
        let place = info.interface.map(|interface| format!(":{interface}")).unwrap_or_default();
        note(format_args!("link    {}{place}: {}", info.name, info.detail));
    }
}

/// The frame links that this process has open.
pub fn links() -> Vec<LinkReport> {
    let inventory = engine::inventory();
    let driven = inventory.threads.into_iter().flat_map(|thread| thread.links);
    driven.chain(inventory.inline).collect()
}

/// Whether the clock of a device runs as fast as this machine's, within a few percent; that of an
/// emulated radio may be slower or faster. Takes a part of a second.
pub fn runs_in_real_time(device: &Device) -> anyhow::Result<bool> {
    let is_real = device.other_clock_speed()?.is_none();
    if !is_real {
        note(
            "clock   the radio's clock does not run as fast as this machine's: the dashboard shows \
             no delays",
        );
    }
    Ok(is_real)
}

/// Finds the device of each channel and its number there: channels are counted through all devices,
/// of which each has as many as in `counts`. A single device reports missing channels itself.
pub fn locate(channels: &[usize], counts: &[usize]) -> anyhow::Result<Vec<(usize, usize)>> {
    let place = |(index, &channel): (usize, &usize)| {
        if channels[..index].contains(&channel) {
            bail!("channel {channel} is given twice: give each channel once");
        }
        if counts.len() == 1 {
            return Ok((0, channel));
        }
        let mut number = channel;
        for (device, count) in counts.iter().enumerate() {
            if number < *count {
                return Ok((device, number));
            }
            number -= count;
        }
        let all: usize = counts.iter().sum();
        bail!(
            "there is no channel {channel}: all devices together have {all} channels, counted \
             from 0"
        );
    };
    channels.iter().enumerate().map(place).collect()
}

/// The time of the next PPS edge later than [`LEAD_S`], ticks, and the time until then.
pub fn next_pps(devices: &DeviceSet) -> anyhow::Result<(u64, Duration)> {
    let device: &Device = devices.devices().first().context("no device")?;
    let (edge, now) = (device.time_last_pps()?, device.time_ticks()?);
    let rate_hz = device.tick_rate_hz();
    let start = edge_behind(edge, now, rate_hz).with_context(|| {
        let silent_s = now.wrapping_sub(edge) as f64 / rate_hz;
        format!(
            "the device at {} has seen no PPS edge for {silent_s:.1} s of its time: check its PPS, \
             or start without --at-pps",
            device.address()
        )
    })?;
    Ok((start, Duration::from_secs_f64(start.wrapping_sub(now) as f64 / rate_hz)))
}

/// `None` when edges have stopped.
fn edge_behind(edge: u64, now: u64, rate_hz: f64) -> Option<u64> {
    let since = now.wrapping_sub(edge) as f64 / rate_hz;
    let seconds = (since + LEAD_S).ceil();
    (since < 2.5).then(|| edge.wrapping_add((seconds * rate_hz).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_counted_through_all_devices() {
        assert_eq!(locate(&[3, 0, 1], &[2, 2]).unwrap(), [(1, 1), (0, 0), (0, 1)]);
        assert_eq!(locate(&[7], &[2]).unwrap(), [(0, 7)], "the device names what it has");
        let error = |channels: &[usize]| locate(channels, &[2, 2]).unwrap_err().to_string();
        let expected =
            "there is no channel 4: all devices together have 4 channels, counted from 0";
        assert_eq!(error(&[0, 4]), expected);
        assert_eq!(error(&[1, 0, 1]), "channel 1 is given twice: give each channel once");
    }

    #[test]
    fn the_next_edge_leaves_time_for_the_command() {
        assert_eq!(edge_behind(5_000, 5_100, 1e3), Some(6_000));
        assert_eq!(edge_behind(5_000, 5_800, 1e3), Some(7_000), "too near");
        assert_eq!(edge_behind(5_000, 6_200, 1e3), Some(7_000), "asked just before an edge");
        assert_eq!(edge_behind(0, 9_000, 1e3), None);
    }
}
