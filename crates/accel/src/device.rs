//! The interface of a device that calculates: [`Accelerator`] and [`Session`].

use crate::kernel::Kernel;
use millstream_dsp::Sample;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A device that is there: a GPU, or a stand-in for one.
pub trait Accelerator: Send + Sync {
    /// Returns the name that stands beside each figure, such as `llvmpipe (LLVM 15.0.6, 256 bits)`.
    fn name(&self) -> String;

    /// Measures how many bytes cross in a second, each way at the same time, in batches of so many
    /// bytes and without a kernel; `None` if that is not known.
    fn copy_rate(&self, _bytes: usize) -> Option<f64> {
        None
    }

    /// Prepares the device for a kernel: compiles it, and allocates memory for `slots` batches of
    /// at most `frames` [frames](crate::KernelShape) each. May take seconds; nothing is allocated
    /// later.
    ///
    /// # Errors
    /// The kernel is too large for the device, its memory is full, or it does not answer.
    fn open(
        &self,
        kernel: &Kernel,
        slots: usize,
        frames: usize,
    ) -> Result<Opened, AcceleratorError>;
}

/// What a device prepared for one kernel.
pub struct Opened {
    /// The way to the device.
    pub session: Box<dyn Session>,
    /// Memory for the samples of each slot: [`KernelShape::window`](crate::KernelShape::window)
    /// samples.
    pub windows: Vec<Arc<SampleWindow>>,
    /// How the device calculates, in words.
    pub way: String,
}

/// Batches of one kernel on their way through a device.
///
/// A batch belongs to a slot, from [`submit`](Self::submit) until [`poll`](Self::poll) has said
/// that it is ready and [`release`](Self::release) was called. Slots are submitted in any order,
/// and each only when it is free. No function waits for the device or allocates memory. The end of
/// a session does not wait, either.
pub trait Session: Send {
    /// Starts the calculation of the first `frames` frames of `window`, which begins with the
    /// [history](crate::KernelShape::history). The device keeps a clone of the `Arc` for as long as
    /// it may read the samples, and no longer than until the batch is ready.
    ///
    /// # Errors
    /// The device is lost. No other batch will become ready.
    fn submit(
        &mut self,
        slot: usize,
        window: &Arc<SampleWindow>,
        frames: usize,
    ) -> Result<(), Lost>;

    /// Whether the results of a submitted batch are in memory of this computer.
    ///
    /// # Errors
    /// The device is lost.
    fn poll(&mut self, slot: usize) -> Result<bool, Lost>;

    /// Returns the results of a ready batch: [words](crate::KernelShape::words) for each frame.
    fn results(&self, slot: usize) -> &[f32];

    /// Makes the slot of a ready batch free.
    fn release(&mut self, slot: usize);

    /// Returns the bytes of this computer's memory that the crossings of this session hold.
    fn pinned_bytes(&self) -> u64;
}

/// Samples for a device, in memory that the device reads fast.
pub struct SampleWindow(Box<dyn WindowMemory>);

/// The memory of a [`SampleWindow`].
pub trait WindowMemory: Deref<Target = [Sample]> + DerefMut + Send + Sync {}

impl<T: Deref<Target = [Sample]> + DerefMut + Send + Sync> WindowMemory for T {}

impl SampleWindow {
    /// Makes a window of memory that a device allocated.
    pub fn new(memory: impl WindowMemory + 'static) -> Self {
        Self(Box::new(memory))
    }

    /// Makes a window of ordinary memory.
    #[must_use]
    pub fn ordinary(samples: usize) -> Self {
        Self::new(vec![Sample::default(); samples])
    }
}

impl Deref for SampleWindow {
    type Target = [Sample];

    fn deref(&self) -> &[Sample] {
        &self.0
    }
}

impl DerefMut for SampleWindow {
    fn deref_mut(&mut self) -> &mut [Sample] {
        &mut self.0
    }
}

impl fmt::Debug for SampleWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SampleWindow").field(&self.len()).finish()
    }
}

/// A device that no longer answers, and will not again.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the device is lost: {0}")]
pub struct Lost(pub String);

/// A device cannot be used for a kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceleratorError {
    /// No device of this kind is there.
    #[error("this program cannot use a {kind}: {reason}")]
    Missing {
        /// What was looked for.
        kind: &'static str,
        /// What the search found.
        reason: String,
    },
    /// The device cannot do this.
    #[error("{device} cannot calculate {what}: {reason}")]
    Unfit {
        /// The device's name.
        device: String,
        /// The kernel.
        what: String,
        /// The limit, the value and the next step.
        reason: String,
    },
    /// The device did not answer.
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl AcceleratorError {
    /// Returns why, without what the message says before it.
    #[must_use]
    pub fn reason(self) -> String {
        match self {
            Self::Missing { reason, .. } | Self::Unfit { reason, .. } => reason,
            Self::Lost(lost) => lost.to_string(),
        }
    }
}

impl fmt::Debug for dyn Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("pinned_bytes", &self.pinned_bytes()).finish()
    }
}
