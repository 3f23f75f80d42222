//! Parameters of filters: given or designed taps.

use millstream_dsp::design::{Band, design, root_raised_cosine_taps};
use millstream_dsp::window::Window;
use millstream_flow::registry::{BlockParameters, wrong};
use millstream_flow::{BlockError, ParameterValue};

/// Taps of a filter, given or designed.
#[derive(BlockParameters)]
pub(crate) struct TapParameters {
    /// type of the filter; `given`: the taps are given
    design: Design,
    /// given: real parts of the taps
    taps: Option<Vec<f64>>,
    /// given: imaginary parts of the taps, for complex items
    taps_im: Option<Vec<f64>>,
    /// gain in the passband
    #[parameter(default = 1.0)]
    gain: f64,
    /// calculated filters: sample rate, Hz
    #[parameter(default = 1.0)]
    rate_hz: f64,
    /// low_pass, high_pass: middle of the transition band, Hz
    #[parameter(default = 0.0)]
    cutoff_hz: f64,
    /// band_pass: middle of the lower transition band, Hz
    #[parameter(default = 0.0)]
    low_hz: f64,
    /// band_pass: middle of the upper transition band, Hz
    #[parameter(default = 0.0)]
    high_hz: f64,
    /// width of the transition band, Hz
    #[parameter(default = 0.0)]
    transition_hz: f64,
    /// root_raised_cosine: symbols per second
    #[parameter(default = 0.0)]
    symbol_rate_hz: f64,
    /// root_raised_cosine: roll-off, above 0, at most 1
    #[parameter(default = 0.35)]
    alpha: f64,
    /// root_raised_cosine: number of taps
    #[parameter(default = 0, least = 1)]
    length: usize,
    /// window that limits the length of the filter
    window: WindowName,
    #[parameter(flatten)]
    shape: WindowShape,
}

#[derive(BlockParameters, Clone, Copy)]
enum Design {
    Given,
    LowPass,
    HighPass,
    BandPass,
    RootRaisedCosine,
}

/// Windows, the usual one for filters first.
#[derive(BlockParameters, Clone, Copy)]
pub(crate) enum WindowName {
    Hamming,
    Hann,
    Blackman,
    BlackmanHarris,
    Kaiser,
    Rectangular,
}

#[derive(BlockParameters, Clone, Copy)]
pub(crate) struct WindowShape {
    /// shape parameter of the window kaiser
    #[parameter(default = 7.0, least = 0, most = 100)]
    beta: f64,
}

impl WindowName {
    /// Returns the window.
    pub(crate) fn of(self, shape: WindowShape) -> Window {
        match self {
            Self::Hamming => Window::Hamming,
            Self::Hann => Window::Hann,
            Self::Blackman => Window::Blackman,
            Self::BlackmanHarris => Window::BlackmanHarris,
            Self::Kaiser => Window::Kaiser(shape.beta),
            Self::Rectangular => Window::Rectangular,
        }
    }
}

impl TapParameters {
    /// Returns the real taps, given or designed.
    pub(crate) fn real(&self) -> Result<Vec<f32>, BlockError> {
        let band = match self.design {
            Design::Given => {
                let hint = "taps of the filter, or another `design` than `given`";
                let taps = self.taps.as_ref().ok_or_else(|| wrong("taps", "[]", hint))?;
                return Ok(taps.iter().map(|tap| (tap * self.gain) as f32).collect());
            }
            Design::LowPass => Band::Low { cutoff_hz: self.cutoff_hz },
            Design::HighPass => Band::High { cutoff_hz: self.cutoff_hz },
            Design::BandPass => Band::Pass { low_hz: self.low_hz, high_hz: self.high_hz },
            Design::RootRaisedCosine => {
                let Self { gain, rate_hz, symbol_rate_hz, alpha, length, .. } = *self;
                if length == 0 {
                    return Err(wrong("length", length, "1 or more"));
                }
                let taps = root_raised_cosine_taps(gain, rate_hz, symbol_rate_hz, alpha, length)?;
                return Ok(narrow(&taps));
            }
        };
        let window = self.window.of(self.shape);
        Ok(narrow(&design(band, self.gain, self.rate_hz, self.transition_hz, window)?))
    }

    /// Returns the imaginary parts of given taps, as many as there are real ones; `None` if the
    /// taps are real.
    pub(crate) fn imaginary(&self) -> Result<Option<Vec<f32>>, BlockError> {
        let Some(im) = &self.taps_im else { return Ok(None) };
        let real = self.taps.as_ref().map_or(0, Vec::len);
        if !matches!(self.design, Design::Given) || im.len() != real {
            let text = format!("taps_im: {} numbers; expected as many as in taps", im.len());
            return Err(text.into());
        }
        Ok(Some(im.iter().map(|tap| (tap * self.gain) as f32).collect()))
    }
}

pub(crate) fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}

/// Returns the taps in a message.
pub(crate) fn from_message(value: &ParameterValue) -> Result<Vec<f32>, BlockError> {
    match value {
        ParameterValue::Numbers(taps) if !taps.is_empty() => Ok(narrow(taps)),
        other => {
            Err(format!("taps = {other}: expected a list of numbers, such as [0.25, 0.5, 0.25]")
                .into())
        }
    }
}
