//! The front ends of a command's channels: frequency, gain, antenna, bandwidth.

use crate::numbers::{decibels, frequency, rate};
use crate::output::note;
use crate::start::note_taken;
use anyhow::ensure;
use millstream_radio::graph::StreamDirection;
use millstream_radio::{Device, DeviceArgs, DeviceSet, TuneRequest, TuneResult};

/// The settings of the front ends; each has one value for all channels, or one for each.
#[derive(clap::Args, Clone, Default)]
pub struct FrontEndArgs {
    /// Centre frequency. Here and below give one value for all channels, or one for each (1G,2G).
    #[arg(long, value_name = "HZ", value_parser = rate, value_delimiter = ',')]
    freq: Vec<f64>,

    /// Frequency of the local oscillator minus --freq; the DDC or DUC shifts by the difference.
    #[arg(long, value_name = "HZ", value_parser = frequency, value_delimiter = ',',
          allow_hyphen_values = true, requires = "freq")]
    lo_offset: Vec<f64>,

    /// Gain of the front end. A receive channel may have `auto`: the radio controls it itself.
    #[arg(long, value_name = "DB", value_parser = gain, value_delimiter = ',',
          allow_hyphen_values = true)]
    gain: Vec<GainSetting>,

    /// Antenna, such as RX2 or TX/RX.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    antenna: Vec<String>,

    /// Bandwidth of the analogue filter.
    #[arg(long, value_name = "HZ", value_parser = rate, value_delimiter = ',')]
    bandwidth: Vec<f64>,

    /// Source of the reference clock: internal, external, gpsdo.
    #[arg(long, value_name = "NAME")]
    clock_source: Option<String>,

    /// Source of the PPS: internal, external, gpsdo.
    #[arg(long, value_name = "NAME")]
    time_source: Option<String>,
}

/// A gain, or the radio's own choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GainSetting {
    /// The gain, dB.
    Db(f64),
    /// The radio controls it.
    Automatic,
}

/// A gain in decibels: 30, or auto.
fn gain(text: &str) -> Result<GainSetting, String> {
    if text == "auto" { Ok(GainSetting::Automatic) } else { decibels(text).map(GainSetting::Db) }
}

crate::results! {
    /// The settings that a channel's front end took; `None` for those that were not requested.
    #[derive(Debug, Clone, Default)]
    pub struct ChannelTuning {
        /// The frequency in the middle of the band, Hz.
        freq_hz: Option<f64>,
        /// The local oscillator, Hz.
        rf_hz: Option<f64>,
        /// The shift by the DDC or DUC, Hz.
        dsp_hz: Option<f64>,
        /// The gain, dB.
        gain_db: Option<f64>,
        /// Whether the radio controls the gain.
        automatic_gain: bool,
        /// The antenna.
        antenna: Option<String>,
        /// The bandwidth of the analogue filter, Hz.
        bandwidth_hz: Option<f64>,
    }
}

impl FrontEndArgs {
    /// Returns the arguments of devices with the sources of clock and time, for devices whose
    /// arguments name none.
    pub fn with_sources(&self, devices: &[DeviceArgs]) -> Vec<DeviceArgs> {
        let mut devices = devices.to_vec();
        for device in &mut devices {
            for (own, source) in [
                (&mut device.clock_source, &self.clock_source),
                (&mut device.time_source, &self.time_source),
            ] {
                *own = own.take().or_else(|| source.clone());
            }
        }
        devices
    }

