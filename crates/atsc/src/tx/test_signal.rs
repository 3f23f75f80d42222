//! A transmitter with all impairments of its signal.

use super::{ImpairmentError, Impairments, Transmitter, TxConfig};
use crate::Sample;
use crate::params::PACKET_BYTES;
use millstream_dsp::impair::{Chain, Impair};

/// A signal as a receiver gets it: transmitted, with known impairments.
///
/// ```
/// use millstream_atsc::Sample;
/// use millstream_atsc::tx::{Impairments, Numbered, TestSignal, TxConfig};
///
/// let spoilt = Impairments { cn_db: Some(20.0), offset_hz: 1e3, ..Impairments::default() };
/// let mut signal = TestSignal::new(TxConfig::default(), &spoilt, 1).unwrap();
/// let mut packets = Numbered::new(1);
/// let mut samples = vec![Sample::default(); 10_000];
/// signal.generate(&mut |packet| packets.next_packet(packet), &mut samples);
/// ```
#[derive(Debug)]
pub struct TestSignal {
    transmitter: Transmitter,
    chain: Chain,
}

impl TestSignal {
    /// Creates the signal of a transmitter of `config` with impairments; `seed` sets all random
    /// values.
    ///
    /// # Errors
    /// [`ImpairmentError`] when a value is out of range.
    pub fn new(
        config: TxConfig,
        impairments: &Impairments,
        seed: u64,
    ) -> Result<Self, ImpairmentError> {
        let transmitter = impairments.transmitter(config)?;
        Ok(Self { transmitter, chain: impairments.chain(config, seed)? })
    }

    /// Fills `out`, and requests packets as they are needed.
    pub fn generate(
        &mut self,
        next_packet: &mut dyn FnMut(&mut [u8; PACKET_BYTES]),
        out: &mut [Sample],
    ) {
        for block in out.chunks_mut(2048) {
            self.transmitter.generate(next_packet, block);
            self.chain.apply(block);
        }
    }
}
