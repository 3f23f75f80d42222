//! The registers of one channel of a DDC or DUC.

use millstream_wire::regs::dsp as regs;
use millstream_wire::regs::dsp::{DspMap, Rate};

/// The half-band filters and the largest CIC rate of the stock images, and the compatibility
/// numbers by the major one.
const HALFBANDS: u32 = 3;
const CIC_MAX: u32 = 255;
const COMPAT: [u32; 2] = [1, 1 << 16];

const SCALE_BITS: u32 = 18;
const SCALE_ONE: f32 = (1_u32 << 15) as f32;

/// The direction of a rate change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// A DDC.
    Down,
    /// A DUC.
    Up,
}

/// What a write does beyond the registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing now: rates wait for the end of the burst.
    None,
    /// The phase increment changed.
    Increment(u32),
    /// The burst ends at the end of the next packet.
    CloseBurst,
}

/// The written values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers {
    map: DspMap,
    direction: Direction,
    inputs: u32,
    outputs: u32,
    rate: u32,
    scale: u32,
    config: u32,
}

impl Registers {
    /// Returns the state after power-on: no rate change, and a scale of 0.
    pub fn new(map: DspMap, direction: Direction) -> Self {
        Self { map, direction, inputs: 1, outputs: 1, rate: 1, scale: 0, config: 1 }
    }

    /// Restores that state.
    pub fn reset(&mut self) {
        *self = Self::new(self.map, self.direction);
    }

    /// Reads the register at `offset` of a channel, of a block with so many samples in a cycle;
    /// most cannot be read. `None` where there is no register.
    pub fn read(map: &DspMap, channel: usize, offset: u32, cycle: u32) -> Option<u32> {
        let is_described = channel == 0 || map.describes_channels;
        match offset {
            regs::COMPAT if is_described => Some(COMPAT[map.major as usize]),
            _ if is_described && offset == map.halfbands => Some(HALFBANDS),
            _ if is_described && offset == map.cic_max => Some(CIC_MAX),
            _ if is_described && Some(offset) == map.samples_per_cycle => Some(cycle),
            _ => (map.major == 0).then_some(regs::UNKNOWN),
        }
    }

    /// Writes the register at `offset`; in compat 0 those without a function take any value. `None`
    /// where there is no register.
    pub fn write(&mut self, offset: u32, value: u32) -> Option<Effect> {
        let DspMap { inputs, outputs, config, ddc_mixer_log2, .. } = self.map;
        match offset {
            _ if offset == self.map.rate => {
                self.rate = value;
                if inputs.is_none() {
                    // The numbers of samples follow from the rate.
                    let factor = Rate::from_word(value).map_or(1, Rate::factor);
                    (self.inputs, self.outputs) = match self.direction {
                        Direction::Down => (factor, 1),
                        Direction::Up => (1, factor),
                    };
                    return Some(Effect::CloseBurst);
                }
            }
            _ if Some(offset) == inputs => self.inputs = value,
            _ if Some(offset) == outputs => {
                self.outputs = value;
                return Some(Effect::CloseBurst);
            }
            _ if Some(offset) == config => self.config = value,
            _ if offset == self.map.scale => {
                // The mixer of a DDC has a gain of two here, for which its scale makes up.
                let more = if self.direction == Direction::Down { 1 - ddc_mixer_log2 } else { 0 };
                self.scale = value >> more;
            }
            _ if offset == self.map.phase_increment => return Some(Effect::Increment(value)),
            _ if offset == self.map.time_increment || self.map.major == 0 => {}
            _ => return None,
        }
        Some(Effect::None)
    }

    /// Returns the factor between the rates, by the numbers of samples.
    pub fn factor(&self) -> u64 {
        let (many, few) = match self.direction {
            Direction::Down => (self.inputs, self.outputs),
            Direction::Up => (self.outputs, self.inputs),
        };
        u64::from((many & 0x7ff).max(1) / (few & 0x7ff).max(1)).max(1)
    }

