//! GPUs as [devices](millstream_accel::Device) for blocks that calculate elsewhere.
//!
//! With the feature `wgpu`, [`devices`] finds what a driver of Vulkan offers: GPUs, and llvmpipe,
//! which calculates on the processor and serves tests. The kernels are texts in WGSL, made for the
//! lengths at hand (`wgsl`). A [`Gpu`] tells its [rate of copies](Gpu::copy_rate), too, beside
//! which a kernel's figures belong.
//!
//! Without that feature this crate is empty, and builds everywhere.

#[cfg(feature = "wgpu")]
mod vulkan;
#[cfg(feature = "wgpu")]
mod wgsl;

#[cfg(feature = "wgpu")]
pub use vulkan::{CopyRate, Gpu, devices, gpus};
