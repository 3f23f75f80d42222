//! Flush and reset of the blocks, by registers of client zero.

use super::EmulatedDevice;
use crate::personality::{Block, BlockKind};
use millstream_wire::chdr::SC16_LEN;
use millstream_wire::regs::client_zero::{FLUSH, RESET_CTRL, RESET_DATA};

/// Samples that wait in the endpoint behind a block. With more of them a packet is half in the
/// block and half there.
const ENDPOINT_SAMPLES: u64 = 1024;

/// Samples that DUC and radio hold. With more of them a packet is half there and half in the
/// endpoint.
const INNER_SAMPLES: u64 = 4096;

/// The control register of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BlockControl {
    /// The last value written: bits act when they are set.
    word: u32,
    /// A part of a packet is in the block, whose rest does not move: a flush does not end.
    holds_part: bool,
}

impl BlockControl {
    /// Returns whether a flush is under way.
    pub fn flushes(&self) -> bool {
        self.word & FLUSH != 0
    }

    /// Returns whether the flush under way has ended.
    pub fn has_flushed(&self) -> bool {
        self.flushes() && !self.holds_part
    }
}

/// The capture of a radio that a flush has silenced: it goes on until the radio is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SilencedCapture {
    /// The begin of one of its packets, and the ticks of each.
    packet_tick: u64,
    packet_ticks: u64,
    /// The block behind the radio was reset amid a packet, and takes the next word for a header.
    is_cut: bool,
}

impl EmulatedDevice {
    /// Writes the control register of block `number`.
    pub(super) fn control_block(&mut self, number: usize, word: u32, now: u64) {
        let control = &mut self.controls[number];
        let set = word & !control.word;
        control.word = word;
        if set & RESET_CTRL != 0 {
            self.reset_control(number);
        }
        if set & FLUSH != 0 {
            self.find_part(number, now);
        }
        if set & (RESET_DATA | FLUSH) != 0 {
            self.reset_data(number, now);
        }
        if set & RESET_DATA != 0 {
            self.forget_part(number, now);
        }
        let Block { kind, first, .. } = self.image.blocks[number];
        if kind == BlockKind::Radio {
            let block = self.radio.block_of(first);
            self.radio.blocks[block].note_resets(set);
        }
    }

    /// Drops the requests of block `number`, and its messages.
    fn reset_control(&mut self, number: usize) {
        let Block { kind, first, inputs, .. } = self.image.blocks[number];
        if kind == BlockKind::Radio {
            let block = self.radio.block_of(first);
            self.radio.blocks[block].reset_control();
            for channel in first..first + usize::from(inputs) {
                self.radio.channels[channel].rx.release(0);
            }
        }
    }

    /// Finds out, before a flush of block `number`, whether the last block before an endpoint holds
    /// a part of a packet to a host that takes no more.
    fn find_part(&mut self, number: usize, now: u64) {
        let Block { kind, first, outputs, .. } = self.image.blocks[number];
        if !matches!(kind, BlockKind::Ddc | BlockKind::Radio) {
            return;
        }
        let holds = (first..first + usize::from(outputs)).any(|channel| {
            let (radio, out) = (&self.radio.channels[channel], &self.endpoints[channel].out);
            let takes = out.is_local() || out.packets_allowed(SC16_LEN) > 0;
            radio.rx.waiting_samples(now) > ENDPOINT_SAMPLES && !takes
        });
        let last = if self.image.has(BlockKind::Ddc) { BlockKind::Ddc } else { BlockKind::Radio };
        let is_last = |block: &Block| block.kind == last && block.first == first;
        if let Some(behind) = self.image.blocks.iter().position(is_last) {
            self.controls[behind].holds_part |= holds;
        }
    }

    /// Takes notice that the reset of an endpoint dropped `samples` which a channel should have
    /// transmitted.
    pub(super) fn note_dropped(&mut self, channel: usize, samples: u64) {
        if samples <= INNER_SAMPLES {
            return;
        }
        for (block, control) in self.image.blocks.iter().zip(&mut self.controls) {
            let transmits = matches!(block.kind, BlockKind::Duc | BlockKind::Radio);
            let channels = block.first..block.first + usize::from(block.inputs);
            control.holds_part |= transmits && channels.contains(&channel);
        }
    }

    /// Drops the part of a packet in block `number`, whose rest stays where it is.
    fn forget_part(&mut self, number: usize, now: u64) {
        let Block { kind, first, outputs, .. } = self.image.blocks[number];
        let holds_part = std::mem::take(&mut self.controls[number].holds_part);
        if !kind.has_channels() {
            return;
        }
        for channel in first..first + usize::from(outputs) {
            let radio = &mut self.radio.channels[channel];
            match kind {
                BlockKind::Ddc => {
                    self.endpoints[channel].out.is_amid_packet |= holds_part;
                    radio.silenced =
                        radio.silenced.map(|it| SilencedCapture { is_cut: true, ..it });
                }
                BlockKind::Radio => {
                    let has_ddc = self.image.has(BlockKind::Ddc);
                    self.endpoints[channel].out.is_amid_packet |= holds_part && !has_ddc;
                    let cut = radio.silenced.take().filter(|capture| capture.is_cut);
                    let header = cut.map(|capture| {
                        let ticks = now.saturating_sub(capture.packet_tick);
                        now - ticks % capture.packet_ticks
                    });
                    radio.stale_header = header.map(|tick| self.keeper.timestamp_of(tick));
                }
                BlockKind::Duc => {
                    let duc = &mut self.emissions[channel].duc;
                    duc.iter_mut().for_each(|duc| duc.end_burst());
                }
                _ => {}
            }
        }
    }

    /// Drops the samples in block `number`, and stops it.
    fn reset_data(&mut self, number: usize, now: u64) {
        let Block { kind, first, inputs, .. } = self.image.blocks[number];
        if let Some(block) = &mut self.stream_blocks[number] {
            block.stop();
            (first..first + usize::from(inputs)).for_each(|endpoint| self.drop_waiting(endpoint));
        }
        if kind == BlockKind::Radio {
            for channel in first..first + usize::from(inputs) {
                let radio = &mut self.radio.channels[channel];
                let capture = radio.rx.packet_in_progress(radio.packet_samples(), now);
                if let Some((packet_tick, packet_ticks)) = capture {
                    radio.silenced =
                        Some(SilencedCapture { packet_tick, packet_ticks, is_cut: false });
                }
                radio.rx.reset();
                self.senders[channel].source().clear();
                self.drop_waiting(channel);
            }
        }
    }
}
