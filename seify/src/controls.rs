//! Settings of channels.

use millstream_client::Channel;
use seify::{
    AgcControl, AntennaControl, Args, BandwidthControl, Capability, Direction, Error,
    FrequencyControl, GainControl, Range, RangeItem, SampleRateControl,
};

use crate::{MillstreamDevice, direction, error};

/// The one gain of a channel.
const GAIN: &str = "PGA";

/// The local oscillator, and the shift by the DDC or DUC.
const COMPONENTS: [&str; 2] = ["RF", "BB"];

impl MillstreamDevice {
    fn of(&self, dir: Direction, channel: usize) -> Channel<'_> {
        self.radio().channel(direction(dir), channel)
    }
}

/// Returns a range, or that there is none.
fn range(known: Option<(f64, f64)>, of: Capability) -> Result<Range, Error> {
    let (low, high) = known.ok_or_else(|| Error::unsupported(of))?;
    Ok(Range::new(vec![RangeItem::Interval(low, high)]))
}

/// Returns an error unless `name` is one of `known`.
fn check_name(name: &str, known: &[&str]) -> Result<(), Error> {
    if known.contains(&name) {
        return Ok(());
    }
    Err(Error::invalid_argument("name", format!("{name} is not one of {}", known.join(", "))))
}

impl AntennaControl for MillstreamDevice {
    fn antennas(&self, dir: Direction, channel: usize) -> Result<Vec<String>, Error> {
        Ok(self.of(dir, channel).antennas().iter().map(|name| (*name).to_owned()).collect())
    }

    fn antenna(&self, dir: Direction, channel: usize) -> Result<String, Error> {
        Ok(self.of(dir, channel).antenna().map_err(error)?.to_owned())
    }

    fn set_antenna(&self, dir: Direction, channel: usize, name: &str) -> Result<(), Error> {
        self.of(dir, channel).set_antenna(name).map_err(error)
    }
}

impl AgcControl for MillstreamDevice {
    fn agc_available(&self, dir: Direction, channel: usize) -> Result<bool, Error> {
        Ok(self.of(dir, channel).has_automatic_gain())
    }

    fn agc_enabled(&self, dir: Direction, channel: usize) -> Result<bool, Error> {
        self.of(dir, channel).automatic_gain().map_err(error)
    }

    fn set_agc_enabled(&self, dir: Direction, channel: usize, enabled: bool) -> Result<(), Error> {
        self.of(dir, channel).set_automatic_gain(enabled).map_err(error)
    }
}

impl GainControl for MillstreamDevice {
    fn gain_elements(&self, dir: Direction, channel: usize) -> Result<Vec<String>, Error> {
        let has_gain = self.of(dir, channel).gain_range().is_some();
        Ok(if has_gain { vec![GAIN.to_owned()] } else { Vec::new() })
    }

    fn set_gain(&self, dir: Direction, channel: usize, gain_db: f64) -> Result<(), Error> {
        self.of(dir, channel).set_gain(gain_db).map(drop).map_err(error)
    }

    /// None while the radio sets it by itself.
    fn gain(&self, dir: Direction, channel: usize) -> Result<Option<f64>, Error> {
        let of = self.of(dir, channel);
        if of.automatic_gain().map_err(error)? {
            return Ok(None);
        }
        of.gain().map(Some).map_err(error)
    }

    fn gain_range(&self, dir: Direction, channel: usize) -> Result<Range, Error> {
        range(self.of(dir, channel).gain_range(), Capability::Gain)
    }

    fn set_gain_element(
        &self,
        dir: Direction,
        channel: usize,
        name: &str,
        gain_db: f64,
    ) -> Result<(), Error> {
        check_name(name, &[GAIN])?;
        self.set_gain(dir, channel, gain_db)
    }

    fn gain_element(
        &self,
        dir: Direction,
        channel: usize,
        name: &str,
    ) -> Result<Option<f64>, Error> {
        check_name(name, &[GAIN])?;
        self.gain(dir, channel)
    }

