//! Settings of the front end while a source runs, as messages.

use millstream_flow::{BlockError, MessageSpec, ParameterKind, ParameterValue};

use crate::graph::StreamDirection;
use crate::{Device, DeviceSet, TuneRequest};

/// The messages of a source that may be tuned.
const MESSAGES: [MessageSpec; 2] = [
    MessageSpec::new("freq_hz", ParameterKind::Number, "centre frequency, Hz"),
    MessageSpec::new("gain_db", ParameterKind::Number, "gain, dB"),
];

/// The messages of each output of a source of several channels.
macro_rules! of_outputs {
    ($($output:literal)*) => {
        [$([
            MessageSpec::new(
                concat!("freq_hz", $output),
                ParameterKind::Number,
                concat!("centre frequency of out", $output, ", Hz"),
            ),
            MessageSpec::new(
                concat!("gain_db", $output),
                ParameterKind::Number,
                concat!("gain of out", $output, ", dB"),
            ),
        ]),*]
    };
}

const OF_OUTPUTS: [[MessageSpec; 2]; super::group::CHANNELS_MAX] =
    of_outputs!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

/// The device and the channel of each output whose front end messages set; none if none may.
#[derive(Clone, Debug, Default)]
pub(super) struct TunableOutputs(pub Vec<(usize, usize)>);

impl TunableOutputs {
    pub fn messages(&self) -> Vec<MessageSpec> {
        OF_OUTPUTS.iter().take(self.0.len()).flatten().copied().collect()
    }

    /// Sets what the message says. The samples wait in the sockets' queues meanwhile.
    pub fn set(
        &self,
        devices: Option<&mut DeviceSet>,
        name: &str,
        value: &ParameterValue,
    ) -> Result<(), BlockError> {
        let setting = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let place = name[setting.len()..].parse().ok().and_then(|at: usize| self.0.get(at));
        let (device, channel) = *place.ok_or("this is no setting of the radio")?;
        let devices = devices.ok_or("the radio is not open now: try again later")?;
        let device = devices.devices_mut().get_mut(device);
        TunableChannel(Some(channel)).set(device, setting, value)
    }
}

/// The channel whose front end the messages set; `None` if none may.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TunableChannel(pub Option<usize>);

impl TunableChannel {
    pub fn messages(self) -> Vec<MessageSpec> {
        self.0.map_or_else(Vec::new, |_| MESSAGES.to_vec())
    }

    /// Sets what the message says. The samples wait in the socket's queue meanwhile.
    pub fn set(
        self,
        device: Option<&mut Device>,
        name: &str,
        value: &ParameterValue,
    ) -> Result<(), BlockError> {
        let (Some(channel), ParameterValue::Number(value)) = (self.0, value) else {
            return Err("this is no setting of the radio".into());
        };
        let device = device.ok_or("the radio is not open now: try again later")?;
        match name {
            "freq_hz" => {
                device.tune(StreamDirection::Rx, channel, TuneRequest::new(*value))?;
            }
            _ => {
                device.set_gain(StreamDirection::Rx, channel, *value)?;
            }
        }
        Ok(())
    }
}
