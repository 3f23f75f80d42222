//! The daughterboard of the N310: how its gain is split, and its oscillators of the low band.
//!
//! The values are those that stock UHD 4.3 sends at each frequency, antenna and gain, as a device
//! on the wire sees them.

use millstream_wire::regs::front_end::adf4351::AdfSettings;
use millstream_wire::regs::front_end::band;
use millstream_wire::regs::front_end::magnesium::CLOSED;

use crate::graph::StreamDirection;

/// Below this an oscillator of the board moves the signals to the transceiver, Hz.
const LOW_BAND_HZ: f64 = 300e6;
/// Where the transceiver finds them, Hz: receiver and transmitter.
const RX_MIDDLE_HZ: f64 = 2441.8e6;
const TX_MIDDLE_HZ: f64 = 1950e6;

/// The gain of the transmitter's transceiver at a gain of 0, dB.
const TX_LOWEST_DB: f64 = 21.95;

/// A gain from which on a split changes evenly: gain, that of the transceiver beyond its lowest,
/// and the attenuator's steps.
type Support = (f64, f64, f64);

/// The splits around the amplifier, and those with it from a gain on; by the beginning of the band.
struct Splits {
    around: &'static [Support],
    amplified: &'static [Support],
}

const RX_SPLITS: [(f64, &Splits); 3] = [
    (
        0.0,
        &Splits {
            around: &[
                (0.0, 0.0, 60.0),
                (5.0, 5.0, 60.0),
                (10.0, 5.0, 50.0),
                (15.0, 10.0, 50.0),
                (20.0, 10.0, 40.0),
                (25.0, 15.0, 40.0),
                (35.0, 15.0, 20.0),
                (40.0, 20.0, 20.0),
                (49.5, 20.0, 1.0),
            ],
            amplified: &[
                (50.0, 15.0, 30.0),
                (55.0, 15.0, 20.0),
                (60.0, 20.0, 20.0),
                (70.0, 20.0, 0.0),
                (75.0, 25.0, 0.0),
            ],
        },
    ),
    (
        300e6,
        &Splits {
            around: &[
                (0.0, 0.0, 60.0),
                (15.0, 15.0, 60.0),
                (40.0, 15.0, 10.0),
                (45.0, 20.0, 10.0),
                (49.5, 20.0, 1.0),
            ],
            amplified: &[
                (50.0, 15.0, 30.0),
                (60.0, 25.0, 30.0),
                (65.0, 25.0, 20.0),
                (70.0, 30.0, 20.0),
                (75.0, 30.0, 10.0),
            ],
        },
    ),
    (
        1600e6,
        &Splits {
            around: &[
                (0.0, 0.0, 60.0),
                (15.0, 15.0, 60.0),
                (30.0, 15.0, 30.0),
                (35.0, 20.0, 30.0),
                (49.5, 20.0, 1.0),
            ],
            amplified: &[
                (50.0, 15.0, 30.0),
                (55.0, 20.0, 30.0),
                (60.0, 20.0, 20.0),
                (65.0, 25.0, 20.0),
                (70.0, 25.0, 10.0),
                (75.0, 30.0, 10.0),
            ],
        },
    ),
];

const TX_SPLITS: [(f64, &Splits); 2] = [
    (
        0.0,
        &Splits {
            around: &[(0.0, 0.0, 60.0), (30.0, 0.0, 0.0), (39.5, 9.5, 0.0)],
            amplified: &[(40.0, 5.0, 20.0), (50.0, 5.0, 0.0), (65.0, 20.0, 0.0)],
        },
    ),
    (
        300e6,
        &Splits {
            around: &[(0.0, 0.0, 60.0), (30.0, 0.0, 0.0), (34.5, 4.5, 0.0)],
            amplified: &[(35.0, 0.0, 10.0), (40.0, 0.0, 0.0), (60.0, 20.0, 0.0), (65.0, 20.0, 0.0)],
        },
    ),
];

/// The parts of a gain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GainSplit {
    /// The gain of the transceiver, dB.
    pub transceiver_db: f64,
    /// The steps of the attenuator, 0.5 dB each.
    pub attenuator: u8,
    /// The signals pass the filters and the amplifier, and not the way around them.
    pub amplified: bool,
}

impl GainSplit {
    /// Returns the parts of a gain at a frequency, to half a decibel.
    pub fn of(direction: StreamDirection, hz: f64, gain_db: f64) -> Self {
        let gain_db = (gain_db * 2.0).round() / 2.0;
        let (splits, lowest_db) = match direction {
            StreamDirection::Rx => (band(&RX_SPLITS, hz), 0.0),
            StreamDirection::Tx => (band(&TX_SPLITS, hz), TX_LOWEST_DB),
        };
        let amplified = gain_db >= splits.amplified[0].0;
        let supports = if amplified { splits.amplified } else { splits.around };
        let above = supports.iter().position(|support| support.0 >= gain_db);
        let above = above.unwrap_or(supports.len() - 1);
        let (low, high) = (supports[above.saturating_sub(1)], supports[above]);
        let part = if high.0 > low.0 { (gain_db - low.0) / (high.0 - low.0) } else { 1.0 };
        let between = |from: f64, to: f64| from + part.clamp(0.0, 1.0) * (to - from);
        Self {
            transceiver_db: lowest_db + between(low.1, high.1),
            attenuator: between(low.2, high.2).round() as u8,
            amplified,
        }
    }

