//! GPUs as [devices](millstream_accel::Accelerator) for blocks that calculate elsewhere.
//!
//! `devices` finds them. With the feature `wgpu` it finds what a driver of Vulkan offers: GPUs, and
//! llvmpipe, which calculates on the processor and serves tests. With the feature `cuda` it finds
//! GPUs of NVIDIA by their own driver.
//!
//! The kernels are texts in WGSL, made for the lengths at hand (`wgsl`), and translated for CUDA.
//!
//! Without these features this crate is empty, and builds everywhere.

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod session;
#[cfg(feature = "wgpu")]
mod vulkan;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod wgsl;

#[cfg(any(feature = "cuda", feature = "wgpu"))]
use millstream_accel::{Accelerator, AcceleratorError};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use std::sync::Arc;

/// Returns all devices that the features of this crate can find, the fastest kind first: GPUs of
/// NVIDIA by CUDA, then what Vulkan finds, where they come again.
///
/// # Errors
/// There is none.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub fn devices() -> Result<Vec<Arc<dyn Accelerator>>, AcceleratorError> {
    #[cfg(feature = "cuda")]
    let found = cuda::cuda_devices();
    #[cfg(feature = "wgpu")]
    let others = vulkan::gpus()
        .map(|gpus| gpus.into_iter().map(|gpu| Arc::new(gpu) as Arc<dyn Accelerator>).collect());
    #[cfg(not(feature = "cuda"))]
    return others;
    #[cfg(not(feature = "wgpu"))]
    return found;
    #[cfg(all(feature = "cuda", feature = "wgpu"))]
    match (found, others) {
        (Ok(mut found), Ok(others)) => {
            found.extend::<Vec<_>>(others);
            Ok(found)
        }
        (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found),
        (Err(cuda), Err(vulkan)) => {
            let reason = format!("{}; {}", cuda.reason(), vulkan.reason());
            Err(AcceleratorError::Missing { kind: "GPU", reason })
        }
    }
}
