//! The complex gain of a channel, in images of UHD 4.10 and newer.

use millstream_wire::regs::radio::{FEATURE_RX_GAIN, FEATURE_TX_GAIN, FEATURES, gain_word};

use super::Device;
use super::tuning::check_range;
use crate::RadioError;
use crate::channel::radio_map;
use crate::control::Control;
use crate::graph::{BlockPort, StreamDirection};

/// The largest part of a complex gain: 14 fraction bits, less than 2.
const PART_MAX: f64 = 2.0 - 1.0 / 16_384.0;

/// Returns the bit of a radio with this gain, and whether it is that of the transmitter.
fn feature_of(direction: StreamDirection) -> (u32, bool) {
    match direction {
        StreamDirection::Rx => (FEATURE_RX_GAIN, false),
        StreamDirection::Tx => (FEATURE_TX_GAIN, true),
    }
}

/// Sets the complex gain of a channel to 1, where it has one: another host may have set it.
pub(super) fn reset(
    control: &Control,
    direction: StreamDirection,
    radio: BlockPort,
) -> Result<(), RadioError> {
    let (map, port) = (radio_map(control, radio.block.port)?, radio.block.port);
    let (feature, transmit) = feature_of(direction);
    let Some(address) = map.gain_address(radio.port, transmit) else { return Ok(()) };
    if control.read(port, map.address(radio.port, FEATURES))? & feature == 0 {
        return Ok(());
    }
    control.write(port, address, gain_word(1.0, 0.0))
}

impl Device {
    /// Multiplies the samples of a channel by a complex number, given by its real and its imaginary
    /// part, from now on: behind the converter in receive direction, before it in the other one.
    /// When the device is opened it is 1.
    ///
    /// # Errors
    /// [`RadioError::NoSuchChannel`]; [`RadioError::Unusable`] for an image older than UHD 4.10;
    /// [`RadioError::NoSetting`] for a radio without complex gain; [`RadioError::OutOfRange`] for a
    /// part below -2 or not below 2; those of register accesses.
    pub fn set_complex_gain(
        &self,
        direction: StreamDirection,
        channel: usize,
        (real, imaginary): (f64, f64),
    ) -> Result<(), RadioError> {
        let radio = self.settings(direction, channel)?.radio;
        for part in [real, imaginary] {
            check_range("part of the complex gain", part, (-2.0, PART_MAX), "times")?;
        }
        let (feature, transmit) = feature_of(direction);
        let (control, port) = (&self.control, radio.block.port);
        let map = radio_map(control, port)?;
        let gain = map.gain_address(radio.port, transmit);
        let Some(address) = gain else {
            let reason =
                "its image has no complex gain: install one of UHD 4.10 or newer".to_owned();
            return Err(RadioError::Unusable { address: self.address(), reason });
        };
        if control.read(port, map.address(radio.port, FEATURES))? & feature == 0 {
            return Err(self.no_setting("complex gain"));
        }
        control.write(port, address, gain_word(real as f32, imaginary as f32))
    }
}
