//! The settings of the front end, as remote procedure calls change them.

use super::ad9361::{BANDWIDTH_HZ, RX_GAIN_DB, RX_HZ, TX_GAIN_DB, TX_HZ, oscillator_hz};
use crate::config::CHANNELS;

/// How long an oscillator is not locked behind a tune.
const LOCK_NS: u64 = 1_000_000;

/// The settings of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tuning {
    /// Both channels have the same oscillator.
    pub lo_hz: f64,
    pub gain_db: [f64; CHANNELS],
    pub bandwidth_hz: [f64; CHANNELS],
}

impl Default for Tuning {
    /// The state after power-on.
    fn default() -> Self {
        Self { lo_hz: 2.4e9, gain_db: [0.0; CHANNELS], bandwidth_hz: [40e6; CHANNELS] }
    }
}

/// Both directions, and their limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FrontEnd {
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
    pub fn new(limited: bool) -> Self {
        let (rx, tx) = (Tuning::default(), Tuning::default());
        Self { rx, tx, limited, rx_locked_ns: 0, tx_locked_ns: 0 }
    }

    /// Restores the state after power-on.
    pub fn reset(&mut self) {
        *self = Self::new(self.limited);
    }

    /// Tunes the direction of a chain; returns the actual frequency.
    pub fn tune(&mut self, chain: &str, wanted_hz: f64, now_ns: u64) -> Result<f64, String> {
        let chain = Chain::named(chain)?;
        let hz = number("a frequency", wanted_hz)?;
        let range = if chain.is_rx { RX_HZ } else { TX_HZ };
        let hz =
            if self.limited { oscillator_hz(hz.clamp(*range.start(), *range.end())) } else { hz };
        self.tuning(&chain).lo_hz = hz;
        *(if chain.is_rx { &mut self.rx_locked_ns } else { &mut self.tx_locked_ns }) =
            now_ns + LOCK_NS;
        Ok(hz)
    }

    /// Sets the gain of a chain; returns the actual one.
    pub fn set_gain(&mut self, chain: &str, wanted_db: f64) -> Result<f64, String> {
        let chain = Chain::named(chain)?;
        let db = number("a gain", wanted_db)?;
        let actual = match (self.limited, chain.is_rx) {
            (false, _) => db,
            (true, true) => db.clamp(*RX_GAIN_DB.start(), *RX_GAIN_DB.end()).trunc(),
            (true, false) => (db.clamp(*TX_GAIN_DB.start(), *TX_GAIN_DB.end()) * 4.0).round() / 4.0,
        };
        let channel = chain.channel;
        self.tuning(&chain).gain_db[channel] = actual;
        Ok(actual)
    }

    /// Sets the bandwidth of a chain; returns the actual one.
    pub fn set_bandwidth(&mut self, chain: &str, wanted_hz: f64) -> Result<f64, String> {
        let chain = Chain::named(chain)?;
        let hz = number("a bandwidth", wanted_hz)?;
        let actual =
            if self.limited { hz.clamp(*BANDWIDTH_HZ.start(), *BANDWIDTH_HZ.end()) } else { hz };
        let channel = chain.channel;
        self.tuning(&chain).bandwidth_hz[channel] = actual;
        Ok(actual)
    }

    /// Returns whether the oscillator of a direction is locked.
    pub fn is_locked(&self, is_rx: bool, now_ns: u64) -> bool {
        now_ns >= if is_rx { self.rx_locked_ns } else { self.tx_locked_ns }
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

fn number(what: &str, value: f64) -> Result<f64, String> {
    if value.is_finite() { Ok(value) } else { Err(format!("{value} is not {what}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_front_end_takes_the_nearest_value_of_the_hardware() {
        let mut front_end = FrontEnd::new(true);
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
        assert_eq!(front_end, FrontEnd::new(true));
    }

    #[test]
    fn one_without_limits_takes_any_number() {
        let mut front_end = FrontEnd::new(false);
        assert_eq!(front_end.tune("RX1", 1.234e3, 0), Ok(1234.0));
        assert_eq!(front_end.set_gain("TX1", 123.4), Ok(123.4));
        assert_eq!(front_end.set_bandwidth("TX1", 1e9), Ok(1e9));
        assert_eq!(front_end.tune("RX1", f64::NAN, 0), Err("NaN is not a frequency".to_owned()));
        assert!(front_end.set_gain("RX3", 0.0).unwrap_err().contains("there are RX1"));
    }

    #[test]
    fn the_oscillator_of_the_tuned_direction_locks_after_a_millisecond() {
        let mut front_end = FrontEnd::new(true);
        front_end.tune("RX2", 1e9, 5_000_000).unwrap();
        assert!(!front_end.is_locked(true, 5_999_999) && front_end.is_locked(true, 6_000_000));
        assert!(front_end.is_locked(false, 5_000_000));
    }
}
