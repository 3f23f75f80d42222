//! The numbers of an AD9371.

use std::ops::RangeInclusive;

pub(super) const LO_HZ: RangeInclusive<f64> = 300e6..=6e9;
pub(super) const RX_GAIN_DB: RangeInclusive<f64> = 0.0..=30.0;
pub(super) const RX_GAIN_STEPS_PER_DB: f64 = 2.0;
pub(super) const TX_GAIN_DB: RangeInclusive<f64> = 0.0..=41.95;
pub(super) const TX_GAIN_STEPS_PER_DB: f64 = 20.0;
pub(super) const BANDWIDTH_HZ: RangeInclusive<f64> = 20e6..=100e6;
