//! The settings of a front end that remote procedure calls change.

use super::{ad9361, ad9371};
use crate::personality::FrontEndKind;
use std::ops::RangeInclusive;

/// The most channels of a daughterboard.
pub(super) const BOARD_CHANNELS: usize = 2;

/// How long an oscillator is not locked behind a tune.
const LOCK_NS: u64 = 1_000_000;

/// The settings of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tuning {
    /// Both channels have the same oscillator.
    pub lo_hz: f64,
    pub gain_db: [f64; BOARD_CHANNELS],
    pub bandwidth_hz: [f64; BOARD_CHANNELS],
}

impl Tuning {
    /// Returns the state after power-on.
    fn new(kind: FrontEndKind) -> Self {
        let (lo_hz, bandwidth_hz) = match kind {
            FrontEndKind::Ad9361 | FrontEndKind::Ad9361Swapped => (2.4e9, 40e6),
            FrontEndKind::Ad9371 => (2.5e9, 100e6),
            // Hosts set it by registers.
            FrontEndKind::Lmx2592 | FrontEndKind::Zbx => (2.5e9, 250e6),
        };
        let bandwidth_hz = [bandwidth_hz; BOARD_CHANNELS];
        Self { lo_hz, gain_db: [0.0; BOARD_CHANNELS], bandwidth_hz }
    }
}

/// Both directions, and their limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FrontEnd {
    kind: FrontEndKind,
    pub rx: Tuning,
    pub tx: Tuning,
    /// Values have the ranges and steps of the hardware; otherwise they are taken as they are.
    limited: bool,
    /// When the oscillators will be locked.
    rx_locked_ns: u64,
    tx_locked_ns: u64,
}

/// One chain: a channel of a direction.
struct Chain {
    is_rx: bool,
    channel: usize,
}

impl FrontEnd {
    /// Returns the state after power-on.
    pub fn new(kind: FrontEndKind, limited: bool) -> Self {
        let (rx, tx) = (Tuning::new(kind), Tuning::new(kind));
        Self { kind, rx, tx, limited, rx_locked_ns: 0, tx_locked_ns: 0 }
    }

    /// Restores the state after power-on.
    pub fn reset(&mut self) {
        *self = Self::new(self.kind, self.limited);
    }

    /// Tunes the direction of a chain; returns the actual frequency.
    pub fn tune(&mut self, chain: &str, wanted_hz: f64, now_ns: u64) -> Result<f64, String> {
        let chain = Chain::named(chain)?;
        let hz = number("a frequency", wanted_hz)?;
        let hz = match (self.limited, self.kind) {
            (false, _) | (_, FrontEndKind::Lmx2592 | FrontEndKind::Zbx) => hz,
            (true, FrontEndKind::Ad9361 | FrontEndKind::Ad9361Swapped) => {
                let range = if chain.is_rx { ad9361::RX_HZ } else { ad9361::TX_HZ };
                ad9361::oscillator_hz(within(&range, hz))
            }
            (true, FrontEndKind::Ad9371) => within(&ad9371::LO_HZ, hz),
        };
        self.tuning(&chain).lo_hz = hz;
        *(if chain.is_rx { &mut self.rx_locked_ns } else { &mut self.tx_locked_ns }) =
            now_ns + LOCK_NS;
        Ok(hz)
    }

    /// Sets the gain of a chain; returns the actual one.
    pub fn set_gain(&mut self, chain: &str, wanted_db: f64) -> Result<f64, String> {
        let chain = Chain::named(chain)?;
        let db = number("a gain", wanted_db)?;
        let stepped = |range, steps_per_db: f64| (within(range, db) * steps_per_db).round();
        let actual = match (self.limited, self.kind, chain.is_rx) {
            (false, ..) | (_, FrontEndKind::Lmx2592 | FrontEndKind::Zbx, _) => db,
            (true, FrontEndKind::Ad9361 | FrontEndKind::Ad9361Swapped, true) => {
                within(&ad9361::RX_GAIN_DB, db).trunc()
            }
            (true, FrontEndKind::Ad9361 | FrontEndKind::Ad9361Swapped, false) => {
                stepped(&ad9361::TX_GAIN_DB, 4.0) / 4.0
            }
            (true, FrontEndKind::Ad9371, true) => {
                stepped(&ad9371::RX_GAIN_DB, ad9371::RX_GAIN_STEPS_PER_DB)
                    / ad9371::RX_GAIN_STEPS_PER_DB
            }
            (true, FrontEndKind::Ad9371, false) => {
                stepped(&ad9371::TX_GAIN_DB, ad9371::TX_GAIN_STEPS_PER_DB)
                    / ad9371::TX_GAIN_STEPS_PER_DB
            }
        };
        let channel = chain.channel;
        self.tuning(&chain).gain_db[channel] = actual;
        Ok(actual)
    }

    /// Sets the bandwidth of a chain; returns the actual one.
    pub fn set_bandwidth(&mut self, chain: &str, wanted_hz: f64) -> Result<f64, String> {
        let chain = Chain::named(chain)?;
        let hz = number("a bandwidth", wanted_hz)?;
        let actual = match (self.limited, self.kind) {
            (false, _) | (_, FrontEndKind::Lmx2592 | FrontEndKind::Zbx) => hz,
            (true, FrontEndKind::Ad9361 | FrontEndKind::Ad9361Swapped) => {
                within(&ad9361::BANDWIDTH_HZ, hz)
            }
            (true, FrontEndKind::Ad9371) => within(&ad9371::BANDWIDTH_HZ, hz),
        };
        let channel = chain.channel;
        self.tuning(&chain).bandwidth_hz[channel] = actual;
        Ok(actual)
    }

