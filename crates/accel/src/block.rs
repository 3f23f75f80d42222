//! The blocks: [`OffloadBlock`] calculates on a device, [`OnHost`] on the CPU.

use crate::host::HostKernel;
use crate::kernel::{Kernel, KernelShape};
use crate::pipeline::Pipeline;
use crate::{Accelerator, AcceleratorError, OffloadSettings, Opened};
use millstream_dsp::Sample;
use millstream_flow::{
    Block, BlockError, BlockFacts, BlockMemory, Context, In, Item, ItemRatio, MemorySpan, Out,
    Ports, Tag, TagRule, TagShift, Work, keys,
};
use std::collections::VecDeque;

/// Tags under way for which there is room from the start; more of them allocate, once.
const TAGS: usize = 4096;

/// The items of a kernel's results: complex samples, or powers.
pub trait ResultItem: Item + bytemuck::Pod {
    /// Floating-point numbers in an item.
    const WORDS: usize = size_of::<Self>() / size_of::<f32>();
    /// Whether tags move on to them. A spectrum is of many samples, so their tags end there.
    const HAS_TAGS: bool;

    /// Turns results of the kernel into items of the block, in place.
    fn finish(_: &mut [Self]) {}
}

impl ResultItem for Sample {
    const HAS_TAGS: bool = true;
}

/// Powers leave the block in decibels, as those of the block `power_spectrum` do.
impl ResultItem for f32 {
    const HAS_TAGS: bool = false;

    fn finish(powers: &mut [Self]) {
        const LEAST: f32 = 1e-20;
        powers.iter_mut().for_each(|power| *power = 10.0 * power.max(LEAST).log10());
    }
}

fn ratio(kernel: &Kernel) -> ItemRatio {
    let KernelShape { samples, words, .. } = kernel.shape();
    let whole = |n: usize| u32::try_from(n).expect("frames have fewer than 2^32 items");
    ItemRatio::new(whole(words / kernel.words_of_item()), whole(samples))
}

/// Whether a frame that the end of the stream cuts short has results: that of a filter needs only
/// the first sample of its frame.
fn is_padded(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Fir { .. })
}

/// A block whose kernel runs on a device. It never waits for the device: while batches are under
/// way it takes further samples, and gives results in order when they are there.
///
/// A batch ends at the end of the frame that contains a gap (a tag `loss_items`), and when its
/// first sample has waited for [`OffloadSettings::wait_max`]. So nothing in front of a gap waits
/// for samples behind it.
///
/// Where the device does not answer for [`OffloadSettings::stall_after`], is lost, or gives a wrong
/// result, the CPU calculates the batches concerned; the block's numbers say how many samples.
#[derive(Debug, Ports)]
pub struct OffloadBlock<O: ResultItem> {
    input: In<Sample>,
    output: Out<O>,
    pipeline: Pipeline,
    kernel: Kernel,
    ratio: ItemRatio,
    delay: f64,
    shift: TagShift,
    /// Tags of results that are not given yet, by the item of the output.
    tags: VecDeque<Tag>,
    /// Tags of the input are noted up to this item.
    noted: u64,
    /// Gaps in front of this item were told to the pipeline.
    gaps_told: u64,
}

impl<O: ResultItem> OffloadBlock<O> {
    /// Prepares a device for a kernel.
    ///
    /// # Errors
    /// See [`Accelerator::open`].
    ///
    /// # Panics
    /// If the kernel's results are no items `O`.
    pub fn new(
        kernel: Kernel,
        device: &dyn Accelerator,
        settings: OffloadSettings,
    ) -> Result<Self, AcceleratorError> {
        let opened = device.open(&kernel, settings.slots, settings.frames)?;
        Ok(Self::with(kernel, opened, settings))
    }

