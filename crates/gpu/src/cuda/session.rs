//! Batches on their way through a GPU of NVIDIA.

use super::driver::{Arguments, CompiledStep, CudaError, Far, Pinned, PrimaryContext, Timeline};
use super::driver::{copy_back, copy_there};
use crate::wgsl::{Groups, SLACK};
use millstream_accel::{KernelShape, Lost, SampleWindow, Session};
use std::sync::Arc;
use std::thread;

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
    /// Numbers in the results of the batch; 0: there is none.
    pub words: usize,
    pub is_ready: bool,
}

/// Everything of a session.
pub struct CudaInner {
    pub context: Arc<PrimaryContext>,
    pub slots: Vec<CudaSlot>,
    pub steps: Vec<(CompiledStep, Groups)>,
    pub constants: Far,
    pub shape: KernelShape,
    pub pinned_bytes: u64,
}

fn lost(error: CudaError) -> Lost {
    Lost(error.to_string())
}

impl CudaInner {
    fn submit(
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
        slot.is_ready = false;
        copy_there(&slot.lane, &slot.samples, samples, SLACK)?;
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
        copy_back(&slot.lane, &slot.results, &slot.near, slot.words)?;
        slot.lane.mark()
    }

    fn poll(&mut self, slot: usize) -> Result<bool, CudaError> {
        let slot = &mut self.slots[slot];
        if slot.is_ready || slot.words == 0 {
            return Ok(slot.is_ready);
        }
        self.context.enter()?;
        slot.is_ready = slot.lane.is_done()?;
        if slot.is_ready {
            slot.window = None;
        }
        Ok(slot.is_ready)
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

/// The way to a GPU of NVIDIA.
pub struct CudaSession(pub Option<CudaInner>);

impl CudaSession {
    /// Returns the device. Only `drop` takes it away.
    fn inner(&mut self) -> &mut CudaInner {
        self.0.as_mut().expect("a session has its device until it is dropped")
    }
}

impl Session for CudaSession {
    fn submit(
        &mut self,
        slot: usize,
        window: &Arc<SampleWindow>,
        frames: usize,
    ) -> Result<(), Lost> {
        self.inner().submit(slot, window, frames).map_err(lost)
    }

    fn poll(&mut self, slot: usize) -> Result<bool, Lost> {
        self.inner().poll(slot).map_err(lost)
    }

    fn results(&self, slot: usize) -> &[f32] {
        let Some(inner) = &self.0 else { return &[] };
        let slot = &inner.slots[slot];
        if slot.is_ready { &slot.near[..slot.words] } else { &[] }
    }

    fn release(&mut self, slot: usize) {
        let slot = &mut self.inner().slots[slot];
        slot.is_ready = false;
        slot.words = 0;
    }

    fn pinned_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |inner| inner.pinned_bytes)
    }
}

impl Drop for CudaSession {
    /// Closing waits for the device, so a thread of its own does it while a batch is on its way.
    fn drop(&mut self) {
        let Some(inner) = self.0.take() else { return };
        if inner.slots.iter().any(|slot| slot.words > 0 && !slot.is_ready) {
            // Without a thread the closure is dropped here, and this thread waits.
            drop(thread::Builder::new().name("ms-gpu-close".into()).spawn(move || drop(inner)));
        }
    }
}
