//! Settings of the front end while a source runs, as messages.

use millstream_flow::{BlockError, MessageSpec, ParameterKind, ParameterValue};

use crate::graph::StreamDirection;
use crate::{Device, TuneRequest};

/// The messages of a source that may be tuned.
const MESSAGES: [MessageSpec; 2] = [
    MessageSpec::new("freq_hz", ParameterKind::Number, "centre frequency, Hz"),
    MessageSpec::new("gain_db", ParameterKind::Number, "gain, dB"),
];

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
