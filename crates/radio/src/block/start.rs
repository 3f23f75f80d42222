//! The settings at the start of a source, as tags.

use millstream_flow::{Item, Out, TagValue, keys};

/// The settings of a front end when a source starts, those that are known. They become tags of the
/// first sample, and of the first one after the device was opened again, which has them then.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartSettings {
    /// The frequency in the middle of the band, Hz.
    pub freq_hz: Option<f64>,
    /// The gain, dB.
    pub gain_db: Option<f64>,
    /// The name of the antenna.
    pub antenna: Option<String>,
    /// The bandwidth of the analogue filter, Hz.
    pub bandwidth_hz: Option<f64>,
}

impl StartSettings {
    /// Tags the next item of an output.
    fn tag<T: Item>(&self, out: &mut Out<T>) {
        let number = |value: Option<f64>| value.map(TagValue::Number);
        let antenna = self.antenna.as_deref().map(TagValue::text);
        for (key, value) in [
            (keys::RX_FREQ_HZ, number(self.freq_hz)),
            (keys::RX_GAIN_DB, number(self.gain_db)),
            (keys::RX_ANTENNA, antenna),
            (keys::RX_BANDWIDTH_HZ, number(self.bandwidth_hz)),
        ] {
            if let Some(value) = value {
                out.tag(0, key, value);
            }
        }
    }
}

/// The settings of all outputs, and whether the next samples are to be tagged with them.
#[derive(Debug, Default)]
pub(super) struct StartTags {
    pub outputs: Vec<StartSettings>,
    has_rate: bool,
    has_settings: bool,
}

impl StartTags {
    /// The device was opened again.
    pub fn begin_anew(&mut self) {
        self.has_settings = false;
    }

    /// Tags the next samples, if there are any, which are about to be produced.
    pub fn tag<T: Item>(&mut self, outs: &mut [Out<T>], samples: u64, rate_hz: f64) {
        if samples == 0 {
            return;
        }
        if !std::mem::replace(&mut self.has_rate, true) {
            outs.iter_mut().for_each(|out| out.tag(0, keys::RX_RATE_HZ, rate_hz));
        }
        if !std::mem::replace(&mut self.has_settings, true) {
            self.outputs.iter().zip(outs).for_each(|(settings, out)| settings.tag(out));
        }
    }
}
