//! The radio blocks: their registers, and the channels behind them.

use super::block_controls::SilencedCapture;
use super::client_zero::{CONTROL_ENDPOINTS, MTU_BYTES};
use super::control::CommandFifo;
use super::gain_timeline::GainTimeline;
use super::messages::Messages;
use super::rx_channel::RxChannel;
use super::rx_turn::Acquire;
use super::tx_channel::TxChannel;
use crate::front_end::{Board, FrontEnd, Reception};
use crate::generation::Generation;
use crate::personality::{Block, FrontEndKind, Image};
use millstream_wire::chdr::{DataRepr, SC16_LEN};
use millstream_wire::ctrl::{CtrlRepr, Op, block_port};
use millstream_wire::regs::client_zero::{RESET_CTRL, RESET_DATA};
use millstream_wire::regs::front_end::{OutputWords, PANEL, PANEL_READ_BACK, write_outputs};
use millstream_wire::regs::radio as regs;
use millstream_wire::regs::radio::{RxCommand, RxMode};

/// Behind the registers that obey the time of a request.
const TIMED_END: u32 = 0x10;
const SAMPLE_BITS: u32 = 32;
/// Offset of [`regs::SAMPLE_WIDTH`].
const SAMPLE_WIDTH: u32 = regs::SAMPLE_WIDTH - regs::CHANNEL_BASE;
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
    generation: &'static Generation,
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
    /// The front panel's pins; an X410 has others.
    pins: Option<OutputWords>,
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
    /// The complex gains behind the receiver and before the transmitter.
    pub rx_gain: GainTimeline,
    pub tx_gain: GainTimeline,
    pub silenced: Option<SilencedCapture>,
    /// The time that the next packet to the host has in place of its own, with an end of burst: the
    /// DDC holds the header of a packet of the radio from before a reset.
    pub stale_header: Option<u64>,
    /// The written values, by offset / 4.
    registers: [u32; WORDS_PER_CHANNEL],
    /// The samples of the largest packet, and those of a cycle.
    samples_max: u32,
    cycle: u32,
    /// See [`regs::FEATURES`].
    pub features: u32,
    /// Of compat 1.x: it has features, and receive commands can wait for the transmitter.
    is_newer: bool,
}

/// The error of a control request to a register that the block does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRegister;

impl Radios {
    /// Returns the blocks of an image in the state after power-on.
    pub fn new(image: &Image, front_end: FrontEndKind, buffer_samples: u64) -> Self {
        let timed = DataRepr { timestamp: Some(0), ..DataRepr::default() };
        let samples_max = ((MTU_BYTES - timed.header_len(image.width)) / SC16_LEN) as u32;
        let cycle = image.samples_per_cycle;
        let is_ad9361 = matches!(front_end, FrontEndKind::Ad9361 | FrontEndKind::Ad9361Swapped);
        let features = if is_ad9361 { 0 } else { regs::FEATURE_TX_GAIN | regs::FEATURE_RX_GAIN };
        let channel = |_| RadioChannel {
            samples_max,
            cycle,
            features,
            is_newer: false,
            rx: RxChannel::new(buffer_samples)
                .with_cycle(cycle.into(), image.cycles_per_sample.into()),
            tx: TxChannel::new().with_cycle(cycle.into()),
            rx_gain: GainTimeline::new(),
            tx_gain: GainTimeline::new(),
            silenced: None,
            stale_header: None,
            registers: RadioChannel::initial_registers(),
        };
        let block = |(number, block): (u16, &Block)| RadioBlock {
            port: block_port(CONTROL_ENDPOINTS, number),
            first: block.first,
            ports: block.inputs.into(),
            board: Board::new(front_end),
            settings: FrontEnd::new(front_end, true),
            pins: (front_end != FrontEndKind::Zbx).then(OutputWords::default),
            commands: CommandFifo::default(),
            board_writes: CommandFifo::default(),
            messages: Messages::of(block),
            needs_resets: 0,
        };
        let mut radios = Self {
            channels: (0..image.channels).map(channel).collect(),
            blocks: image.radios().map(block).collect(),
            cycle,
            generation: image.generation,
        };
        radios.speak(image.generation);
        radios
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
        let Ok((channel, regs::RX_CMD)) = self.locate(block, request.address) else { return false };
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
            block.board = Board::new(block.settings.kind());
            block.settings.reset();
            block.pins = block.pins.map(|_| OutputWords::default());
            block.board_writes.clear();
            block.reset_control();
            block.needs_resets = 0;
        }
        for channel in &mut self.channels {
            channel.rx.reset();
            (channel.silenced, channel.stale_header) = (None, None);
            channel.rx_gain.reset();
            channel.tx_gain.reset();
            channel.registers = RadioChannel::initial_registers();
        }
    }

    /// Reads the register at `address` of a block; `timestamp` is the radio's time.
    pub fn read(&self, block: usize, address: u32, timestamp: u64) -> Result<u32, NoRegister> {
        match address {
            regs::COMPAT => return Ok(self.generation.radio_compat),
            regs::TIME_LO => return Ok(timestamp as u32),
            regs::TIME_HI => return Ok((timestamp >> 32) as u32),
            regs::SAMPLE_WIDTH => return Ok(SAMPLE_BITS << 16 | self.cycle),
            regs::FRONT_END_BASE.. => {
                let RadioBlock { first, board, pins, .. } = &self.blocks[block];
                let RadioChannel { rx, tx, .. } = &self.channels[*first];
                return Ok(match pins {
                    Some(pins) if address == PANEL_READ_BACK => {
                        pins.driven(rx.is_running(), tx.is_transmitting())
                    }
                    _ => board.read(address),
                });
            }
            _ if address < regs::CHANNEL_BASE => return Ok(0),
            _ => {}
        }
        let (channel, offset) = self.locate(block, address)?;
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
            self.blocks[block].write_front_end(address, value);
            return Ok(());
        }
        if address < regs::CHANNEL_BASE {
            return Ok(());
        }
        let (channel, offset) = self.locate(block, address)?;
        self.channels[channel].write(offset, value, now)
    }
}

