//! Impairments of a test signal between the transmitter and the recording.

use super::adjacent::{Adjacent, AdjacentChannel};
use super::{ImpairmentError, Transmitter, TxConfig};
use crate::params::SYMBOL_RATE_HZ;
use millstream_dsp::impair::{
    Chain, DcOffset, Echo, Echoes, FrequencyShift, IqImbalance, Quantizer, Tone, WhiteNoise,
    amplitude, noise_power,
};

/// The bandwidth in which noise is counted: the channel's.
pub const CHANNEL_HZ: f64 = 6.0e6;

/// Impairments of a signal, applied in the order of the fields from `clock_ppm` on; no impairment
/// by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Offset of the sender's clock from the receiver's; positive if its symbols are faster. The
    /// pulses are evaluated at the shifted times, without interpolation.
    pub clock_ppm: f64,
    /// Echoes of the signal.
    pub echoes: Vec<Echo>,
    /// Other stations nearby.
    pub adjacent: Vec<Adjacent>,
    /// Tones: frequency in Hz from the middle of the channel, and power over the signal's in dB.
    pub tones: Vec<[f64; 2]>,
    /// Carrier offset of the signal, its echoes, neighbours and tones.
    pub offset_hz: f64,
    /// Carrier to noise, dB: the power of the signal with its pilot, without echoes and neighbours,
    /// over that of white noise in the channel's 6 MHz.
    pub cn_db: Option<f64>,
    /// Gain of the quadrature branch over the other, dB.
    pub iq_gain_db: f64,
    /// The angle between the branches less 90°, degrees.
    pub iq_phase_deg: f64,
    /// DC offset of both parts, full scale being 1.
    pub dc: [f32; 2],
    /// Bits of the converter.
    pub bits: Option<u32>,
}

impl Impairments {
    /// Creates the transmitter with this clock offset.
    ///
    /// # Errors
    /// [`ImpairmentError`] when a value is out of range.
    pub fn transmitter(&self, config: TxConfig) -> Result<Transmitter, ImpairmentError> {
        within("a clock error in ppm", self.clock_ppm, 10_000.0)?;
        Ok(Transmitter::with_clock_error(config, self.clock_ppm)?)
    }

    /// Creates the chain of impairments for the samples of a transmitter of `config`.
    ///
    /// # Errors
    /// [`ImpairmentError`] when a value is out of range.
    pub fn chain(&self, config: TxConfig, seed: u64) -> Result<Chain, ImpairmentError> {
        let TxConfig { sample_rate_hz: rate_hz, rms } = config;
        let mut chain = Chain::new();
        if !self.echoes.is_empty() {
            chain.push(Echoes::new(&self.echoes, rate_hz)?);
        }
        for (n, adjacent) in self.adjacent.iter().enumerate() {
            // Separate seeds: other packets, and no relation to the noise.
            chain.push(AdjacentChannel::new(*adjacent, config, seed ^ (n as u64 + 1) << 32)?);
        }
        for [frequency_hz, level_db] in &self.tones {
            within("a tone's frequency in Hz", *frequency_hz, rate_hz / 2.0)?;
            within("a tone's level in dB", *level_db, 100.0)?;
            chain.push(Tone::new(*frequency_hz, rate_hz, rms * amplitude(*level_db) as f32));
        }
        within("a carrier offset in Hz", self.offset_hz, rate_hz / 2.0)?;
        if self.offset_hz != 0.0 {
            chain.push(FrequencyShift::new(self.offset_hz, rate_hz));
        }
        if let Some(cn_db) = self.cn_db {
            within("a C/N in dB", cn_db, 200.0)?;
            let signal = f64::from(rms * rms);
            chain.push(WhiteNoise::new(noise_power(signal, cn_db, CHANNEL_HZ, rate_hz), seed));
        }
        self.receiver(&mut chain)?;
        Ok(chain)
    }

    /// Adds the impairments of the receiver's analogue part.
    fn receiver(&self, chain: &mut Chain) -> Result<(), ImpairmentError> {
        within("a gain between the branches in dB", self.iq_gain_db, 20.0)?;
        within("an angle between the branches in degrees", self.iq_phase_deg, 45.0)?;
        if self.iq_gain_db != 0.0 || self.iq_phase_deg != 0.0 {
            chain.push(IqImbalance::new(self.iq_gain_db, self.iq_phase_deg));
        }
        for part in self.dc {
            within("a DC offset", part.into(), 1.0)?;
        }
        if self.dc != [0.0; 2] {
            chain.push(DcOffset::new(self.dc[0], self.dc[1]));
        }
        if let Some(bits) = self.bits {
            if !(2..=16).contains(&bits) {
                let what = "a number of bits";
                let value = f64::from(bits);
                return Err(ImpairmentError::Range { what, value, least: 2.0, most: 16.0 });
            }
            chain.push(Quantizer::new(bits));
        }
        Ok(())
    }
}

fn within(what: &'static str, value: f64, most: f64) -> Result<(), ImpairmentError> {
    if value.abs() <= most {
        return Ok(());
    }
    Err(ImpairmentError::Range { what, value, least: -most, most })
}

/// Returns the C/N with noise of the same density in the Nyquist bandwidth of the symbols, half the
/// symbol rate, instead of the channel's 6 MHz: 0.47 dB more.
#[must_use]
pub fn in_nyquist_bandwidth(cn_db: f64) -> f64 {
    cn_db + 10.0 * (CHANNEL_HZ / (SYMBOL_RATE_HZ / 2.0)).log10()
}
