//! Registers of the block SigGen, which makes a signal. Each
//! output has a bank.

/// Distance of the banks of two outputs.
pub const BANK: u32 = 0x20;

/// Bit 0: the generator runs.
pub const ENABLE: u32 = 0x00;
/// Samples of a packet, 14 bits.
pub const PACKET_SAMPLES: u32 = 0x04;
/// The signal; see [`waveform`].
pub const WAVEFORM: u32 = 0x08;
/// The factor of all signals, 15 fraction bits.
pub const GAIN: u32 = 0x0C;
/// I in the upper half, Q in the lower one.
pub const CONSTANT: u32 = 0x10;
/// Half turns a sample, 13 fraction bits.
pub const PHASE_INCREMENT: u32 = 0x14;
/// The start of the rotation, X in the upper half.
pub const START_VECTOR: u32 = 0x18;

/// The most samples of a packet, which are the bits of [`PACKET_SAMPLES`].
pub const PACKET_SAMPLES_MAX: u32 = (1 << 14) - 1;
/// A [`PHASE_INCREMENT`] of half a turn.
pub const HALF_TURN: f64 = 8192.0;
/// A [`GAIN`] of one.
pub const GAIN_ONE: f64 = 32768.0;

/// What the rotation in steps (CORDIC) multiplies a vector with.
pub const ROTATION_GAIN: f64 = 1.164_435_344_782_938;

/// Signals.
pub mod waveform {
    /// [`super::CONSTANT`] again and again.
    pub const CONSTANT: u32 = 0;
    /// [`super::START_VECTOR`], rotated by [`super::PHASE_INCREMENT`] each sample.
    pub const SINE: u32 = 1;
    /// Random numbers.
    pub const NOISE: u32 = 2;
}
