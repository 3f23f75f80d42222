//! Everything that a session needs, made before its first batch.

use super::session::{Fault, Inner};
use super::slot::{Pair, Slot};
use super::{Gpu, finish};
use crate::session::ClosingSession;
use crate::wgsl::{KernelStep, SLACK, Way};
use bytemuck::cast_slice;
use millstream_accel::{AcceleratorError, KernelShape, Lost, Opened, SampleWindow};
use millstream_dsp::Sample;
use std::fmt;
use std::sync::Arc;
use wgpu::{
    BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BindGroupLayoutDescriptor,
    BindGroupLayoutEntry, BindingResource, BindingType, Buffer, BufferBinding, BufferBindingType,
    BufferDescriptor, BufferUsages, ComputePipelineDescriptor, Device, DeviceDescriptor, Features,
    PipelineCompilationOptions, PipelineLayoutDescriptor, ShaderModuleDescriptor,
    ShaderRuntimeChecks, ShaderSource, ShaderStages,
};

/// Bytes before the samples of a batch, for its numbers: an offset that every device can bind.
pub const HEAD: u64 = 256;

/// The sizes of a session's batches.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// How results depend on samples.
    pub shape: KernelShape,
    /// The most frames of a batch.
    pub frames: usize,
}

impl Layout {
    /// Returns the bytes of a buffer of samples.
    pub const fn sample_bytes(&self) -> u64 {
        HEAD + ((self.shape.window(self.frames) + SLACK) * size_of::<Sample>()) as u64
    }

    /// Returns the bytes of the results of so many frames.
    pub const fn result_bytes(&self, frames: usize) -> u64 {
        (frames * self.shape.words * size_of::<f32>()) as u64
    }

    /// Returns the bytes of this computer's memory that so many slots hold.
    pub const fn pinned_bytes(&self, slots: usize) -> u64 {
        slots as u64 * (self.sample_bytes() + self.result_bytes(self.frames))
    }
}

/// Prepares a device: all slots are free.
pub fn prepare(
    gpu: &Gpu,
    what: &impl fmt::Display,
    shape: KernelShape,
    way: Way,
    slots: usize,
    frames: usize,
) -> Result<Opened, AcceleratorError> {
    let (inner, windows) = prepared(gpu, what, shape, &way, slots, frames)?;
    let session = Box::new(ClosingSession::new(inner, shape, windows.len(), frames));
    Ok(Opened { session, windows, way: way.name })
}

/// Prepares a device, and returns its part and its windows.
pub fn prepared(
    gpu: &Gpu,
    what: &impl fmt::Display,
    shape: KernelShape,
    way: &Way,
    slots: usize,
    frames: usize,
) -> Result<(Inner, Vec<Arc<SampleWindow>>), AcceleratorError> {
    let layout = Layout { shape, frames };
    check_sizes(gpu, what, way, &layout)?;
    let shared = gpu.shares_memory();
    let features = if shared { Features::MAPPABLE_PRIMARY_BUFFERS } else { Features::empty() };
    let (device, queue) = finish(gpu.adapter.request_device(&DeviceDescriptor {
        required_features: features,
        required_limits: gpu.adapter.limits(),
        ..DeviceDescriptor::default()
    }))
    .map_err(|error| Lost(error.to_string()))?;
    let fault = watch(&device);
    let bindings = bindings(&device);
    let steps = way.steps.iter().map(|step| pipeline(&device, &bindings, step)).collect();

    let constants = buffer(
        &device,
        size_of_val(&*way.constants) as u64,
        BufferUsages::STORAGE | BufferUsages::COPY_DST,
    );
    queue.write_buffer(&constants, 0, cast_slice(&way.constants));
    let scratch = buffer(&device, scratch_bytes(way), BufferUsages::STORAGE);
    let slot = |_| {
        let samples = samples(&device, layout.sample_bytes(), shared);
        let results = results(&device, layout.result_bytes(frames), shared);
        let whole = |binding: u32, buffer| entry(binding, buffer, 0, None);
        let group = device.create_bind_group(&BindGroupDescriptor {
            label: None,
            layout: &bindings,
            entries: &[
                entry(0, samples.device(), 0, Some(16)),
                entry(1, samples.device(), HEAD, None),
                whole(2, &constants),
                whole(3, &constants),
                whole(4, &scratch),
                whole(5, results.device()),
            ],
        });
        Slot::new(samples, results, group)
    };
    let slots: Vec<Slot> = (0..slots).map(slot).collect();
    let windows: Vec<_> =
        slots.iter().map(|_| Arc::new(SampleWindow::ordinary(shape.window(frames)))).collect();
    let mut inner = Inner { device, queue, fault, steps, slots, layout };
    let begun = begin(&mut inner, &windows);
    if let Some((memory, reason)) = inner.fault.first() {
        return Err(if memory {
            gpu.unfit(what, format!("{reason}. Take fewer frames in a batch"))
        } else {
            Lost(reason).into()
        });
    }
    begun?;
    Ok((inner, windows))
}

