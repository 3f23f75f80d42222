//! A device behind `ivshmem-doorbell` (QEMU): its shared memory is a window on the PCI bus, its
//! interrupt comes by MSI-X, and VFIO gives a program both (Linux, Documentation/driver-api/
//! vfio.rst; QEMU, docs/specs/ivshmem-spec.rst).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::raw::c_ulong;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::event::{EventfdFlags, eventfd};

/// Vendor and device of ivshmem.
const IDS: [&str; 2] = ["0x1af4", "0x1110"];
/// The folder of devices of vfio-pci.
const BOUND: &str = "/sys/bus/pci/drivers/vfio-pci";

// Requests and structures of linux/vfio.h.
const SET_IOMMU: c_ulong = 0x3b66;
const GROUP_SET_CONTAINER: c_ulong = 0x3b68;
const GROUP_GET_DEVICE_FD: c_ulong = 0x3b6a;
const DEVICE_GET_REGION_INFO: c_ulong = 0x3b6c;
const DEVICE_SET_IRQS: c_ulong = 0x3b6e;
const TYPE1_IOMMU: usize = 1;
const REGION_BAR2: u32 = 2;
const REGION_CONFIG: u32 = 7;
const IRQ_MSIX: u32 = 2;
/// VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER.
const IRQ_BY_EVENTFD: u32 = 4 | 32;
/// The command register in configuration space, and its bits for memory and for bus mastering;
/// without the latter, messages (MSI-X) do not leave the device.
const PCI_COMMAND: (u64, u16) = (4, 2 | 4);

#[repr(C)]
#[derive(Default)]
struct RegionInfo {
    argsz: u32,
    flags: u32,
    index: u32,
    cap_offset: u32,
    size: u64,
    offset: u64,
}

#[repr(C)]
struct IrqSet {
    argsz: u32,
    flags: u32,
    index: u32,
    start: u32,
    count: u32,
    eventfd: i32,
}

/// The reason why there is no device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VfioError {
    /// No device is bound.
    #[error(
        "no ivshmem device is bound to vfio-pci: run the command in a virtual machine of \
         `millstream lab guest --adc`, which has one"
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

/// The device, open.
#[derive(Debug)]
pub struct Ivshmem {
    /// The source of its memory mapping.
    pub(super) device: File,
    /// Offset of the shared memory in `device`.
    pub(super) memory_offset: u64,
    /// Readable after an interrupt (eventfd(2)).
    pub(super) line: File,
    /// The IOMMU's context, and the device's group in it; they hold the device.
    _held: [File; 2],
}

/// Opens the first device of vfio-pci.
///
/// # Errors
/// [`VfioError`].
pub fn open() -> Result<Ivshmem, VfioError> {
    let name = find(Path::new(BOUND)).ok_or(VfioError::NoDevice)?;
    let link = format!("{BOUND}/{name}/iommu_group");
    let group = std::fs::read_link(&link).map_err(at(&link))?;
    let group = group.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let open = |path: &str| OpenOptions::new().read(true).write(true).open(path).map_err(at(path));
    let (container, group) = (open("/dev/vfio/vfio")?, open(&format!("/dev/vfio/{group}"))?);
    let number = container.as_raw_fd();
    // SAFETY: the kernel reads an int that lives through the call.
    unsafe {
        ask(&group, GROUP_SET_CONTAINER, (&raw const number) as usize, "the device's group")?
    };
    // SAFETY: the argument is a number.
    unsafe { ask(&container, SET_IOMMU, TYPE1_IOMMU, "the IOMMU")? };
    let text = std::ffi::CString::new(name).map_err(|_| VfioError::NoDevice)?;
    // SAFETY: the kernel reads a string that ends with 0 and lives through the call.
    let device = unsafe { ask(&group, GROUP_GET_DEVICE_FD, text.as_ptr() as usize, "the device")? };
    // SAFETY: a new descriptor with no other owner.
    let device = unsafe { File::from_raw_fd(device) };
    be_master(&device)?;
    let memory_offset = region(&device, REGION_BAR2)?;
    let line: File = eventfd(0, EventfdFlags::CLOEXEC)
        .map_err(io::Error::from)
        .map_err(at("an eventfd"))?
        .into();
    let set = IrqSet {
        argsz: size_of::<IrqSet>() as u32,
        flags: IRQ_BY_EVENTFD,
        index: IRQ_MSIX,
        start: 0,
        count: 1,
        eventfd: line.as_raw_fd(),
    };
    // SAFETY: the kernel reads a structure of the size that it states.
    unsafe { ask(&device, DEVICE_SET_IRQS, (&raw const set) as usize, "its interrupt")? };
    Ok(Ivshmem { device, memory_offset, line, _held: [group, container] })
}

/// The bus address of the first ivshmem device below a driver's folder.
fn find(driver: &Path) -> Option<String> {
    let mut names: Vec<_> = std::fs::read_dir(driver).ok()?.flatten().collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    let is_ours = |entry: &std::fs::DirEntry| {
        let reads = |name, wanted| {
            std::fs::read_to_string(entry.path().join(name)).is_ok_and(|text| text.trim() == wanted)
        };
        reads("vendor", IDS[0]) && reads("device", IDS[1])
    };
    names
        .iter()
        .find(|entry| is_ours(entry))
        .map(|entry| entry.file_name().to_string_lossy().into())
}

fn be_master(device: &File) -> Result<(), VfioError> {
    let (register, bits) = PCI_COMMAND;
    let at_byte = region(device, REGION_CONFIG)? + register;
    let mut value = [0; 2];
    device.read_exact_at(&mut value, at_byte).map_err(at("its command register"))?;
    let value = (u16::from_le_bytes(value) | bits).to_le_bytes();
    device.write_all_at(&value, at_byte).map_err(at("its command register"))
}

/// The offset of a region of the device.
fn region(device: &File, index: u32) -> Result<u64, VfioError> {
    let argsz = size_of::<RegionInfo>() as u32;
    let mut info = RegionInfo { argsz, index, ..RegionInfo::default() };
    // SAFETY: the kernel writes a structure of the size that it states.
    unsafe { ask(device, DEVICE_GET_REGION_INFO, (&raw mut info) as usize, "its regions")? };
    Ok(info.offset)
}

/// Calls ioctl(2).
///
/// # Safety
/// The argument must be of the request's type.
unsafe fn ask(
    file: &File,
    request: c_ulong,
    argument: usize,
    step: &str,
) -> Result<i32, VfioError> {
    // SAFETY: the caller's promise.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) };
    if answer < 0 { Err(at(step)(io::Error::last_os_error())) } else { Ok(answer) }
}

fn at(step: &str) -> impl FnOnce(io::Error) -> VfioError {
    let step = step.to_owned();
    move |source| VfioError::Step { step, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_device_that_shares_memory_is_taken() {
        let bus = tempfile::tempdir().unwrap();
        assert_eq!(find(bus.path()), None);
        for (name, ids) in
            [("0000:00:02.0", ["0x1af4", "0x1041"]), ("0000:00:05.0", ["0x1af4", "0x1110"])]
        {
            let folder = bus.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("vendor"), format!("{}\n", ids[0])).unwrap();
            assert_eq!(find(bus.path()), None, "half of a device");
            std::fs::write(folder.join("device"), format!("{}\n", ids[1])).unwrap();
        }
        std::fs::write(bus.path().join("bind"), "").unwrap();
        assert_eq!(find(bus.path()).as_deref(), Some("0000:00:05.0"));
        assert_eq!(find(&bus.path().join("absent")), None);
    }
}
