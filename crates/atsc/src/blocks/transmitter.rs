//! Samples of a transmission, for test signals.

use crate::Sample;
use crate::params::PACKET_BYTES;
use crate::tx::{Impairments, Numbered, Transmitter, TsSource, TxConfig};
use millstream_flow::registry::BlockParameters;
use millstream_flow::{Block, BlockError, Context, Out, Ports, Work};
use std::path::PathBuf;

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

/// Makes an 8-VSB signal without end, for tests.
#[derive(BlockParameters)]
#[block(atsc_transmitter, reads, example = "rate_hz = 6.25e6")]
struct TransmitterParameters {
    /// complex samples per second, from 5.45e6
    rate_hz: f64,
    /// transport stream file, sent over and over; numbered packets if empty
    ts: Option<PathBuf>,
    /// seed of the random packets
    #[parameter(default = 1)]
    seed: i64,
    /// level (RMS); peaks are about three times higher
    #[parameter(default = 0.2)]
    rms: f32,
    /// clock error, ppm: positive values make the symbols too fast
    #[parameter(default = 0.0)]
    clock_ppm: f64,
}

impl TransmitterParameters {
    fn make(self) -> Result<AtscTransmitter, BlockError> {
        let config = TxConfig { sample_rate_hz: self.rate_hz, rms: self.rms };
        let spoilt = Impairments { clock_ppm: self.clock_ppm, ..Impairments::default() };
        let transmitter = spoilt.transmitter(config)?;
        let packets = match self.ts {
            None => Packets::Numbered(Numbered::new(self.seed as u64)),
            Some(path) => Packets::Stream(Box::new(TsSource::open(path, true)?)),
        };
        Ok(AtscTransmitter::new(transmitter, packets))
    }
}
