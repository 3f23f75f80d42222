//! Samples of a transmission, for test signals.

use crate::Sample;
use crate::params::PACKET_BYTES;
use crate::tx::{Numbered, Transmitter, TsSource};
use millstream_flow::{Block, BlockError, Context, Out, Ports, Work};

/// The source of a transmitter's packets.
#[derive(Clone, Debug)]
pub enum Packets {
    /// A transport stream file, repeated if it was opened so; null packets after its end.
    Stream(Box<TsSource>),
    /// Packets that contain their number.
    Numbered(Numbered),
}

impl Packets {
    /// Writes the next packet.
    pub fn next_packet(&mut self, packet: &mut [u8; PACKET_BYTES]) {
        match self {
            Self::Stream(stream) => {
                stream.next_packet(packet);
            }
            Self::Numbered(numbered) => numbered.next_packet(packet),
        }
    }
}

/// An 8-VSB transmitter without end.
///
/// # Stream Outputs
/// `out`: complex samples, the middle of the channel at 0 Hz.
#[derive(Ports)]
pub struct AtscTransmitter {
    /// Samples.
    pub output: Out<Sample>,
    transmitter: Transmitter,
    packets: Packets,
}

impl AtscTransmitter {
    /// Creates a block that transmits these packets.
    #[must_use]
    pub fn new(transmitter: Transmitter, packets: Packets) -> Self {
        Self { output: Out::new(), transmitter, packets }
    }
}

impl Block for AtscTransmitter {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let Self { output, transmitter, packets } = self;
        let room = output.slice_mut();
        let items = room.len();
        transmitter.generate(&mut |packet| packets.next_packet(packet), room);
        output.produce(items);
        Ok(Work::Continue)
    }
}
