//! Frames with one item of each stream, as streams.

use millstream_flow::copied_ns;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, In, Item, ItemRatio, Out, Ports, Work,
};

/// Gives item `n` of each frame to the output `n`. An incomplete frame at the end is dropped.
#[derive(Debug, Ports)]
pub struct Deinterleave<T: Item> {
    /// Frames.
    pub input: In<T>,
    /// The streams: `out0`, `out1`, ….
    #[port("out")]
    pub outputs: Vec<Out<T>>,
}

impl<T: Item> Deinterleave<T> {
    /// Makes a block with so many outputs.
    #[must_use]
    pub fn new(streams: usize) -> Self {
        let outputs = (0..streams).map(|_| Out::new()).collect();
        Self { input: In::with_min_items(streams), outputs }
    }
}

impl<T: Item> Block for Deinterleave<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let Self { input, outputs } = self;
        let streams = outputs.len();
        let there = input.slice().len() / streams;
        let room = outputs.iter_mut().map(|output| output.slice_mut().len());
        let frames = room.min().unwrap_or(0).min(there);
        let items = &input.slice()[..frames * streams];
        for (n, output) in outputs.iter_mut().enumerate() {
            let from = items[n.min(items.len())..].iter().step_by(streams);
            for (to, from) in output.slice_mut()[..frames].iter_mut().zip(from) {
                *to = *from;
            }
            output.produce(frames);
        }
        input.consume(frames * streams);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts
            .rate(ItemRatio::decimate(self.outputs.len() as u32))
            .holds(self.outputs.len() as u64 - 1)
            .ns_per_item(3.0 * copied_ns::<T>());
    }
}

/// Splits frames into streams: item n of each goes to `outn`.
#[derive(BlockParameters)]
#[block(deinterleave, pure, items(cf32, f32), example = "streams = 4")]
struct DeinterleaveParameters {
    /// items in a frame
    #[parameter(least = 1, most = 4096)]
    streams: usize,
}

impl DeinterleaveParameters {
    fn make<T: Item>(self) -> Deinterleave<T> {
        Deinterleave::new(self.streams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn each_item_goes_to_its_stream() {
        let mut mock = Mock::new(Deinterleave::<f32>::new(3));
        mock.feed("in", &[0.0f32, 1.0, 2.0, 10.0, 11.0, 12.0, 20.0]);
        mock.run().unwrap();
        for (n, port) in ["out0", "out1", "out2"].into_iter().enumerate() {
            assert_eq!(mock.take::<f32>(port), [n as f32, n as f32 + 10.0]);
        }
    }
}
