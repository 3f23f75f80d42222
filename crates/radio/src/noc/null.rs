//! The block NullSrcSink.

use std::sync::Arc;

use millstream_wire::regs::client_zero::noc_id;
use millstream_wire::regs::null::{self as regs, LineSize};

use super::{open, read_pair};
use crate::control::Control;
use crate::graph::BlockPort;
use crate::{Device, RadioError};

/// The most lines of samples in a packet: the register holds one less.
const LINES_MAX: usize = regs::PACKET_LINES_MASK as usize + 1;

/// The size of the source's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NullPacket {
    /// Lines of samples, behind the line of the header.
    lines: usize,
    line_bytes: usize,
}

impl NullPacket {
    /// Returns the packets that have `samples` samples at least.
    fn packets_of(self, samples: u64) -> u64 {
        samples.div_ceil(self.samples() as u64).clamp(1, regs::PACKETS_MASK)
    }

    /// Returns the size that is nearest to `samples` samples.
    fn of(samples: usize, line_bytes: usize) -> Self {
        Self { lines: (samples * 4 / line_bytes).clamp(1, LINES_MAX), line_bytes }
    }

    fn samples(self) -> usize {
        self.lines * self.line_bytes / 4
    }

    /// Returns the words for the two registers. A packet has two lines more than the first one
    /// says; the second one goes into its header as it is, so both must agree.
    fn registers(self) -> [(u32, u32); 2] {
        let bytes = (self.lines + 1) * self.line_bytes;
        [(regs::PACKET_LINES_LESS_2, self.lines as u32 - 1), (regs::PACKET_BYTES, bytes as u32)]
    }
}

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
        let size = LineSize::from_word(control.read(place.block.port, regs::CONTROL)?);
        let line_bytes = usize::from(size.items) * usize::from(size.item_bits) / 8;
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
    /// lines, one at least. Returns the samples of a packet.
    ///
    /// # Errors
    /// Those of register writes.
    pub fn start(&self, samples: usize) -> Result<usize, RadioError> {
        let packet = NullPacket::of(samples, self.line_bytes);
        self.run(packet, regs::RUN)?;
        Ok(packet.samples())
    }

    /// The same for a source that ends by itself, after `total` samples: whole packets of about
    /// `samples` samples, one at least. Returns the true number of samples in all, the last of
    /// which ends the burst.
    ///
    /// # Errors
    /// [`RadioError::Unusable`] for an image older than UHD 4.10, whose source has no end; those of
    /// register accesses.
    pub fn start_finite(&self, samples: usize, total: u64) -> Result<u64, RadioError> {
        let packet = NullPacket::of(samples, self.line_bytes);
        let packets = packet.packets_of(total);
        let port = self.place.block.port;
        for (address, half) in [(regs::PACKETS, packets), (regs::PACKETS + 4, packets >> 32)] {
            self.control.write(port, address, half as u32)?;
        }
        // Where there is no such register, nothing is stored.
        if read_pair(&self.control, port, regs::PACKETS)? != packets {
            let reason =
                "the source of its block NullSrcSink cannot end by itself: install an image \
                          of UHD 4.10 or newer, or stop the source"
                    .to_owned();
            return Err(RadioError::Unusable { address: *self.control.device().ip(), reason });
        }
        self.run(packet, regs::RUN | regs::FINITE)?;
        Ok(packets * packet.samples() as u64)
    }

    /// Clears the counters and starts the source with this word of the control register.
    fn run(&self, packet: NullPacket, start: u32) -> Result<(), RadioError> {
        let write = |address, value| self.control.write(self.place.block.port, address, value);
        for (address, value) in packet.registers() {
            write(address, value)?;
        }
        write(regs::IDLE_CYCLES, 0)?;
        write(regs::CONTROL, regs::CLEAR)?;
        match start & regs::FINITE {
            0 => write(regs::CONTROL, start),
            // Repeated, it would make all packets once more.
            _ => self.control.write_once(self.place.block.port, regs::CONTROL, start),
        }
    }

    /// Stops the source: one more packet follows, which ends the burst.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_have_the_size_that_the_logic_gives_them() {
        // Recorded: 8 in the first register, 80 in the second, and packets of 18 samples.
        let packet = NullPacket::of(19, 8);
        assert_eq!(packet.registers(), [(regs::PACKET_LINES_LESS_2, 8), (regs::PACKET_BYTES, 80)]);
        assert_eq!(packet.samples(), 18);
        assert_eq!([1, 18, 19, 0].map(|samples| packet.packets_of(samples)), [1, 1, 2, 1]);
        assert_eq!(packet.packets_of(u64::MAX), regs::PACKETS_MASK);
        assert_eq!(NullPacket::of(0, 8).registers()[0].1, 0);
        assert_eq!(NullPacket::of(usize::MAX / 4, 8).registers()[0].1, 0xFFF);
    }
}
