//! The whole receiver on one thread.

use super::equalizer::Equalizer;
use super::front_end::{FrontEnd, ReceiverError, RxConfig};
use super::outer::{BlockDeinterleaver, correct, packet};
use super::trellis_decoder::TrellisDecoder;
use crate::Sample;
use crate::monitor::Monitor;
use crate::params::PACKET_BYTES;
use crate::segment::{CodeBlock, Segment};
use bytemuck::Zeroable;
use std::sync::Arc;

/// Samples in, packets out.
#[derive(Debug)]
pub struct Receiver {
    front_end: FrontEnd,
    decoder: Decoder,
}

/// Everything behind the front end.
#[derive(Debug)]
struct Decoder {
    equalizer: Equalizer,
    equalized: Box<Segment>,
    trellis: TrellisDecoder,
    deinterleaver: BlockDeinterleaver,
    monitor: Arc<Monitor>,
}

impl Receiver {
    /// Creates a receiver in its initial state.
    ///
    /// # Errors
    /// [`ReceiverError`] when the configuration makes no sense.
    pub fn new(config: RxConfig) -> Result<Self, ReceiverError> {
        let monitor = Arc::new(Monitor::new());
        Ok(Self {
            front_end: FrontEnd::new(config, monitor.clone())?,
            decoder: Decoder {
                equalizer: Equalizer::new(),
                equalized: Box::new(Segment::zeroed()),
                trellis: TrellisDecoder::new(),
                deinterleaver: BlockDeinterleaver::new(),
                monitor,
            },
        })
    }

    /// Returns the monitor of this receiver, for any thread.
    #[must_use]
    pub fn monitor(&self) -> Arc<Monitor> {
        self.decoder.monitor.clone()
    }

    /// Takes samples, passes on packets. There are no packets before lock; then they follow in
    /// order and without gap until the signal is interrupted.
    pub fn process(&mut self, samples: &[Sample], on_packet: &mut dyn FnMut(&[u8; PACKET_BYTES])) {
        let Self { front_end, decoder } = self;
        front_end.process(samples, &mut |segment| decoder.process(segment, on_packet));
    }

    /// Reports that `missing` samples were lost between those taken so far and the next: see
    /// [`FrontEnd::gap`].
    pub fn gap(&mut self, missing: u64, on_packet: &mut dyn FnMut(&[u8; PACKET_BYTES])) {
        let Self { front_end, decoder } = self;
        front_end.gap(missing, &mut |segment| decoder.process(segment, on_packet));
    }

    /// Processes the last samples at the end of a stream, and passes on the packets in the stages
    /// that are complete. (The interleaver spreads a packet over 4 ms, so most packets in the
    /// stages stay incomplete.)
    pub fn finish(&mut self, on_packet: &mut dyn FnMut(&[u8; PACKET_BYTES])) {
        let Self { front_end, decoder } = self;
        front_end.finish(&mut |segment| decoder.process(segment, on_packet));
        let Decoder { equalizer, equalized, trellis, deinterleaver, monitor } = &mut self.decoder;
        let mut on_codeword = |codeword: &CodeBlock| {
            let mut codeword = *codeword;
            correct(&mut codeword, monitor);
            on_packet(&packet(&codeword, monitor));
        };
        let mut on_block = |block: &CodeBlock| {
            if let Some(codeword) = deinterleaver.process(block) {
                on_codeword(&codeword);
            }
        };
        if equalizer.finish(equalized) {
            trellis.process(equalized, &mut on_block);
        }
        trellis.finish(&mut on_block);
        deinterleaver.finish(&mut on_codeword);
    }
}

impl Decoder {
    fn process(&mut self, segment: &Segment, on_packet: &mut dyn FnMut(&[u8; PACKET_BYTES])) {
        let Self { equalizer, equalized, trellis, deinterleaver, monitor } = self;
        if !equalizer.process(segment, equalized) {
            return;
        }
        equalizer.report(monitor);
        trellis.process(equalized, &mut |block| {
            if let Some(mut codeword) = deinterleaver.process(block) {
                correct(&mut codeword, monitor);
                on_packet(&packet(&codeword, monitor));
            }
        });
    }
}
