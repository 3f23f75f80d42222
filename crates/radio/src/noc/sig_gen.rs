//! The block SigGen.

use std::sync::Arc;

use millstream_wire::regs::client_zero::noc_id;
use millstream_wire::regs::sig_gen::{self as regs, waveform};

use super::open;
use crate::control::{Control, Registers};
use crate::graph::BlockPort;
use crate::{Device, RadioError};

/// The signal of a generator. Full scale is 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GeneratorSignal {
    /// The same sample again and again: I and Q.
    Constant(f64, f64),
    /// A complex sine tone.
    Sine {
        /// The frequency, −0.5 to 0.5 cycles a sample, in steps of 1/16384.
        cycles_per_sample: f64,
        /// The amplitude.
        amplitude: f64,
    },
    /// Random numbers up to this amplitude.
    Noise(f64),
}

/// A channel of a block SigGen, without outputs while it is stopped. It runs as fast as its stream
/// takes samples, without times.
pub struct SigGen {
    control: Arc<Control>,
    place: BlockPort,
}

impl SigGen {
    /// Resets the device's first block SigGen, and returns its output `port`.
    ///
    /// # Errors
    /// [`RadioError::Unusable`] without such a block or output; those of register writes.
    pub fn open(device: &Device, port: u8) -> Result<Self, RadioError> {
        let place = open(device, (noc_id::SIG_GEN, "SigGen"), 0, port)?;
        Ok(Self { control: Arc::clone(device.control()), place })
    }

    /// Returns its block and output.
    pub fn place(&self) -> BlockPort {
        self.place
    }

    /// Sets the signal, which may be running.
    ///
    /// # Errors
    /// [`RadioError::OutOfRange`]; those of register writes.
    pub fn set(&self, signal: GeneratorSignal) -> Result<(), RadioError> {
        writes(signal)?.into_iter().try_for_each(|(offset, value)| self.write(offset, value))
    }

    /// Starts it, with packets of `samples` samples.
    ///
    /// # Errors
    /// Those of register writes.
    pub fn start(&self, samples: usize) -> Result<(), RadioError> {
        let most = regs::PACKET_SAMPLES_MAX as usize;
        self.write(regs::PACKET_SAMPLES, samples.clamp(1, most) as u32)?;
        self.write(regs::ENABLE, 1)
    }

    /// Stops it.
    ///
    /// # Errors
    /// Those of register writes.
    pub fn stop(&self) -> Result<(), RadioError> {
        self.write(regs::ENABLE, 0)
    }

    fn write(&self, offset: u32, value: u32) -> Result<(), RadioError> {
        let address = regs::BANK * u32::from(self.place.port) + offset;
        Registers::write(&*self.control, self.place.block.port, address, value)
    }
}

/// Returns the writes for a signal: offsets and values.
fn writes(signal: GeneratorSignal) -> Result<Vec<(u32, u32)>, RadioError> {
    let check = |what, value: f64, most: f64| {
        let (from, to, unit) = (-most, most, "");
        let fits = (from..=to).contains(&value);
        if fits { Ok(value) } else { Err(RadioError::OutOfRange { what, value, from, to, unit }) }
    };
    let level = |value: f64| check("amplitude", value, 1.0);
    let half = |value: f64| u32::from((value * 32767.0).round() as i16 as u16);
    let full = half(1.0);
    Ok(match signal {
        GeneratorSignal::Constant(i, q) => {
            let constant = half(level(i)?) << 16 | half(level(q)?);
            vec![
                (regs::CONSTANT, constant),
                (regs::GAIN, full),
                (regs::WAVEFORM, waveform::CONSTANT),
            ]
        }
        GeneratorSignal::Sine { cycles_per_sample, amplitude } => {
            let frequency = check("frequency", cycles_per_sample, 0.5)?;
            let increment = (2.0 * frequency * regs::HALF_TURN).round() as i16 as u16;
            let start = half(level(amplitude)? / regs::ROTATION_GAIN) << 16;
            vec![
                (regs::PHASE_INCREMENT, increment.into()),
                (regs::START_VECTOR, start),
                (regs::GAIN, full),
                (regs::WAVEFORM, waveform::SINE),
            ]
        }
        GeneratorSignal::Noise(amplitude) => {
            vec![(regs::GAIN, half(level(amplitude)?)), (regs::WAVEFORM, waveform::NOISE)]
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_become_words() {
        let sine = GeneratorSignal::Sine { cycles_per_sample: 0.1, amplitude: 0.5 };
        let start = (0.5_f64 * 32767.0 / 1.164_435).round() as u32;
        assert_eq!(
            writes(sine).unwrap(),
            [(0x14, 1638), (0x18, start << 16), (0x0C, 0x7FFF), (0x08, 1)]
        );
        let down = GeneratorSignal::Sine { cycles_per_sample: -0.25, amplitude: 0.1 };
        assert_eq!(writes(down).unwrap()[0], (0x14, 0xF000));
        let constant = GeneratorSignal::Constant(0.5, -1.0);
        assert_eq!(writes(constant).unwrap()[0], (0x10, 0x4000_8001));
        assert_eq!(writes(GeneratorSignal::Noise(1.0)).unwrap()[0], (0x0C, 0x7FFF));
        for signal in [
            GeneratorSignal::Constant(1.5, 0.0),
            GeneratorSignal::Constant(0.0, f64::NAN),
            GeneratorSignal::Noise(-2.0),
            GeneratorSignal::Sine { cycles_per_sample: 0.6, amplitude: 0.1 },
        ] {
            assert!(matches!(writes(signal), Err(RadioError::OutOfRange { .. })), "{signal:?}");
        }
    }
}
