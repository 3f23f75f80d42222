//! Filters by the window method: an ideal response cut by a window.
//!
//! The number of taps follows fred harris's rule, attenuation / (22 · transition / rate), made odd
//! so that the delay, half the taps less one, is whole. It is a rule of thumb: 0.8 transitions off
//! the cut-off a filter is within 1 % of its gain on one side, and 50 dB (Hamming) or 75 dB
//! (Blackman-Harris) down on the other.

use crate::pulse::root_raised_cosine;
use crate::window::Window;
use std::f64::consts::PI;

/// The most taps: a longer filter needs an FFT or several stages.
pub const TAPS_MAX: usize = 1 << 16;

/// The pass band of a filter, frequencies in Hz.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Band {
    /// Below `cutoff_hz`.
    Low {
        /// Middle of the transition.
        cutoff_hz: f64,
    },
    /// Above `cutoff_hz`.
    High {
        /// Middle of the transition.
        cutoff_hz: f64,
    },
    /// Between two frequencies, and between their negatives.
    Pass {
        /// Middle of the lower transition.
        low_hz: f64,
        /// Middle of the upper transition.
        high_hz: f64,
    },
}

/// The error of an impossible filter.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DesignError {
    /// A rate that is not positive.
    #[error("the sample rate is {0} Hz: give more than zero")]
    Rate(f64),
    /// Frequencies that are not in order or not below half the rate.
    #[error(
        "{what} is {hz} Hz: give a value between {above} and {below} Hz (half the sample rate)"
    )]
    Frequency {
        /// The name of the frequency.
        what: &'static str,
        /// The value.
        hz: f64,
        /// The exclusive lower bound.
        above: f64,
        /// The exclusive upper bound.
        below: f64,
    },
    /// A transition that is too steep.
    #[error(
        "a filter with a transition of {transition_hz} Hz would need {taps} taps, but {TAPS_MAX} \
         is the limit: use a wider transition, or decimate first"
    )]
    TooSteep {
        /// The transition.
        transition_hz: f64,
        /// Taps by the rule.
        taps: f64,
    },
    /// An invalid roll-off of a root-raised-cosine.
    #[error("alpha is {0}: give more than 0 and at most 1")]
    RollOff(f64),
    /// An invalid number of taps.
    #[error("the filter has {0} taps: give 1 to {TAPS_MAX}")]
    Count(usize),
}

/// Returns the taps of the filter that passes `band` with `gain`; the change from passing to
/// blocking takes `transition_hz`.
///
/// # Errors
/// [`DesignError`]
pub fn design(
    band: Band,
    gain: f64,
    rate_hz: f64,
    transition_hz: f64,
    window: Window,
) -> Result<Vec<f64>, DesignError> {
    check(band, rate_hz, transition_hz)?;
    let count = window.attenuation_db() * rate_hz / (22.0 * transition_hz);
    if count >= TAPS_MAX as f64 {
        return Err(DesignError::TooSteep { transition_hz, taps: count.floor() });
    }
    let half = (count as usize | 1) as i64 / 2;
    let window = window.symmetric(2 * half as usize + 1);
    // Low-pass of `edge_hz` at the tap `n` off the middle.
    let low = |edge_hz: f64, n: i64| {
        let omega = 2.0 * PI * edge_hz / rate_hz;
        if n == 0 { omega / PI } else { (omega * n as f64).sin() / (PI * n as f64) }
    };
    let ideal = |n: i64| match band {
        Band::Low { cutoff_hz } => low(cutoff_hz, n),
        Band::High { cutoff_hz } => f64::from(u8::from(n == 0)) - low(cutoff_hz, n),
        Band::Pass { low_hz, high_hz } => low(high_hz, n) - low(low_hz, n),
    };
    let mut taps: Vec<f64> = (-half..=half).zip(&window).map(|(n, w)| ideal(n) * w).collect();
    let middle = match band {
        Band::Low { .. } => 0.0,
        Band::High { .. } => PI,
        Band::Pass { low_hz, high_hz } => PI * (low_hz + high_hz) / rate_hz,
    };
    let at = |(n, tap): (i64, &f64)| tap * (middle * n as f64).cos();
    let scale = gain / (-half..=half).zip(&taps).map(at).sum::<f64>();
    taps.iter_mut().for_each(|tap| *tap *= scale);
    Ok(taps)
}

fn check(band: Band, rate_hz: f64, transition_hz: f64) -> Result<(), DesignError> {
    if !(rate_hz > 0.0 && rate_hz.is_finite()) {
        return Err(DesignError::Rate(rate_hz));
    }
    let below = rate_hz / 2.0;
    let within = |what, hz: f64, above: f64| {
        let good = hz > above && hz < below;
        if good { Ok(()) } else { Err(DesignError::Frequency { what, hz, above, below }) }
    };
    match band {
        Band::Low { cutoff_hz } | Band::High { cutoff_hz } => within("cutoff_hz", cutoff_hz, 0.0)?,
        Band::Pass { low_hz, high_hz } => {
            within("low_hz", low_hz, 0.0)?;
            within("high_hz", high_hz, low_hz)?;
        }
    }
    within("transition_hz", transition_hz, 0.0)
}

