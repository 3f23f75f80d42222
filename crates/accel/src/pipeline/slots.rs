//! The memory of one batch.

use crate::device::SampleWindow;
use crate::kernel::KernelShape;
use crate::ledger::Cause;
use millstream_dsp::Sample;
use std::sync::Arc;
use std::time::Instant;

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    Free,
    Filling,
    /// The device has it since then.
    Submitted(Instant),
    /// The device's results are there.
    Ready,
    /// The CPU calculates it when its turn comes, for this reason.
    Host(Cause),
}

/// A window and its batch.
#[derive(Debug)]
pub(super) struct Slot {
    window: Arc<SampleWindow>,
    /// Samples in the window, with the history.
    filled: usize,
    frames: usize,
    pub(super) state: State,
    /// When a batch was submitted that was taken back, and for which the device has not answered.
    pub(super) owed: Option<Instant>,
    /// Samples at the end that no stream had.
    padding: usize,
    /// The last look that found the batch unfinished.
    pub(super) unfinished: Option<Instant>,
}

impl Slot {
    pub(super) fn of(window: Arc<SampleWindow>) -> Self {
        let (state, owed) = (State::Free, None);
        Self { window, filled: 0, frames: 0, state, owed, padding: 0, unfinished: None }
    }

    pub(super) fn ordinary(samples: usize) -> Self {
        Self::of(Arc::new(SampleWindow::ordinary(samples)))
    }

    /// Whether a new batch may be written here: nobody else reads the window.
    pub(super) fn is_free(&mut self) -> bool {
        self.state == State::Free && self.owed.is_none() && Arc::get_mut(&mut self.window).is_some()
    }

    /// Begins a batch with what the last one carried over.
    ///
    /// # Panics
    /// If the slot is not free.
    pub(super) fn begin(&mut self, carried: &[Sample]) {
        self.state = State::Filling;
        (self.filled, self.padding) = (0, 0);
        self.fill(carried, carried.len());
    }

    /// Appends samples up to a length; returns how many.
    pub(super) fn fill(&mut self, samples: &[Sample], length: usize) -> usize {
        let count = samples.len().min(length - self.filled);
        let window = Arc::get_mut(&mut self.window).expect("a slot that is filled has no reader");
        window[self.filled..self.filled + count].copy_from_slice(&samples[..count]);
        self.filled += count;
        count
    }

    /// Fills up the batch with zeros to a length.
    pub(super) fn pad(&mut self, length: usize) {
        self.padding = length - self.filled;
        for _ in 0..self.padding {
            self.fill(&[Sample::default()], length);
        }
    }

    /// Returns the samples of the stream in `count` frames from `first` on.
    pub(super) fn items(&self, first: usize, count: usize, shape: KernelShape) -> u64 {
        let is_last = first + count == self.frames;
        (count * shape.samples - if is_last { self.padding } else { 0 }) as u64
    }

    pub(super) fn complete(&mut self, frames: usize, state: State) {
        (self.frames, self.state, self.unfinished) = (frames, state, None);
    }

    pub(super) fn samples(&self) -> usize {
        self.filled
    }

    pub(super) fn filled(&self) -> &[Sample] {
        &self.window[..self.filled]
    }

    pub(super) fn frames(&self) -> usize {
        self.frames
    }

    pub(super) fn window(&self) -> &Arc<SampleWindow> {
        &self.window
    }
}
