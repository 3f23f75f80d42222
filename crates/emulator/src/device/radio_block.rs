//! The radio blocks: their registers, and the channels behind them.

use super::client_zero::{CONTROL_ENDPOINTS, MTU_BYTES};
use super::control::CommandFifo;
use super::messages::Messages;
use super::rx_channel::{Acquire, RxChannel};
use super::tx_channel::TxChannel;
use crate::front_end::{Board, FrontEnd, Reception};
use crate::personality::{Block, FrontEndKind, Image};
use millstream_wire::chdr::{DataRepr, SC16_LEN};
use millstream_wire::ctrl::{CtrlRepr, Op, block_port};
use millstream_wire::regs::client_zero::{RESET_CTRL, RESET_DATA};
use millstream_wire::regs::radio as regs;
use millstream_wire::regs::radio::{RxCommand, RxMode};

const COMPAT_MINOR: u32 = 1;
/// Behind the registers that obey the time of a request.
const TIMED_END: u32 = 0x10;
const SAMPLE_BITS: u32 = 32;
const WORDS_PER_CHANNEL: usize = regs::CHANNEL_STRIDE as usize / 4;
/// Cycles per packet before a host sets it.
const PACKET_CYCLES: u32 = 64;

/// All radio blocks of a device.
#[derive(Debug)]
pub(crate) struct Radios {
    /// The channels of the device: those of the first block, then those of the next.
    pub channels: Box<[RadioChannel]>,
    pub blocks: Box<[RadioBlock]>,
    /// Samples in one cycle; registers count lengths in cycles.
    pub cycle: u32,
}

/// A radio block, without its channels.
#[derive(Debug)]
pub(crate) struct RadioBlock {
    /// The channel of its port 0.
    first: usize,
    ports: usize,
    /// Its daughterboard, by the registers that hosts write, and by remote procedure calls.
    pub board: Board,
    pub settings: FrontEnd,
    /// Its control port.
    pub port: u16,
    /// Its requests.
    pub commands: CommandFifo,
    /// The writes to its daughterboard, which have been acknowledged.
    board_writes: CommandFifo,
    pub messages: Messages,
    /// The resets without which it does not answer, `RESET_*` bits.
    needs_resets: u32,
}

/// One channel.
#[derive(Debug)]
pub(crate) struct RadioChannel {
    pub rx: RxChannel,
    pub tx: TxChannel,
    /// The written values, by offset / 4.
    registers: [u32; WORDS_PER_CHANNEL],
    /// The samples of the largest packet, and those of a cycle.
    samples_max: u32,
    cycle: u32,
}

/// The error of a control request to a register that the block does not have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoRegister;

impl Radios {
    /// Returns the blocks of an image in the state after power-on.
    pub fn new(image: &Image, front_end: FrontEndKind, buffer_samples: u64) -> Self {
        let timed = DataRepr { timestamp: Some(0), ..DataRepr::default() };
        let samples_max = ((MTU_BYTES - timed.header_len(image.width)) / SC16_LEN) as u32;
        let cycle = image.samples_per_cycle;
        let channel = |_| RadioChannel {
            samples_max,
            cycle,
            rx: RxChannel::new(buffer_samples)
                .with_cycle(cycle.into(), image.cycles_per_sample.into()),
            tx: TxChannel::new().with_cycle(cycle.into()),
            registers: RadioChannel::initial_registers(),
        };
        let block = |(number, block): (u16, &Block)| RadioBlock {
            port: block_port(CONTROL_ENDPOINTS, number),
            first: block.first,
            ports: block.inputs.into(),
            board: Board::new(front_end),
            settings: FrontEnd::new(front_end, true),
            commands: CommandFifo::default(),
            board_writes: CommandFifo::default(),
            messages: Messages::of(block),
            needs_resets: 0,
        };
        Self {
            channels: (0..image.channels).map(channel).collect(),
            blocks: image.radios().map(block).collect(),
            cycle,
        }
    }

