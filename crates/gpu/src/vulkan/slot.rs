//! The memory of one batch on its way.

use super::prepare::{HEAD, Layout};
use crate::wgsl::SLACK;
use bytemuck::{bytes_of, cast_slice};
use millstream_dsp::Sample;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use wgpu::{BindGroup, Buffer, BufferView, BufferViewMut, CommandEncoder, MapMode};

/// A mapping that is wanted and has not come yet.
const WAITS: u8 = 0;
/// A mapping that is there.
const THERE: u8 = 1;
/// A mapping that failed.
const FAILED: u8 = 2;

/// Whether a buffer is mapped. A callback sets it while its session submits or polls, so on the
/// thread that reads it.
#[derive(Debug, Default)]
struct Mapping(Arc<AtomicU8>);

impl Mapping {
    /// Asks for a mapping of the first bytes of a buffer.
    fn ask(&self, buffer: &Buffer, mode: MapMode, bytes: u64) {
        self.0.store(WAITS, Relaxed);
        let state = Arc::clone(&self.0);
        buffer.map_async(mode, 0..bytes, move |result| {
            state.store(if result.is_ok() { THERE } else { FAILED }, Relaxed);
        });
    }
}

/// Buffers of one direction: the mapped one, and the device's own, where it has such memory.
pub struct Pair {
    /// The buffer that this computer reads or writes.
    pub near: Buffer,
    /// The buffer that the kernel reads or writes; `None`: the same.
    pub far: Option<Buffer>,
}

impl Pair {
    /// Returns the buffer that the kernel sees.
    pub fn device(&self) -> &Buffer {
        self.far.as_ref().unwrap_or(&self.near)
    }
}

/// The buffers of a batch.
pub struct Slot {
    samples: Pair,
    results: Pair,
    /// What the kernel sees.
    pub bindings: BindGroup,
    samples_mapping: Mapping,
    results_mapping: Mapping,
    room: Option<BufferViewMut>,
    view: Option<BufferView>,
    /// Bytes of results of the batch on its way; 0: none is.
    wanted: u64,
}

impl Slot {
    /// Makes a slot whose buffers are not mapped yet.
    pub fn new(samples: Pair, results: Pair, bindings: BindGroup) -> Self {
        Self {
            samples,
            results,
            bindings,
            samples_mapping: Mapping::default(),
            results_mapping: Mapping::default(),
            room: None,
            view: None,
            wanted: 0,
        }
    }

    /// Asks for the memory in which samples are written.
    pub fn make_room(&self) {
        self.samples_mapping.ask(&self.samples.near, MapMode::Write, self.samples.near.size());
    }

    /// Whether a batch is on its way, or its results are not released.
    pub const fn is_busy(&self) -> bool {
        self.wanted > 0
    }

    /// Destroys what is mapped.
    #[cfg(test)]
    pub fn destroy(&self) {
        self.results.near.destroy();
    }

    /// Writes a batch, and gives the memory to the device. `false`: the memory is not there.
    pub fn write(&mut self, frames: usize, samples: &[Sample], layout: &Layout) -> bool {
        let Some(mut room) = self.room.take() else { return false };
        let head = [frames as u32, samples.len() as u32];
        let begin = HEAD as usize;
        let end = begin + size_of_val(samples);
        room.slice(0..size_of_val(&head)).copy_from_slice(bytes_of(&head));
        room.slice(begin..end).copy_from_slice(cast_slice(samples));
        room.slice(end..end + size_of::<[Sample; SLACK]>())
            .copy_from_slice(cast_slice(&[Sample::new(0.0, 0.0); SLACK]));
        drop(room);
        self.samples.near.unmap();
        self.wanted = layout.result_bytes(frames);
        true
    }

    /// Adds the copy of samples to the device. `samples`: how many.
    pub fn copy_there(&self, encoder: &mut CommandEncoder, samples: usize) {
        if let Some(far) = &self.samples.far {
            let bytes = HEAD + ((samples + SLACK) * size_of::<Sample>()) as u64;
            encoder.copy_buffer_to_buffer(&self.samples.near, 0, far, 0, bytes);
        }
    }

    /// Adds the copy of samples to results, in place of a kernel.
    pub fn copy_across(&self, encoder: &mut CommandEncoder) {
        let (from, to) = (self.samples.device(), self.results.device());
        encoder.copy_buffer_to_buffer(from, HEAD, to, 0, self.wanted);
    }

    /// Adds the copy of results to this computer.
    pub fn copy_back(&self, encoder: &mut CommandEncoder) {
        if let Some(far) = &self.results.far {
            encoder.copy_buffer_to_buffer(far, 0, &self.results.near, 0, self.wanted);
        }
    }

    /// Asks for the results of the batch that was submitted, and for room for the next.
    pub fn ask(&self) {
        self.results_mapping.ask(&self.results.near, MapMode::Read, self.wanted);
        self.make_room();
    }

    /// Takes what is mapped. Returns whether samples can be written, or what failed.
    pub fn take_room(&mut self) -> Result<bool, String> {
        match self.samples_mapping.0.load(Relaxed) {
            THERE if self.room.is_none() => {
                let room = self.samples.near.get_mapped_range_mut(..);
                self.room = Some(room.map_err(|error| error.to_string())?);
            }
            FAILED => return Err("memory for samples could not be mapped".into()),
            _ => {}
        }
        Ok(self.room.is_some())
    }

    /// Takes what is mapped. Returns whether results can be read, or what failed.
    pub fn take_results(&mut self) -> Result<bool, String> {
        match self.results_mapping.0.load(Relaxed) {
            THERE if self.view.is_none() => {
                let view = self.results.near.get_mapped_range(0..self.wanted);
                self.view = Some(view.map_err(|error| error.to_string())?);
            }
            FAILED => return Err("memory for results could not be mapped".into()),
            _ => {}
        }
        Ok(self.view.is_some())
    }

    /// Returns the results, none if they are not ready.
    pub fn results(&self) -> &[f32] {
        self.view.as_ref().map_or(&[], |view| cast_slice(view))
    }

    /// Gives the memory of the results back to the device.
    pub fn release(&mut self) {
        if self.view.take().is_some() {
            self.results_mapping.0.store(WAITS, Relaxed);
            self.results.near.unmap();
            self.wanted = 0;
        }
    }
}
