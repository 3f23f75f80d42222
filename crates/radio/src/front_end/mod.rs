//! The analogue part of a radio, between antenna and converter: frequency, gain, antenna,
//! bandwidth.
//!
//! A product is a row of a table ([`RadioFrontEnd::of`]): the names of its methods and its ranges.
//! What is set by registers is in [`millstream_wire::regs::front_end`]. A product without a row
//! streams as well; another program has to set its front end.

pub(crate) mod magnesium;
pub(crate) mod spi;

use crate::graph::StreamDirection;

/// A wanted centre frequency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TuneRequest {
    /// The frequency in the middle of the stream's band, Hz.
    pub freq_hz: f64,
    /// How far above it the local oscillator is tuned, Hz; the DDC or DUC shifts the rest. An
    /// offset moves the oscillator's own leakage out of the band.
    pub lo_offset_hz: f64,
}

impl TuneRequest {
    /// Returns a request without an offset.
    #[must_use]
    pub fn new(freq_hz: f64) -> Self {
        Self { freq_hz, lo_offset_hz: 0.0 }
    }

    /// Sets how far above the frequency the local oscillator is tuned, Hz.
    #[must_use]
    pub fn with_lo_offset(mut self, lo_offset_hz: f64) -> Self {
        self.lo_offset_hz = lo_offset_hz;
        self
    }
}

/// The frequencies that a radio took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TuneResult {
    /// The frequency in the middle of the stream's band, Hz.
    pub freq_hz: f64,
    /// The local oscillator, Hz.
    pub rf_hz: f64,
    /// The shift of the spectrum by the DDC or DUC, Hz; 0 without one.
    pub dsp_hz: f64,
}

impl TuneResult {
    /// Returns the shift of the spectrum with which `freq_hz` is in the middle of the stream's
    /// band, while the local oscillator is at `rf_hz`. A positive shift moves the spectrum up.
    pub(crate) fn shift_hz(direction: StreamDirection, freq_hz: f64, rf_hz: f64) -> f64 {
        match direction {
            StreamDirection::Rx => rf_hz - freq_hz,
            StreamDirection::Tx => freq_hz - rf_hz,
        }
    }

    /// Returns the result of an oscillator at `rf_hz` and a shift of `dsp_hz`.
    pub(crate) fn of(direction: StreamDirection, rf_hz: f64, dsp_hz: f64) -> Self {
        let freq_hz = match direction {
            StreamDirection::Rx => rf_hz - dsp_hz,
            StreamDirection::Tx => rf_hz + dsp_hz,
        };
        Self { freq_hz, rf_hz, dsp_hz }
    }
}

/// The ranges of a front end in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrontEndRanges {
    /// Local oscillator, Hz.
    pub freq_hz: (f64, f64),
    /// Gain, dB; `None` where this host does not know it.
    pub gain_db: Option<(f64, f64)>,
    /// Bandwidth of the analogue filter, Hz; `None` where this host does not know it.
    pub bandwidth_hz: Option<(f64, f64)>,
    /// Antennas; empty where this host cannot select one.
    pub antennas: &'static [&'static str],
}

