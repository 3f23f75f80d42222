//! Impairments of a channel and a receiver, for test signals.
//!
//! White noise is `noise_source` and `add`, a carrier offset is `rotator`, a clock error is
//! `arbitrary_resampler`.

use crate::Sample;
use millstream_dsp::impair::{DcOffset, Echo, Echoes, Impair, IqImbalance, Quantizer};
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, BlockFacts};
use millstream_flow::{Process, Through};

/// A block that applies an impairment to every sample.
#[derive(Debug)]
pub struct Impaired<I>(I);

impl<I: Impair> Impaired<I> {
    /// Creates a block that applies `impairment`.
    #[must_use]
    pub fn new(impairment: I) -> Self {
        Self(impairment)
    }
}

impl<I: Impair + 'static> Process for Impaired<I> {
    type Input = Sample;
    type Output = Sample;

    fn process(&mut self, input: &[Sample], output: &mut [Sample]) -> (usize, usize) {
        let items = input.len().min(output.len());
        output[..items].copy_from_slice(&input[..items]);
        self.0.apply(&mut output[..items]);
        (items, items)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(2.0);
    }
}

/// Adds copies of the signal that come later or earlier.
#[derive(BlockParameters)]
#[block(echoes, pure, example = "echoes = \"5.6us:-10dB, -1us:-15dB:90deg:2Hz\"\nrate_hz = 6.25e6")]
struct EchoesParameters {
    /// DELAY:LEVEL[:PHASE[:DOPPLER]], several by commas
    echoes: String,
    /// samples per second
    #[parameter(above = 0)]
    rate_hz: f64,
}

impl EchoesParameters {
    fn make(self) -> Result<Through<Impaired<Echoes>>, BlockError> {
        let parse = |text: &str| text.trim().parse::<Echo>();
        let echoes: Vec<Echo> = self.echoes.split(',').map(parse).collect::<Result<_, _>>()?;
        Ok(impaired(Echoes::new(&echoes, self.rate_hz)?))
    }
}

/// Gives Q another gain and phase than I.
#[derive(BlockParameters)]
#[block(iq_imbalance, pure, example = "gain_db = 0.5\nphase_deg = 2.0")]
struct ImbalanceParameters {
    /// gain of Q relative to I, dB
    #[parameter(default = 0.0, least = -20, most = 20)]
    gain_db: f64,
    /// phase error: angle between I and Q minus 90°, degrees
    #[parameter(default = 0.0, least = -45, most = 45)]
    phase_deg: f64,
}

impl ImbalanceParameters {
    fn make(self) -> Through<Impaired<IqImbalance>> {
        impaired(IqImbalance::new(self.gain_db, self.phase_deg))
    }
}

/// Adds a constant to complex samples.
#[derive(BlockParameters)]
#[block(dc_offset, pure, example = "in_phase = 0.01")]
struct OffsetParameters {
    /// constant that is added to I; full scale is 1
    #[parameter(default = 0.0)]
    in_phase: f32,
    /// constant that is added to Q
    #[parameter(default = 0.0)]
    quadrature: f32,
}

impl OffsetParameters {
    fn make(self) -> Through<Impaired<DcOffset>> {
        impaired(DcOffset::new(self.in_phase, self.quadrature))
    }
}

/// Rounds to few bits as a converter does, and clips.
#[derive(BlockParameters)]
#[block(quantizer, pure, example = "bits = 8")]
struct QuantizerParameters {
    /// bits with sign; full scale is 1
    #[parameter(least = 2, most = 16)]
    bits: u32,
}

impl QuantizerParameters {
    fn make(self) -> Through<Impaired<Quantizer>> {
        impaired(Quantizer::new(self.bits))
    }
}

fn impaired<I: Impair + 'static>(impairment: I) -> Through<Impaired<I>> {
    Through::new(Impaired::new(impairment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    fn made(name: &str, values: &str) -> Result<Vec<Sample>, String> {
        let registry = crate::registry();
        let block = registry.make(name, values).map_err(|error| error.to_string())?;
        let mut mock = Mock::new(block);
        let mut input = vec![Sample::default(); 6];
        input[1].re = 0.5;
        mock.feed("in", &input);
        mock.run().unwrap();
        Ok(mock.take("out"))
    }

    #[test]
    fn each_does_what_its_name_says() {
        let at = |out: Vec<Sample>, n: usize| out[n];
        let echoed = made("echoes", "echoes = \"2s:0dB:180deg\"\nrate_hz = 1").unwrap();
        assert!((echoed[3] + Sample::new(0.5, 0.0)).norm() < 1e-6 && echoed[1].re == 0.5);
        let turned = at(made("iq_imbalance", "phase_deg = 30").unwrap(), 1);
        assert!((turned - Sample::new(0.5, 0.25)).norm() < 1e-6, "{turned}");
        let moved = at(made("dc_offset", "quadrature = -0.25").unwrap(), 1);
        assert_eq!(moved, Sample::new(0.5, -0.25));
        assert_eq!(at(made("quantizer", "bits = 2").unwrap(), 1), Sample::new(0.5, 0.0));
    }

    #[test]
    fn values_that_make_no_sense_are_named() {
        for (name, values, part) in [
            (
                "echoes",
                "echoes = \"5us\"\nrate_hz = 1e6",
                "`5us` is not an echo: write DELAY:LEVEL",
            ),
            ("echoes", "echoes = \"9s:0dB\"\nrate_hz = 1e6", "too late at this sample rate"),
            ("echoes", "echoes = \"1s:0dB\"\nrate_hz = 0", "rate_hz = `0`: expected more than"),
            ("iq_imbalance", "phase_deg = 90", "expected -45 to 45"),
            ("quantizer", "bits = 1", "bits = `1`: expected 2 to 16"),
        ] {
            let error = made(name, values).unwrap_err();
            assert!(error.contains(part), "{name} {values}: {error}");
        }
    }
}
