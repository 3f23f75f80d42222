//! Test signals.

use crate::Sample;
use crate::common::number;
use millstream_dsp::nco::Nco;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Item, Out, ParameterKind, ParameterValue, Ports, Work,
};
use std::ops::{Add, Mul};

/// The shape of a signal, which begins at phase zero.
#[derive(BlockParameters, Clone, Copy, Debug, Eq, PartialEq)]
pub enum Waveform {
    /// `cos`; as complex samples `exp(j…)`.
    Cosine,
    /// `sin`.
    Sine,
    /// 1 for the first half of a period, then -1.
    Square,
    /// From -1 to 1 and back.
    Triangle,
    /// From -1 up to 1, then at once down.
    Saw,
    /// Always 1.
    Constant,
}

impl Waveform {
    /// Returns the value at a phase in 0..1 cycles, for shapes other than sine and cosine.
    fn at(self, turn: f32) -> f32 {
        match self {
            Self::Square if turn < 0.5 => 1.0,
            Self::Square => -1.0,
            Self::Triangle => 1.0 - 4.0 * (turn - 0.5).abs(),
            Self::Saw => 2.0 * turn - 1.0,
            _ => 1.0,
        }
    }
}

/// Items that a source computes in its own memory first.
const PIECE: usize = 1024;

/// An item type of a signal source.
pub trait Generated: Item + Mul<f32, Output = Self> + Add<f32, Output = Self> {
    /// Writes the next values of a signal of amplitude 1.
    fn generate(shape: Waveform, nco: &mut Nco, out: &mut [Self]);
}

impl Generated for f32 {
    fn generate(shape: Waveform, nco: &mut Nco, out: &mut [Self]) {
        let mut piece = [Sample::default(); PIECE];
        match shape {
            Waveform::Cosine | Waveform::Sine => {
                for out in out.chunks_mut(PIECE) {
                    let piece = &mut piece[..out.len()];
                    nco.exponential(piece);
                    let part = |x: &Sample| if shape == Waveform::Sine { x.im } else { x.re };
                    out.iter_mut().zip(piece).for_each(|(out, x)| *out = part(x));
                }
            }
            _ => nco.shape(out, |turn| shape.at(turn)),
        }
    }
}

impl Generated for Sample {
    fn generate(shape: Waveform, nco: &mut Nco, out: &mut [Self]) {
        if shape == Waveform::Cosine {
            return nco.exponential(out);
        }
        let mut piece = [0.0; PIECE];
        for out in out.chunks_mut(PIECE) {
            let piece = &mut piece[..out.len()];
            f32::generate(shape, nco, piece);
            out.iter_mut().zip(piece).for_each(|(out, x)| *out = Sample::new(*x, 0.0));
        }
    }
}

/// An endless periodic signal: `amplitude · shape(frequency · n / rate) + offset`. The phase is an
/// integer, so it is correct after hours at 100 MS/s.
///
/// Ports: `out`. The source fills its output as fast as there is room: a throttle or a sink must
/// pace it.
///
/// # Messages
/// `frequency_hz` (without a jump in phase), `amplitude`, `offset`.
#[derive(Debug, Ports)]
pub struct SignalSource<T: Generated> {
    /// The signal.
    pub output: Out<T>,
    shape: Waveform,
    nco: Nco,
    rate_hz: f64,
    amplitude: f32,
    offset: f32,
}

impl<T: Generated> SignalSource<T> {
    /// Creates a signal of amplitude 1.
    ///
    /// # Errors
    /// A rate that is not positive.
    pub fn new(shape: Waveform, frequency_hz: f64, rate_hz: f64) -> Result<Self, BlockError> {
        if rate_hz <= 0.0 {
            return Err(format!("rate_hz = {rate_hz}: expected more than zero").into());
        }
        let nco = Nco::from_hz(frequency_hz, rate_hz);
        Ok(Self { output: Out::new(), shape, nco, rate_hz, amplitude: 1.0, offset: 0.0 })
    }

    /// Sets the amplitude and an added constant.
    #[must_use]
    pub fn scaled(self, amplitude: f32, offset: f32) -> Self {
        Self { amplitude, offset, ..self }
    }
}

impl<T: Generated> Block for SignalSource<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let output = self.output.slice_mut();
        let items = output.len();
        T::generate(self.shape, &mut self.nco, output);
        if (self.amplitude, self.offset) != (1.0, 0.0) {
            for x in output {
                *x = *x * self.amplitude + self.offset;
            }
        }
        self.output.produce(items);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts
            .ns_per_item(0.7)
            .message("frequency_hz", ParameterKind::Number, "frequency from the next item on, Hz")
            .message("amplitude", ParameterKind::Number, "amplitude from the next item on")
            .message("offset", ParameterKind::Number, "constant added from the next item on");
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        let x = number(value)?;
        match name {
            "frequency_hz" => self.nco.retune_hz(x, self.rate_hz),
            "amplitude" => self.amplitude = x as f32,
            _ => self.offset = x as f32,
        }
        Ok(())
    }
}

/// Makes a periodic test signal without end.
#[derive(BlockParameters)]
#[block(signal_source, pure, items(cf32, f32), example = "rate_hz = 48e3\nfrequency_hz = 1e3")]
struct SignalParameters {
    /// samples per second
    #[parameter(above = 0)]
    rate_hz: f64,
    /// periods per second
    frequency_hz: f64,
    /// waveform; cosine of complex items is exp(j…)
    shape: Waveform,
    /// amplitude
    #[parameter(default = 1.0)]
    amplitude: f32,
    /// constant that is added
    #[parameter(default = 0.0)]
    offset: f32,
}

impl SignalParameters {
    fn make<T: Generated>(self) -> Result<SignalSource<T>, BlockError> {
        let source = SignalSource::new(self.shape, self.frequency_hz, self.rate_hz)?;
        Ok(source.scaled(self.amplitude, self.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;
    use millstream_flow::registry::ParameterChoice;
    use std::f64::consts::TAU;

    fn some(shape: Waveform) -> Vec<f32> {
        let source = SignalSource::<f32>::new(shape, 3.0, 40.0).unwrap().scaled(2.0, 0.5);
        let mut mock = Mock::new(source);
        mock.call().unwrap();
        mock.take("out")
    }

    #[test]
    fn shapes_follow_their_formulas() {
        for shape in Waveform::NAMES.iter().filter_map(|name| Waveform::named(name)) {
            let out = some(shape);
            assert!(out.len() >= 4096);
            for (n, y) in out.iter().enumerate() {
                let turn = (3 * n % 40) as f64 / 40.0;
                let exact = match shape {
                    Waveform::Cosine => (TAU * turn).cos(),
                    Waveform::Sine => (TAU * turn).sin(),
                    Waveform::Square => f64::from(1 - 2 * (turn >= 0.5) as i32),
                    Waveform::Triangle if turn < 0.5 => 4.0 * turn - 1.0,
                    Waveform::Triangle => 3.0 - 4.0 * turn,
                    Waveform::Saw => 2.0 * turn - 1.0,
                    Waveform::Constant => 1.0,
                };
                // Rounding moves the position of a step.
                let near_step = [0.0, 0.5].iter().any(|step| (turn - step).abs() < 1e-6);
                let close = (f64::from(*y) - (2.0 * exact + 0.5)).abs() < 2e-6;
                assert!(close || near_step && n > 0, "{shape:?} {n}: {y} {exact}");
            }
        }
    }
}
