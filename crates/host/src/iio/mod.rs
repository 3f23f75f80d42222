//! Converters and sensors of the kernel's Industrial I/O, read through their character devices
//! (Linux, Documentation/driver-api/iio, Documentation/ABI/testing/sysfs-bus-iio).
//!
//! ```text
//!   /sys/bus/iio/devices/iio:device0/   name, scan_elements/, buffer/, trigger/current_trigger
//!   /sys/bus/iio/devices/trigger0/      name, sampling_frequency
//!   /dev/iio:device0                    scans, one after the other
//! ```
//!
//! [`IioCapture`] sets a device up through the [journal](crate::journal), so that all settings are
//! restored when it is dropped.

mod capture;
mod scale;
mod scan;

pub use capture::{CaptureSpec, IioCapture};
pub use scale::ValueScale;
pub use scan::{Element, ScanFormat, ScanLayout, TIMESTAMP};

use crate::journal::JournalError;
use millstream_cpu::folders;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of devices and triggers, below a root folder.
const BUS: &str = "sys/bus/iio/devices";

/// The reason why a device delivers no samples.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IioError {
    /// There is no device with a buffer, or none of this name.
    #[error(
        "there is no IIO device{} with a sample buffer; there are: {known}. Load the driver of \
         your device, or use `millstream-lab lab guest --iio`",
        .wanted.as_ref().map_or(String::new(), |name| format!(" `{name}`"))
    )]
    NoDevice {
        /// The requested name.
        wanted: Option<String>,
        /// The existing names.
        known: String,
    },
    /// The scans have no time.
    #[error(
        "IIO device {device} has no timestamps of 64 bits, so its latency cannot be measured: \
         give another device"
    )]
    NoTimestamp {
        /// The name of the device.
        device: String,
    },
    /// The device has no trigger.
    #[error(
        "IIO device {device} needs a trigger; there are: {known}. Give one with --iio-trigger, or \
         prepare a timer: `modprobe iio-trig-hrtimer` and `mount -t configfs none \
         /sys/kernel/config`"
    )]
    NoTrigger {
        /// Name of the device.
        device: String,
        /// Names of triggers.
        known: String,
    },
    /// The trigger does not fire.
    #[error("IIO device {device} gave no sample for {seconds} s: check that its trigger fires")]
    Silent {
        /// Name of the device.
        device: String,
        /// The time that was waited, seconds.
        seconds: u64,
    },
    /// Some drivers read the time only when the device itself triggers.
    #[error(
        "IIO device {device} gives no timestamps with this trigger: give its own trigger with \
         --iio-trigger"
    )]
    Untimed {
        /// Name of the device.
        device: String,
    },
    /// The packing is not known.
    #[error("{path} contains `{text}`, which is not a sample format of up to 64 bits")]
    Packing {
        /// The file.
        path: PathBuf,
        /// The content of the file.
        text: String,
    },
    /// A setting of the device cannot be changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A file cannot be used.
    #[error("cannot use {path}: {source}{}", hint(.source))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "; only root may use the buffers of IIO devices: run the command with sudo"
        }
        io::ErrorKind::ResourceBusy => "; another program reads this device",
        _ => "",
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> IioError {
    let path = path.to_owned();
    move |source| IioError::File { path, source }
}

/// A device with a buffer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IioDevice {
    /// The name from its driver.
    pub name: String,
    /// The folder of its settings.
    pub folder: PathBuf,
    /// The character device.
    pub node: PathBuf,
}

/// Finds the device of this name or number (`iio:device0`), or the first with a buffer, below a
/// root folder (`/` for this machine).
///
/// # Errors
/// [`IioError::NoDevice`].
pub fn find(root: &Path, wanted: Option<&str>) -> Result<IioDevice, IioError> {
    let all = named(root, "iio:device");
    let known: Vec<_> = all.iter().map(|(_, name)| name.clone()).collect();
    let fits = |folder: &Path, name: &str| {
        let number = folder.file_name().unwrap_or_default();
        wanted.is_none_or(|wanted| wanted == name || wanted == number)
    };
    let mut able = all
        .into_iter()
        .filter(|(folder, name)| fits(folder, name) && folder.join("buffer/enable").exists());
    let Some((folder, name)) = able.next() else {
        return Err(IioError::NoDevice { wanted: wanted.map(str::to_owned), known: list(known) });
    };
    let node = root.join("dev").join(folder.file_name().unwrap_or_default());
    Ok(IioDevice { name, folder, node })
}

/// Returns the folders on the bus with this prefix, in order, with the names of their devices.
fn named(root: &Path, prefix: &str) -> Vec<(PathBuf, String)> {
    let bus = root.join(BUS);
    let named = |folder: PathBuf| {
        let name = fs::read_to_string(folder.join("name")).unwrap_or_default();
        (folder, name.trim().to_owned())
    };
    let names = folders::names(&bus).into_iter().filter(|name| name.starts_with(prefix));
    names.map(|name| named(bus.join(name))).collect()
}

fn list(names: Vec<String>) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests;