    /// Returns the parts where no gain was set: the receiver's attenuator is open, and the
    /// transmitter's is closed.
    pub fn unset(direction: StreamDirection) -> Self {
        match direction {
            StreamDirection::Rx => Self { attenuator: 0, ..Self::of(direction, 1e9, 0.0) },
            StreamDirection::Tx => Self { attenuator: CLOSED, ..Self::of(direction, 1e9, 0.0) },
        }
    }
}

/// Returns the settings of the board's oscillator for signals at `hz`, from the master clock as
/// reference; `None` where the transceiver takes them as they are.
pub(crate) fn low_band(direction: StreamDirection, hz: f64, clock_hz: f64) -> Option<AdfSettings> {
    let middle_hz = match direction {
        StreamDirection::Rx => RX_MIDDLE_HZ,
        StreamDirection::Tx => TX_MIDDLE_HZ,
    };
    (hz < LOW_BAND_HZ).then(|| AdfSettings::nearest(middle_hz - hz, clock_hz))
}

/// Returns settings of the board's oscillator for the time when it is off.
pub(crate) fn idle_oscillator(clock_hz: f64) -> AdfSettings {
    AdfSettings::nearest(TX_MIDDLE_HZ, clock_hz)
}

#[cfg(test)]
mod tests {
    use super::*;
    use StreamDirection::{Rx, Tx};

    /// The gain of the transceiver and the word of the attenuator that UHD 4.3 sends.
    #[test]
    fn gains_are_split_as_uhd_does() {
        let rx = |hz, gain_db| {
            let GainSplit { transceiver_db, attenuator, amplified } =
                GainSplit::of(Rx, hz, gain_db);
            (transceiver_db, attenuator, amplified)
        };
        for (gain_db, low, middle, high) in [
            (0.0, (0.0, 60), (0.0, 60), (0.0, 60)),
            (8.0, (5.0, 54), (8.0, 60), (8.0, 60)),
            (10.6, (5.5, 50), (10.5, 60), (10.5, 60)),
            (17.0, (10.0, 46), (15.0, 56), (15.0, 56)),
            (31.0, (15.0, 28), (15.0, 28), (16.0, 30)),
            (33.0, (15.0, 24), (15.0, 24), (18.0, 30)),
            (42.0, (20.0, 16), (17.0, 10), (20.0, 16)),
            (49.0, (20.0, 2), (20.0, 2), (20.0, 2)),
            (50.0, (15.0, 30), (15.0, 30), (15.0, 30)),
            (54.0, (15.0, 22), (19.0, 30), (19.0, 30)),
            (63.0, (20.0, 14), (25.0, 24), (23.0, 20)),
            (68.0, (20.0, 4), (28.0, 20), (25.0, 14)),
            (75.0, (25.0, 0), (30.0, 10), (30.0, 10)),
        ] {
            for (hz, (transceiver_db, attenuator)) in
                [(200e6, low), (300e6, middle), (1599e6, middle), (1600e6, high), (6e9, high)]
            {
                let want = (transceiver_db, attenuator, gain_db >= 50.0);
                assert_eq!(rx(hz, gain_db), want, "{hz} Hz, {gain_db} dB");
            }
        }
        for (gain_db, low, high) in [
            (0.0, (0.0, 60, false), (0.0, 60, false)),
            (22.0, (0.0, 16, false), (0.0, 16, false)),
            (34.0, (4.0, 0, false), (4.0, 0, false)),
            (35.0, (5.0, 0, false), (0.0, 10, true)),
            (41.0, (5.0, 18, true), (1.0, 0, true)),
            (58.0, (13.0, 0, true), (18.0, 0, true)),
            (65.0, (20.0, 0, true), (20.0, 0, true)),
        ] {
            for (hz, (more_db, attenuator, amplified)) in [(299e6, low), (300e6, high), (6e9, high)]
            {
                let got = GainSplit::of(Tx, hz, gain_db);
                assert!((got.transceiver_db - 21.95 - more_db).abs() < 1e-9, "{hz} {gain_db}");
                assert_eq!(
                    (got.attenuator, got.amplified),
                    (attenuator, amplified),
                    "{hz} {gain_db}"
                );
            }
        }
    }

    #[test]
    fn the_low_band_has_an_oscillator() {
        assert_eq!((low_band(Rx, 300e6, 125e6), low_band(Tx, 300e6, 125e6)), (None, None));
        let of = |direction, hz| low_band(direction, hz, 125e6).unwrap().freq_hz();
        assert!((of(Rx, 100e6) - 2341.8e6).abs() < 4e3);
        assert_eq!(of(Tx, 100e6), 1850e6);
    }
}