    /// Sets the front ends of channels, each of which is a device of the set and its channel.
    /// Returns the settings that each took. The sample rate must be set before.
    pub fn apply(
        &self,
        devices: &mut DeviceSet,
        direction: StreamDirection,
        places: &[(usize, usize)],
    ) -> anyhow::Result<Vec<ChannelTuning>> {
        let count = places.len();
        check("freq", &self.freq, count)?;
        check("lo-offset", &self.lo_offset, count)?;
        check("gain", &self.gain, count)?;
        check("antenna", &self.antenna, count)?;
        check("bandwidth", &self.bandwidth, count)?;
        let mut all = vec![ChannelTuning::default(); count];
        for (index, &(device, channel)) in places.iter().enumerate() {
            let device = &mut devices.devices_mut()[device];
            let tuned = &mut all[index];
            let place = format!("{} {channel}: ", direction.name());
            if let Some(&freq_hz) = of(&self.freq, index) {
                let lo_offset_hz = of(&self.lo_offset, index).copied().unwrap_or(0.0);
                let request = TuneRequest::new(freq_hz).with_lo_offset(lo_offset_hz);
                device.tune(direction, channel, request)?;
            }
            if let Some(antenna) = of(&self.antenna, index) {
                device.set_antenna(direction, channel, antenna)?;
                tuned.antenna = Some(antenna.clone());
            }
            match of(&self.gain, index) {
                None => {}
                Some(GainSetting::Db(gain_db)) => {
                    let taken_db = device.set_gain(direction, channel, *gain_db)?;
                    note_taken("gain", &place, (*gain_db, taken_db), "dB");
                    tuned.gain_db = Some(taken_db);
                }
                Some(GainSetting::Automatic) => {
                    let receives = direction == StreamDirection::Rx;
                    ensure!(receives, "--gain auto is for receive channels: give decibels");
                    device.set_automatic_gain(channel)?;
                    tuned.automatic_gain = true;
                }
            }
            if let Some(&bandwidth_hz) = of(&self.bandwidth, index) {
                let taken_hz = device.set_bandwidth(direction, channel, bandwidth_hz)?;
                note_taken("band", &place, (bandwidth_hz, taken_hz), "Hz");
                tuned.bandwidth_hz = Some(taken_hz);
            }
        }
        // Tuning a channel moves the oscillator of the others, so the frequencies come at the end.
        for (index, &(device, channel)) in places.iter().enumerate() {
            if self.freq.is_empty() {
                break;
            }
            let device: &Device = &devices.devices()[device];
            let Some(result) = device.tuned(direction, channel) else { continue };
            let TuneResult { freq_hz, rf_hz, dsp_hz } = result;
            let tuned = &mut all[index];
            (tuned.freq_hz, tuned.rf_hz, tuned.dsp_hz) = (Some(freq_hz), Some(rf_hz), Some(dsp_hz));
            note(format_args!("tune    {} {channel}: {}", direction.name(), line(&result)));
        }
        Ok(all)
    }
}

/// Describes the frequencies of a channel.
fn line(result: &TuneResult) -> String {
    let mhz = |hz: f64| format!("{:.6} MHz", hz / 1e6);
    let (freq, rf) = (mhz(result.freq_hz), mhz(result.rf_hz));
    format!("{freq}, oscillator at {rf}, shift {}", mhz(result.dsp_hz))
}

/// The value of a channel.
fn of<T>(values: &[T], index: usize) -> Option<&T> {
    if values.len() == 1 { values.first() } else { values.get(index) }
}

/// Checks that there is one value for all channels, or one for each.
fn check<T>(name: &str, values: &[T], channels: usize) -> anyhow::Result<()> {
    let count = values.len();
    ensure!(
        count <= 1 || count == channels,
        "--{name} has {count} values, and there are {channels} channels: give one for all, or one \
         for each"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_a_number_or_automatic() {
        assert_eq!(gain("auto"), Ok(GainSetting::Automatic));
        assert_eq!(gain("-3.5"), Ok(GainSetting::Db(-3.5)));
        assert!(gain("loud").unwrap_err().starts_with("give a number of decibels"));
    }

    #[test]
    fn sources_are_those_of_the_device_or_else_of_the_command() {
        let command = FrontEndArgs {
            clock_source: Some("external".into()),
            time_source: Some("gpsdo".into()),
            ..FrontEndArgs::default()
        };
        let devices: Vec<DeviceArgs> = ["127.0.0.1,time_source=internal", "127.0.0.2"]
            .map(|args| args.parse().unwrap())
            .into();
        let devices = command.with_sources(&devices);
        let sources = |index: usize| {
            let device = &devices[index];
            [&device.clock_source, &device.time_source].map(|source| source.clone().unwrap())
        };
        assert_eq!(sources(0), ["external", "internal"]);
        assert_eq!(sources(1), ["external", "gpsdo"]);
    }

    #[test]
    fn a_value_is_for_all_channels_or_for_one() {
        assert_eq!((of(&[7], 0), of(&[7], 3)), (Some(&7), Some(&7)));
        assert_eq!((of(&[7, 8], 1), of::<u8>(&[], 0)), (Some(&8), None));
        assert!(check("freq", &[1, 2], 2).is_ok() && check("freq", &[1], 2).is_ok());
        let error = check("freq", &[1, 2, 3], 2).unwrap_err().to_string();
        assert!(error.starts_with("--freq has 3 values, and there are 2 channels"), "{error}");
    }
}
