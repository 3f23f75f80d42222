//! Parameters of filters: given or designed taps.

use millstream_dsp::design::{Band, design, root_raised_cosine_taps};
use millstream_dsp::window::Window;
use millstream_flow::registry::{BlockDeclaration, Parameters};
use millstream_flow::{BlockError, ParameterValue};

const NONE: &[f64] = &[];

const DESIGNS: &[&str] = &["given", "low_pass", "high_pass", "band_pass", "root_raised_cosine"];

/// Declares the parameters of [`real_taps`].
pub(crate) fn declare(block_type: BlockDeclaration) -> BlockDeclaration {
    block_type
        .choice("design", DESIGNS, "type of the filter; `given`: the taps are given")
        .optional("taps", NONE, "given: real parts of the taps")
        .optional("taps_im", NONE, "given: imaginary parts of the taps, for complex items")
        .optional("gain", 1.0, "gain in the passband")
        .optional("rate_hz", 1.0, "calculated filters: sample rate, Hz")
        .optional("cutoff_hz", 0.0, "low_pass, high_pass: middle of the transition band, Hz")
        .optional("low_hz", 0.0, "band_pass: middle of the lower transition band, Hz")
        .optional("high_hz", 0.0, "band_pass: middle of the upper transition band, Hz")
        .optional("transition_hz", 0.0, "width of the transition band, Hz")
        .optional("symbol_rate_hz", 0.0, "root_raised_cosine: symbols per second")
        .optional("alpha", 0.35, "root_raised_cosine: roll-off, above 0, at most 1")
        .optional("length", 0i64, "root_raised_cosine: number of taps")
        .choice("window", WINDOWS, "window that limits the length of the filter")
        .optional("beta", 7.0, "shape parameter of the window kaiser")
}

/// Windows, the usual one for filters first.
pub(crate) const WINDOWS: &[&str] =
    &["hamming", "hann", "blackman", "blackman_harris", "kaiser", "rectangular"];

/// Returns the window of the parameters `window` and `beta`.
pub(crate) fn window(parameters: &Parameters) -> Result<Window, BlockError> {
    let beta = parameters.number("beta");
    if !(0.0..=100.0).contains(&beta) {
        return Err(parameters.wrong("beta", "a number from 0 to 100"));
    }
    let window = Window::named(parameters.text("window"), beta);
    window.ok_or_else(|| parameters.wrong("window", "the name of a window"))
}

/// Returns real taps, given or designed.
pub(crate) fn real_taps(parameters: &Parameters) -> Result<Vec<f32>, BlockError> {
    let number = |name| parameters.number(name);
    let (gain, rate_hz) = (number("gain"), number("rate_hz"));
    let transition_hz = number("transition_hz");
    let band = match parameters.text("design") {
        "given" => {
            let taps = parameters.numbers("taps");
            if taps.is_empty() {
                let hint = "taps of the filter, or another `design` than `given`";
                return Err(parameters.wrong("taps", hint));
            }
            return Ok(taps.iter().map(|tap| (tap * gain) as f32).collect());
        }
        "low_pass" => Band::Low { cutoff_hz: number("cutoff_hz") },
        "high_pass" => Band::High { cutoff_hz: number("cutoff_hz") },
        "band_pass" => Band::Pass { low_hz: number("low_hz"), high_hz: number("high_hz") },
        _ => {
            let (symbol_rate_hz, alpha) = (number("symbol_rate_hz"), number("alpha"));
            let length = parameters.count("length", 1)?;
            let taps = root_raised_cosine_taps(gain, rate_hz, symbol_rate_hz, alpha, length)?;
            return Ok(narrow(&taps));
        }
    };
    Ok(narrow(&design(band, gain, rate_hz, transition_hz, window(parameters)?)?))
}

fn narrow(taps: &[f64]) -> Vec<f32> {
    taps.iter().map(|tap| *tap as f32).collect()
}

/// Returns the imaginary parts of given taps, as many as there are real ones; `None` if the taps
/// are real.
pub(crate) fn imaginary_taps(
    parameters: &Parameters,
    real: usize,
) -> Result<Option<Vec<f32>>, BlockError> {
    let taps = parameters.numbers("taps_im");
    match (taps.len(), parameters.text("design")) {
        (0, _) => Ok(None),
        (_, "given") if taps.len() == real => {
            let gain = parameters.number("gain");
            Ok(Some(taps.iter().map(|tap| (tap * gain) as f32).collect()))
        }
        _ => Err(format!("taps_im: {} numbers; expected as many as in taps", taps.len()).into()),
    }
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
