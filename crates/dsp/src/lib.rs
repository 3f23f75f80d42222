//! Signal-processing kernels.
//!
//! Hot kernels are written once as plain Rust over fixed-size chunks and compiled twice with
//! [`multiversion!`]: for the baseline of the target and for AVX2 with fused multiply-add; some a
//! third time, for AVX-512. The fastest copy is chosen at run time. ARM64 needs only the baseline.
//! A fused multiply-add rounds once where the baseline rounds twice, so copies agree to a few units
//! in the last place of the largest partial sum, not bit for bit; each kernel's tests state the
//! bound.

pub mod angle;
pub mod arbitrary;
pub mod band_power;
pub mod channelizer;
pub mod chunks;
pub mod cic;
pub mod design;
pub mod fir;
pub mod half_band;
mod history;
pub mod impair;
pub mod levels;
pub mod linear;
pub mod loop_filter;
pub mod nco;
pub mod noise;
pub mod overlap_save;
pub mod pairs;
pub mod polyphase;
pub mod pulse;
pub mod recursion;
pub mod resample;
pub mod rotation;
mod rounding;
pub mod rows;
pub mod sampler;
pub mod scale;
pub mod simd;
pub mod spectrum;
#[cfg(test)]
mod test_signals;
pub mod trim;
pub mod window;

pub use num_complex::Complex;

/// A complex baseband sample.
pub type Sample = Complex<f32>;
