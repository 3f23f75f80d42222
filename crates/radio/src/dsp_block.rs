//! One channel of a DDC or DUC, by its registers.

use millstream_wire::regs::dsp::{COMPAT, DspMap, Rate, channel_register, phase_increment};

use crate::RadioError;
use crate::control::Registers;
use crate::generation::register_error;
use crate::graph::{BlockPort, StreamDirection};

/// The half-band filters that a rate word can name.
const HALFBANDS_MAX: u32 = 3;

/// More samples a cycle than any image has.
const SAMPLES_PER_CYCLE_MAX: u32 = 64;

/// A channel of the block that changes the rate, and shifts the frequency, between a radio and an
/// endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DspBlock {
    direction: StreamDirection,
    /// Its control port.
    port: u16,
    channel: u8,
    map: DspMap,
    halfbands: u8,
    cic_max: u8,
    /// The samples of one cycle.
    samples_per_cycle: u32,
}

impl DspBlock {
    /// Reads what the channel at `place`, whose block has been reset, can do. A DDC lies in a
    /// chain's receive direction, a DUC in the other.
    ///
    /// # Errors
    /// [`RadioError::Compat`] for registers of another kind; [`RadioError::Unusable`] for a CIC
    /// filter without a rate; those of [`Registers::read`].
    pub fn open(
        control: &impl Registers,
        direction: StreamDirection,
        place: BlockPort,
    ) -> Result<Self, RadioError> {
        let (port, channel) = (place.block.port, place.port);
        let compat = control.read(port, channel_register(0, COMPAT))?;
        let map = DspMap::of_compat(compat, direction == StreamDirection::Rx).ok_or_else(|| {
            register_error("the register map of the DDC or DUC", compat, "0.x and 1.x")
        })?;
        let described = if map.describes_channels { channel } else { 0 };
        let read = |offset| control.read(port, channel_register(described, offset));
        let halfbands = read(map.halfbands)?.min(HALFBANDS_MAX) as u8;
        let cic_max = u8::try_from(read(map.cic_max)?).ok().filter(|cic_max| *cic_max > 0);
        let unusable = |what: &str| RadioError::Unusable {
            address: control.address(),
            reason: format!("the block at its control port {port} has no usable {what}"),
        };
        let cic_max = cic_max.ok_or_else(|| unusable("CIC filter"))?;
        // A DUC counts its time by single samples.
        let samples_per_cycle = match (map.samples_per_cycle, direction) {
            (Some(offset), StreamDirection::Rx) => read(offset)?,
            _ => 1,
        };
        if !(1..=SAMPLES_PER_CYCLE_MAX).contains(&samples_per_cycle) {
            return Err(unusable("number of samples a cycle"));
        }
        Ok(Self { direction, port, channel, map, halfbands, cic_max, samples_per_cycle })
    }

    /// Returns a block with these filters.
    #[cfg(test)]
    pub(crate) fn for_tests(halfbands: u8, cic_max: u8) -> Self {
        let (direction, map) = (StreamDirection::Rx, DspMap::DDC_V0);
        let (port, channel, samples_per_cycle) = (0, 0, 1);
        Self { direction, port, channel, map, halfbands, cic_max, samples_per_cycle }
    }

    /// Returns the possible factor that is nearest to `ratio`, the radio's rate divided by the
    /// stream's.
    pub fn nearest(&self, ratio: f64) -> Rate {
        Rate::nearest(ratio, self.halfbands, self.cic_max)
    }

    /// Returns the stages of a factor that UHD offers, too, if the block can make it.
    pub fn rate(&self, factor: u32) -> Option<Rate> {
        let rate = Rate::new(factor, self.halfbands, self.cic_max)?;
        (rate == self.nearest(factor.into())).then_some(rate)
    }

    /// Returns the largest factor.
    pub fn factor_max(&self) -> u32 {
        self.nearest(f64::from(u32::MAX)).factor()
    }

    /// Sets the factor, and the gain that makes up for that of the filters. After a reset the gain
    /// is 0, so this has to be written before every stream's first sample.
    ///
    /// # Errors
    /// Those of [`Registers::write`].
    pub fn set_rate(&self, control: &impl Registers, rate: Rate) -> Result<(), RadioError> {
        let (map, factor) = (&self.map, rate.factor());
        // UHD's order of writing.
        let (first, second, ticks, scale) = match self.direction {
            StreamDirection::Rx => (
                map.inputs.map(|inputs| (inputs, factor)),
                map.outputs.map(|outputs| (outputs, 1)),
                factor * self.samples_per_cycle,
                map.ddc_scale(rate),
            ),
            StreamDirection::Tx => (
                map.outputs.map(|outputs| (outputs, factor)),
                map.inputs.map(|inputs| (inputs, 1)),
                1,
                rate.duc_scale(),
            ),
        };
        let last = [Some((map.time_increment, ticks)), Some((map.scale, scale))];
        let writes = [Some((map.rate, rate.word())), first, second].into_iter().chain(last);
        writes.flatten().try_for_each(|(offset, value)| self.write(control, offset, value))
    }

    /// Moves the spectrum up by `shift_hz`, at the radio's rate `rate_hz`.
    ///
    /// # Errors
    /// Those of [`Registers::write`].
    pub fn set_shift(
        &self,
        control: &impl Registers,
        shift_hz: f64,
        rate_hz: f64,
    ) -> Result<(), RadioError> {
        self.write(control, self.map.phase_increment, phase_increment(shift_hz, rate_hz))
    }

