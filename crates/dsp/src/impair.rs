//! Impairments of a signal by a channel and a receiver's analogue part, for tests: noise, echoes,
//! carrier offset, interferers, I/Q imbalance, DC, few bits.
//!
//! Each is one small struct that changes complex samples in place; a [`Chain`] applies several in
//! order. All random values have a seed, and the result does not depend on how the stream is cut.
//! Clock errors change the number of samples: see [`arbitrary`](crate::arbitrary), or make the
//! signal at another rate.
//!
//! ```
//! use millstream_dsp::Sample;
//! use millstream_dsp::impair::{Chain, Echoes, Impair, WhiteNoise, noise_power};
//!
//! let rate_hz = 6.25e6;
//! let echo = "5.6us:-10dB".parse().unwrap();
//! let noise = WhiteNoise::new(noise_power(0.04, 20.0, 6e6, rate_hz), 1);
//! let mut channel = Chain::new();
//! channel.push(Echoes::new(&[echo], rate_hz).unwrap());
//! channel.push(noise);
//! channel.apply(&mut [Sample::default(); 1000]);
//! ```

mod echo;
mod front_end;
mod noise;
mod shift;

pub use echo::{Echo, EchoError, Echoes};
pub use front_end::{DcOffset, IqImbalance, Quantizer};
pub use noise::{WhiteNoise, noise_power};
pub use shift::{FrequencyShift, Tone};

use crate::Sample;

/// An impairment, which changes a stream in place, in pieces of any length.
pub trait Impair: Send {
    /// Changes the next samples of the stream.
    fn apply(&mut self, samples: &mut [Sample]);
}

/// Several impairments, applied in order.
#[derive(Default)]
pub struct Chain {
    links: Vec<Box<dyn Impair>>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("links", &self.links.len()).finish()
    }
}

impl Chain {
    /// Creates an empty chain, which changes nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an impairment.
    pub fn push(&mut self, link: impl Impair + 'static) {
        self.links.push(Box::new(link));
    }
}

impl Impair for Chain {
    fn apply(&mut self, samples: &mut [Sample]) {
        // The pieces stay in the cache from one impairment to the next.
        for piece in samples.chunks_mut(1024) {
            self.links.iter_mut().for_each(|link| link.apply(piece));
        }
    }
}

/// Returns a level in decibels as a ratio of amplitudes.
#[must_use]
pub fn amplitude(db: f64) -> f64 {
    10f64.powf(db / 20.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything(seed: u64) -> Chain {
        let mut chain = Chain::new();
        let echoes = ["3.3us:-6dB:40deg:70Hz", "-1us:-9dB", "0.48us:-12dB"];
        let echoes = echoes.map(|echo| echo.parse().unwrap());
        chain.push(Echoes::new(&echoes, 6.25e6).unwrap());
        chain.push(Tone::new(1e6, 6.25e6, 0.05));
        chain.push(FrequencyShift::new(-12_345.6, 6.25e6));
        chain.push(WhiteNoise::new(1e-3, seed));
        chain.push(IqImbalance::new(0.5, 2.0));
        chain.push(DcOffset::new(0.01, -0.02));
        chain.push(Quantizer::new(8));
        chain
    }

    #[test]
    fn a_stream_may_be_cut_anywhere() {
        let input: Vec<Sample> =
            (0..5000).map(|n| Sample::from_polar(0.2, n as f32 * 0.71)).collect();
        let mut whole = input.clone();
        everything(7).apply(&mut whole);
        for cut in [1, 63, 1000, 4999] {
            let (mut parts, mut chain) = (input.clone(), everything(7));
            parts.chunks_mut(cut).for_each(|part| chain.apply(part));
            // Eight bits: rounding in the filters may move a value over a quantisation threshold.
            let step = 1.5 / 128.0;
            let near = |(a, b): (&Sample, &Sample)| (a - b).norm() < step;
            assert!(parts.iter().zip(&whole).all(near), "pieces of {cut}");
        }
        let mut other = input;
        everything(8).apply(&mut other);
        assert_ne!(other, whole, "another seed is another noise");
    }
}
