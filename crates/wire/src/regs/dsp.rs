//! Registers of the DDC and DUC blocks: the rate change and the frequency shift between a radio and
//! its stream.
//!
//! Each channel has a bank of [`CHANNEL_STRIDE`] bytes. The constants are the offsets of compat
//! 0.x; [`DspMap`] has those of each version.

/// Distance of the registers of two channels.
pub const CHANNEL_STRIDE: u32 = 0x800;
/// Offset, read: `[31:16]` major (0), `[15:0]` minor (1).
pub const COMPAT: u32 = 0x000;
/// Offset, read: the number of half-band filters.
pub const HALFBANDS: u32 = 0x008;
/// Offset, read: the largest rate of the CIC filter, 1 to 255.
pub const CIC_MAX: u32 = 0x010;
/// Offset: input samples per [`OUTPUTS`] outputs.
pub const INPUTS: u32 = 0x400;
/// Offset: output samples per [`INPUTS`] inputs.
pub const OUTPUTS: u32 = 0x408;
/// Offset: bit 0 clears the filters after each end of a burst.
pub const CONFIG: u32 = 0x410;
/// Offset: [`Rate::word`] of a DUC.
pub const DUC_RATE: u32 = 0x418;
/// Offset: the phase increment of the frequency shift, see [`phase_increment`].
pub const PHASE_INCREMENT: u32 = 0x420;
/// Offset: the gain behind the filters, 18 bits with 15 fraction bits.
pub const SCALE: u32 = 0x428;
/// Offset: [`Rate::word`] of a DDC.
pub const DDC_RATE: u32 = 0x430;
/// Offset: ticks per output sample; 0 takes them from [`INPUTS`].
pub const TIME_INCREMENT: u32 = 0x448;
/// What the block answers for other registers in compat 0.x. In compat 1.x they are refused.
pub const UNKNOWN: u32 = 0x0BAD_C0DE;

/// The offsets of the registers in one version of one of the two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DspMap {
    /// The major number in [`COMPAT`], whose offset is the same in all.
    pub major: u32,
    /// Whether [`COMPAT`] and the three below are in the bank of each channel, or only in the
    /// first.
    pub describes_channels: bool,
    /// Read: the number of half-band filters.
    pub halfbands: u32,
    /// Read: the largest rate of the CIC filter, 1 to 255.
    pub cic_max: u32,
    /// Read: the samples of one cycle; where there is none it is one sample.
    pub samples_per_cycle: Option<u32>,
    /// [`Rate::word`].
    pub rate: u32,
    /// Input samples per [`DspMap::outputs`] outputs, where they are set beside the rate.
    pub inputs: Option<u32>,
    /// Output samples per [`DspMap::inputs`] inputs.
    pub outputs: Option<u32>,
    /// Bit 0 clears the filters after each end of a burst.
    pub config: Option<u32>,
    /// Ticks per output word; of a DDC that is as many output samples as one cycle has.
    pub time_increment: u32,
    /// The gain behind the filters, 18 bits with 15 fraction bits.
    pub scale: u32,
    /// The gain of the mixer of a DDC, log2: the scale makes up for it.
    pub ddc_mixer_log2: u32,
    /// The phase increment of the frequency shift, see [`phase_increment`]; a sample's, whatever
    /// the samples of a cycle.
    pub phase_increment: u32,
}

impl DspMap {
    /// A DDC of compat 0.x.
    pub const DDC_V0: DspMap = DspMap {
        major: 0,
        describes_channels: true,
        halfbands: HALFBANDS,
        cic_max: CIC_MAX,
        samples_per_cycle: None,
        rate: DDC_RATE,
        inputs: Some(INPUTS),
        outputs: Some(OUTPUTS),
        config: Some(CONFIG),
        time_increment: TIME_INCREMENT,
        scale: SCALE,
        ddc_mixer_log2: 1,
        phase_increment: PHASE_INCREMENT,
    };

    /// A DUC of compat 0.x.
    pub const DUC_V0: DspMap = DspMap { rate: DUC_RATE, ..DspMap::DDC_V0 };

    /// A DDC or DUC of compat 1.x, which takes several samples a cycle: images of UHD 4.11.
    pub const V1: DspMap = DspMap {
        major: 1,
        describes_channels: false,
        halfbands: 0x004,
        cic_max: 0x008,
        samples_per_cycle: Some(0x00C),
        rate: 0x200,
        inputs: None,
        outputs: None,
        config: None,
        time_increment: 0x108,
        scale: 0x208,
        ddc_mixer_log2: 0,
        phase_increment: 0x300,
    };

