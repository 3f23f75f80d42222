//! A `millstream` command under another kernel: a guest that QEMU emulates, with this program as
//! its first process.
//!
//! ```text
//! host                                       guest
//! kernel (file or Debian package) ──────────▶ boots
//! image: this program + job + modules ──────▶ /init reads /millstream-job.json
//!                                             loads modules, writes settings
//!                                             runs `millstream ARGUMENTS...`
//! outcome: console, output, status ◀───────── two serial lines; power off
//! ```
//!
//! Emulation is software (TCG) as a rule: it shows that something works and how kernels differ in
//! kind, never the timing of real hardware.
//!
//! | module | idea |
//! | --- | --- |
//! | [`archive`] | the initial file system's format |
//! | [`image`] | its contents |
//! | [`iommu`] | the IOMMU in front of a device that VFIO hands out |
//! | [`cards`] | two network cards on one wire: DPDK's and the kernel's |
//! | [`iio`] | a converter of the kernel's own, without hardware |
//! | [`ivshmem`] | shared memory and an interrupt for a guest |
//! | [`job`] | the guest's work, and the format of its result |
//! | `debian` | Debian packages, fetched and unpacked |
//! | [`kernel`] | kernels as files and as Debian packages |
//! | [`modules`] | modules and their dependencies |
//! | [`machine`] | the emulated machine: its start, its console and its end |
//! | [`processor`] | the kinds of processors, and how their machines differ |
//! | [`program`] | the check of a program for another processor |
//! | [`init`] | the guest's first process |
//! | [`state`] | the state that a command may change and has to restore |

pub mod archive;
pub mod cards;
mod debian;
mod error;
pub mod iio;
pub mod image;
pub mod init;
pub mod iommu;
pub mod ivshmem;
pub mod job;
pub mod kernel;
pub mod machine;
pub mod modules;
pub mod processor;
pub mod program;
pub mod state;

pub use error::Error;
pub use job::GuestJob;
pub use kernel::BootKernel;
pub use machine::{GuestMachine, GuestResult};
pub use processor::Processor;
