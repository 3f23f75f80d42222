//! The block Replay: memory of the device that records and plays.

use std::sync::Arc;

use millstream_wire::regs::client_zero::noc_id;
use millstream_wire::regs::replay::{self as regs, MemorySize, command};

use super::{open, read_pair, write_pair};
use crate::control::Control;
use crate::generation::register_error;
use crate::graph::BlockPort;
use crate::{Device, RadioError};

/// The major version of the register map.
const MAJOR: u32 = 1;

/// The first minor version that follows a recording: images of UHD 4.10.
const FOLLOW_MINOR: u32 = 3;

/// The bytes of a sample in memory.
const SAMPLE_BYTES: u64 = 4;

/// A port of a block Replay: it records what comes to its input, and plays it from its output.
pub struct Replay {
    control: Arc<Control>,
    place: BlockPort,
    minor: u32,
    word_bytes: u64,
    memory_bytes: u64,
}

impl Replay {
    /// Resets the device's first block of this kind, and returns its port `port`.
    ///
    /// # Errors
    /// [`RadioError::Unusable`] without such a block or port, or with memory of no use;
    /// [`RadioError::Compat`] for registers of another kind; those of register accesses.
    pub fn open(device: &Device, port: u8) -> Result<Self, RadioError> {
        let place = open(device, (noc_id::REPLAY, "Replay"), 0, port)?;
        let control = Arc::clone(device.control());
        let compat = control.read(place.block.port, regs::COMPAT)?;
        if compat >> 16 != MAJOR {
            return Err(register_error("the register map of the block Replay", compat, "1.x"));
        }
        let (word_bytes, memory_bytes) = memory(control.read(place.block.port, regs::MEMORY)?)
            .ok_or_else(|| RadioError::Unusable {
                address: device.address(),
                reason: "its block Replay has no memory of whole samples".to_owned(),
            })?;
        let minor = compat & 0xFFFF;
        let this = Self { control, place, minor, word_bytes, memory_bytes };
        this.write(regs::ITEM_BYTES, SAMPLE_BYTES as u32)?;
        Ok(this)
    }

    /// Returns its block and port.
    pub fn place(&self) -> BlockPort {
        self.place
    }

    /// Returns the samples that the memory holds; all ports share it.
    pub fn memory_samples(&self) -> u64 {
        self.memory_bytes / SAMPLE_BYTES
    }

    /// Begins a recording of at most `samples` samples, at the sample `first` of the memory. What
    /// comes to the input from now on is recorded, and the input takes nothing more when the place
    /// is full.
    ///
    /// # Errors
    /// [`RadioError::OutOfRange`] for a place that is not in the memory, or not of whole words;
    /// those of register writes.
    pub fn record(&self, first: u64, samples: u64) -> Result<(), RadioError> {
        let (base, size) = self.range(first, samples)?;
        self.write_pair(regs::RECORD_BASE, base)?;
        self.write_pair(regs::RECORD_SIZE, size)?;
        self.write(regs::RECORD_RESTART, 1)
    }

    /// Reads the number of samples that have been recorded.
    ///
    /// # Errors
    /// Those of register reads.
    pub fn recorded(&self) -> Result<u64, RadioError> {
        let address = self.address(regs::RECORD_FULLNESS);
        Ok(read_pair(&self.control, self.place.block.port, address)? / SAMPLE_BYTES)
    }

    /// Plays `samples` samples from the sample `first` of the memory on, in packets of
    /// `packet_samples`; without an `end`, again and again until [`Replay::stop`]. With a time `at`
    /// the packets have times from there on, ticks.
    ///
    /// # Errors
    /// Those of [`Replay::record`].
    pub fn play(
        &self,
        first: u64,
        samples: u64,
        packet_samples: usize,
        end: bool,
        at: Option<u64>,
    ) -> Result<(), RadioError> {
        let word = if end { command::FINITE } else { command::CONTINUOUS };
        self.play_by(word, (first, samples), packet_samples, at)
    }

