//! GPUs that Vulkan finds, through the crate `wgpu`.

mod copy;
mod prepare;
mod session;
mod slot;
#[cfg(test)]
mod tests;

pub use copy::CopyRate;

use crate::wgsl::{self, Limits, Way};
use millstream_accel::{Accelerator, AcceleratorError, Kernel, Opened};
use prepare::Prepared;
use std::fmt;
use std::pin::pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use std::thread;
use wgpu::{Adapter, Backends, DeviceType, Instance, InstanceDescriptor, InstanceFlags};

/// What was looked for, in messages.
const KIND: &str = "GPU with a driver of Vulkan";

/// Returns the GPUs of this computer, the fastest kind first: GPUs with memory of their own, those
/// without, and programs that stand in for one.
///
/// # Errors
/// There is none.
pub fn gpus() -> Result<Vec<Gpu>, AcceleratorError> {
    // Drivers are loaded once: some keep memory and threads for each time.
    static ADAPTERS: OnceLock<Vec<Adapter>> = OnceLock::new();
    let adapters = ADAPTERS.get_or_init(|| {
        let mut description = InstanceDescriptor::new_without_display_handle();
        description.backends = Backends::VULKAN;
        // No names and checks for a debugger: they cost time in each submission.
        description.flags = InstanceFlags::empty();
        finish(Instance::new(description).enumerate_adapters(Backends::VULKAN))
    });
    let mut gpus: Vec<Gpu> = adapters.iter().cloned().map(Gpu::new).collect();
    gpus.sort_by_key(|gpu| gpu.rank());
    if gpus.is_empty() {
        let reason =
            "Vulkan finds no device (Debian: install libvulkan1 and the driver of the GPU)";
        return Err(AcceleratorError::Missing { kind: KIND, reason: reason.into() });
    }
    Ok(gpus)
}

/// A GPU, or a program that stands in for one.
#[derive(Clone)]
pub struct Gpu {
    adapter: Adapter,
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gpu").field(&self.name()).finish()
    }
}

impl Gpu {
    fn new(adapter: Adapter) -> Self {
        Self { adapter }
    }

    /// The place of its kind in the order of speed.
    fn rank(&self) -> u8 {
        match self.adapter.get_info().device_type {
            DeviceType::DiscreteGpu => 0,
            DeviceType::VirtualGpu => 1,
            DeviceType::IntegratedGpu => 2,
            DeviceType::Other => 3,
            DeviceType::Cpu => 4,
        }
    }

    /// Returns whether it is a program that calculates on the processor, such as llvmpipe.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.adapter.get_info().device_type == DeviceType::Cpu
    }

    /// Returns whether its memory is this computer's, so that nothing needs to cross.
    fn shares_memory(&self) -> bool {
        let kind = self.adapter.get_info().device_type;
        matches!(kind, DeviceType::Cpu | DeviceType::IntegratedGpu)
            && self.adapter.features().contains(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS)
    }

    /// Returns what a kernel may use.
    fn limits(&self) -> Limits {
        let limits = self.adapter.limits();
        Limits {
            workgroup_bytes: limits.max_compute_workgroup_storage_size as usize,
            invocations: limits.max_compute_invocations_per_workgroup.min(256) as usize,
        }
    }

    /// Returns that it cannot calculate a kernel, and why.
    fn unfit(&self, what: &impl fmt::Display, reason: String) -> AcceleratorError {
        AcceleratorError::Unfit { device: self.name(), what: what.to_string(), reason }
    }

    /// Returns the ways to calculate a kernel.
    fn ways(&self, kernel: &Kernel, frames: usize) -> Result<Vec<Way>, AcceleratorError> {
        wgsl::ways(kernel, frames, self.limits()).map_err(|reason| self.unfit(kernel, reason))
    }

    /// Prepares the device for each way to calculate a kernel, and returns the fastest.
    fn fastest(
        &self,
        kernel: &Kernel,
        slots: usize,
        frames: usize,
    ) -> Result<Prepared, AcceleratorError> {
        let mut prepared = vec![];
        let mut unfit = None;
        for way in self.ways(kernel, frames)? {
            match Prepared::new(self, kernel, kernel.shape(), way, slots, frames) {
                Ok(one) => prepared.push(one),
                Err(error @ AcceleratorError::Unfit { .. }) => unfit = Some(error),
                Err(error) => return Err(error),
            }
        }
        if prepared.len() > 1 {
            let mut times = vec![];
            for one in &mut prepared {
                times.push(one.measure()?);
            }
            let fastest = (0..times.len()).min_by_key(|&i| times[i]).unwrap_or(0);
            return Ok(prepared.swap_remove(fastest));
        }
        match (prepared.pop(), unfit) {
            (Some(one), _) => Ok(one),
            (None, Some(error)) => Err(error),
            (None, None) => Err(self.unfit(kernel, "it has no text for this kernel".into())),
        }
    }

    /// Returns by which way the device would calculate a kernel, in words.
    ///
    /// # Errors
    /// As [`open`](Accelerator::open).
    pub fn way(
        &self,
        kernel: &Kernel,
        slots: usize,
        frames: usize,
    ) -> Result<String, AcceleratorError> {
        self.fastest(kernel, slots, frames).map(|one| one.name)
    }
}

impl Accelerator for Gpu {
    fn name(&self) -> String {
        self.adapter.get_info().name
    }

    fn copy_rate(&self, bytes: usize) -> Option<f64> {
        Some(Self::copy_rate(self, bytes).ok()?.bytes_per_second())
    }

    fn open(
        &self,
        kernel: &Kernel,
        slots: usize,
        frames: usize,
    ) -> Result<Opened, AcceleratorError> {
        let prepared = self.fastest(kernel, slots, frames)?;
        Ok(prepared.opened())
    }
}

/// Returns the result of what wgpu finishes at once on native systems.
fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::yield_now(),
        }
    }
}