/// How the local oscillator is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Oscillator {
    /// By a method of this name.
    Method(&'static str),
    /// By a method of this name, and below 300 MHz by a further oscillator, see [`magnesium`].
    Transceiver(&'static str),
    /// By the registers of a synthesiser.
    Synthesiser,
}

/// How the gain is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GainControl {
    /// By a method of this name.
    Method(&'static str),
    /// By a method of this name, an attenuator in the words of the switches, and an amplifier.
    Split(&'static str),
    /// By an index of a table in a CPLD.
    Index,
}

/// The methods and ranges of a product's front end.
#[derive(Debug)]
pub struct RadioFrontEnd {
    /// Names of products, or their beginnings.
    products: &'static [&'static str],
    pub(crate) oscillator: Oscillator,
    pub(crate) gain: GainControl,
    pub(crate) bandwidth: Option<&'static str>,
    pub(crate) agc: Option<&'static str>,
    /// Every radio has a daughterboard of its own.
    board_per_radio: bool,
    /// Channel 0 has the second chain.
    swapped: bool,
    /// It has the switches and LEDs of the E320.
    pub(crate) has_switches: bool,
    /// Its chains are powered by a method, as those of an AD936x.
    pub(crate) powers_chains: bool,
    rx: FrontEndRanges,
    tx: FrontEndRanges,
}

const E3XX_RX: FrontEndRanges = FrontEndRanges {
    freq_hz: (70e6, 6e9),
    gain_db: Some((0.0, 76.0)),
    bandwidth_hz: Some((0.2e6, 56e6)),
    antennas: &["RX2", "TX/RX"],
};

const E3XX_TX: FrontEndRanges = FrontEndRanges {
    freq_hz: (47e6, 6e9),
    gain_db: Some((0.0, 89.75)),
    antennas: &["TX/RX"],
    ..E3XX_RX
};

const E320: RadioFrontEnd = RadioFrontEnd {
    products: &["e320"],
    oscillator: Oscillator::Method("catalina_tune"),
    gain: GainControl::Method("set_gain"),
    bandwidth: Some("set_bw_filter"),
    agc: Some("set_agc"),
    board_per_radio: false,
    swapped: false,
    has_switches: true,
    powers_chains: true,
    rx: E3XX_RX,
    tx: E3XX_TX,
};

const N310_RX: FrontEndRanges = FrontEndRanges {
    freq_hz: (1e6, 6e9),
    gain_db: Some((0.0, 75.0)),
    bandwidth_hz: None,
    antennas: &["RX2", "TX/RX"],
};

const N310_TX: FrontEndRanges =
    FrontEndRanges { gain_db: Some((0.0, 65.0)), antennas: &["TX/RX"], ..N310_RX };

const N320_RX: FrontEndRanges = FrontEndRanges {
    freq_hz: (3e6, 6e9),
    gain_db: Some((0.0, 60.0)),
    bandwidth_hz: None,
    antennas: &["RX2", "TX/RX"],
};

const N320_TX: FrontEndRanges = FrontEndRanges { antennas: &["TX/RX"], ..N320_RX };

static FRONT_ENDS: [RadioFrontEnd; 4] = [
    E320,
    // Its switches differ from the E320's.
    RadioFrontEnd {
        products: &["e310"],
        swapped: true,
        has_switches: false,
        rx: FrontEndRanges { antennas: &[], ..E3XX_RX },
        tx: FrontEndRanges { antennas: &[], ..E3XX_TX },
        ..E320
    },
    RadioFrontEnd {
        products: &["n310", "n300"],
        oscillator: Oscillator::Transceiver("set_freq"),
        gain: GainControl::Split("set_gain"),
        bandwidth: Some("set_bandwidth"),
        agc: None,
        board_per_radio: true,
        swapped: false,
        has_switches: false,
        powers_chains: false,
        rx: N310_RX,
        tx: N310_TX,
    },
    RadioFrontEnd {
        products: &["n320", "n321"],
        oscillator: Oscillator::Synthesiser,
        gain: GainControl::Index,
        bandwidth: None,
        agc: None,
        board_per_radio: true,
        swapped: false,
        has_switches: false,
        powers_chains: false,
        rx: N320_RX,
        tx: N320_TX,
    },
];

impl RadioFrontEnd {
    /// Returns the front end of a product; `None` for one that this host cannot tune.
    pub fn of(product: &str) -> Option<&'static Self> {
        let is_it = |name: &&str| product.starts_with(*name);
        FRONT_ENDS.iter().find(|front_end| front_end.products.iter().any(is_it))
    }

    /// Returns its ranges.
    pub fn ranges(&self, direction: StreamDirection) -> &FrontEndRanges {
        match direction {
            StreamDirection::Rx => &self.rx,
            StreamDirection::Tx => &self.tx,
        }
    }

    /// Returns the name of a chain, from its radio's channel: `RX1`.
    pub(crate) fn chain(&self, direction: StreamDirection, channel: u8) -> &'static str {
        match (direction, (channel & 1) ^ u8::from(self.swapped)) {
            (StreamDirection::Rx, 0) => "RX1",
            (StreamDirection::Rx, _) => "RX2",
            (StreamDirection::Tx, 0) => "TX1",
            (StreamDirection::Tx, _) => "TX2",
        }
    }

    /// Returns a method of the daughterboard of the radio number `radio`.
    pub(crate) fn method(&self, radio: usize, name: &str) -> String {
        format!("db_{}_{name}", if self.board_per_radio { radio } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_have_their_methods_and_chains() {
        let e320 = RadioFrontEnd::of("e320").unwrap();
        assert_eq!(e320.oscillator, Oscillator::Method("catalina_tune"));
        assert_eq!(e320.method(0, "catalina_tune"), "db_0_catalina_tune");
        assert_eq!(
            (e320.chain(StreamDirection::Rx, 0), e320.chain(StreamDirection::Tx, 1)),
            ("RX1", "TX2")
        );
        let e310 = RadioFrontEnd::of("e310_sg3").unwrap();
        assert_eq!(
            (e310.chain(StreamDirection::Rx, 0), e310.chain(StreamDirection::Tx, 1)),
            ("RX2", "TX1")
        );
        let n310 = RadioFrontEnd::of("n310").unwrap();
        assert_eq!(n310.method(1, "set_freq"), "db_1_set_freq");
        assert_eq!(RadioFrontEnd::of("n321").unwrap().oscillator, Oscillator::Synthesiser);
        assert!(RadioFrontEnd::of("x410").is_none() && RadioFrontEnd::of("").is_none());
    }

    #[test]
    fn the_shift_brings_the_wanted_frequency_to_the_middle() {
        for direction in [StreamDirection::Rx, StreamDirection::Tx] {
            let shift_hz = TuneResult::shift_hz(direction, 100e6, 103e6);
            let result = TuneResult::of(direction, 103e6, shift_hz);
            assert_eq!((result.freq_hz, result.rf_hz), (100e6, 103e6));
        }
        assert_eq!(TuneResult::shift_hz(StreamDirection::Rx, 100e6, 103e6), 3e6);
    }
}
