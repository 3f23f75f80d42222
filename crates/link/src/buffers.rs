//! Equal-size buffers in one part of a frame memory, for links with separate transmit buffers.

use std::sync::Arc;

use crate::frame::{Frame, FrameMemory};

/// Buffers of equal size that lie back to back. The one returned last is taken first, because it is
/// still in the caches.
#[derive(Debug)]
pub(crate) struct Buffers {
    memory: Arc<FrameMemory>,
    first: u64,
    stride: u32,
    count: usize,
    free: Vec<u32>,
}

impl Buffers {
    /// Creates `count` buffers of `stride` bytes from offset `first` of `memory` on.
    ///
    /// # Safety
    /// Nothing else uses that part of the memory while frames of it exist.
    pub unsafe fn new(memory: Arc<FrameMemory>, first: u64, stride: u32, count: usize) -> Self {
        let end = first + u64::from(stride) * count as u64;
        assert!(end <= memory.len() as u64 && count <= u32::MAX as usize);
        Self { memory, first, stride, count, free: (0..count as u32).rev().collect() }
    }

    /// Takes a free buffer, as an empty frame with the whole buffer as room.
    pub fn take(&mut self) -> Option<Frame> {
        let index = self.free.pop()?;
        // SAFETY: only these buffers use this part of the memory (`new`), and this buffer was on
        // the free list, so no frame covers it.
        Some(unsafe { buffer(&self.memory, self.first, self.stride, index) })
    }

    /// Appends up to `count` free buffers and returns their number.
    pub fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize {
        let count = count.min(self.free.len());
        let (memory, first, stride) = (&self.memory, self.first, self.stride);
        let taken = self.free.drain(self.free.len() - count..).rev();
        // SAFETY: as in `take`.
        frames.extend(taken.map(|index| unsafe { buffer(memory, first, stride, index) }));
        count
    }

    /// Takes a buffer back.
    ///
    /// # Panics
    /// If the frame is not one of these buffers.
    pub fn put(&mut self, frame: Frame) {
        assert!(self.owns(&frame) && self.free.len() < self.count, "not a buffer of this link");
        self.free.push(frame.tag());
    }

    /// Whether a frame is one of these buffers.
    pub fn owns(&self, frame: &Frame) -> bool {
        let end = self.first + u64::from(self.stride) * self.count as u64;
        (self.first..end).contains(&frame.at())
    }

    /// The number of free buffers.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// The number of all buffers.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// Returns an empty frame over a buffer, with the buffer's number as the tag.
///
/// # Safety
/// As [`Frame::new`].
unsafe fn buffer(memory: &FrameMemory, first: u64, stride: u32, index: u32) -> Frame {
    // SAFETY: the caller's promise.
    unsafe { Frame::new(memory, first + u64::from(index) * u64::from(stride), 0, stride, index) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::MapFlags;

    #[test]
    fn buffers_do_not_overlap_and_come_back() {
        let memory = Arc::new(FrameMemory::anonymous(16384, MapFlags::empty()).unwrap());
        // SAFETY: nothing else uses this memory.
        let mut buffers = unsafe { Buffers::new(Arc::clone(&memory), 4096, 2048, 3) };
        let mut frames = Vec::new();
        assert_eq!(buffers.reserve(&mut frames, 5), 3);
        let mut starts: Vec<_> = frames.iter().map(Frame::at).collect();
        starts.sort_unstable();
        assert_eq!(starts, [4096, 6144, 8192]);
        assert!(frames.iter().all(|frame| frame.room() == 2048 && frame.is_empty()));
        assert_eq!((buffers.free(), buffers.take().is_none()), (0, true));
        let last = frames.pop().unwrap();
        let at = last.at();
        buffers.put(last);
        assert_eq!(buffers.take().unwrap().at(), at, "the one used last comes first");
    }
}
