//! GPUs of NVIDIA, through CUDA's driver, which is loaded when it is asked for.
//!
//! The kernels are compiled by NVRTC when a session opens.

mod driver;
mod session;
#[cfg(test)]
mod tests;
mod text;

use crate::wgsl::{self, Limits, SLACK, Way};
use cudarc::driver::{result, sys};
use driver::{CompiledStep, CudaError, Far, Pinned, PrimaryContext, Timeline};
use millstream_accel::{
    Accelerator, AcceleratorError, Kernel, KernelShape, Lost, Opened, SampleWindow,
};
use millstream_dsp::Sample;
use session::{CudaInner, CudaSession, CudaSlot};
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What was looked for, in messages.
const KIND: &str = "GPU with a driver of CUDA";

/// Returns the GPUs of NVIDIA.
///
/// # Errors
/// There is none, or its driver or NVRTC is missing.
pub fn cuda_devices() -> Result<Vec<Arc<dyn Accelerator>>, AcceleratorError> {
    let missing = |reason: String| AcceleratorError::Missing { kind: KIND, reason };
    // SAFETY: loading a library of NVIDIA runs its code, which is what is asked for.
    if !unsafe { sys::is_culib_present() } {
        return Err(missing("libcuda.so, which comes with NVIDIA's driver, is not there".into()));
    }
    // SAFETY: likewise.
    if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        let reason = "libnvrtc.so, which compiles kernels, is not there (NVIDIA: cuda-nvrtc)";
        return Err(missing(reason.into()));
    }
    let said = |error: CudaError| missing(error.to_string());
    result::init().map_err(said)?;
    let mut devices: Vec<Arc<dyn Accelerator>> = vec![];
    for number in 0..result::device::get_count().map_err(said)? {
        let context = PrimaryContext::new(number).map_err(said)?;
        let name = context.name().map_err(said)?;
        devices.push(Arc::new(CudaDevice { context, name }));
    }
    if devices.is_empty() { Err(missing("its driver finds none".into())) } else { Ok(devices) }
}

/// A GPU of NVIDIA.
struct CudaDevice {
    context: Arc<PrimaryContext>,
    name: String,
}

impl CudaDevice {
    fn unfit(&self, what: &impl Display, reason: String) -> AcceleratorError {
        AcceleratorError::Unfit { device: self.name.clone(), what: what.to_string(), reason }
    }

    /// Returns the error for a call that failed while a session was opened.
    fn failed(&self, what: &impl Display, error: CudaError) -> AcceleratorError {
        if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            self.unfit(what, "its memory is full. Take fewer frames in a batch".into())
        } else {
            Lost(error.to_string()).into()
        }
    }

    fn limits(&self) -> Result<Limits, CudaError> {
        use sys::CUdevice_attribute as Attribute;
        let bytes = Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK;
        let threads = Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        let workgroup_bytes = self.context.attribute(bytes)?.unsigned_abs() as usize;
        let invocations = self.context.attribute(threads)?.unsigned_abs().min(256) as usize;
        Ok(Limits { workgroup_bytes, invocations })
    }

    /// Compiles a way, and allocates for its slots.
    fn prepare(
        &self,
        way: &Way,
        shape: KernelShape,
        slots: usize,
        frames: usize,
    ) -> Result<CudaInner, Fail> {
        let context = &self.context;
        let steps = way.steps.iter().map(|step| {
            let module = CompiledStep::new(context, &text::translate(&step.source));
            let said = |reason| Fail::Text(format!("{}: {reason}", way.name));
            Ok((module.map_err(said)?, step.groups))
        });
        let steps = steps.collect::<Result<Vec<_>, Fail>>()?;
        let constants = Far::new(context, size_of_val(&*way.constants))?;
        constants.write(&way.constants)?;
        let samples = (shape.window(frames) + SLACK) * size_of::<Sample>();
        let words = shape.words * frames;
        let slot = |_| {
            Ok(CudaSlot {
                lane: Timeline::new(context)?,
                samples: Far::new(context, samples)?,
                scratch: Far::new(context, way.scratch * size_of::<Sample>())?,
                results: Far::new(context, words * size_of::<f32>())?,
                near: Pinned::new(context, words)?,
                window: None,
                words: 0,
                is_ready: false,
            })
        };
        let slots = (0..slots).map(slot).collect::<Result<Vec<_>, Fail>>()?;
        let window_bytes = shape.window(frames) * size_of::<Sample>();
        let pinned_bytes = (slots.len() * (window_bytes + words * size_of::<f32>())) as u64;
        let context = Arc::clone(context);
        Ok(CudaInner { context, slots, steps, constants, shape, pinned_bytes })
    }
}

/// Why a way could not be prepared.
enum Fail {
    Text(String),
    Call(CudaError),
}

impl From<CudaError> for Fail {
    fn from(error: CudaError) -> Self {
        Self::Call(error)
    }
}

impl Accelerator for CudaDevice {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn open(
        &self,
        kernel: &Kernel,
        slots: usize,
        frames: usize,
    ) -> Result<Opened, AcceleratorError> {
        let shape = kernel.shape();
        if shape.window(frames) + SLACK > u32::MAX as usize / 2 {
            let reason = "more than 2 147 483 647 samples in a batch. Take fewer frames";
            return Err(self.unfit(kernel, reason.into()));
        }
        let limits = self.limits().map_err(|error| self.failed(kernel, error))?;
        let ways = wgsl::ways(kernel, frames, limits);
        let mut best: Option<(Duration, Opened)> = None;
        for way in ways.map_err(|reason| self.unfit(kernel, reason))? {
            let inner = self.prepare(&way, shape, slots, frames).map_err(|fail| match fail {
                Fail::Text(reason) => self.unfit(kernel, reason),
                Fail::Call(error) => self.failed(kernel, error),
            })?;
            let window =
                |_| Pinned::new(&self.context, shape.window(frames)).map(SampleWindow::new);
            let windows = (0..slots).map(window).map(|one| one.map(Arc::new));
            let windows: Vec<_> = windows
                .collect::<Result<_, CudaError>>()
                .map_err(|error| self.failed(kernel, error))?;
            let mut opened = Opened { session: Box::new(CudaSession(Some(inner))), windows };
            let time = measure(&mut opened, frames)?;
            if best.as_ref().is_none_or(|(least, _)| time < *least) {
                best = Some((time, opened));
            }
        }
        let none = || self.unfit(kernel, "it has no text for this kernel".into());
        best.map(|(_, opened)| opened).ok_or_else(none)
    }
}

/// Returns the best time of some rounds with a batch in each slot.
fn measure(opened: &mut Opened, frames: usize) -> Result<Duration, Lost> {
    let Opened { session, windows } = opened;
    let mut best = Duration::MAX;
    for _ in 0..4 {
        let begin = Instant::now();
        for (slot, window) in windows.iter().enumerate() {
            session.submit(slot, window, frames)?;
        }
        for slot in 0..windows.len() {
            while !session.poll(slot)? {
                if begin.elapsed() > Duration::from_secs(60) {
                    return Err(Lost("no answer for 60 seconds".into()));
                }
                std::thread::yield_now();
            }
            session.release(slot);
        }
        best = best.min(begin.elapsed());
    }
    Ok(best)
}
