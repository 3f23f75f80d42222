//! One channel of a DDC or DUC, by its registers.

use millstream_wire::regs::dsp::{
    CIC_MAX, COMPAT, DDC_RATE, DUC_RATE, HALFBANDS, INPUTS, OUTPUTS, PHASE_INCREMENT, Rate, SCALE,
    TIME_INCREMENT, channel_register, phase_increment,
};

use crate::RadioError;
use crate::control::Registers;
use crate::graph::{BlockPort, StreamDirection};

/// The half-band filters that a rate word can name.
const HALFBANDS_MAX: u32 = 3;

/// A channel of the block that changes the rate, and shifts the frequency, between a radio and an
/// endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DspBlock {
    direction: StreamDirection,
    /// Its control port.
    port: u16,
    channel: u8,
    halfbands: u8,
    cic_max: u8,
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
        let read = |offset| control.read(port, channel_register(channel, offset));
        let compat = read(COMPAT)?;
        if compat >> 16 != 0 {
            return Err(RadioError::Compat {
                what: "the register map of the DDC or DUC",
                found: format!("{}.{}", compat >> 16, compat & 0xFFFF),
                supported: "0.x",
                hint: "use a device image of UHD 4.0 to 4.10",
            });
        }
        let halfbands = read(HALFBANDS)?.min(HALFBANDS_MAX) as u8;
        let cic_max = u8::try_from(read(CIC_MAX)?).ok().filter(|cic_max| *cic_max > 0);
        let cic_max = cic_max.ok_or_else(|| RadioError::Unusable {
            address: control.address(),
            reason: format!("the block at its control port {port} has no usable CIC filter"),
        })?;
        Ok(Self { direction, port, channel, halfbands, cic_max })
    }

    /// Returns a block with these filters.
    #[cfg(test)]
    pub(crate) fn for_tests(halfbands: u8, cic_max: u8) -> Self {
        Self { direction: StreamDirection::Rx, port: 0, channel: 0, halfbands, cic_max }
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
        let factor = rate.factor();
        // UHD's order of writing.
        let writes = match self.direction {
            StreamDirection::Rx => [
                (DDC_RATE, rate.word()),
                (INPUTS, factor),
                (OUTPUTS, 1),
                (TIME_INCREMENT, factor),
                (SCALE, rate.ddc_scale()),
            ],
            StreamDirection::Tx => [
                (DUC_RATE, rate.word()),
                (OUTPUTS, factor),
                (INPUTS, 1),
                (TIME_INCREMENT, 1),
                (SCALE, rate.duc_scale()),
            ],
        };
        writes.into_iter().try_for_each(|(offset, value)| self.write(control, offset, value))
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
        self.write(control, PHASE_INCREMENT, phase_increment(shift_hz, rate_hz))
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
    use millstream_wire::regs::dsp::UNKNOWN;

    use super::*;
    use crate::client_zero::DeviceBlock;

    /// The registers of one block: its answers, and the writes to it.
    struct FakeBlock {
        halfbands: u32,
        cic_max: u32,
        writes: RefCell<Vec<(u16, u32, u32)>>,
    }

    impl Registers for FakeBlock {
        fn address(&self) -> Ipv4Addr {
            Ipv4Addr::LOCALHOST
        }

        fn read(&self, _: u16, address: u32) -> Result<u32, RadioError> {
            Ok(match address & 0x7FF {
                COMPAT => 1,
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
        let fake = FakeBlock { halfbands, cic_max, writes: RefCell::default() };
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
    fn factors_follow_from_the_filters_of_the_block() {
        let (_, ddc) = open(StreamDirection::Rx, 3, 255);
        let ddc = ddc.unwrap();
        assert_eq!((ddc.factor_max(), ddc.rate(257), ddc.rate(1024)), (1020, None, None));
        let (_, small) = open(StreamDirection::Rx, 0, 4);
        assert_eq!(small.unwrap().factor_max(), 4);
        // A block may claim anything.
        let (_, wild) = open(StreamDirection::Rx, u32::MAX, 255);
        assert_eq!(wild.unwrap().factor_max(), 1020);
        for cic_max in [0, 256, u32::MAX] {
            let (_, none) = open(StreamDirection::Rx, 3, cic_max);
            assert!(none.unwrap_err().to_string().contains("no usable CIC filter"));
        }
    }
}
