//! Blocks whose calculation runs on another device, such as a GPU.
//!
//! - [`Kernel`] says what is calculated. Its results depend on a bounded past, so each batch can be
//!   calculated anywhere: [`HostKernel`] is the CPU's form of every kernel.
//! - [`Accelerator`] and [`Session`] are the interface of a device. Crate `millstream-gpu`
//!   implements it for GPUs, [`StandIn`] for tests: a thread with a set latency, bandwidth and
//!   faults.
//! - [`OffloadBlock`] is the block. It keeps several batches under way, never waits for the device,
//!   and falls back to the CPU where the device does not answer.
//! - [`choose`] measures both forms and says which one is better here.

mod block;
pub mod choose;
pub mod device;
mod domain;
mod host;
mod kernel;
mod ledger;
mod pipeline;
mod stand_in;

pub use block::{OffloadBlock, OnHost, ResultItem};
pub use device::{
    Accelerator, AcceleratorError, Lost, Opened, SampleWindow, Session, WindowMemory,
};
pub use domain::{Domain, OffloadParameters, choices, devices, on_host, register_devices};
pub use host::HostKernel;
pub use kernel::{Kernel, KernelShape};
pub use stand_in::{StandIn, StandInFault};

use std::time::Duration;

/// How a block uses its device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OffloadSettings {
    /// Batches under way at once.
    pub slots: usize,
    /// [Frames](KernelShape) in a batch, at most.
    pub frames: usize,
    /// The longest time that a sample waits for its batch to be full.
    pub wait_max: Duration,
    /// The time without an answer after which the CPU calculates a batch.
    pub stall_after: Duration,
    /// One batch in so many is calculated by the CPU, too, and compared; 0: none.
    pub check_every: u64,
}

impl OffloadSettings {
    /// Returns the settings for batches of about `samples` samples of a kernel: four under way.
    #[must_use]
    pub fn for_batches(samples: usize, kernel: &Kernel) -> Self {
        Self {
            slots: 4,
            frames: (samples / kernel.shape().samples).max(1),
            wait_max: Duration::from_millis(5),
            stall_after: Duration::from_millis(20),
            check_every: 0,
        }
    }

    /// Returns the frames of a batch at a sample rate: at a low one a batch goes before it is full.
    #[must_use]
    pub fn frames_at(&self, kernel: &Kernel, rate: Option<f64>) -> usize {
        let waited = rate.map(|rate| rate * self.wait_max.as_secs_f64());
        let waited = waited.map_or(usize::MAX, |samples| samples as usize);
        (waited / kernel.shape().samples).min(self.frames).max(1)
    }
}