    /// Makes the block with a device that was [prepared](Accelerator::open) for this kernel and
    /// these settings, and has no batch under way.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn with(kernel: Kernel, opened: Opened, settings: OffloadSettings) -> Self {
        assert_eq!(kernel.words_of_item(), O::WORDS, "the block's items are the kernel's results");
        let shape = kernel.shape();
        Self {
            // Without a least number: results come also while no samples do.
            input: In::with_min_items(0),
            output: Out::with_min_items(shape.words / O::WORDS),
            pipeline: Pipeline::new(&kernel, opened, settings),
            ratio: ratio(&kernel),
            delay: kernel.delay(),
            shift: TagShift::new(ratio(&kernel)),
            kernel,
            tags: VecDeque::with_capacity(TAGS),
            noted: 0,
            gaps_told: 0,
        }
    }

    /// Takes what is there, a batch up to each gap.
    fn take(&mut self, context: &Context) {
        while !self.input.slice().is_empty() {
            let (position, gap) = (self.input.position(), self.gap());
            if gap == Some(position) {
                self.pipeline.end_at_gap(context.now);
                self.gaps_told = position + 1;
                continue;
            }
            let length = self.input.slice().len();
            let wanted = gap.map_or(length, |gap| (gap - position) as usize);
            let taken = self.pipeline.take(&self.input.slice()[..wanted], context.now);
            self.note(taken);
            self.input.consume(taken);
            if taken < wanted {
                return;
            }
        }
    }

    /// Returns the first sample with a gap in front of it that was not told yet.
    fn gap(&self) -> Option<u64> {
        let is_new = |tag: &Tag| tag.key == keys::LOSS_ITEMS && tag.offset >= self.gaps_told;
        self.input.tags().map(|(_, tag)| tag).find(is_new).map(|tag| tag.offset)
    }

    /// Notes the tags of the first `samples` samples.
    fn note(&mut self, samples: usize) {
        let end = self.input.position() + samples as u64;
        if !O::HAS_TAGS {
            return;
        }
        let new = self.noted..end;
        let tags = self.input.tags().map(|(_, tag)| tag).filter(|tag| new.contains(&tag.offset));
        tags.clone().for_each(|tag| self.shift.learn(&tag));
        self.tags.extend(tags.map(|tag| self.shift.moved(tag, self.delay, 0.0)));
        self.noted = end;
    }

    fn give(&mut self) {
        loop {
            let out = self.output.slice_mut();
            let frames = self.pipeline.give(bytemuck::cast_slice_mut(out));
            if frames == 0 {
                return;
            }
            let items = frames * self.kernel.shape().words / O::WORDS;
            O::finish(&mut out[..items]);
            let position = self.output.position();
            let end = position + items as u64;
            while let Some(tag) = self.tags.front().filter(|tag| tag.offset < end) {
                let index = tag.offset.saturating_sub(position) as usize;
                self.output.tag(index, tag.key, tag.value);
                self.tags.pop_front();
            }
            self.output.produce(items);
        }
    }
}

impl<O: ResultItem> Block for OffloadBlock<O> {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        self.pipeline.look(context.now);
        loop {
            self.give();
            let position = self.input.position();
            self.take(context);
            if self.input.position() == position {
                break;
            }
        }
        if self.input.is_ended() && self.input.slice().is_empty() {
            let padded = is_padded(&self.kernel);
            if padded {
                self.pipeline.pad(context.now);
            }
            self.pipeline.complete(context.now);
            self.give();
            if self.pipeline.is_empty() && !(padded && self.pipeline.is_frame_begun()) {
                return Ok(Work::Finished);
            }
        }
        Ok(self.pipeline.next_look(context.now).map_or(Work::Continue, Work::Again))
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.pipeline.end();
        Ok(())
    }

    fn facts(&self, facts: &mut BlockFacts) {
        // What is left on the CPU: two copies.
        facts
            .rate(self.ratio)
            .delay(self.delay)
            .tag_rule(TagRule::Own)
            .holds(self.pipeline.samples_held() as u64)
            .ns_per_item(1.0)
            .memory(memory(&self.kernel));
        facts.metrics.extend(self.pipeline.ledger.metrics());
    }
}

