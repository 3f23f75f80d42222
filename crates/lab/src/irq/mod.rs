//! From a conversion's edge to the user who reads its samples: an analogue-to-digital converter
//! with direct memory access and a capture clock, imitated by a process of its own.
//!
//! The device ([`device`]) latches its own clock at the edge, writes samples into shared memory
//! ([`board`]) and raises an interrupt, which on this host is an eventfd. A driver's thread is
//! woken by it, and wakes the user's thread, which reads the samples; in a guest the same process
//! is a device on the PCI bus, behind MSI-X and VFIO ([`DevicePlace::Vfio`]). Every station takes
//! the time, so that the parts of the way sum to the whole, block by block. The two clocks are
//! related by questions to the device before and after ([`clock`]).
//!
//! A real device, through the character device of the kernel's Industrial I/O, is
//! [`DevicePlace::Iio`].
//!
//! With one interrupt a block the device does the housekeeping itself. With two, the first says
//! that a conversion is done, the driver then starts the transfer, and the second says that that is
//! done: one more way through the kernel for every block.

mod attach;
pub mod board;
pub mod clock;
pub mod device;
mod host;
mod iio;
mod stages;
mod vfio;

pub use attach::{DevicePlace, Imitation, StartImitation};
pub use host::{IrqError, IrqSamples, measure};
pub use iio::IioChoice;
pub use vfio::VfioError;

use millstream_cpu::sched::Class;
use serde::{Deserialize, Serialize};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IrqSpec {
    /// Where driver and user run.
    pub cpu: usize,
    /// Where the device runs.
    pub device_cpu: usize,
    /// The user's scheduling class; the driver's priority is one higher.
    pub class: Class,
    /// From conversion to conversion, nanoseconds.
    pub period_ns: u64,
    /// Blocks.
    pub count: u64,
    /// Interrupts for a block.
    pub interrupts: Interrupts,
}

/// How many interrupts a block costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interrupts {
    /// When the samples are there.
    One,
    /// When the conversion is done, and when the samples are there.
    Two,
}

impl Interrupts {
    /// 1 or 2.
    #[must_use]
    pub fn number(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}
