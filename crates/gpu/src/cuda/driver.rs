//! What a session owns of CUDA: context, memory, streams, events, modules.

use super::text::{self, CudaText};
use cudarc::driver::{result, sys};
use cudarc::nvrtc;
use millstream_dsp::Sample;
use std::ffi::{CString, c_int, c_void};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

/// An error of CUDA's driver.
pub type CudaError = result::DriverError;

/// The primary context of a device.
#[derive(Debug)]
pub struct PrimaryContext {
    device: sys::CUdevice,
    context: sys::CUcontext,
}

// SAFETY: a context may be current in several threads at the same time, and CUDA's functions may
// be called from any.
unsafe impl Send for PrimaryContext {}
// SAFETY: likewise.
unsafe impl Sync for PrimaryContext {}

impl PrimaryContext {
    /// Takes the context of the device with that number.
    pub fn new(device: c_int) -> Result<Arc<Self>, CudaError> {
        let device = result::device::get(device)?;
        // SAFETY: the device was returned by the driver.
        let context = unsafe { result::primary_ctx::retain(device) }?;
        let context = Arc::new(Self { device, context });
        context.enter()?;
        Ok(context)
    }

    /// Makes the context that of this thread.
    pub fn enter(&self) -> Result<(), CudaError> {
        // SAFETY: the context is retained as long as `self` is there.
        unsafe { result::ctx::set_current(self.context) }
    }

    /// Waits for everything that the context has begun.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.enter()?;
        result::ctx::synchronize()
    }

    /// Returns the device's name.
    pub fn name(&self) -> Result<String, CudaError> {
        result::device::get_name(self.device)
    }

    /// Returns an attribute.
    pub fn attribute(&self, which: sys::CUdevice_attribute) -> Result<c_int, CudaError> {
        // SAFETY: the device was returned by the driver.
        unsafe { result::device::get_attribute(self.device, which) }
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // SAFETY: `new` retained the context once.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// Memory of this computer that the device reads and writes without a copy by the driver.
pub struct Pinned<T> {
    memory: NonNull<T>,
    count: usize,
    context: Arc<PrimaryContext>,
    of: PhantomData<T>,
}

// SAFETY: the memory belongs to this value alone.
unsafe impl<T: Send> Send for Pinned<T> {}
// SAFETY: shared references only read it.
unsafe impl<T: Sync> Sync for Pinned<T> {}

impl<T: bytemuck::Zeroable + Copy> Pinned<T> {
    /// Allocates zeros.
    pub fn new(context: &Arc<PrimaryContext>, count: usize) -> Result<Self, CudaError> {
        context.enter()?;
        let portable = sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: any size is allowed; the result is checked.
        let memory = unsafe { result::malloc_host(size_of::<T>() * count.max(1), portable) }?;
        // SAFETY: the driver returned so much memory, and zeros are a `T`.
        unsafe { memory.write_bytes(0, size_of::<T>() * count.max(1)) };
        let Some(memory) = NonNull::new(memory.cast()) else {
            return Err(result::DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        };
        Ok(Self { memory, count, context: Arc::clone(context), of: PhantomData })
    }
}

impl<T> Pinned<T> {
    /// Returns where the memory begins, for a copy that the device makes.
    pub const fn begin(&self) -> *mut T {
        self.memory.as_ptr()
    }
}

impl<T> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `new` allocated and set `count` values.
        unsafe { slice::from_raw_parts(self.memory.as_ptr(), self.count) }
    }
}

impl<T> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and nobody else has the memory.
        unsafe { slice::from_raw_parts_mut(self.memory.as_ptr(), self.count) }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: `new` allocated it, and no copy is on its way: sessions wait before they end.
            let _ = unsafe { result::free_host(self.memory.as_ptr().cast()) };
        }
    }
}

/// Memory of the device.
pub struct Far {
    /// Where it begins.
    pub begin: sys::CUdeviceptr,
    context: Arc<PrimaryContext>,
}

impl Far {
    /// Allocates so many bytes.
    pub fn new(context: &Arc<PrimaryContext>, bytes: usize) -> Result<Self, CudaError> {
        context.enter()?;
        // SAFETY: any size is allowed; the result is checked.
        let begin = unsafe { result::malloc_sync(bytes.max(16)) }?;
        Ok(Self { begin, context: Arc::clone(context) })
    }

    /// Writes to its begin.
    pub fn write<T: bytemuck::NoUninit>(&self, values: &[T]) -> Result<(), CudaError> {
        self.context.enter()?;
        // SAFETY: the callers allocated for these values.
        unsafe { result::memcpy_htod_sync(self.begin, values) }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: `new` allocated it, and no step uses it: sessions wait before they end.
            let _ = unsafe { result::free_sync(self.begin) };
        }
    }
}

/// The order of a slot's work, and the mark behind it.
pub struct Timeline {
    /// The stream.
    pub stream: sys::CUstream,
    event: sys::CUevent,
    context: Arc<PrimaryContext>,
}

// SAFETY: streams and events may be used from any thread.
unsafe impl Send for Timeline {}

