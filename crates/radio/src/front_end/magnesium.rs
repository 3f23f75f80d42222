//! The daughterboard of the N310: the words of its CPLD, and how its gain is split.
//!
//! The values are those that stock UHD 4.3 sends at each frequency, antenna and gain, as a device
//! on the wire sees them.

use super::adf4351::AdfSettings;
use super::e3xx::RxAntenna;
use super::rhodium::band;
use crate::graph::StreamDirection;

/// Below this an oscillator of the board moves the signals to the transceiver, Hz.
const LOW_BAND_HZ: f64 = 300e6;
/// Where the transceiver finds them, Hz: receiver and transmitter.
const RX_MIDDLE_HZ: f64 = 2441.8e6;
const TX_MIDDLE_HZ: f64 = 1950e6;

/// The first register of a channel's paths, and the distance of two channels.
const PATHS: u32 = 0x50;
const CHANNEL: u32 = 0x10;

/// Beginnings of bands, Hz, with the words of the receiver's filters and its amplifier.
const RX_BANDS: [(f64, (u32, u32)); 8] = [
    (0.0, (0x1217, 0xB9)),
    (300e6, (0x1217, 0xA1)),
    (430e6, (0x0647, 0xA1)),
    (600e6, (0x2257, 0xA1)),
    (1050e6, (0x0A67, 0xA1)),
    (1600e6, (0x0527, 0x62)),
    (2100e6, (0x0487, 0x62)),
    (2700e6, (0x067F, 0x62)),
];

/// The same around them.
const RX_AROUND: [(f64, (u32, u32)); 2] = [(0.0, (0x08FB, 0x3C)), (300e6, (0x08FB, 0x24))];

/// Beginnings of bands with the word of the transmitter's filters and its amplifier.
const TX_BANDS: [(f64, u32); 5] =
    [(0.0, 0x6793), (300e6, 0x6613), (723.17e6, 0x6609), (1623.17e6, 0x6606), (3323.17e6, 0x6E20)];

/// The same around them.
const TX_AROUND: [(f64, u32); 2] = [(0.0, 0x7FE0), (300e6, 0x7E60)];

/// The transmitter while the radio does not transmit, and the bits for its path to the connector.
const TX_IDLE: u32 = 0x4604;
const CONNECTOR: u32 = 3 << 11;
/// The connector belongs to the receiver.
const CONNECTOR_RECEIVES: u32 = 2 << 11;

/// The receiver's second word: its inputs are off; `RX2`, and `TX/RX`.
const INPUT_OFF: u32 = 0x400;
const INPUT_RX2: u32 = 0x500;
const INPUT_TX_RX: u32 = 0x600;

/// The gain of the transmitter's transceiver at a gain of 0, dB.
const TX_LOWEST_DB: f64 = 21.95;
/// Steps of an attenuator, 0.5 dB each, when it is closed.
const CLOSED: u8 = 60;

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

/// The settings that the paths of a channel depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MagnesiumPaths {
    /// The channel of the radio.
    pub channel: u8,
    /// The frequency of the receiver, Hz, and whether it uses its amplifier.
    pub rx: (f64, bool),
    /// The same of the transmitter.
    pub tx: (f64, bool),
    /// The receiver's antenna.
    pub antenna: RxAntenna,
}

impl MagnesiumPaths {
    /// Returns the words of the CPLD: the transmitter and the receiver while the radio is idle, and
    /// while it transmits and receives.
    pub fn cpld(&self) -> [u32; 6] {
        let ((rx_hz, rx_amplified), (tx_hz, tx_amplified)) = (self.rx, self.tx);
        let (filters, gains) =
            band(if rx_amplified { &RX_BANDS[..] } else { &RX_AROUND[..] }, rx_hz);
        let tx = band(if tx_amplified { &TX_BANDS[..] } else { &TX_AROUND[..] }, tx_hz);
        let (connector, input, select) = match self.antenna {
            RxAntenna::Rx2 => (tx & CONNECTOR, INPUT_RX2, 3),
            RxAntenna::TxRx => (CONNECTOR_RECEIVES, INPUT_TX_RX, 2),
        };
        let words = [
            TX_IDLE | connector,
            filters,
            INPUT_OFF | gains,
            tx,
            filters & !3 | select,
            input | gains,
        ];
        let first = PATHS + CHANNEL * u32::from(self.channel & 1);
        let mut numbered = (first..).zip(words).map(|(register, word)| register << 16 | word);
        [(); 6].map(|()| numbered.next().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use StreamDirection::{Rx, Tx};

    /// What UHD 4.3 sends at these frequencies, antennas and gains: registers 0x50 to 0x55.
    #[test]
    fn the_paths_are_those_that_uhd_sends() {
        use RxAntenna::{Rx2, TxRx};
        for (antenna, rx, tx, want) in [
            (Rx2, (1e9, false), (1e9, false), [0x5E04, 0x08FB, 0x0424, 0x7E60, 0x08FB, 0x0524]),
            (TxRx, (1e9, false), (1e9, true), [0x5604, 0x08FB, 0x0424, 0x6609, 0x08FA, 0x0624]),
            (Rx2, (1e9, false), (1e9, true), [0x4604, 0x08FB, 0x0424, 0x6609, 0x08FB, 0x0524]),
            (Rx2, (100e6, true), (6e9, true), [0x4E04, 0x1217, 0x04B9, 0x6E20, 0x1217, 0x05B9]),
            (TxRx, (500e6, true), (6e9, true), [0x5604, 0x0647, 0x04A1, 0x6E20, 0x0646, 0x06A1]),
            (Rx2, (200e6, false), (200e6, false), [0x5E04, 0x08FB, 0x043C, 0x7FE0, 0x08FB, 0x053C]),
            (Rx2, (700e6, true), (700e6, true), [0x4604, 0x2257, 0x04A1, 0x6613, 0x2257, 0x05A1]),
            (Rx2, (1.5e9, true), (1.5e9, true), [0x4604, 0x0A67, 0x04A1, 0x6609, 0x0A67, 0x05A1]),
            (Rx2, (2e9, true), (2e9, true), [0x4604, 0x0527, 0x0462, 0x6606, 0x0527, 0x0562]),
            (Rx2, (2.5e9, true), (3.3e9, true), [0x4604, 0x0487, 0x0462, 0x6606, 0x0487, 0x0562]),
            (Rx2, (3e9, true), (0.3e9, true), [0x4604, 0x067F, 0x0462, 0x6613, 0x067F, 0x0562]),
        ] {
            for channel in [0, 1] {
                let words = MagnesiumPaths { channel, rx, tx, antenna }.cpld();
                let first = 0x50 + 0x10 * u32::from(channel);
                let words = words.map(|word| (word >> 16, word & 0xFFFF));
                let want: Vec<_> = (first..).zip(want).collect();
                assert_eq!(words.to_vec(), want, "{rx:?} {tx:?} {antenna:?}");
            }
        }
    }

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
