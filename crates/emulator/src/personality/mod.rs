//! The kinds of device that this radio can be, as data.

mod image;

pub(crate) use image::{Block, BlockKind, Image, ImageOptions};

use crate::generation::Generation;
use millstream_wire::regs::client_zero::device_type;

/// A device that the radio can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceKind {
    /// An E320 with an image that has the radio block alone: samples of the host go to the
    /// converters as they are, and tuning has no effect.
    #[default]
    E320Radio,
    /// An E320 with its stock image: DUC, radio and DDC.
    E320,
    /// An E310 with its stock image, which has the radio block alone.
    E310,
    /// An N310 with its stock image: two radios of two channels, each with DUC and DDC, and a
    /// replay block.
    N310,
    /// An N320 with its stock image: two radios of one channel, each with DUC and DDC, and a replay
    /// block.
    N320,
    /// An X410 with its image of 200 MHz: two radios of two channels, each with DUC and DDC, and a
    /// replay block. Tuning has no effect.
    X410,
    /// An X410 with an image of 400 MHz, whose radios process four samples in a cycle: two radios
    /// of two channels without DUC and DDC, and a replay block. Tuning has no effect.
    X410Wide,
}

impl DeviceKind {
    /// All devices.
    pub const ALL: [DeviceKind; 7] = [
        DeviceKind::E320Radio,
        DeviceKind::E320,
        DeviceKind::E310,
        DeviceKind::N310,
        DeviceKind::N320,
        DeviceKind::X410,
        DeviceKind::X410Wide,
    ];

    /// Returns the device of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|device| device.name() == name)
    }

    /// Returns its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DeviceKind::E320Radio => "e320-radio",
            DeviceKind::E320 => "e320",
            DeviceKind::E310 => "e310",
            DeviceKind::N310 => "n310",
            DeviceKind::N320 => "n320",
            DeviceKind::X410 => "x410",
            DeviceKind::X410Wide => "x410-400",
        }
    }

    /// Returns the name of the product.
    #[must_use]
    pub const fn product(self) -> &'static str {
        self.personality().product
    }

    /// Returns the number of its channels.
    #[must_use]
    pub const fn channels(self) -> usize {
        self.personality().channels()
    }

    /// Returns the most links that it has.
    #[must_use]
    pub const fn links_max(self) -> usize {
        self.personality().links_max
    }

    /// Returns the master clock rates of the hardware.
    #[must_use]
    pub const fn rates(self) -> ClockRates {
        self.personality().rates
    }

    /// Returns the master clock rate after a claim, Hz.
    #[must_use]
    pub const fn default_rate_hz(self) -> f64 {
        self.personality().default_rate_hz
    }

    /// Returns the description of the device in a generation.
    pub(crate) fn personality_in(self, generation: &Generation) -> &'static Personality {
        match self {
            DeviceKind::X410Wide if generation.has_wide_dsp => &X410_WIDE_DSP,
            _ => self.personality(),
        }
    }

    /// Returns the description of the device.
    pub(crate) const fn personality(self) -> &'static Personality {
        match self {
            DeviceKind::E320Radio => &E320_RADIO,
            DeviceKind::E320 => &E320,
            DeviceKind::E310 => &E310,
            DeviceKind::N310 => &N310,
            DeviceKind::N320 => &N320,
            DeviceKind::X410 => &X410,
            DeviceKind::X410Wide => &X410_WIDE,
        }
    }
}

/// The rates that a clock can have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClockRates {
    /// From the first to the second one, Hz.
    Range(f64, f64),
    /// These, ascending, Hz.
    List(&'static [f64]),
}

impl ClockRates {
    /// All that this radio can be configured to take.
    pub const ANY: ClockRates = ClockRates::Range(1e3, 2e9);

    /// Returns the lowest and the highest rate, Hz.
    #[must_use]
    pub fn bounds(self) -> (f64, f64) {
        match self {
            ClockRates::Range(low_hz, high_hz) => (low_hz, high_hz),
            ClockRates::List(list) => {
                let rate = |rate_hz: Option<&f64>| rate_hz.copied().unwrap_or_default();
                (rate(list.first()), rate(list.last()))
            }
        }
    }

    /// Returns the possible rate that is nearest to `wanted_hz`.
    #[must_use]
    pub fn nearest(self, wanted_hz: f64) -> f64 {
        match self {
            ClockRates::Range(low_hz, high_hz) => wanted_hz.clamp(low_hz, high_hz),
            ClockRates::List(list) => {
                let away = |rate_hz: &&f64| (*rate_hz - wanted_hz).abs();
                list.iter().min_by(|a, b| away(a).total_cmp(&away(b))).copied().unwrap_or(wanted_hz)
            }
        }
    }
}

/// What is between the antennas and the samples of a radio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrontEndKind {
    /// An AD9361 behind switches, as in an E320.
    Ad9361,
    /// An AD9361 behind other switches, with its channels in the other order, as in an E310.
    Ad9361Swapped,
    /// An AD9371 behind attenuators, as in an N310.
    Ad9371,
    /// Oscillators and a CPLD that hosts reach by registers, as in an N320.
    Lmx2592,
    /// A CPLD with oscillators behind it, as in an X410.
    Zbx,
}

