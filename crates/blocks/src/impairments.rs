//! Impairments of a channel and a receiver, for test signals.
//!
//! White noise is `noise_source` and `add`, a carrier offset is `rotator`, a clock error is
//! `arbitrary_resampler`.

use crate::Sample;
use millstream_dsp::impair::{DcOffset, Echo, Echoes, Impair, IqImbalance, Quantizer};
use millstream_flow::registry::{BlockType, Parameters};
use millstream_flow::{BlockError, BlockFacts, ParameterKind, Registry};
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

/// Parses echoes, separated by commas.
///
/// # Errors
/// An invalid echo, or one too far away.
fn echoes(parameters: &Parameters) -> Result<Echoes, BlockError> {
    let rate_hz = parameters.number("rate_hz");
    if rate_hz <= 0.0 {
        return Err(parameters.wrong("rate_hz", "more than zero"));
    }
    let parse = |text: &str| text.parse::<Echo>();
    let echoes: Vec<Echo> =
        parameters.text("echoes").split(',').map(str::trim).map(parse).collect::<Result<_, _>>()?;
    Ok(Echoes::new(&echoes, rate_hz)?)
}

/// Returns a parameter between `-most` and `most`.
fn within(parameters: &Parameters, name: &str, most: f64) -> Result<f64, BlockError> {
    let value = parameters.number(name);
    if value.abs() <= most {
        return Ok(value);
    }
    Err(parameters.wrong(name, &format!("a number from -{most} to {most}")))
}

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        BlockType::declare("echoes", "Adds copies of the signal that come later or earlier.")
            .required(
                "echoes",
                ParameterKind::Text,
                "DELAY:LEVEL[:PHASE[:DOPPLER]], several by commas",
            )
            .required("rate_hz", ParameterKind::Number, "samples per second")
            .example("echoes = \"5.6us:-10dB, -1us:-15dB:90deg:2Hz\"\nrate_hz = 6.25e6")
            .pure(|parameters| Ok(Box::new(Through::new(Impaired::new(echoes(parameters)?))))),
    );
    registry.register(
        BlockType::declare("iq_imbalance", "Gives Q another gain and phase than I.")
            .optional("gain_db", 0.0, "gain of Q relative to I, dB")
            .optional("phase_deg", 0.0, "phase error: angle between I and Q minus 90°, degrees")
            .example("gain_db = 0.5\nphase_deg = 2.0")
            .pure(|parameters| {
                let gain_db = within(parameters, "gain_db", 20.0)?;
                let imbalance = IqImbalance::new(gain_db, within(parameters, "phase_deg", 45.0)?);
                Ok(Box::new(Through::new(Impaired::new(imbalance))))
            }),
    );
    registry.register(
        BlockType::declare("dc_offset", "Adds a constant to complex samples.")
            .optional("in_phase", 0.0, "constant that is added to I; full scale is 1")
            .optional("quadrature", 0.0, "constant that is added to Q")
            .example("in_phase = 0.01")
            .pure(|parameters| {
                let part = |name| parameters.number(name) as f32;
                let offset = DcOffset::new(part("in_phase"), part("quadrature"));
                Ok(Box::new(Through::new(Impaired::new(offset))))
            }),
    );
    registry.register(
        BlockType::declare("quantizer", "Rounds to few bits as a converter does, and clips.")
            .required("bits", ParameterKind::Integer, "bits with sign, 2 to 16; full scale is 1")
            .example("bits = 8")
            .pure(|parameters| {
                let bits = parameters.integer("bits");
                if !(2..=16).contains(&bits) {
                    return Err(parameters.wrong("bits", "2 to 16"));
                }
                Ok(Box::new(Through::new(Impaired::new(Quantizer::new(bits as u32)))))
            }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    fn made(name: &str, values: &str) -> Result<Vec<Sample>, String> {
        let mut registry = Registry::new();
        register(&mut registry);
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
            ("iq_imbalance", "phase_deg = 90", "expected a number from -45 to 45"),
            ("quantizer", "bits = 1", "bits = `1`: expected 2 to 16"),
        ] {
            let error = made(name, values).unwrap_err();
            assert!(error.contains(part), "{name} {values}: {error}");
        }
    }
}