    /// Returns the map that belongs to the content of [`COMPAT`] of a DDC (`down`) or DUC; `None`
    /// for an unknown major number.
    #[must_use]
    pub const fn of_compat(compat: u32, down: bool) -> Option<DspMap> {
        match (compat >> 16, down) {
            (0, true) => Some(DspMap::DDC_V0),
            (0, false) => Some(DspMap::DUC_V0),
            (1, _) => Some(DspMap::V1),
            _ => None,
        }
    }

    /// Returns the scale with which a DDC of this version and rate has a gain of one.
    #[must_use]
    pub const fn ddc_scale(&self, rate: Rate) -> u32 {
        // The scale of a rate makes up for a mixer with a gain of two.
        rate.cic_scale(4, 16 - self.ddc_mixer_log2)
    }
}

/// Returns the address of a register of a channel.
#[must_use]
pub const fn channel_register(channel: u8, offset: u32) -> u32 {
    CHANNEL_STRIDE * channel as u32 + offset
}

/// A factor between the sample rates of the two sides, made of half-band filters and a CIC filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Half-band filters in use; each is a factor of two.
    pub halfbands: u8,
    /// The rate of the CIC filter, 1 to 255.
    pub cic: u8,
}

impl Rate {
    /// No rate change.
    pub const ONE: Rate = Rate { halfbands: 0, cic: 1 };

    /// Returns the stages of a factor, as UHD divides them: as many half-band filters as the factor
    /// and the block allow, and the CIC filter for the rest. `None` for a factor that the block
    /// cannot make.
    #[must_use]
    pub const fn new(factor: u32, halfbands_max: u8, cic_max: u8) -> Option<Rate> {
        if factor == 0 {
            return None;
        }
        let (mut rest, mut halfbands) = (factor, 0);
        while rest % 2 == 0 && halfbands < halfbands_max {
            rest /= 2;
            halfbands += 1;
        }
        if rest > cic_max as u32 {
            return None;
        }
        Some(Rate { halfbands, cic: rest as u8 })
    }

    /// Returns the stages of the possible factor that is nearest to `ratio`; of two as near ones
    /// the smaller. A ratio that is no number counts as 1. The largest factor has all half-band
    /// filters, as UHD offers it from 4.10 on.
    #[must_use]
    pub fn nearest(ratio: f64, halfbands_max: u8, cic_max: u8) -> Rate {
        let most = u32::from(cic_max.max(1)) << halfbands_max.min(8);
        let mut best = (f64::INFINITY, Rate::ONE);
        for factor in 1..=most {
            let away = (ratio - f64::from(factor)).abs();
            if let Some(rate) = Rate::new(factor, halfbands_max, cic_max) {
                if away < best.0 {
                    best = (away, rate);
                }
            }
        }
        best.1
    }

    /// Decodes the word of [`DDC_RATE`] and [`DUC_RATE`]; `None` for a CIC rate of 0.
    #[must_use]
    pub const fn from_word(word: u32) -> Option<Rate> {
        let rate = Rate { halfbands: (word >> 8 & 3) as u8, cic: word as u8 };
        if rate.cic == 0 { None } else { Some(rate) }
    }

    /// Returns the word of [`DDC_RATE`] and [`DUC_RATE`].
    #[must_use]
    pub const fn word(self) -> u32 {
        (self.halfbands as u32) << 8 | self.cic as u32
    }

    /// Returns the factor.
    #[must_use]
    pub const fn factor(self) -> u32 {
        (self.cic as u32) << self.halfbands
    }

    /// Returns the [`SCALE`] with which a DDC of compat 0.x and this rate has a gain of one: its
    /// CIC filter of four stages has the gain R⁴ divided by the next power of two, and its mixer 2.
    #[must_use]
    pub const fn ddc_scale(self) -> u32 {
        DspMap::DDC_V0.ddc_scale(self)
    }

    /// Returns the [`SCALE`] with which a DUC of this rate has a gain of one: its CIC filter has
    /// the gain R³ divided by the next power of two.
    #[must_use]
    pub const fn duc_scale(self) -> u32 {
        self.cic_scale(3, 16)
    }