/// The memory that the image of a device uses, a block of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryBlock {
    None,
    /// A queue with this number of ports.
    DmaFifo(u8),
    /// Recording and playing, with this number of ports.
    Replay(u8),
}

/// The description of a device.
#[derive(Debug)]
pub(crate) struct Personality {
    /// Value of [`device_type`].
    pub device_type: u16,
    /// Type, product and description that MPM shows.
    pub mpm_type: &'static str,
    pub product: &'static str,
    pub description: &'static str,
    /// Product id and revision, as in the EEPROM.
    pub pid: &'static str,
    pub revision: &'static str,
    /// The version of its FPGA; `None` for that of the generation.
    pub fpga: Option<&'static str>,
    /// Product id of the daughterboards.
    pub board_pid: &'static str,
    pub front_end: FrontEndKind,
    /// The radio blocks, one for each daughterboard, and the channels of each.
    pub radios: usize,
    pub radio_channels: usize,
    /// Samples that a radio processes in one cycle of its clock.
    pub samples_per_cycle: u32,
    /// DUC and DDC are before and behind each radio.
    pub has_dsp: bool,
    pub memory: MemoryBlock,
    pub links_max: usize,
    /// Its links have transport adapters that send to other hosts.
    pub has_adapters: bool,
    /// Possible master clock rates, and that after a claim, Hz.
    pub rates: ClockRates,
    pub default_rate_hz: f64,
}

impl Personality {
    /// Returns the number of channels.
    pub const fn channels(&self) -> usize {
        self.radios * self.radio_channels
    }
}

static E320_RADIO: Personality = Personality {
    device_type: device_type::E320,
    mpm_type: "e3xx",
    product: "e320",
    description: "E300-Series Device (Millstream emulator)",
    pid: "58144",
    revision: "4",
    fpga: Some("6.1"),
    board_pid: "272",
    front_end: FrontEndKind::Ad9361,
    radios: 1,
    radio_channels: 2,
    samples_per_cycle: 1,
    has_dsp: false,
    memory: MemoryBlock::None,
    links_max: 1,
    has_adapters: true,
    rates: ClockRates::Range(0.22e6, 61.44e6),
    default_rate_hz: 16e6,
};

static E320: Personality =
    Personality { has_dsp: true, memory: MemoryBlock::DmaFifo(2), ..E320_RADIO };

static E310: Personality = Personality {
    device_type: device_type::E310,
    product: "e310_sg3",
    pid: "30675",
    fpga: Some("6.0"),
    front_end: FrontEndKind::Ad9361Swapped,
    has_adapters: false,
    ..E320_RADIO
};

static N310: Personality = Personality {
    device_type: device_type::N300,
    mpm_type: "n3xx",
    product: "n310",
    description: "N300-Series Device (Millstream emulator)",
    pid: "16962",
    revision: "6",
    fpga: Some("8.1"),
    board_pid: "336",
    front_end: FrontEndKind::Ad9371,
    radios: 2,
    radio_channels: 2,
    samples_per_cycle: 1,
    has_dsp: true,
    memory: MemoryBlock::Replay(4),
    links_max: 2,
    has_adapters: true,
    rates: ClockRates::List(&[122.88e6, 125e6, 153.6e6]),
    default_rate_hz: 125e6,
};

static N320: Personality = Personality {
    device_type: device_type::N320,
    product: "n320",
    board_pid: "338",
    front_end: FrontEndKind::Lmx2592,
    radio_channels: 1,
    memory: MemoryBlock::Replay(2),
    rates: ClockRates::List(&[200e6, 245.76e6, 250e6]),
    default_rate_hz: 200e6,
    ..N310
};

static X410: Personality = Personality {
    device_type: device_type::X400,
    mpm_type: "x4xx",
    product: "x410",
    description: "X400-Series Device (Millstream emulator)",
    pid: "1040",
    revision: "6",
    fpga: None,
    board_pid: "16386",
    front_end: FrontEndKind::Zbx,
    rates: ClockRates::List(&[122.88e6, 200e6, 245.76e6, 250e6]),
    default_rate_hz: 245.76e6,
    ..N310
};

static X410_WIDE: Personality = Personality {
    samples_per_cycle: 4,
    has_dsp: false,
    rates: ClockRates::List(&[491.52e6, 500e6]),
    default_rate_hz: 491.52e6,
    ..X410
};

static X410_WIDE_DSP: Personality = Personality { has_dsp: true, ..X410_WIDE };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_becomes_the_nearest_one_of_the_hardware() {
        let nearest = |kind: DeviceKind, hz| kind.rates().nearest(hz);
        assert_eq!(nearest(DeviceKind::E320, 1e9), 61.44e6);
        assert_eq!(nearest(DeviceKind::E320, 1.5e6), 1.5e6);
        assert_eq!(nearest(DeviceKind::N310, 1e9), 153.6e6);
        assert_eq!(nearest(DeviceKind::N310, 123.9e6), 122.88e6);
        assert_eq!(nearest(DeviceKind::N310, 124e6), 125e6);
    }

    #[test]
    fn every_default_rate_is_one_that_the_device_has() {
        for kind in DeviceKind::ALL {
            assert_eq!(kind.rates().nearest(kind.default_rate_hz()), kind.default_rate_hz());
        }
    }
}
