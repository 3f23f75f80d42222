//! The registers of one channel of a DDC or DUC.

use millstream_wire::regs::dsp as regs;
use millstream_wire::regs::dsp::{DspMap, Rate};

/// The half-band filters and the largest CIC rate of the stock images.
const HALFBANDS: u32 = 3;
const CIC_MAX: u32 = 255;
const COMPAT: u32 = 1;

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

/// The map of compat 1, of blocks that process several samples in a cycle.
const MULTISAMPLE: DspMap = DspMap::V1;

/// Reads a register of a block of compat 1 with so many samples in a cycle, by its address in the
/// block; `None` where there is none to read.
pub(crate) fn read_multisample(address: u32, samples_per_cycle: u32) -> Option<u32> {
    match address {
        regs::COMPAT => Some(MULTISAMPLE.major << 16),
        _ if address == MULTISAMPLE.halfbands => Some(HALFBANDS),
        _ if address == MULTISAMPLE.cic_max => Some(CIC_MAX),
        _ if Some(address) == MULTISAMPLE.samples_per_cycle => Some(samples_per_cycle),
        _ => None,
    }
}

/// Returns the writes to the map of compat 0 that do what a write to that of compat 1 does. `None`
/// where there is no register.
pub(crate) fn of_multisample(
    direction: Direction,
    offset: u32,
    value: u32,
) -> Option<[Option<(u32, u32)>; 3]> {
    let one = |register, value| Some([Some((register, value)), None, None]);
    if offset == MULTISAMPLE.rate {
        // The number of samples follows from the rate, and is written last there.
        let factor = Rate::from_word(value).map_or(1, Rate::factor);
        let (rate, inputs, outputs) = match direction {
            Direction::Down => (regs::DDC_RATE, factor, 1),
            Direction::Up => (regs::DUC_RATE, 1, factor),
        };
        return Some([(rate, value), (regs::INPUTS, inputs), (regs::OUTPUTS, outputs)].map(Some));
    }
    match direction {
        // The mixer of a DDC of compat 0 has a gain of two, for which its scale makes up.
        Direction::Down if offset == MULTISAMPLE.scale => one(regs::SCALE, value / 2),
        Direction::Up if offset == MULTISAMPLE.scale => one(regs::SCALE, value),
        _ if offset == MULTISAMPLE.phase_increment => one(regs::PHASE_INCREMENT, value),
        _ if offset == MULTISAMPLE.time_increment => Some([None; 3]),
        _ => None,
    }
}

/// The written values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers {
    direction: Direction,
    inputs: u32,
    outputs: u32,
    rate: u32,
    scale: u32,
    config: u32,
}

impl Registers {
    /// Returns the state after power-on: no rate change, and a scale of 0.
    pub fn new(direction: Direction) -> Self {
        Self { direction, inputs: 1, outputs: 1, rate: 1, scale: 0, config: 1 }
    }

    /// Reads the register at `offset`; most cannot be read.
    pub fn read(offset: u32) -> u32 {
        match offset {
            regs::COMPAT => COMPAT,
            regs::HALFBANDS => HALFBANDS,
            regs::CIC_MAX => CIC_MAX,
            _ => regs::UNKNOWN,
        }
    }

    /// Writes the register at `offset`; those without a function take any value.
    pub fn write(&mut self, offset: u32, value: u32) -> Effect {
        match (offset, self.direction) {
            (regs::INPUTS, _) => self.inputs = value,
            (regs::OUTPUTS, _) => {
                self.outputs = value;
                return Effect::CloseBurst;
            }
            (regs::CONFIG, _) => self.config = value,
            (regs::DDC_RATE, Direction::Down) | (regs::DUC_RATE, Direction::Up) => {
                self.rate = value;
            }
            (regs::SCALE, _) => self.scale = value,
            (regs::PHASE_INCREMENT, _) => return Effect::Increment(value),
            _ => {}
        }
        Effect::None
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

    #[test]
    fn the_description_reads_as_a_stock_image_and_the_rest_as_unknown() {
        let read = [0x000, 0x008, 0x010, 0x400, 0x428].map(Registers::read);
        assert_eq!(read, [1, 3, 255, 0x0BAD_C0DE, 0x0BAD_C0DE]);
    }

    #[test]
    fn the_registers_of_compat_1_do_what_those_of_compat_0_do() {
        let read = |address| read_multisample(address, 4);
        assert_eq!([0, 4, 8, 0xC].map(read), [1 << 16, 3, 255, 4].map(Some));
        assert_eq!([0x10, 0x200, 0x800].map(read), [None; 3]);
        for direction in [Direction::Down, Direction::Up] {
            let mut registers = Registers::new(direction);
            for (offset, value) in [(0x200, 0x205), (0x108, 20), (0x208, 0x8000), (0x300, 7)] {
                let writes = of_multisample(direction, offset, value).unwrap();
                let effects =
                    writes.into_iter().flatten().map(|(at, word)| registers.write(at, word));
                let wanted = match offset {
                    0x200 => Some(Effect::CloseBurst),
                    0x208 => Some(Effect::None),
                    0x300 => Some(Effect::Increment(7)),
                    _ => None,
                };
                assert_eq!(effects.last(), wanted, "{offset:#x}");
            }
            assert_eq!(registers.factor(), 20);
            assert_eq!(registers.rate(20), Some(Rate { halfbands: 2, cic: 5 }));
            let unity = if direction == Direction::Down { 0.5 } else { 1.0 };
            assert_eq!(registers.scale(), unity);
            assert_eq!(of_multisample(direction, 0x400, 1), None);
            assert!(of_multisample(direction, 0x200, 0).is_some(), "a rate without sense");
        }
    }

    #[test]
    fn a_scale_has_18_bits_with_a_sign() {
        let scale = |word| {
            let mut registers = Registers::new(Direction::Down);
            assert_eq!(registers.write(regs::SCALE, word), Effect::None);
            registers.scale()
        };
        assert_eq!([0, 0x4000, 0x8000, 0x3_8000].map(scale), [0.0, 0.5, 1.0, -1.0]);
    }

    #[test]
    fn the_factor_needs_filters_that_make_it() {
        let mut down = Registers::new(Direction::Down);
        assert_eq!((down.factor(), down.rate(1)), (1, Some(Rate::ONE)));
        down.write(regs::INPUTS, 16);
        assert_eq!((down.factor(), down.rate(16)), (16, None));
        down.write(regs::DDC_RATE, 0x302);
        assert_eq!(down.rate(16), Some(Rate { halfbands: 3, cic: 2 }));
        let mut up = Registers::new(Direction::Up);
        up.write(regs::DUC_RATE, 0x101);
        assert_eq!(up.write(regs::OUTPUTS, 2), Effect::CloseBurst);
        assert_eq!((up.factor(), up.rate(2).is_some()), (2, true));
    }
}