    /// Returns the scale against the gain R^`stages` divided by the next power of two, rounded: the
    /// unit is one bit less than `fraction_bits`.
    const fn cic_scale(self, stages: u32, fraction_bits: u32) -> u32 {
        let gain = (self.cic as u64).pow(stages);
        ((gain.next_power_of_two() << fraction_bits) + gain).div_euclid(2 * gain) as u32
    }
}

/// Returns the [`PHASE_INCREMENT`] of a frequency shift: cycles per sample in units of 2⁻³², of
/// which the upper 24 bits count. A positive frequency moves the spectrum up. `rate_hz` is the rate
/// on the radio's side; frequencies beyond half of it wrap around.
#[must_use]
pub fn phase_increment(frequency_hz: f64, rate_hz: f64) -> u32 {
    let steps = frequency_hz / rate_hz * f64::from(1_u32 << 24);
    let rounded = if steps < 0.0 { steps - 0.5 } else { steps + 0.5 };
    (rounded as i64 as u32) << 8
}

/// Returns the frequency of a [`PHASE_INCREMENT`], −`rate_hz`/2 to `rate_hz`/2.
#[must_use]
pub fn shift_hz(increment: u32, rate_hz: f64) -> f64 {
    f64::from((increment as i32) >> 8) / f64::from(1_u32 << 24) * rate_hz
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_words_and_scales_that_uhd_writes() {
        for (factor, word, ddc, duc) in [
            (1, 0x001, 0x4000, 0x8000),
            (2, 0x101, 0x4000, 0x8000),
            (3, 0x003, 0x6523, 0x97B4),
            (4, 0x201, 0x4000, 0x8000),
            (5, 0x005, 0x68DC, 0x8312),
            (8, 0x301, 0x4000, 0x8000),
            (16, 0x302, 0x4000, 0x8000),
            (100, 0x219, 0x55E6, 0x8638),
            (255, 0x0FF, 0x4103, 0x8183),
            (256, 0x320, 0x4000, 0x8000),
            (1016, 0x37F, 0x420A, 0x830C),
            (1020, 0x2FF, 0x4103, 0x8183),
        ] {
            let rate = Rate::new(factor, 3, 255).unwrap();
            assert_eq!((rate.word(), rate.factor()), (word, factor));
            assert_eq!((rate.ddc_scale(), rate.duc_scale()), (ddc, duc), "{factor}");
            assert_eq!(Rate::from_word(word), Some(rate));
        }
    }

    #[test]
    fn each_version_of_the_blocks_has_its_offsets_and_its_scale() {
        let rate = |map: Option<DspMap>| map.map(|map| (map.major, map.rate));
        assert_eq!(rate(DspMap::of_compat(1, true)), Some((0, 0x430)));
        assert_eq!(rate(DspMap::of_compat(1, false)), Some((0, 0x418)));
        for down in [true, false] {
            assert_eq!(rate(DspMap::of_compat(0x1_0000, down)), Some((1, 0x200)));
            assert_eq!(DspMap::of_compat(0x2_0000, down), None);
        }
        let scale = |factor| DspMap::V1.ddc_scale(Rate::new(factor, 3, 255).unwrap());
        assert_eq!([1, 2, 3].map(scale), [0x8000, 0x8000, 0xCA46]);
    }

    #[test]
    fn a_ratio_becomes_the_nearest_possible_factor_and_ties_go_down() {
        for (ratio, factor) in [
            (0.1, 1),
            (1.4, 1),
            (1.6, 2),
            (257.0, 256),
            (514.0, 512),
            (1026.0, 1024),
            (1e9, 2040),
            (f64::NAN, 1),
            (-3.0, 1),
        ] {
            assert_eq!(Rate::nearest(ratio, 3, 255).factor(), factor, "{ratio}");
        }
        assert_eq!(Rate::new(257, 3, 255), None);
        assert_eq!(Rate::new(0, 3, 255), None);
        assert_eq!(Rate::from_word(0x300), None);
    }

    #[test]
    fn frequencies_become_the_increments_that_uhd_writes_and_wrap_around() {
        assert_eq!(phase_increment(3e6, 16e6), 0x3000_0000);
        assert_eq!(phase_increment(-1e6, 16e6), 0xF000_0000);
        assert_eq!(phase_increment(13e6, 16e6), phase_increment(-3e6, 16e6));
        assert_eq!(shift_hz(0xF000_0000, 16e6), -1e6);
        assert_eq!(shift_hz(phase_increment(250e3, 16e6), 16e6), 250e3);
        assert_eq!(phase_increment(f64::NAN, 16e6), 0);
    }
}