impl Timeline {
    /// Makes a stream and its event.
    pub fn new(context: &Arc<PrimaryContext>) -> Result<Self, CudaError> {
        context.enter()?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
        Ok(Self { stream, event, context: Arc::clone(context) })
    }

    /// Marks the end of the work so far.
    pub fn mark(&self) -> Result<(), CudaError> {
        // SAFETY: both are there as long as `self` is.
        unsafe { result::event::record(self.event, self.stream) }
    }

    /// Whether the work before the mark is done.
    pub fn is_done(&self) -> Result<bool, CudaError> {
        // SAFETY: the event is there as long as `self` is.
        match unsafe { result::event::query(self.event) } {
            Ok(()) => Ok(true),
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits for all work.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.context.enter()?;
        // SAFETY: the stream is there as long as `self` is.
        unsafe { result::stream::synchronize(self.stream) }
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: `new` made both.
            unsafe {
                let _ = result::event::destroy(self.event);
                let _ = result::stream::destroy(self.stream);
            }
        }
    }
}

/// What a step gets: the structure `Step` of the text, without its functions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    /// Frames of the batch.
    pub frames: u32,
    /// Samples of the batch.
    pub samples: u32,
    /// Memory for `x`, `c`, `r`, `s`, `y`.
    pub memory: [sys::CUdeviceptr; 5],
}

/// A compiled step.
pub struct CompiledStep {
    module: sys::CUmodule,
    function: sys::CUfunction,
    threads: u32,
    context: Arc<PrimaryContext>,
}

// SAFETY: modules and functions may be used from any thread.
unsafe impl Send for CompiledStep {}
// SAFETY: likewise.
unsafe impl Sync for CompiledStep {}

impl CompiledStep {
    /// Compiles a text for the device.
    pub fn new(context: &Arc<PrimaryContext>, text: &CudaText) -> Result<Self, String> {
        use sys::CUdevice_attribute as Attribute;
        let said = |error: CudaError| error.to_string();
        context.enter().map_err(said)?;
        let major = Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        let minor = Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
        let (major, minor) = (context.attribute(major), context.attribute(minor));
        let (major, minor) = (major.map_err(said)?, minor.map_err(said)?);
        let image = compile(text, &format!("compute_{major}{minor}"))?;
        // SAFETY: the image is PTX that ends with a zero.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }.map_err(said)?;
        let entry = CString::new(text::ENTRY).map_err(|error| error.to_string())?;
        // SAFETY: the module is there.
        let function = unsafe { result::module::get_function(module, entry) };
        let function = function.map_err(said)?;
        Ok(Self { module, function, threads: text.threads, context: Arc::clone(context) })
    }

    /// Starts the step.
    pub fn start(
        &self,
        lane: &Timeline,
        grid: (u32, u32),
        with: &Arguments,
    ) -> Result<(), CudaError> {
        let mut with = *with;
        let mut parameters = [(&raw mut with).cast::<c_void>()];
        let (grid, block) = ((grid.0, grid.1, 1), (self.threads, 1, 1));
        // SAFETY: the function has one parameter, of the layout of `Arguments`; the driver copies
        // it before it returns. The memory is there until the session has waited for its streams.
        unsafe {
            result::launch_kernel(self.function, grid, block, 0, lane.stream, &mut parameters)
        }
    }
}

impl Drop for CompiledStep {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: `new` loaded it, and no step runs: sessions wait before they end.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// Compiles a text to PTX, which ends with a zero.
pub fn compile(text: &CudaText, architecture: &str) -> Result<Vec<u8>, String> {
    let options = nvrtc::CompileOptions {
        options: vec![format!("--gpu-architecture={architecture}"), "--std=c++17".into()],
        ..nvrtc::CompileOptions::default()
    };
    let compiled = nvrtc::compile_ptx_with_opts(&text.source, options);
    let compiled = compiled.map_err(|error| format!("NVRTC: {error}"))?;
    let mut image = compiled.to_src().into_bytes();
    image.push(0);
    Ok(image)
}

/// Adds the copy of samples to a stream.
pub fn copy_there(lane: &Timeline, to: &Far, samples: &[Sample]) -> Result<(), CudaError> {
    // SAFETY: the memory at `to` has room, and the caller keeps the samples until the copy is done.
    unsafe { result::memcpy_htod_async(to.begin, samples, lane.stream) }
}

/// Adds zeros to a stream, behind so many samples.
pub fn zero(lane: &Timeline, to: &Far, samples: usize, zeros: usize) -> Result<(), CudaError> {
    let begin = to.begin + (samples * size_of::<Sample>()) as u64;
    // SAFETY: the memory at `to` has room for both.
    unsafe { result::memset_d8_async(begin, 0, zeros * size_of::<Sample>(), lane.stream) }
}

/// Adds the copy of results to a stream.
pub fn copy_back(
    lane: &Timeline,
    from: &Far,
    to: &Pinned<f32>,
    words: usize,
) -> Result<(), CudaError> {
    let bytes = words * size_of::<f32>();
    // SAFETY: both have room for the results, and nobody reads them until the copy is done.
    unsafe { sys::cuMemcpyDtoHAsync_v2(to.begin().cast(), from.begin, bytes, lane.stream).result() }
}