    /// Returns the number of the block whose port 0 is this channel, or serves it.
    pub fn block_of(&self, channel: usize) -> usize {
        self.blocks.iter().rposition(|block| block.first <= channel).unwrap_or(0)
    }

    /// Returns whether the next request of a block is a receive command without a slot: the block
    /// waits for one before it executes anything else.
    pub fn is_stalled(&self, block: usize) -> bool {
        let radio = &self.blocks[block];
        let Some(request) = radio.commands.front() else { return false };
        let Ok((channel, regs::RX_CMD)) = radio.locate(request.address) else { return false };
        let mode = RxCommand::from_word(request.data.first()).map(|command| command.mode);
        request.op != Op::Read
            && matches!(mode, Some(RxMode::Finite | RxMode::Continuous))
            && self.channels[channel].rx.free_slots() == 0
    }

    /// Returns the state in which a channel receives, at this master clock rate.
    pub fn reception(&self, channel: usize, clock_hz: f64) -> Reception {
        let block = &self.blocks[self.block_of(channel)];
        let transmits = self.channels[channel].tx.is_transmitting();
        block.board.reception(channel - block.first, transmits, &block.settings, clock_hz)
    }

    /// Restores the state after power-on, except for bursts under way: their samples are
    /// transmitted regardless of the session.
    pub fn reset(&mut self) {
        for block in &mut self.blocks {
            block.board.reset();
            block.settings.reset();
            block.board_writes.clear();
            block.reset_control();
            block.needs_resets = 0;
        }
        for channel in &mut self.channels {
            channel.rx.reset();
            channel.registers = RadioChannel::initial_registers();
        }
    }

    /// Reads the register at `address` of a block; `timestamp` is the radio's time.
    pub fn read(&self, block: usize, address: u32, timestamp: u64) -> Result<u32, NoRegister> {
        match address {
            regs::COMPAT => return Ok(COMPAT_MINOR),
            regs::TIME_LO => return Ok(timestamp as u32),
            regs::TIME_HI => return Ok((timestamp >> 32) as u32),
            regs::SAMPLE_WIDTH => return Ok(SAMPLE_BITS << 16 | self.cycle),
            regs::FRONT_END_BASE.. => return Ok(self.blocks[block].board.read(address)),
            0..regs::CHANNEL_BASE => return Ok(0),
            _ => {}
        }
        let (channel, offset) = self.blocks[block].locate(address)?;
        self.channels[channel].read(offset)
    }

    /// Writes the register at `address` of a block at tick `now`.
    pub fn write(
        &mut self,
        block: usize,
        address: u32,
        value: u32,
        now: u64,
    ) -> Result<(), NoRegister> {
        if address >= regs::FRONT_END_BASE {
            self.blocks[block].board.write(address, value);
            return Ok(());
        }
        if address < regs::CHANNEL_BASE {
            return Ok(());
        }
        let (channel, offset) = self.blocks[block].locate(address)?;
        self.channels[channel].write(offset, value, now)
    }
}

impl RadioChannel {
    fn initial_registers() -> [u32; WORDS_PER_CHANNEL] {
        let mut registers = [0; WORDS_PER_CHANNEL];
        registers[regs::RX_WORDS_PER_PKT as usize / 4] = PACKET_CYCLES;
        registers[regs::TX_ERR_POLICY as usize / 4] = regs::TX_POLICY_NEXT_PACKET;
        registers[regs::RX_HAS_TIME as usize / 4] = 1;
        registers
    }

    /// Returns the last value written to the register at `offset`.
    pub fn register(&self, offset: u32) -> u32 {
        self.registers[offset as usize / 4]
    }

    /// Returns the samples in a full packet: whole cycles, at least one and at most those that fit
    /// the MTU.
    pub fn packet_samples(&self) -> u64 {
        let cycles = self.register(regs::RX_WORDS_PER_PKT).clamp(1, self.samples_max / self.cycle);
        u64::from(cycles) * u64::from(self.cycle)
    }