    /// Returns the frequency of a chain.
    pub fn frequency_hz(&self, chain: &str) -> Result<f64, String> {
        let chain = Chain::named(chain)?;
        Ok(self.direction(chain.is_rx).lo_hz)
    }

    /// Returns the gain of a chain.
    pub fn gain_db(&self, chain: &str) -> Result<f64, String> {
        let chain = Chain::named(chain)?;
        Ok(self.direction(chain.is_rx).gain_db[chain.channel])
    }

    /// Returns the bandwidth of a chain.
    pub fn bandwidth_hz(&self, chain: &str) -> Result<f64, String> {
        let chain = Chain::named(chain)?;
        Ok(self.direction(chain.is_rx).bandwidth_hz[chain.channel])
    }

    /// Returns whether the oscillator of a direction is locked.
    pub fn is_locked(&self, is_rx: bool, now_ns: u64) -> bool {
        now_ns >= if is_rx { self.rx_locked_ns } else { self.tx_locked_ns }
    }

    fn direction(&self, is_rx: bool) -> &Tuning {
        if is_rx { &self.rx } else { &self.tx }
    }

    fn tuning(&mut self, chain: &Chain) -> &mut Tuning {
        if chain.is_rx { &mut self.rx } else { &mut self.tx }
    }
}

impl Chain {
    /// Returns the chain `RX1`, `RX2`, `TX1` or `TX2`; without a number the first of a direction.
    fn named(name: &str) -> Result<Self, String> {
        let (is_rx, channel) = match name {
            "RX1" | "RX" => (true, 0),
            "RX2" => (true, 1),
            "TX1" | "TX" => (false, 0),
            "TX2" => (false, 1),
            _ => return Err(format!("there is no chain {name}; there are RX1, RX2, TX1, TX2")),
        };
        Ok(Self { is_rx, channel })
    }
}

fn within(range: &RangeInclusive<f64>, value: f64) -> f64 {
    value.clamp(*range.start(), *range.end())
}

fn number(what: &str, value: f64) -> Result<f64, String> {
    if value.is_finite() { Ok(value) } else { Err(format!("{value} is not {what}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_front_end_takes_the_nearest_value_of_the_hardware() {
        let mut front_end = FrontEnd::new(FrontEndKind::Ad9361, true);
        assert_eq!(front_end.tune("RX1", 1e6, 0), Ok(70e6));
        let tx_hz = front_end.tune("TX2", 1e6, 0).unwrap();
        assert!((47e6 - 1.0..=47e6).contains(&tx_hz), "{tx_hz}");
        assert_eq!(front_end.set_gain("RX2", 10.4), Ok(10.0));
        assert_eq!(front_end.set_gain("RX1", 100.0), Ok(76.0));
        assert_eq!(front_end.set_gain("TX1", 10.4), Ok(10.5));
        assert_eq!(front_end.set_bandwidth("RX1", 100e6), Ok(56e6));
        assert_eq!((front_end.rx.lo_hz, front_end.tx.lo_hz), (70e6, tx_hz));
        assert_eq!(front_end.rx.gain_db, [76.0, 10.0]);
        front_end.reset();
        assert_eq!(front_end, FrontEnd::new(FrontEndKind::Ad9361, true));
    }

    #[test]
    fn an_ad9371_has_ranges_of_its_own() {
        let mut front_end = FrontEnd::new(FrontEndKind::Ad9371, true);
        assert_eq!(front_end.tune("RX1", 1e6, 0), Ok(300e6));
        assert_eq!(front_end.tune("TX1", 7e9, 0), Ok(6e9));
        assert_eq!(front_end.set_gain("RX1", 12.3), Ok(12.5));
        assert_eq!(front_end.set_gain("RX2", 99.0), Ok(30.0));
        assert_eq!(front_end.set_gain("TX1", 12.345), Ok(12.35));
        assert_eq!(front_end.set_bandwidth("RX1", 1e9), Ok(100e6));
        assert_eq!((front_end.rx.lo_hz, front_end.rx.gain_db), (300e6, [12.5, 30.0]));
    }

    #[test]
    fn one_without_limits_takes_any_number() {
        let mut front_end = FrontEnd::new(FrontEndKind::Ad9361, false);
        assert_eq!(front_end.tune("RX1", 1.234e3, 0), Ok(1234.0));
        assert_eq!(front_end.set_gain("TX1", 123.4), Ok(123.4));
        assert_eq!(front_end.set_bandwidth("TX1", 1e9), Ok(1e9));
        assert_eq!(front_end.tune("RX1", f64::NAN, 0), Err("NaN is not a frequency".to_owned()));
        assert!(front_end.set_gain("RX3", 0.0).unwrap_err().contains("there are RX1"));
    }

    #[test]
    fn the_oscillator_of_the_tuned_direction_locks_after_a_millisecond() {
        let mut front_end = FrontEnd::new(FrontEndKind::Ad9361, true);
        front_end.tune("RX2", 1e9, 5_000_000).unwrap();
        assert!(!front_end.is_locked(true, 5_999_999) && front_end.is_locked(true, 6_000_000));
        assert!(front_end.is_locked(false, 5_000_000));
    }
}
