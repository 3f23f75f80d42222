//! Devices that begin together: one time for all of them, and the device of each channel.

use crate::numbers::DeviceMoment;
use crate::output::note;
use anyhow::{Context, bail, ensure};
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
    note_taken("rate", "", (rate_hz, taken_hz), "Hz");
    if args.len() > 1 {
        devices.sync_at_pps(0, PPS_TIMEOUT)?;
    }
    Ok(devices)
}

/// Says that a radio took another value than the one that was asked for: what it does not have, it
/// replaces by the nearest or refuses, and never silently.
pub fn note_taken(what: &str, place: &str, (asked, taken): (f64, f64), unit: &str) {
    if let Some(told) = taken_line(what, place, (asked, taken), unit) {
        note(told);
    }
}

/// The line, if the values differ.
fn taken_line(what: &str, place: &str, (asked, taken): (f64, f64), unit: &str) -> Option<String> {
    let same = (taken - asked).abs() <= 1e-9 * asked.abs();
    let taken = (taken * 1e6).round() / 1e6;
    let told =
        || format!("{what:<7} {place}{taken} {unit}: the radio does not have {asked} {unit}");
    (!same).then(told)
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

/// The ticks of a moment of a device, which must not have passed; prints it with the device's time.
pub fn at_moment(device: &Device, moment: DeviceMoment, ticks_hz: f64) -> anyhow::Result<u64> {
    let now = device.time_ticks()?;
    let at = moment.ticks(now, ticks_hz);
    let [now_s, at_s] = [now, at].map(|ticks| ticks as f64 / ticks_hz);
    ensure!(
        at > now,
        "the time {at_s:.6} s of the device ({at} ticks) has passed, its clock stands at \
         {now_s:.6} s ({now} ticks): give a later one, or a time from now, such as +1s"
    );
    note(format_args!("time    now {now_s:.6} s on the device's clock, start at {at_s:.6} s"));
    Ok(at)
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
    fn a_value_that_the_radio_does_not_have_is_told_with_the_one_in_force() {
        assert_eq!(taken_line("gain", "rx 0: ", (40.0, 40.0), "dB"), None);
        assert_eq!(taken_line("rate", "", (1.92e6, 1.92e6 * (1.0 + 1e-12)), "Hz"), None);
        let told = taken_line("gain", "rx 0: ", (10.4, 10.0), "dB").unwrap();
        assert_eq!(told, "gain    rx 0: 10 dB: the radio does not have 10.4 dB");
        let told = taken_line("rate", "", (1.22e6, 16e6 / 13.0), "Hz").unwrap();
        assert_eq!(told, "rate    1230769.230769 Hz: the radio does not have 1220000 Hz");
    }

    #[test]
    fn the_next_edge_leaves_time_for_the_command() {
        assert_eq!(edge_behind(5_000, 5_100, 1e3), Some(6_000));
        assert_eq!(edge_behind(5_000, 5_800, 1e3), Some(7_000), "too near");
        assert_eq!(edge_behind(5_000, 6_200, 1e3), Some(7_000), "asked just before an edge");
        assert_eq!(edge_behind(0, 9_000, 1e3), None);
    }
}
