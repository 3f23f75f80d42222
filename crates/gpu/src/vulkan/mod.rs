//! GPUs that Vulkan finds, through the crate `wgpu`.

mod prepare;
mod session;
mod slot;
#[cfg(test)]
mod tests;

use crate::session::{copy_rate, fastest};
use crate::wgsl::{self, Limits, Way};
use millstream_accel::{Accelerator, AcceleratorError, Kernel, Opened};
use prepare::prepare;
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
}

impl Accelerator for Gpu {
    fn name(&self) -> String {
        format!("{}, Vulkan", self.adapter.get_info().name)
    }

    fn copy_rate(&self, bytes: usize) -> Option<f64> {
        copy_rate(bytes, |shape, way, slots, frames| {
            prepare(self, &"a copy", shape, way, slots, frames)
        })
    }

    fn open(
        &self,
        kernel: &Kernel,
        slots: usize,
        frames: usize,
    ) -> Result<Opened, AcceleratorError> {
        let shape = kernel.shape();
        fastest(self.ways(kernel, frames)?, frames, |way| {
            prepare(self, kernel, shape, way, slots, frames)
        })
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
