//! The reasons why VFIO gives no device, or why a device does not do what it should.

use std::io;

/// The reason why there is no device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VfioError {
    /// No device is bound.
    #[error(
        "no ivshmem device is bound to vfio-pci: run the command in a virtual machine of \
         `millstream-lab lab guest --adc`, which has one"
    )]
    NoDevice,
    /// A step failed.
    #[error("VFIO failed ({step}): {source}; it needs root and an IOMMU (intel_iommu=on)")]
    Step {
        /// The step.
        step: String,
        /// The kernel's error.
        source: io::Error,
    },
}

pub(crate) fn at(step: &str) -> impl FnOnce(io::Error) -> VfioError {
    let step = step.to_owned();
    move |source| VfioError::Step { step, source }
}