    fn gain_element_range(
        &self,
        dir: Direction,
        channel: usize,
        name: &str,
    ) -> Result<Range, Error> {
        check_name(name, &[GAIN])?;
        self.gain_range(dir, channel)
    }
}

impl FrequencyControl for MillstreamDevice {
    fn frequency_range(&self, dir: Direction, channel: usize) -> Result<Range, Error> {
        let of = self.of(dir, channel);
        let (below, above) = of.bb_range();
        let whole = of.rf_range().map(|(low, high)| (low + below, high + above));
        range(whole, Capability::Frequency)
    }

    fn frequency(&self, dir: Direction, channel: usize) -> Result<f64, Error> {
        Ok(self.of(dir, channel).frequency().map_err(error)?.freq_hz)
    }

    /// `OFFSET` is the distance of the oscillator above the middle of the band, Hz.
    fn set_frequency(
        &self,
        dir: Direction,
        channel: usize,
        freq_hz: f64,
        args: Args,
    ) -> Result<(), Error> {
        let offset_hz = match args.get::<f64>("OFFSET") {
            Ok(offset_hz) => Some(offset_hz),
            Err(Error::MissingArgument { .. }) => None,
            Err(other) => return Err(other),
        };
        self.of(dir, channel).set_frequency(freq_hz, offset_hz).map(drop).map_err(error)
    }

    fn frequency_components(&self, _: Direction, _: usize) -> Result<Vec<String>, Error> {
        Ok(COMPONENTS.map(str::to_owned).to_vec())
    }

    fn component_frequency_range(
        &self,
        dir: Direction,
        channel: usize,
        name: &str,
    ) -> Result<Range, Error> {
        check_name(name, &COMPONENTS)?;
        let of = self.of(dir, channel);
        let known = if name == "RF" { of.rf_range() } else { Some(of.bb_range()) };
        range(known, Capability::Frequency)
    }

    fn component_frequency(
        &self,
        dir: Direction,
        channel: usize,
        name: &str,
    ) -> Result<f64, Error> {
        check_name(name, &COMPONENTS)?;
        let parts = self.of(dir, channel).frequency().map_err(error)?;
        Ok(if name == "RF" { parts.rf_hz } else { parts.bb_hz })
    }

    fn set_component_frequency(
        &self,
        dir: Direction,
        channel: usize,
        name: &str,
        freq_hz: f64,
    ) -> Result<(), Error> {
        check_name(name, &COMPONENTS)?;
        let of = self.of(dir, channel);
        let set = if name == "RF" { of.set_rf(freq_hz) } else { of.set_bb(freq_hz) };
        set.map(drop).map_err(error)
    }
}

impl SampleRateControl for MillstreamDevice {
    fn sample_rate(&self, dir: Direction, channel: usize) -> Result<f64, Error> {
        self.of(dir, channel).rate().map_err(error)
    }

    fn set_sample_rate(&self, dir: Direction, channel: usize, rate_hz: f64) -> Result<(), Error> {
        self.of(dir, channel).set_rate(rate_hz).map(drop).map_err(error)
    }

    fn get_sample_rate_range(&self, dir: Direction, channel: usize) -> Result<Range, Error> {
        range(Some(self.of(dir, channel).rate_range()), Capability::SampleRate)
    }
}

impl BandwidthControl for MillstreamDevice {
    fn bandwidth(&self, dir: Direction, channel: usize) -> Result<f64, Error> {
        self.of(dir, channel).bandwidth().map_err(error)
    }

    fn set_bandwidth(&self, dir: Direction, channel: usize, width_hz: f64) -> Result<(), Error> {
        self.of(dir, channel).set_bandwidth(width_hz).map(drop).map_err(error)
    }

    fn get_bandwidth_range(&self, dir: Direction, channel: usize) -> Result<Range, Error> {
        range(self.of(dir, channel).bandwidth_range(), Capability::Bandwidth)
    }
}