    /// Returns whether data packets carry their time.
    pub fn has_time(&self) -> bool {
        self.register(regs::RX_HAS_TIME) & 1 != 0
    }

    fn read(&self, offset: u32) -> Result<u32, NoRegister> {
        match offset {
            regs::RX_STATUS => Ok(self.rx.free_slots()),
            // The idle value of transmission is read back, as the host's self-test expects.
            regs::RX_DATA => Ok(self.register(regs::TX_IDLE_VALUE)),
            _ if is_writable(offset) => Ok(self.register(offset)),
            _ => Err(NoRegister),
        }
    }

    fn write(&mut self, offset: u32, value: u32, now: u64) -> Result<(), NoRegister> {
        if !is_writable(offset) {
            return Err(NoRegister);
        }
        self.registers[offset as usize / 4] = value;
        if offset != regs::RX_CMD {
            return Ok(());
        }
        let command = RxCommand::from_word(value).ok_or(NoRegister)?;
        let samples = match command.mode {
            RxMode::Stop => {
                self.rx.stop(now);
                return Ok(());
            }
            // Counted down from 0 it has no end.
            RxMode::Finite => match self.wide(regs::RX_NUM_WORDS_LO) & 0xffff_ffff_ffff {
                0 => None,
                words => Some(words * u64::from(self.cycle)),
            },
            RxMode::Continuous => None,
        };
        let start = command.timed.then(|| self.wide(regs::RX_TIME_LO));
        self.rx.push(Acquire { start, samples }, now);
        Ok(())
    }

    /// Returns a pair of registers, the low half at `offset`.
    fn wide(&self, offset: u32) -> u64 {
        u64::from(self.register(offset)) | u64::from(self.register(offset + 4)) << 32
    }
}

impl RadioBlock {
    /// Returns the channel of its port 0.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Takes the next request that is due at `timestamp`.
    ///
    /// Only the registers that all channels share obey the time of a request; those of a channel
    /// act at once, and the daughterboard gets the time with the value.
    pub fn next_request(&mut self, timestamp: u64) -> Option<CtrlRepr> {
        if self.needs_resets != 0 {
            return None;
        }
        let board = &self.board_writes;
        self.commands.pop_if(|request| match obeys_time(request) {
            true => request.timestamp.is_none_or(|due| due <= timestamp),
            false => request.address < regs::FRONT_END_BASE || board.fits(request),
        })
    }

    /// Queues a write to the daughterboard until its time.
    pub fn write_board(&mut self, request: &CtrlRepr) {
        let fits = self.board_writes.push(*request);
        debug_assert!(fits, "a request that does not fit is not taken");
    }

    /// Executes the writes to the daughterboard that are due.
    pub fn run_board(&mut self, timestamp: u64) {
        while let Some(request) = self.board_writes.pop_due(timestamp) {
            self.board.write(request.address, request.data.first());
        }
    }

    /// Returns the time of the next request that waits for one.
    pub fn waits_for(&self) -> Option<u64> {
        let request = self.commands.front().filter(|request| obeys_time(request));
        let due = request.and_then(|request| request.timestamp);
        due.filter(|_| self.needs_resets == 0)
            .into_iter()
            .chain(self.board_writes.waits_for())
            .min()
    }

    /// Answers no request any more, until control and data have been reset.
    pub fn fall_silent(&mut self) {
        self.needs_resets = RESET_CTRL | RESET_DATA;
    }

    /// Takes notice of the resets in the bits of a control register.
    pub fn note_resets(&mut self, bits: u32) {
        self.needs_resets &= !bits;
    }

    /// Drops the requests and messages.
    pub fn reset_control(&mut self) {
        self.commands.clear();
        self.messages.reset();
    }

    /// Returns channel and offset of an address; registers are whole words.
    fn locate(&self, address: u32) -> Result<(usize, u32), NoRegister> {
        match regs::channel_of(address, self.ports as u8) {
            Some((port, offset)) if offset.is_multiple_of(4) => {
                Ok((self.first + usize::from(port), offset))
            }
            _ => Err(NoRegister),
        }
    }
}

