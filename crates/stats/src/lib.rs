//! Statistics without I/O, clocks or chance of their own: what every crate that counts or compares
//! uses.
//!
//! | item | idea |
//! | --- | --- |
//! | [`Classes`], [`Histogram`], [`SharedHistogram`] | counts by size |
//! | [`median`], [`Summary`], [`MedianEstimate`] | repeated figures in short |
//! | [`Mean`] | the mean of normal values, with its interval |
//! | [`paired`], [`RatioEstimate`] | the ratio of pairs |
//! | [`Pairs`], [`chance`], [`adjusted`] | the ratio of two samples, tests |
//! | [`Random`] | random numbers from a seed |
//!
//! None but [`Mean`] assumes a particular distribution. `peers/statistics_scipy.py` judges them.

mod classes;
mod histogram;
mod holm;
mod mean;
mod median;
pub mod paired;
mod random;
mod rank;
mod shared;
mod summary;

pub use classes::Classes;
pub use histogram::{Histogram, RESOLUTION};
pub use holm::adjusted;
pub use mean::Mean;
pub use median::{MedianEstimate, STARTS_MIN};
pub use paired::RatioEstimate;
pub use random::Random;
pub use rank::{Pairs, Ratio, chance, least_chance, ranks, short_ratio};
pub use shared::{LatencyHistogram, SharedHistogram};
pub use summary::{Summary, median};

/// The confidence of the intervals that are called 95 %.
pub const LEVEL: f64 = 0.95;

/// Returns logarithms: latencies spread by factors, so equal shares have equal weight.
fn logs(figures: &[f64]) -> Vec<f64> {
    figures.iter().map(|figure| figure.max(1.0).ln()).collect()
}
