//! GPUs of NVIDIA, through CUDA's driver, which is loaded when it is asked for.
//!
//! The kernels are compiled by NVRTC when a session opens.

mod driver;
mod session;
#[cfg(test)]
mod tests;
mod text;

use crate::session::{ClosingSession, copy_rate, fastest};
use crate::wgsl::{self, Limits, SLACK, Way};
use cudarc::driver::{result, sys};
use driver::{CompiledStep, CudaError, Far, Pinned, PrimaryContext, Timeline};
use millstream_accel::{
    Accelerator, AcceleratorError, Kernel, KernelShape, Lost, Opened, SampleWindow,
};
use millstream_dsp::Sample;
use session::{CudaInner, CudaSlot};
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

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
    let mut failed = None;
    for number in 0..result::device::get_count().map_err(said)? {
        // One that does not answer, or that another program has for itself, hides no other.
        match CudaDevice::new(number) {
            Ok(device) => devices.push(Arc::new(device)),
            Err(error) => failed = Some(said(error)),
        }
    }
    if devices.is_empty() {
        return Err(failed.unwrap_or_else(|| missing("its driver finds none".into())));
    }
    Ok(devices)
}

/// A GPU of NVIDIA.
struct CudaDevice {
    context: Arc<PrimaryContext>,
    name: String,
    /// What was compiled, by its text: compiling takes longer than all else.
    steps: Mutex<HashMap<String, Arc<CompiledStep>>>,
}

impl CudaDevice {
    fn new(number: i32) -> Result<Self, CudaError> {
        let context = PrimaryContext::new(number)?;
        let name = format!("{}, CUDA", context.name()?);
        Ok(Self { context, name, steps: Mutex::default() })
    }

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

    /// Compiles a text, unless that was done before.
    fn compiled(&self, source: &str) -> Result<Arc<CompiledStep>, String> {
        let known = || self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(step) = known().get(source) {
            return Ok(Arc::clone(step));
        }
        let step = Arc::new(CompiledStep::new(&self.context, &text::translate(source))?);
        known().insert(source.to_owned(), Arc::clone(&step));
        Ok(step)
    }

    /// Prepares a way for a kernel in words.
    fn prepare(
        &self,
        what: &impl Display,
        shape: KernelShape,
        way: Way,
        slots: usize,
        frames: usize,
    ) -> Result<Opened, AcceleratorError> {
        // Texts count by 32 bits.
        let parts = [
            ("samples", shape.window(frames).saturating_add(SLACK)),
            ("numbers in results", shape.words.saturating_mul(frames)),
            ("samples between steps", way.scratch),
        ];
        for (part, count) in parts {
            let limit = i32::MAX;
            if count > limit as usize {
                let reason = format!(
                    "{frames} frames in a batch need {count} {part}, and the limit is {limit}. \
                     Take fewer frames in a batch"
                );
                return Err(self.unfit(what, reason));
            }
        }
        self.allocate(shape, way, slots, frames).map_err(|fail| match fail {
            Fail::Text(reason) => self.unfit(what, reason),
            Fail::Call(error) => self.failed(what, error),
        })
    }

    /// Compiles a way, and allocates for its slots.
    fn allocate(
        &self,
        shape: KernelShape,
        way: Way,
        slots: usize,
        frames: usize,
    ) -> Result<Opened, Fail> {
        let context = &self.context;
        let steps = way.steps.iter().map(|step| {
            let said = |reason| Fail::Text(format!("{}: {reason}", way.name));
            Ok((self.compiled(&step.source).map_err(said)?, step.groups))
        });
        let steps = steps.collect::<Result<Vec<_>, Fail>>()?;
        let constants = Far::new(context, size_of_val(&*way.constants))?;
        constants.write(&way.constants)?;
        // The streams of slots do not wait for this copy by themselves.
        context.synchronize()?;
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
                zeros_at: usize::MAX,
            })
        };
        let slots = (0..slots).map(slot).collect::<Result<Vec<_>, Fail>>()?;
        let window_bytes = shape.window(frames) * size_of::<Sample>();
        let pinned_bytes = (slots.len() * (window_bytes + words * size_of::<f32>())) as u64;
        let windows = slots.iter().map(|_| {
            let window = Pinned::new(context, shape.window(frames))?;
            Ok(Arc::new(SampleWindow::new(window)))
        });
        let windows = windows.collect::<Result<Vec<_>, Fail>>()?;
        let context = Arc::clone(context);
        let inner = CudaInner { context, slots, steps, constants, shape, pinned_bytes };
        let session = Box::new(ClosingSession::new(inner, shape, windows.len(), frames));
        Ok(Opened { session, windows, way: way.name })
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

    fn copy_rate(&self, bytes: usize) -> Option<f64> {
        copy_rate(bytes, |shape, way, slots, frames| {
            self.prepare(&"a copy", shape, way, slots, frames)
        })
    }

    fn open(
        &self,
        kernel: &Kernel,
        slots: usize,
        frames: usize,
    ) -> Result<Opened, AcceleratorError> {
        let limits = self.limits().map_err(|error| self.failed(kernel, error))?;
        let ways = wgsl::ways(kernel, frames, limits);
        let ways = ways.map_err(|reason| self.unfit(kernel, reason))?;
        let shape = kernel.shape();
        fastest(ways, frames, |way| self.prepare(kernel, shape, way, slots, frames))
    }
}
