//! The settings of a front end that remote procedure calls change.

use crate::personality::FrontEndKind;

/// The most channels of a daughterboard.
pub(super) const BOARD_CHANNELS: usize = 2;

/// How long an oscillator is not locked behind a tune.
const LOCK_NS: u64 = 1_000_000;

/// How a number becomes a whole one.
type Whole = fn(f64) -> f64;

/// What a transceiver takes. Pairs are for receiving and transmitting.
struct Limits {
    lo_hz: [(f64, f64); 2],
    /// The frequency of an oscillator that is set to one in this range.
    oscillator_hz: fn(f64) -> f64,
    /// The largest gain, dB; the steps of a decibel, and how a value between them becomes one.
    gain_db: [(f64, f64, Whole); 2],
    bandwidth_hz: (f64, f64),
}

static AD9361: Limits = Limits {
    lo_hz: [(70e6, 6e9), (47e6, 6e9)],
    oscillator_hz: ad9361_hz,
    gain_db: [(76.0, 1.0, f64::trunc), (89.75, 4.0, f64::round)],
    bandwidth_hz: (0.2e6, 56e6),
};

static AD9371: Limits = Limits {
    lo_hz: [(300e6, 6e9); 2],
    oscillator_hz: |hz| hz,
    gain_db: [(30.0, 2.0, f64::round), (41.95, 20.0, f64::round)],
    bandwidth_hz: (20e6, 100e6),
};

/// Returns the frequency of an oscillator of an AD9361 that is set to `wanted_hz`: at most one step
/// below.
fn ad9361_hz(wanted_hz: f64) -> f64 {
    /// The oscillator's range is an octave from here.
    const VCO_HZ: f64 = 6e9;
    const REFERENCE_HZ: f64 = 80e6;
    const MODULUS: f64 = 8_388_593.0;
    let mut divider = 2.0;
    while wanted_hz * divider < VCO_HZ {
        divider *= 2.0;
    }
    let ratio = wanted_hz * divider / REFERENCE_HZ;
    let fraction = (ratio.fract() * MODULUS).trunc();
    REFERENCE_HZ * (ratio.trunc() + fraction / MODULUS) / divider
}

/// The settings of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tuning {
    /// Both channels have the same oscillator.
    pub lo_hz: f64,
    pub gain_db: [f64; BOARD_CHANNELS],
    pub bandwidth_hz: [f64; BOARD_CHANNELS],
    /// When the oscillator will be locked.
    locked_ns: u64,
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
        Self { lo_hz, gain_db: [0.0; BOARD_CHANNELS], bandwidth_hz, locked_ns: 0 }
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
}

impl FrontEnd {
    /// Returns the state after power-on.
    pub fn new(kind: FrontEndKind, limited: bool) -> Self {
        Self { kind, rx: Tuning::new(kind), tx: Tuning::new(kind), limited }
    }

    /// Returns its kind.
    pub fn kind(&self) -> FrontEndKind {
        self.kind
    }

    /// Restores the state after power-on.
    pub fn reset(&mut self) {
        *self = Self::new(self.kind, self.limited);
    }

    fn limits(&self) -> Option<&'static Limits> {
        match self.kind {
            _ if !self.limited => None,
            FrontEndKind::Ad9361 | FrontEndKind::Ad9361Swapped => Some(&AD9361),
            FrontEndKind::Ad9371 => Some(&AD9371),
            FrontEndKind::Lmx2592 | FrontEndKind::Zbx => None,
        }
    }

    /// Tunes the direction of a chain; returns the actual frequency.
    pub fn tune(&mut self, chain: &str, wanted_hz: f64, now_ns: u64) -> Result<f64, String> {
        let (direction, _) = named(chain)?;
        let hz = number("a frequency", wanted_hz)?;
        let actual = self.limits().map_or(hz, |limits| {
            let (low, high) = limits.lo_hz[direction];
            (limits.oscillator_hz)(hz.clamp(low, high))
        });
        let tuning = self.tuning_mut(direction);
        (tuning.lo_hz, tuning.locked_ns) = (actual, now_ns + LOCK_NS);
        Ok(actual)
    }

    /// Sets the gain of a chain; returns the actual one.
    pub fn set_gain(&mut self, chain: &str, wanted_db: f64) -> Result<f64, String> {
        let (direction, channel) = named(chain)?;
        let db = number("a gain", wanted_db)?;
        let actual = self.limits().map_or(db, |limits| {
            let (most_db, steps, whole) = limits.gain_db[direction];
            whole(db.clamp(0.0, most_db) * steps) / steps
        });
        self.tuning_mut(direction).gain_db[channel] = actual;
        Ok(actual)
    }

    /// Sets the bandwidth of a chain; returns the actual one.
    pub fn set_bandwidth(&mut self, chain: &str, wanted_hz: f64) -> Result<f64, String> {
        let (direction, channel) = named(chain)?;
        let hz = number("a bandwidth", wanted_hz)?;
        let (low, high) = self.limits().map_or((hz, hz), |limits| limits.bandwidth_hz);
        let actual = hz.clamp(low, high);
        self.tuning_mut(direction).bandwidth_hz[channel] = actual;
        Ok(actual)
    }

    /// Returns the frequency of a chain.
    pub fn frequency_hz(&self, chain: &str) -> Result<f64, String> {
        named(chain).map(|(direction, _)| self.tuning(direction).lo_hz)
    }

    /// Returns the gain of a chain.
    pub fn gain_db(&self, chain: &str) -> Result<f64, String> {
        named(chain).map(|(direction, channel)| self.tuning(direction).gain_db[channel])
    }

    /// Returns the bandwidth of a chain.
    pub fn bandwidth_hz(&self, chain: &str) -> Result<f64, String> {
        named(chain).map(|(direction, channel)| self.tuning(direction).bandwidth_hz[channel])
    }

    /// Returns whether the oscillator of a direction is locked.
    pub fn is_locked(&self, is_rx: bool, now_ns: u64) -> bool {
        now_ns >= if is_rx { self.rx.locked_ns } else { self.tx.locked_ns }
    }

    fn tuning(&self, direction: usize) -> &Tuning {
        if direction == 0 { &self.rx } else { &self.tx }
    }

    fn tuning_mut(&mut self, direction: usize) -> &mut Tuning {
        if direction == 0 { &mut self.rx } else { &mut self.tx }
    }
}

/// Returns direction (0 receives, 1 transmits) and channel of `RX1`, `RX2`, `TX1` or `TX2`; without
/// a number the first of a direction.
fn named(chain: &str) -> Result<(usize, usize), String> {
    match chain {
        "RX1" | "RX" => Ok((0, 0)),
        "RX2" => Ok((0, 1)),
        "TX1" | "TX" => Ok((1, 0)),
        "TX2" => Ok((1, 1)),
        _ => Err(format!("there is no chain {chain}; there are RX1, RX2, TX1, TX2")),
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

    #[test]
    fn an_oscillator_has_steps_below_ten_hertz_and_is_never_above() {
        assert_eq!(ad9361_hz(2.4e9), 2.4e9);
        assert!((ad9361_hz(2.45e9) - 2.45e9 + 1.19).abs() < 0.01);
        for wanted_hz in [47e6, 70e6, 98.1e6, 433.92e6, 915e6, 1.575_42e9, 5.9e9, 6e9] {
            let below = wanted_hz - ad9361_hz(wanted_hz);
            assert!((-1e-6..9.6).contains(&below), "{wanted_hz}: {below}");
        }
    }
}