fn memory(kernel: &Kernel) -> BlockMemory {
    let KernelShape { history, samples, .. } = kernel.shape();
    BlockMemory::none().with("window", MemorySpan::Items((history + samples) as u64))
}

/// A block whose kernel runs on the CPU.
#[derive(Debug, Ports)]
pub struct OnHost<O: ResultItem> {
    input: In<Sample>,
    output: Out<O>,
    kernel: Kernel,
    host: HostKernel,
    shape: KernelShape,
    ratio: ItemRatio,
    delay: f64,
    /// History, then samples that are not calculated yet.
    window: Vec<Sample>,
    /// Frames in a piece.
    piece: usize,
}

impl<O: ResultItem> OnHost<O> {
    /// Makes the block of a kernel.
    ///
    /// # Panics
    /// If the kernel's results are no items `O`.
    #[must_use]
    pub fn new(kernel: Kernel) -> Self {
        assert_eq!(kernel.words_of_item(), O::WORDS, "the block's items are the kernel's results");
        let shape = kernel.shape();
        let host = HostKernel::in_pieces(&kernel);
        let (piece, least) = (host.piece(), host.least());
        let mut window = Vec::with_capacity(shape.window(piece));
        window.resize(shape.history, Sample::default());
        Self {
            input: In::new(),
            output: Out::with_min_items(least * shape.words / O::WORDS),
            host,
            ratio: ratio(&kernel),
            delay: kernel.delay(),
            kernel,
            shape,
            window,
            piece,
        }
    }

    /// Takes samples up to a whole piece; at the end of the stream fills up the last frame, if its
    /// results need no more of it. Returns the number of frames to calculate.
    fn fill(&mut self, room: usize) -> usize {
        let Self { input, window, shape, .. } = self;
        let least = self.host.least();
        if room < least {
            return 0;
        }
        let piece = self.piece.min(room);
        let count = shape.window(piece).saturating_sub(window.len()).min(input.slice().len());
        window.extend_from_slice(&input.slice()[..count]);
        input.consume(count);
        let is_end = input.is_ended() && input.slice().is_empty();
        if is_end && is_padded(&self.kernel) {
            window.resize(shape.end_of_frame(window.len()), Sample::default());
        }
        let frames = ((window.len() - shape.history) / shape.samples).min(room);
        if frames >= least || is_end { frames } else { 0 }
    }
}

impl<O: ResultItem> Block for OnHost<O> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let items = self.shape.words / O::WORDS;
        loop {
            let room = self.output.slice_mut().len() / items;
            let frames = self.fill(room);
            if frames == 0 {
                return Ok(Work::Continue);
            }
            let out = &mut self.output.slice_mut()[..frames * items];
            self.host.compute(&self.window, bytemuck::cast_slice_mut(out));
            O::finish(out);
            self.output.produce(frames * items);
            self.window.drain(..frames * self.shape.samples);
        }
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts
            .rate(self.ratio)
            .delay(self.delay)
            .tag_rule(if O::HAS_TAGS { TagRule::Forward } else { TagRule::Drop })
            .holds((self.shape.history / 2 + self.host.least() * self.shape.samples - 1) as u64)
            .ns_per_item(host_ns(&self.kernel))
            .memory(memory(&self.kernel));
    }
}

/// Estimates the CPU's time for a sample, nanoseconds.
fn host_ns(kernel: &Kernel) -> f64 {
    let transform = |size: usize| 0.4 + 0.07 * (size as f64).log2();
    match kernel {
        Kernel::Fir { taps, decimation } => {
            let direct = 0.036 * taps.len() as f64 / *decimation as f64;
            direct.min(1.0 + 2.3 * transform(8 * taps.len()))
        }
        Kernel::Channelizer { channels, hop, taps } => {
            let sets = *channels as f64 / *hop as f64;
            let row = taps.len() as f64 / *channels as f64;
            sets * (0.25 * row + transform(*channels))
        }
        Kernel::PowerSpectrum { window, .. } => transform(window.len()) + 0.5,
    }
}