    /// Returns the filters for `factor`; `None` when the rate word makes another one: the hardware
    /// then loses its rhythm.
    pub fn rate(&self, factor: u64) -> Option<Rate> {
        Rate::from_word(self.rate).filter(|rate| u64::from(rate.factor()) == factor)
    }

    /// Returns the scale as a factor.
    pub fn scale(&self) -> f32 {
        Self::scale_of(self.scale)
    }

    /// Returns a scale word as a factor.
    pub fn scale_of(word: u32) -> f32 {
        let unused = 32 - SCALE_BITS;
        ((word << unused) as i32 >> unused) as f32 / SCALE_ONE
    }

    /// Returns whether the end of a burst clears the filters.
    pub fn clears(&self) -> bool {
        self.config & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(direction: Direction) -> Registers {
        let down = direction == Direction::Down;
        Registers::new(DspMap::of_compat(0, down).unwrap(), direction)
    }

    #[test]
    fn the_description_reads_as_a_stock_image_and_the_rest_as_unknown() {
        let read = |offset| Registers::read(&DspMap::DDC_V0, 1, offset, 1).unwrap();
        let read = [0x000, 0x008, 0x010, 0x400, 0x428].map(read);
        assert_eq!(read, [1, 3, 255, 0x0BAD_C0DE, 0x0BAD_C0DE]);
    }

    #[test]
    fn the_registers_of_compat_1_do_what_those_of_compat_0_do() {
        let read = |offset| Registers::read(&DspMap::V1, 0, offset, 4);
        assert_eq!([0, 4, 8, 0xC].map(read), [1 << 16, 3, 255, 4].map(Some));
        assert_eq!([0x10, 0x200].map(read), [None; 2]);
        assert_eq!(Registers::read(&DspMap::V1, 1, 0, 4), None, "the first channel describes all");
        for direction in [Direction::Down, Direction::Up] {
            let mut registers = Registers::new(DspMap::V1, direction);
            for (offset, value, effect) in [
                (0x200, 0x205, Some(Effect::CloseBurst)),
                (0x108, 20, Some(Effect::None)),
                (0x208, 0x8000, Some(Effect::None)),
                (0x300, 7, Some(Effect::Increment(7))),
                (0x400, 1, None),
            ] {
                assert_eq!(registers.write(offset, value), effect, "{offset:#x}");
            }
            assert_eq!(registers.factor(), 20);
            assert_eq!(registers.rate(20), Some(Rate { halfbands: 2, cic: 5 }));
            let unity = if direction == Direction::Down { 0.5 } else { 1.0 };
            assert_eq!(registers.scale(), unity);
            assert!(registers.write(0x200, 0).is_some(), "a rate without sense");
        }
    }

    #[test]
    fn a_scale_has_18_bits_with_a_sign() {
        let scale = |word| {
            let mut registers = registers(Direction::Down);
            assert_eq!(registers.write(regs::SCALE, word), Some(Effect::None));
            registers.scale()
        };
        assert_eq!([0, 0x4000, 0x8000, 0x3_8000].map(scale), [0.0, 0.5, 1.0, -1.0]);
    }

    #[test]
    fn the_factor_needs_filters_that_make_it() {
        let mut down = registers(Direction::Down);
        assert_eq!((down.factor(), down.rate(1)), (1, Some(Rate::ONE)));
        down.write(regs::INPUTS, 16);
        assert_eq!((down.factor(), down.rate(16)), (16, None));
        down.write(regs::DDC_RATE, 0x302);
        assert_eq!(down.rate(16), Some(Rate { halfbands: 3, cic: 2 }));
        let mut up = registers(Direction::Up);
        up.write(regs::DUC_RATE, 0x101);
        assert_eq!(up.write(regs::OUTPUTS, 2), Some(Effect::CloseBurst));
        assert_eq!((up.factor(), up.rate(2).is_some()), (2, true));
    }
}
