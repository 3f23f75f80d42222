//! Batches on their way through a GPU.

use super::prepare::Layout;
use super::slot::Slot;
use crate::wgsl::Groups;
use millstream_accel::{Lost, SampleWindow, Session};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use wgpu::{
    CommandEncoderDescriptor, ComputePassDescriptor, ComputePipeline, Device, PollType, Queue,
};

/// How long a batch may take while a device is prepared.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first thing that went wrong with a device.
#[derive(Debug, Default)]
pub struct Fault {
    is_there: AtomicBool,
    first: Mutex<Option<(bool, String)>>,
}

impl Fault {
    /// Notes what went wrong, and whether memory was all that was missing.
    pub fn note(&self, memory: bool, reason: String) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert((memory, reason));
        drop(first);
        self.is_there.store(true, Relaxed);
    }

    /// Returns what went wrong.
    pub fn first(&self) -> Option<(bool, String)> {
        if !self.is_there.load(Relaxed) {
            return None;
        }
        self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn check(&self) -> Result<(), Lost> {
        self.first().map_or(Ok(()), |(_, reason)| Err(Lost(reason)))
    }

    fn lost(&self, reason: String) -> Lost {
        self.note(false, reason.clone());
        Lost(self.first().map_or(reason, |(_, first)| first))
    }
}

/// A device prepared for a kernel.
pub struct Inner {
    pub device: Device,
    pub queue: Queue,
    pub fault: Arc<Fault>,
    /// The kernel's steps; none: samples are copied to results.
    pub steps: Vec<(ComputePipeline, Groups)>,
    pub slots: Vec<Slot>,
    pub layout: Layout,
}

impl Inner {
    /// Calls what is due, without waiting.
    fn look(&self) -> Result<(), Lost> {
        let polled = self.device.poll(PollType::Poll);
        self.fault.check()?;
        polled.map(drop).map_err(|error| self.fault.lost(error.to_string()))
    }

    /// Waits, while a device is prepared, until what was begun is done.
    fn wait(
        &mut self,
        mut done: impl FnMut(&mut Slot) -> Result<bool, String>,
    ) -> Result<(), Lost> {
        let end = Instant::now() + PATIENCE;
        for slot in 0..self.slots.len() {
            while !done(&mut self.slots[slot]).map_err(|reason| self.fault.lost(reason))? {
                self.look()?;
                if Instant::now() > end {
                    let seconds = PATIENCE.as_secs();
                    return Err(self.fault.lost(format!("no answer for {seconds} seconds")));
                }
                thread::yield_now();
            }
        }
        Ok(())
    }

    /// Makes all slots free.
    pub fn begin(&mut self) -> Result<(), Lost> {
        self.slots.iter().for_each(Slot::make_room);
        self.wait(Slot::take_room)
    }

    /// Calculates a first batch: a driver compiles and allocates with it.
    pub fn first_batch(&mut self, window: &Arc<SampleWindow>) -> Result<(), Lost> {
        self.submit(0, window, self.layout.frames)?;
        self.wait(|slot| Ok(!slot.is_busy() || slot.take_results()? && slot.take_room()?))?;
        self.release(0);
        Ok(())
    }
}

impl Session for Inner {
    fn submit(
        &mut self,
        slot: usize,
        window: &Arc<SampleWindow>,
        frames: usize,
    ) -> Result<(), Lost> {
        self.fault.check()?;
        let Self { device, queue, fault, steps, slots, layout } = self;
        let slot = &mut slots[slot];
        let samples = layout.shape.window(frames);
        slot.take_room().map_err(|reason| fault.lost(reason))?;
        if !slot.write(frames, &window[..samples], layout) {
            return Err(fault.lost("a slot was used that is not free".into()));
        }
        let mut encoder = device.create_command_encoder(&CommandEncoderDescriptor::default());
        slot.copy_there(&mut encoder, samples);
        if steps.is_empty() {
            slot.copy_across(&mut encoder);
        } else {
            let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
            pass.set_bind_group(0, &slot.bindings, &[]);
            for (pipeline, groups) in steps {
                pass.set_pipeline(pipeline);
                let (across, down) = groups.grid(frames);
                pass.dispatch_workgroups(across, down, 1);
            }
        }
        slot.copy_back(&mut encoder);
        queue.submit([encoder.finish()]);
        slot.ask();
        fault.check()
    }

    fn poll(&mut self, slot: usize) -> Result<bool, Lost> {
        let Self { slots, fault, .. } = self;
        // Looking at one slot has often seen the others, too.
        let ready = |slot: &mut Slot| -> Result<bool, String> {
            Ok(slot.take_room()? && slot.take_results()?)
        };
        if ready(&mut slots[slot]).map_err(|reason| fault.lost(reason))? {
            return Ok(true);
        }
        self.look()?;
        ready(&mut self.slots[slot]).map_err(|reason| self.fault.lost(reason))
    }

    fn results(&self, slot: usize) -> &[f32] {
        self.slots[slot].results()
    }

    fn release(&mut self, slot: usize) {
        self.slots[slot].release();
    }

    fn pinned_bytes(&self) -> u64 {
        self.layout.pinned_bytes(self.slots.len())
    }
}
