//! Flush and reset of the blocks, by registers of client zero.

use super::EmulatedDevice;
use crate::personality::{Block, BlockKind};
use millstream_wire::regs::client_zero::{FLUSH, RESET_CTRL, RESET_DATA};

/// The control register of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BlockControl {
    /// The last value written: bits act when they are set.
    word: u32,
    /// A packet is in the way of the flush.
    is_stuck: bool,
}

impl BlockControl {
    /// Returns whether a flush is under way.
    pub fn flushes(&self) -> bool {
        self.word & FLUSH != 0
    }

    /// Returns whether the flush under way has ended.
    pub fn has_flushed(&self) -> bool {
        self.flushes() && !self.is_stuck
    }
}

impl EmulatedDevice {
    /// Writes the control register of block `number`.
    pub(super) fn control_block(&mut self, number: usize, word: u32) {
        let control = &mut self.controls[number];
        let set = word & !control.word;
        control.word = word;
        if set & RESET_CTRL != 0 {
            self.reset_control(number);
        }
        if set & RESET_DATA != 0 {
            self.controls[number].is_stuck = false;
            self.end_bursts(number);
        }
        if set & (RESET_DATA | FLUSH) != 0 {
            self.reset_data(number);
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

    /// Ends the bursts in block `number`, if it is a DUC.
    fn end_bursts(&mut self, number: usize) {
        let Block { kind, first, inputs, .. } = self.image.blocks[number];
        if kind == BlockKind::Duc {
            let channels = first..first + usize::from(inputs);
            let ducs = self.emissions[channels].iter_mut().filter_map(|one| one.duc.as_mut());
            ducs.for_each(|duc| duc.end_burst());
        }
    }

    /// Drops the samples in block `number`, and stops it.
    fn reset_data(&mut self, number: usize) {
        let Block { kind, first, inputs, .. } = self.image.blocks[number];
        if let Some(block) = &mut self.stream_blocks[number] {
            block.stop();
            (first..first + usize::from(inputs)).for_each(|endpoint| self.drop_waiting(endpoint));
        }
        if kind == BlockKind::Radio {
            for channel in first..first + usize::from(inputs) {
                self.radio.channels[channel].rx.reset();
                self.senders[channel].source().clear();
                self.drop_waiting(channel);
            }
        }
    }
}