    /// Plays the next recording of `samples` samples at the sample `first` of the memory, once and
    /// while it is being recorded: the output follows the input and does not overtake it. Begin it
    /// behind [`Replay::record`] with the same place.
    ///
    /// # Errors
    /// [`RadioError::Compat`] for a block before version 1.3; those of [`Replay::record`].
    pub fn follow(
        &self,
        first: u64,
        samples: u64,
        packet_samples: usize,
    ) -> Result<(), RadioError> {
        if self.minor < FOLLOW_MINOR {
            let (what, compat) = ("the register map of the block Replay", MAJOR << 16 | self.minor);
            return Err(register_error(what, compat, "following a recording from 1.3 on"));
        }
        let word = command::FINITE | command::FOLLOW;
        self.play_by(word, (first, samples), packet_samples, None)
    }

    fn play_by(
        &self,
        word: u32,
        (first, samples): (u64, u64),
        packet_samples: usize,
        at: Option<u64>,
    ) -> Result<(), RadioError> {
        let (base, size) = self.range(first, samples)?;
        self.write_pair(regs::PLAY_BASE, base)?;
        self.write_pair(regs::PLAY_SIZE, size)?;
        let words = packet_samples as u64 * SAMPLE_BYTES / self.word_bytes;
        self.write(regs::PACKET_WORDS, words.clamp(1, u16::MAX.into()) as u32)?;
        if word & command::FINITE != 0 {
            self.write_pair(regs::PLAY_WORDS, size / self.word_bytes)?;
        }
        if let Some(ticks) = at {
            self.write_pair(regs::PLAY_TIME, ticks)?;
        }
        let timed = if at.is_some() { command::TIMED } else { 0 };
        // A second write would queue a second playback.
        let address = self.address(regs::PLAY_COMMAND);
        self.control.write_once(self.place.block.port, address, word | timed)
    }

    /// Stops the playback, and forgets those in the queue.
    ///
    /// # Errors
    /// Those of register writes.
    pub fn stop(&self) -> Result<(), RadioError> {
        self.write(regs::PLAY_COMMAND, command::STOP)
    }

    /// Returns a place in the memory: its first byte and its bytes.
    fn range(&self, first: u64, samples: u64) -> Result<(u64, u64), RadioError> {
        let word = self.word_bytes / SAMPLE_BYTES;
        let most = self.memory_samples();
        let end = first.checked_add(samples).filter(|end| *end <= most && samples > 0);
        let whole = first % word == 0 && samples % word == 0;
        if end.is_none() || !whole {
            let (what, from) = ("end of the place in the memory (whole words)", word as f64);
            let (value, to) = (first as f64 + samples as f64, most as f64);
            return Err(RadioError::OutOfRange { what, value, from, to, unit: "samples" });
        }
        Ok((first * SAMPLE_BYTES, samples * SAMPLE_BYTES))
    }

    fn address(&self, offset: u32) -> u32 {
        regs::BANK * u32::from(self.place.port) + offset
    }

    fn write(&self, offset: u32, value: u32) -> Result<(), RadioError> {
        self.control.write(self.place.block.port, self.address(offset), value)
    }

    fn write_pair(&self, offset: u32, value: u64) -> Result<(), RadioError> {
        write_pair(&self.control, self.place.block.port, self.address(offset), value)
    }
}

/// Decodes the size of a word and of the memory, bytes; `None` for memory without whole samples.
fn memory(register: u32) -> Option<(u64, u64)> {
    let MemorySize { word_bits, bytes_log2 } = MemorySize::from_word(register);
    let word_bytes = u64::from(word_bits) / 8;
    let memory_bytes = 1u64.checked_shl(bytes_log2.into()).filter(|bytes| *bytes < 1 << 48)?;
    let whole =
        word_bytes >= SAMPLE_BYTES && word_bytes % SAMPLE_BYTES == 0 && memory_bytes >= word_bytes;
    whole.then_some((word_bytes, memory_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_register_is_a_memory_or_none() {
        assert_eq!(memory(64 << 16 | 31), Some((8, 1 << 31)));
        assert_eq!(memory(512 << 16 | 32), Some((64, 1 << 32)));
        for register in [0, u32::MAX, 64 << 16, 8 << 16 | 20, 64 << 16 | 70, 48 << 16 | 20] {
            assert_eq!(memory(register), None, "{register:#x}");
        }
    }
}
