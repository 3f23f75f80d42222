//! The sink in the place of `radio_tx` while a graph's plan is measured.

use millstream_flow::{Block, BlockError, Context, In, PortVisitor, Ports, Work};

use super::transmit::visit;
use crate::StreamSample;
use crate::convert::{Converter, Wire};
use crate::tx::SC16_FULL_SCALE;

/// The samples that are converted at once.
const PIECE: usize = 4096;

/// Converts samples as [`super::RadioSink`] does, and sends nothing.
pub(super) struct RehearsedSink<T: StreamSample> {
    inputs: Vec<In<T>>,
    converter: Converter,
    wire: Vec<u8>,
}

impl<T: StreamSample> RehearsedSink<T> {
    pub fn new(channels: usize) -> Self {
        Self {
            inputs: (0..channels).map(|_| In::new()).collect(),
            converter: Converter::new(Wire::Sc16),
            wire: vec![0; PIECE * 4],
        }
    }
}

impl<T: StreamSample> Ports for RehearsedSink<T> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        visit(&mut self.inputs, ports);
    }
}

impl<T: StreamSample> Block for RehearsedSink<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let count = self.inputs.iter().map(|input| input.slice().len()).min().unwrap_or(0);
        for input in &mut self.inputs {
            for piece in input.slice()[..count].chunks(PIECE) {
                T::to_packet(self.converter, piece, &mut self.wire, SC16_FULL_SCALE);
            }
            input.consume(count);
        }
        Ok(Work::Continue)
    }
}
