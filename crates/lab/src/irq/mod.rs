//! Measures from a conversion's edge to the user's read of its samples: an analogue-to-digital
//! converter with direct memory access and a capture clock, imitated by a process.
//!
//! The device ([`device`]) latches its own clock at the edge, writes samples into shared memory
//! ([`board`]) and raises an interrupt, which on this host is an eventfd. It wakes a driver's
//! thread, which wakes the user's thread, which reads the samples; in a guest the same process is a
//! device on the PCI bus, behind MSI-X and VFIO ([`DevicePlace::Vfio`]). Every station takes the
//! time, so that the parts sum to the whole, block by block. Queries to the device before and after
//! relate the two clocks ([`clock`]).
//!
//! A real device, through the character device of the kernel's Industrial I/O, is
//! [`DevicePlace::Iio`].
//!
//! With one interrupt a block the device starts the transfer itself. With two, the first signals
//! the end of the conversion, the driver then starts the transfer, and the second signals the end
//! of the transfer: one more pass through the kernel for every block.

mod attach;
pub mod block_size;
pub mod board;
pub mod clock;
pub mod device;
mod host;
mod iio;
mod ivshmem;
mod stages;

pub use attach::{DevicePlace, Imitation, StartImitation};
pub use host::{IrqError, IrqSamples, measure};
pub use iio::IioChoice;

use millstream_cpu::sched::Class;
use serde::{Deserialize, Serialize};

/// The parameters of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IrqSpec {
    /// The CPU of driver and user.
    pub cpu: usize,
    /// The CPU of the device.
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

/// The number of interrupts of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interrupts {
    /// One, when the samples are there.
    One,
    /// Two: when the conversion is done, and when the samples are there.
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