impl Radios {
    /// Speaks this generation from now on.
    pub fn speak(&mut self, generation: &'static Generation) {
        self.generation = generation;
        for channel in &mut self.channels {
            channel.is_newer = generation.radio_map.has_features;
        }
        for block in &mut self.blocks {
            block.commands.protocol = generation.protocol;
            block.board_writes.protocol = generation.protocol;
        }
    }

    /// Returns channel and offset of an address in a block.
    pub(super) fn locate(&self, block: usize, address: u32) -> Result<(usize, u32), NoRegister> {
        let RadioBlock { first, ports, .. } = self.blocks[block];
        let found = self.generation.radio_map.register(address, ports as u8);
        let (port, offset) = found.ok_or(NoRegister)?;
        Ok((first + usize::from(port), offset))
    }
}

impl RadioChannel {
    fn initial_registers() -> [u32; WORDS_PER_CHANNEL] {
        let mut registers = [0; WORDS_PER_CHANNEL];
        registers[regs::RX_WORDS_PER_PKT as usize / 4] = PACKET_CYCLES;
        registers[regs::TX_ERR_POLICY as usize / 4] = regs::TX_POLICY_NEXT_PACKET;
        registers[regs::RX_HAS_TIME as usize / 4] = 1;
        registers[regs::RX_GAIN as usize / 4] = regs::GAIN_ONE;
        registers[regs::TX_GAIN as usize / 4] = regs::GAIN_ONE;
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
            SAMPLE_WIDTH => Ok(SAMPLE_BITS << 16 | self.cycle),
            regs::FEATURES if self.is_newer => Ok(self.features),
            regs::RX_STATUS => Ok(self.rx.free_slots()),
            // The idle value of transmission is read back, as the host's self-test expects.
            regs::RX_DATA => Ok(self.register(regs::TX_IDLE_VALUE)),
            _ if self.is_writable(offset) => Ok(self.register(offset)),
            _ => Err(NoRegister),
        }
    }

    fn write(&mut self, offset: u32, value: u32, now: u64) -> Result<(), NoRegister> {
        if !self.is_writable(offset) {
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
        let with_transmitter = command.with_transmitter && self.is_newer;
        self.rx.push(Acquire { start, samples, with_transmitter }, now);
        Ok(())
    }

    /// Returns a pair of registers, the low half at `offset`.
    fn wide(&self, offset: u32) -> u64 {
        u64::from(self.register(offset)) | u64::from(self.register(offset + 4)) << 32
    }

    fn is_writable(&self, offset: u32) -> bool {
        match offset {
            regs::LOOPBACK | regs::RX_CMD..=regs::RX_ERR_ADDR => true,
            regs::TX_IDLE_VALUE..=regs::TX_ERR_ADDR | regs::RX_HAS_TIME => true,
            regs::RX_GAIN | regs::TX_GAIN => self.is_newer && self.features != 0,
            _ => false,
        }
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
            false => request.address < regs::FRONT_END_BASE || board.fits_words_of(request),
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
            self.write_front_end(request.address, request.data.first());
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

    fn write_front_end(&mut self, address: u32, value: u32) {
        write_outputs(self.pins.as_mut_slice(), PANEL, address, value);
        self.board.write(address, value);
    }
}

fn obeys_time(request: &CtrlRepr) -> bool {
    request.address < TIMED_END
}

#[cfg(test)]
#[path = "radio_block_tests.rs"]
mod tests;