/// Makes the slots free, and calculates once.
fn begin(inner: &mut Inner, windows: &[Arc<SampleWindow>]) -> Result<(), Lost> {
    inner.begin()?;
    windows.first().map_or(Ok(()), |window| inner.first_batch(window))
}

/// Says which buffer is too large for the device.
fn check_sizes(
    gpu: &Gpu,
    what: &impl fmt::Display,
    way: &Way,
    layout: &Layout,
) -> Result<(), AcceleratorError> {
    let limits = gpu.adapter.limits();
    let limit = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
    let parts = [
        ("samples", layout.sample_bytes()),
        ("results", layout.result_bytes(layout.frames)),
        ("constants", size_of_val(&*way.constants) as u64),
        ("memory between steps", scratch_bytes(way)),
    ];
    for (part, bytes) in parts {
        if bytes > limit {
            return Err(gpu.unfit(
                what,
                format!(
                    "{} frames in a batch need {bytes} bytes for {part}, and the limit is {limit}. \
                     Take fewer frames in a batch",
                    layout.frames
                ),
            ));
        }
    }
    Ok(())
}

/// Notes what goes wrong with a device.
fn watch(device: &Device) -> Arc<Fault> {
    let fault = Arc::new(Fault::default());
    let noted = Arc::clone(&fault);
    device.set_device_lost_callback(move |reason, message| {
        noted.note(false, format!("{reason:?}: {message}"));
    });
    let noted = Arc::clone(&fault);
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        noted.note(matches!(error, wgpu::Error::OutOfMemory { .. }), error.to_string());
    }));
    fault
}

const fn scratch_bytes(way: &Way) -> u64 {
    (way.scratch * size_of::<Sample>()) as u64
}

/// Makes a buffer. No binding may be empty.
fn buffer(device: &Device, bytes: u64, usage: BufferUsages) -> Buffer {
    let size = bytes.max(16).next_multiple_of(8);
    device.create_buffer(&BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
}

/// Makes the buffers of a slot's samples.
fn samples(device: &Device, bytes: u64, shared: bool) -> Pair {
    let seen = BufferUsages::STORAGE | BufferUsages::UNIFORM | BufferUsages::COPY_SRC;
    let near = BufferUsages::MAP_WRITE | BufferUsages::COPY_SRC;
    if shared {
        Pair { near: buffer(device, bytes, near | seen), far: None }
    } else {
        let far = buffer(device, bytes, seen | BufferUsages::COPY_DST);
        Pair { near: buffer(device, bytes, near), far: Some(far) }
    }
}

/// Makes the buffers of a slot's results.
fn results(device: &Device, bytes: u64, shared: bool) -> Pair {
    let seen = BufferUsages::STORAGE | BufferUsages::COPY_DST;
    let near = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
    if shared {
        Pair { near: buffer(device, bytes, near | seen), far: None }
    } else {
        let far = buffer(device, bytes, seen | BufferUsages::COPY_SRC);
        Pair { near: buffer(device, bytes, near), far: Some(far) }
    }
}

fn entry(binding: u32, buffer: &Buffer, offset: u64, size: Option<u64>) -> BindGroupEntry<'_> {
    let size = size.and_then(std::num::NonZeroU64::new);
    BindGroupEntry {
        binding,
        resource: BindingResource::Buffer(BufferBinding { buffer, offset, size }),
    }
}

/// Returns what each text sees.
fn bindings(device: &Device) -> BindGroupLayout {
    let storage = |read_only| BufferBindingType::Storage { read_only };
    let kinds = [
        BufferBindingType::Uniform,
        storage(true),
        storage(true),
        storage(true),
        storage(false),
        storage(false),
    ];
    let entries: Vec<BindGroupLayoutEntry> = (0..)
        .zip(kinds)
        .map(|(binding, ty)| BindGroupLayoutEntry {
            binding,
            visibility: ShaderStages::COMPUTE,
            ty: BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        })
        .collect();
    device.create_bind_group_layout(&BindGroupLayoutDescriptor { label: None, entries: &entries })
}

/// Compiles a step.
fn pipeline(
    device: &Device,
    bindings: &BindGroupLayout,
    step: &KernelStep,
) -> (wgpu::ComputePipeline, crate::wgsl::Groups) {
    let description = ShaderModuleDescriptor {
        label: None,
        source: ShaderSource::Wgsl(step.source.as_str().into()),
    };
    // SAFETY: a text compares each index with the batch's numbers or with constants before it reads
    // or writes, its loops end by constants, and it divides by constants only.
    let module = unsafe {
        device.create_shader_module_trusted(description, ShaderRuntimeChecks::unchecked())
    };
    let layout = device.create_pipeline_layout(&PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(bindings)],
        immediate_size: 0,
    });
    let compilation_options = PipelineCompilationOptions {
        // What is read was written before: the kernel's own order sees to it.
        zero_initialize_workgroup_memory: false,
        ..PipelineCompilationOptions::default()
    };
    let pipeline = device.create_compute_pipeline(&ComputePipelineDescriptor {
        label: None,
        layout: Some(&layout),
        module: &module,
        entry_point: Some("main"),
        compilation_options,
        cache: None,
    });
    (pipeline, step.groups)
}
