//! The block NullSrcSink.

use std::sync::Arc;

use millstream_wire::regs::client_zero::noc_id;
use millstream_wire::regs::null as regs;

use super::{open, read_pair};
use crate::control::Control;
use crate::graph::BlockPort;
use crate::{Device, RadioError};

/// The most lines of a packet that the register can express.
const LINES_MAX: usize = 1 << 12;

/// Lines and packets that passed a side of the block, since they were cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NullCounters {
    /// Words of the block's width.
    pub lines: u64,
    /// Packets.
    pub packets: u64,
}

/// A block that makes counting items on its output 0, and drops those at its input 0. Both are as
/// fast as their streams.
pub struct NullSrcSink {
    control: Arc<Control>,
    place: BlockPort,
    line_bytes: usize,
}

impl NullSrcSink {
    /// Resets the device's first block of this kind.
    ///
    /// # Errors
    /// [`RadioError::Unusable`] without such a block, or with lines of no bytes; those of register
    /// accesses.
    pub fn open(device: &Device) -> Result<Self, RadioError> {
        let place = open(device, (noc_id::NULL_SRC_SINK, "NullSrcSink"), 0, 0)?;
        let control = Arc::clone(device.control());
        let word = control.read(place.block.port, regs::CONTROL)?;
        let line_bytes = ((word >> 24) * (word >> 16 & 0xFF) / 8) as usize;
        if line_bytes == 0 {
            let reason = "its block NullSrcSink says that its lines are empty".to_owned();
            return Err(RadioError::Unusable { address: device.address(), reason });
        }
        Ok(Self { control, place, line_bytes })
    }

    /// Returns its block and port: the output of the source and the input of the sink.
    pub fn place(&self) -> BlockPort {
        self.place
    }

    /// Returns the bytes of a line.
    pub fn line_bytes(&self) -> usize {
        self.line_bytes
    }

    /// Clears the counters and starts the source, with packets of about `samples` samples: whole
    /// lines, two at least. Returns the samples of a packet.
    ///
    /// # Errors
    /// Those of register writes.
    pub fn start(&self, samples: usize) -> Result<usize, RadioError> {
        let lines = (samples * 4 / self.line_bytes).clamp(2, LINES_MAX);
        let bytes = lines * self.line_bytes;
        let write = |address, value| self.control.write(self.place.block.port, address, value);
        write(regs::PACKET_LINES, lines as u32 - 2)?;
        write(regs::PACKET_BYTES, bytes as u32)?;
        write(regs::IDLE_CYCLES, 0)?;
        write(regs::CONTROL, regs::CLEAR)?;
        write(regs::CONTROL, regs::RUN)?;
        Ok(bytes / 4)
    }

    /// Stops the source.
    ///
    /// # Errors
    /// Those of register writes.
    pub fn stop(&self) -> Result<(), RadioError> {
        self.control.write(self.place.block.port, regs::CONTROL, 0)
    }

    /// Reads the counters of the source.
    ///
    /// # Errors
    /// Those of register reads.
    pub fn source_counters(&self) -> Result<NullCounters, RadioError> {
        self.counters(regs::SOURCE_COUNTERS)
    }

    /// Reads the counters of the sink.
    ///
    /// # Errors
    /// Those of register reads.
    pub fn sink_counters(&self) -> Result<NullCounters, RadioError> {
        self.counters(regs::SINK_COUNTERS)
    }

    fn counters(&self, at: u32) -> Result<NullCounters, RadioError> {
        let read = |address| read_pair(&self.control, self.place.block.port, address);
        Ok(NullCounters { lines: read(at)?, packets: read(at + 8)? })
    }
}