    fn write(&self, control: &impl Registers, offset: u32, value: u32) -> Result<(), RadioError> {
        control.write(self.port, channel_register(self.channel, offset), value)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::net::Ipv4Addr;

    use millstream_wire::regs::client_zero::BlockInfo;
    use millstream_wire::regs::dsp::{CIC_MAX, HALFBANDS, UNKNOWN};

    use super::*;
    use crate::client_zero::DeviceBlock;

    /// The registers of one block: its answers, and the writes to it.
    struct FakeBlock {
        compat: u32,
        halfbands: u32,
        cic_max: u32,
        writes: RefCell<Vec<(u16, u32, u32)>>,
    }

    impl Registers for FakeBlock {
        fn address(&self) -> Ipv4Addr {
            Ipv4Addr::LOCALHOST
        }

        fn read(&self, _: u16, address: u32) -> Result<u32, RadioError> {
            if self.compat == 0x1_0000 {
                return Ok(match address {
                    0 => self.compat,
                    4 => self.halfbands,
                    8 => self.cic_max,
                    0xC => 4,
                    _ => panic!("{address:#x} is refused"),
                });
            }
            Ok(match address & 0x7FF {
                COMPAT => self.compat,
                HALFBANDS => self.halfbands,
                CIC_MAX => self.cic_max,
                _ => UNKNOWN,
            })
        }

        fn write(&self, port: u16, address: u32, value: u32) -> Result<(), RadioError> {
            self.writes.borrow_mut().push((port, address, value));
            Ok(())
        }
    }

    fn open(
        direction: StreamDirection,
        halfbands: u32,
        cic_max: u32,
    ) -> (FakeBlock, Result<DspBlock, RadioError>) {
        open_compat(1, direction, (halfbands, cic_max))
    }

    fn open_compat(
        compat: u32,
        direction: StreamDirection,
        (halfbands, cic_max): (u32, u32),
    ) -> (FakeBlock, Result<DspBlock, RadioError>) {
        let fake = FakeBlock { compat, halfbands, cic_max, writes: RefCell::default() };
        let info = BlockInfo::default();
        let block = DeviceBlock { index: 4, port: 3, noc_id: 0, info, mtu_log2: 10 };
        let opened = DspBlock::open(&fake, direction, BlockPort { block, port: 1 });
        (fake, opened)
    }

    #[test]
    fn a_rate_is_written_in_the_order_of_uhd() {
        let (fake, ddc) = open(StreamDirection::Rx, 3, 255);
        let ddc = ddc.unwrap();
        ddc.set_rate(&fake, ddc.nearest(16.2)).unwrap();
        ddc.set_shift(&fake, 3e6, 16e6).unwrap();
        let ddc = [
            (3, 0xC30, 0x302),
            (3, 0xC00, 16),
            (3, 0xC08, 1),
            (3, 0xC48, 16),
            (3, 0xC28, 0x4000),
            (3, 0xC20, 0x3000_0000),
        ];
        assert_eq!(fake.writes.into_inner(), ddc);

        let (fake, duc) = open(StreamDirection::Tx, 3, 255);
        let duc = duc.unwrap();
        duc.set_rate(&fake, duc.rate(100).unwrap()).unwrap();
        let duc =
            [(3, 0xC18, 0x219), (3, 0xC08, 100), (3, 0xC00, 1), (3, 0xC48, 1), (3, 0xC28, 0x8638)];
        assert_eq!(fake.writes.into_inner(), duc);
    }

    #[test]
    fn a_block_of_several_samples_a_cycle_gets_its_own_registers() {
        let (fake, ddc) = open_compat(0x1_0000, StreamDirection::Rx, (3, 255));
        let ddc = ddc.unwrap();
        ddc.set_rate(&fake, ddc.nearest(16.0)).unwrap();
        ddc.set_shift(&fake, 3e6, 16e6).unwrap();
        let writes =
            [(3, 0xA00, 0x302), (3, 0x908, 64), (3, 0xA08, 0x8000), (3, 0xB00, 0x3000_0000)];
        assert_eq!(fake.writes.into_inner(), writes);

        let (fake, duc) = open_compat(0x1_0000, StreamDirection::Tx, (3, 255));
        let duc = duc.unwrap();
        duc.set_rate(&fake, duc.rate(100).unwrap()).unwrap();
        assert_eq!(
            fake.writes.into_inner(),
            [(3, 0xA00, 0x219), (3, 0x908, 1), (3, 0xA08, 0x8638)]
        );

        let (_, newer) = open_compat(0x2_0000, StreamDirection::Rx, (3, 255));
        let text = newer.unwrap_err().to_string();
        assert!(text.contains("is 2.0, but this program supports 0.x and 1.x"), "{text}");
    }

    #[test]
    fn factors_follow_from_the_filters_of_the_block() {
        let (_, ddc) = open(StreamDirection::Rx, 3, 255);
        let ddc = ddc.unwrap();
        assert_eq!((ddc.factor_max(), ddc.rate(257), ddc.rate(2048)), (2040, None, None));
        let (_, small) = open(StreamDirection::Rx, 0, 4);
        assert_eq!(small.unwrap().factor_max(), 4);
        // A block may claim anything.
        let (_, wild) = open(StreamDirection::Rx, u32::MAX, 255);
        assert_eq!(wild.unwrap().factor_max(), 2040);
        for cic_max in [0, 256, u32::MAX] {
            let (_, none) = open(StreamDirection::Rx, 3, cic_max);
            assert!(none.unwrap_err().to_string().contains("no usable CIC filter"));
        }
    }
}