fn obeys_time(request: &CtrlRepr) -> bool {
    request.address < TIMED_END
}

fn is_writable(offset: u32) -> bool {
    matches!(
        offset,
        regs::LOOPBACK | regs::RX_CMD..=regs::RX_ERR_ADDR | regs::TX_IDLE_VALUE
            ..=regs::TX_ERR_ADDR | regs::RX_HAS_TIME
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceKind;
    use crate::device::rx_channel::{NextPacket, RxEvent};
    use crate::personality::ImageOptions;
    use crate::time::{DeviceClock, SampleClock};
    use millstream_wire::ctrl::DataWords;

    /// The only radio block of an E320, or the second one of an N310.
    struct OneBlock(Radios, usize);

    impl OneBlock {
        fn of(kind: DeviceKind, number: usize) -> Self {
            let device = kind.personality();
            let image = Image::new(device, ImageOptions::default());
            Self(Radios::new(&image, device.front_end, 64 * 1024), number)
        }

        fn read(&self, address: u32, timestamp: u64) -> Result<u32, NoRegister> {
            self.0.read(self.1, address, timestamp)
        }

        fn write(&mut self, address: u32, value: u32, now: u64) -> Result<(), NoRegister> {
            self.0.write(self.1, address, value, now)
        }
    }

    fn block() -> OneBlock {
        OneBlock::of(DeviceKind::E320, 0)
    }

    #[test]
    fn the_shared_registers_read_as_the_host_expects() {
        let block = block();
        assert_eq!(block.read(regs::COMPAT, 0), Ok(1));
        assert_eq!(block.read(regs::SAMPLE_WIDTH, 0), Ok(32 << 16 | 1));
        let time = 0x1122_3344_5566_7788;
        assert_eq!(block.read(regs::TIME_LO, time), Ok(0x5566_7788));
        assert_eq!(block.read(regs::TIME_HI, time), Ok(0x1122_3344));
    }

    #[test]
    fn the_self_test_finds_its_words_again() {
        let mut block = block();
        for channel in 0..2 {
            let at = |offset| regs::channel_register(channel, offset);
            for word in [0xdead_beef, 0, 0x0123_4567 + u32::from(channel)] {
                block.write(at(regs::TX_IDLE_VALUE), word, 0).unwrap();
                assert_eq!(block.read(at(regs::TX_IDLE_VALUE), 0), Ok(word));
                assert_eq!(block.read(at(regs::RX_DATA), 0), Ok(word));
            }
        }
    }

    #[test]
    fn registers_that_do_not_exist_are_errors() {
        let mut block = block();
        for address in [0x1002, 0x1074, 0x1100, 0x7_fffc] {
            assert_eq!(block.write(address, 1, 0), Err(NoRegister), "{address:#x}");
            assert_eq!(block.read(address, 0), Err(NoRegister), "{address:#x}");
        }
        assert_eq!(block.write(0x1010, 1, 0), Err(NoRegister), "status is read-only");
        assert_eq!(block.write(0x1014, 3, 0), Err(NoRegister), "command 3 is undefined");
        assert_eq!(block.write(0x8_0000, 1, 0), Ok(()));
        assert_eq!(block.write(0x0c, 1, 0), Ok(()), "the shared part takes anything");
        assert_eq!(block.read(0x0c, 0), Ok(0));
    }

    #[test]
    fn a_timed_finite_command_takes_length_and_time_from_its_registers() {
        let mut block = block();
        let at = |offset| regs::channel_register(1, offset);
        for (offset, value) in [
            (regs::RX_WORDS_PER_PKT, 100),
            (regs::RX_NUM_WORDS_HI, 1),
            (regs::RX_NUM_WORDS_LO, 2),
            (regs::RX_TIME_HI, 0),
            (regs::RX_TIME_LO, 1000),
            (regs::RX_CMD, 0x8000_0001),
        ] {
            assert_eq!(block.write(at(offset), value, 5), Ok(()));
        }
        let channel = &mut block.0.channels[1];
        let keeper = DeviceClock::new(SampleClock::new(0, 0, 1e6, 1.0));
        assert_eq!(channel.rx.advance(&keeper, 2000), Some(RxEvent::Started { tick: 1000 }));
        let packet = channel.rx.next_packet(channel.packet_samples());
        assert_eq!(packet, Some(NextPacket { tick: 1000, samples: 100, eob: false, end: 1100 }));
        assert_eq!(channel.rx.next_event(&keeper), Some(1000 + 64 * 1024 + 1));
    }

    #[test]
    fn each_block_has_channels_and_registers_of_its_own() {
        let mut second = OneBlock::of(DeviceKind::N310, 1);
        second.write(0x1028, 77, 0).unwrap();
        second.write(0x10A8, 78, 0).unwrap();
        let sizes: Vec<_> = second.0.channels.iter().map(RadioChannel::packet_samples).collect();
        assert_eq!(sizes, [64, 64, 77, 78]);
        assert_eq!([0, 1, 2, 3].map(|channel| second.0.block_of(channel)), [0, 0, 1, 1]);
        assert_eq!(second.write(0x1128, 1, 0), Err(NoRegister), "a block has two channels");
    }

    #[test]
    fn packets_stay_within_the_mtu() {
        let mut block = block();
        for (written, used) in [(0, 1), (1, 1), (2044, 2044), (2045, 2044), (u32::MAX, 2044)] {
            block.write(0x1028, written, 0).unwrap();
            assert_eq!(block.0.channels[0].packet_samples(), used);
        }
    }

    #[test]
    fn a_radio_with_four_samples_in_a_cycle_counts_lengths_in_cycles() {
        let mut block = OneBlock::of(DeviceKind::X410Wide, 0);
        assert_eq!(block.read(regs::SAMPLE_WIDTH, 0), Ok(32 << 16 | 4));
        assert_eq!(block.0.channels[0].packet_samples(), 256);
        for (written, used) in [(0, 4), (1, 4), (500, 2000), (511, 2044), (512, 2044)] {
            block.write(0x1028, written, 0).unwrap();
            assert_eq!(block.0.channels[0].packet_samples(), used);
        }
        block.write(0x1018, 1250, 0).unwrap();
        block.write(0x1014, 1, 7).unwrap();
        let channel = &mut block.0.channels[0];
        let keeper = DeviceClock::new(SampleClock::new(0, 0, 1e6, 1.0));
        assert_eq!(channel.rx.advance(&keeper, 9000), Some(RxEvent::Started { tick: 8 }));
        let mut ends = std::iter::from_fn(|| {
            let packet = channel.rx.next_packet(2000)?;
            channel.rx.take(packet);
            Some((packet.samples, packet.end))
        });
        assert_eq!(ends.by_ref().collect::<Vec<_>>(), [(2000, 2008), (2000, 4008), (1000, 5008)]);
    }

    #[test]
    fn a_block_waits_with_a_command_for_which_there_is_no_slot() {
        let mut block = block();
        block.write(0x1020, 0xffff_ffff, 0).unwrap();
        let stalled = |block: &mut OneBlock, data| {
            let request = CtrlRepr {
                address: 0x1014,
                op: Op::Write,
                data: DataWords::one(data),
                ..CtrlRepr::default()
            };
            block.0.blocks[0].commands.push(request);
            let stalled = block.0.is_stalled(0);
            block.0.blocks[0].commands.clear();
            stalled
        };
        for free in (0..33).rev() {
            assert!(!stalled(&mut block, 0x8000_0002));
            assert_eq!(block.write(0x1014, 0x8000_0002, 0), Ok(()));
            assert_eq!(block.read(0x1010, 0), Ok(free));
        }
        assert!(stalled(&mut block, 0x8000_0002) && stalled(&mut block, 1));
        assert!(!stalled(&mut block, 0), "a stop needs none");
    }
}
