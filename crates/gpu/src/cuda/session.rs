//! Batches on their way through a GPU of NVIDIA.

use super::driver::{Arguments, CompiledStep, CudaError, Far, Pinned, PrimaryContext, Timeline};
use super::driver::{copy_back, copy_there, zero};
use crate::wgsl::{Groups, SLACK};
use millstream_accel::{KernelShape, Lost, SampleWindow, Session};
use std::sync::Arc;

/// The memory of one batch on its way.
pub struct CudaSlot {
    /// The order of its work.
    pub lane: Timeline,
    /// Memory of the device for samples, between steps, and for results.
    pub samples: Far,
    pub scratch: Far,
    pub results: Far,
    /// Results in memory of this computer.
    pub near: Pinned<f32>,
    /// The samples that the device may read.
    pub window: Option<Arc<SampleWindow>>,
    /// Numbers in the results of the batch.
    pub words: usize,
    /// Where the zeros behind the samples begin.
    pub zeros_at: usize,
}

/// Everything of a session.
pub struct CudaInner {
    pub context: Arc<PrimaryContext>,
    pub slots: Vec<CudaSlot>,
    /// The kernel's steps; none: samples are the results.
    pub steps: Vec<(Arc<CompiledStep>, Groups)>,
    pub constants: Far,
    pub shape: KernelShape,
    pub pinned_bytes: u64,
}

fn lost(error: CudaError) -> Lost {
    Lost(error.to_string())
}

impl CudaInner {
    fn start(
        &mut self,
        slot: usize,
        window: &Arc<SampleWindow>,
        frames: usize,
    ) -> Result<(), CudaError> {
        self.context.enter()?;
        let slot = &mut self.slots[slot];
        let samples = &window[..self.shape.window(frames)];
        // From here on the device may read, whatever fails.
        slot.window = Some(Arc::clone(window));
        slot.words = self.shape.words * frames;
        copy_there(&slot.lane, &slot.samples, samples)?;
        if slot.zeros_at != samples.len() {
            zero(&slot.lane, &slot.samples, samples.len(), SLACK)?;
            slot.zeros_at = samples.len();
        }
        let memory =
            [&slot.samples, &self.constants, &self.constants, &slot.scratch, &slot.results];
        let arguments = Arguments {
            frames: frames as u32,
            samples: samples.len() as u32,
            memory: memory.map(|far| far.begin),
        };
        for (module, groups) in &self.steps {
            module.start(&slot.lane, groups.grid(frames), &arguments)?;
        }
        let results = if self.steps.is_empty() { &slot.samples } else { &slot.results };
        copy_back(&slot.lane, results, &slot.near, slot.words)?;
        slot.lane.mark()
    }

    fn look(&mut self, slot: usize) -> Result<bool, CudaError> {
        let slot = &mut self.slots[slot];
        self.context.enter()?;
        let is_done = slot.lane.is_done()?;
        if is_done {
            slot.window = None;
        }
        Ok(is_done)
    }
}

impl Session for CudaInner {
    fn submit(
        &mut self,
        slot: usize,
        window: &Arc<SampleWindow>,
        frames: usize,
    ) -> Result<(), Lost> {
        self.start(slot, window, frames).map_err(lost)
    }

    fn poll(&mut self, slot: usize) -> Result<bool, Lost> {
        self.look(slot).map_err(lost)
    }

    fn results(&self, slot: usize) -> &[f32] {
        let slot = &self.slots[slot];
        &slot.near[..slot.words]
    }

    fn release(&mut self, _: usize) {}

    fn pinned_bytes(&self) -> u64 {
        self.pinned_bytes
    }
}

impl Drop for CudaInner {
    fn drop(&mut self) {
        for slot in &self.slots {
            // A device that is lost does nothing any more.
            let _ = slot.lane.wait();
        }
    }
}