/// Returns `count` taps (made odd) of a root-raised-cosine, whose sum is `gain`.
///
/// # Errors
/// [`DesignError`]
pub fn root_raised_cosine_taps(
    gain: f64,
    rate_hz: f64,
    symbol_rate_hz: f64,
    alpha: f64,
    count: usize,
) -> Result<Vec<f64>, DesignError> {
    if !(rate_hz > 0.0 && rate_hz.is_finite()) {
        return Err(DesignError::Rate(rate_hz));
    }
    let below = rate_hz / 2.0;
    if !(symbol_rate_hz > 0.0 && symbol_rate_hz < below) {
        let (what, hz) = ("symbol_rate_hz", symbol_rate_hz);
        return Err(DesignError::Frequency { what, hz, above: 0.0, below });
    }
    if !(alpha > 0.0 && alpha <= 1.0) {
        return Err(DesignError::RollOff(alpha));
    }
    if count == 0 || count >= TAPS_MAX {
        return Err(DesignError::Count(count));
    }
    let half = (count | 1) as i64 / 2;
    let per_symbol = rate_hz / symbol_rate_hz;
    let pulse = |n: i64| root_raised_cosine(n as f64 / per_symbol, alpha);
    let mut taps: Vec<f64> = (-half..=half).map(pulse).collect();
    let scale = gain / taps.iter().sum::<f64>();
    taps.iter_mut().for_each(|tap| *tap *= scale);
    Ok(taps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(taps: &[f64], frequency_hz: f64, rate_hz: f64) -> f64 {
        let angle = |n: usize| 2.0 * PI * frequency_hz / rate_hz * n as f64;
        let sum = |f: fn(f64) -> f64| -> f64 {
            taps.iter().enumerate().map(|(n, tap)| tap * f(angle(n))).sum()
        };
        sum(f64::cos).hypot(sum(f64::sin))
    }

    #[test]
    fn bands_pass_and_stop_as_asked() {
        let rate_hz = 48_000.0;
        let pass = Band::Pass { low_hz: 6e3, high_hz: 9e3 };
        for (band, passes, stops) in [
            (Band::Low { cutoff_hz: 5e3 }, [0.0, 4000.0], [6000.0, 20e3]),
            (Band::High { cutoff_hz: 5e3 }, [6000.0, 24e3], [0.0, 4000.0]),
            (pass, [7000.0, 8000.0], [5000.0, 10e3]),
        ] {
            for (window, stop_db) in [(Window::Hamming, 50.0), (Window::BlackmanHarris, 75.0)] {
                let taps = design(band, 2.0, rate_hz, 1200.0, window).unwrap();
                assert!(taps.len() % 2 == 1);
                for hz in passes {
                    let gain = response(&taps, hz, rate_hz);
                    assert!((gain - 2.0).abs() < 0.02, "{band:?} {window:?} {hz}: {gain}");
                }
                for hz in stops {
                    let db = 20.0 * (response(&taps, hz, rate_hz) / 2.0).log10();
                    assert!(db < -stop_db, "{band:?} {window:?} {hz}: {db} dB");
                }
            }
        }
    }

    #[test]
    fn a_root_raised_cosine_pair_has_no_intersymbol_interference() {
        let taps = root_raised_cosine_taps(1.0, 8.0, 1.0, 0.35, 321).unwrap();
        assert!((taps.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let at = |lag: usize| -> f64 { taps.iter().zip(&taps[lag..]).map(|(a, b)| a * b).sum() };
        for symbol in 1..10 {
            assert!((at(8 * symbol) / at(0)).abs() < 1e-3, "{symbol}");
        }
    }

    #[test]
    fn filters_that_cannot_be_say_why() {
        let low = |cutoff_hz, rate_hz, transition_hz| {
            let band = Band::Low { cutoff_hz };
            design(band, 1.0, rate_hz, transition_hz, Window::Hann).unwrap_err().to_string()
        };
        assert_eq!(low(10.0, 0.0, 1.0), "the sample rate is 0 Hz: give more than zero");
        assert_eq!(
            low(60.0, 100.0, 1.0),
            "cutoff_hz is 60 Hz: give a value between 0 and 50 Hz (half the sample rate)"
        );
        assert!(low(10.0, 1e6, 1e-3).contains("use a wider transition, or decimate first"));
        assert!(low(10.0, 100.0, f64::NAN).starts_with("transition_hz is NaN Hz"));
        let roll_off = root_raised_cosine_taps(1.0, 8.0, 1.0, 0.0, 11).unwrap_err().to_string();
        assert_eq!(roll_off, "alpha is 0: give more than 0 and at most 1");
    }
}
