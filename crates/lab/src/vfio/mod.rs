//! A device on the PCI bus that VFIO gives to this program: its registers, its interrupt, and the
//! memory that the IOMMU lets it reach (Linux, Documentation/driver-api/vfio.rst).

mod error;
mod memory;
pub mod outside;
mod tester;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::raw::c_ulong;
use std::os::unix::fs::FileExt;

use rustix::event::{EventfdFlags, eventfd};

pub use error::VfioError;
pub use memory::DmaPage;

use error::at;

// Requests and structures of linux/vfio.h.
const SET_IOMMU: c_ulong = 0x3b66;
const GROUP_SET_CONTAINER: c_ulong = 0x3b68;
const GROUP_GET_DEVICE_FD: c_ulong = 0x3b6a;
const DEVICE_GET_REGION_INFO: c_ulong = 0x3b6c;
const DEVICE_SET_IRQS: c_ulong = 0x3b6e;
const IOMMU_MAP_DMA: c_ulong = 0x3b71;
const IOMMU_UNMAP_DMA: c_ulong = 0x3b72;
const TYPE1_IOMMU: usize = 1;
const REGION_CONFIG: u32 = 7;
const IRQ_MSIX: u32 = 2;
/// VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER.
const IRQ_BY_EVENTFD: u32 = 4 | 32;
/// VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE.
const MAP_BOTH_WAYS: u32 = 1 | 2;
/// The command register in configuration space, and its bits for memory and for bus mastering;
/// without the latter, neither messages (MSI-X) nor accesses to memory leave the device.
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

#[repr(C)]
struct DmaMap {
    argsz: u32,
    flags: u32,
    address: u64,
    device_address: u64,
    size: u64,
}

#[repr(C)]
struct DmaUnmap {
    argsz: u32,
    flags: u32,
    device_address: u64,
    size: u64,
}

/// A device, open. It can reach no memory but that of [`VfioDevice::map`].
#[derive(Debug)]
pub struct VfioDevice {
    device: File,
    /// The IOMMU's context.
    container: File,
    /// The device's group in it, which holds the device.
    _group: File,
}

impl VfioDevice {
    /// Opens the device with this PCI address, which vfio-pci has.
    ///
    /// # Errors
    /// The step that failed.
    pub fn open(address: &str) -> Result<Self, VfioError> {
        let none = || at("the device's group")(io::ErrorKind::NotFound.into());
        let group = millstream_host::pci::iommu_group(address).ok_or_else(none)?;
        let open =
            |path: &str| OpenOptions::new().read(true).write(true).open(path).map_err(at(path));
        let (container, group) = (open("/dev/vfio/vfio")?, open(&format!("/dev/vfio/{group}"))?);
        let number = container.as_raw_fd();
        // SAFETY: the kernel reads an int that lives through the call.
        unsafe {
            ask(&group, GROUP_SET_CONTAINER, (&raw const number) as usize, "the device's group")?
        };
        // SAFETY: the argument is a number.
        unsafe { ask(&container, SET_IOMMU, TYPE1_IOMMU, "the IOMMU")? };
        let name = std::ffi::CString::new(address).map_err(|_| none())?;
        // SAFETY: the kernel reads a string that ends with 0 and lives through the call.
        let device =
            unsafe { ask(&group, GROUP_GET_DEVICE_FD, name.as_ptr() as usize, "the device")? };
        // SAFETY: a new descriptor with no other owner.
        let device = unsafe { File::from_raw_fd(device) };
        let opened = Self { device, container, _group: group };
        opened.be_master()?;
        Ok(opened)
    }

    /// The source of memory mappings of its regions.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.device
    }

    /// The offset of a region in [`VfioDevice::file`]: a number below 6 is that of a BAR.
    ///
    /// # Errors
    /// The kernel's.
    pub fn region(&self, index: u32) -> Result<u64, VfioError> {
        let argsz = size_of::<RegionInfo>() as u32;
        let mut info = RegionInfo { argsz, index, ..RegionInfo::default() };
        let argument = (&raw mut info) as usize;
        // SAFETY: the kernel writes a structure of the size that it states.
        unsafe { ask(&self.device, DEVICE_GET_REGION_INFO, argument, "its regions")? };
        Ok(info.offset)
    }

    /// Returns what becomes readable with its first interrupt (eventfd(2), MSI-X).
    ///
    /// # Errors
    /// The kernel's.
    pub fn interrupt(&self) -> Result<File, VfioError> {
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
        unsafe { ask(&self.device, DEVICE_SET_IRQS, (&raw const set) as usize, "its interrupt")? };
        Ok(line)
    }

    /// Lets it read and write a page, which it sees at `device_address`, while the guard lives.
    ///
    /// # Errors
    /// The kernel's.
    pub fn map<'d>(
        &'d self,
        page: &'d DmaPage,
        device_address: u64,
    ) -> Result<DmaMapping<'d>, VfioError> {
        let map = DmaMap {
            argsz: size_of::<DmaMap>() as u32,
            flags: MAP_BOTH_WAYS,
            address: page.address() as u64,
            device_address,
            size: DmaPage::BYTES as u64,
        };
        // SAFETY: the kernel reads a structure of the size that it states. The page outlives the
        // mapping, and is read and written as volatile memory only.
        unsafe { ask(&self.container, IOMMU_MAP_DMA, (&raw const map) as usize, "map memory")? };
        Ok(DmaMapping { device: self, device_address })
    }

    fn be_master(&self) -> Result<(), VfioError> {
        let (register, bits) = PCI_COMMAND;
        let at_byte = self.region(REGION_CONFIG)? + register;
        let mut value = [0; 2];
        self.device.read_exact_at(&mut value, at_byte).map_err(at("its command register"))?;
        let value = (u16::from_le_bytes(value) | bits).to_le_bytes();
        self.device.write_all_at(&value, at_byte).map_err(at("its command register"))
    }
}

/// A page that a device reaches; dropping it takes the page away.
#[derive(Debug)]
pub struct DmaMapping<'d> {
    device: &'d VfioDevice,
    device_address: u64,
}

impl Drop for DmaMapping<'_> {
    fn drop(&mut self) {
        let mut unmap = DmaUnmap {
            argsz: size_of::<DmaUnmap>() as u32,
            flags: 0,
            device_address: self.device_address,
            size: DmaPage::BYTES as u64,
        };
        let argument = (&raw mut unmap) as usize;
        // SAFETY: the kernel reads and writes a structure of the size that it states.
        let done = unsafe { ask(&self.device.container, IOMMU_UNMAP_DMA, argument, "unmap") };
        // The device must not reach memory that may become another's.
        done.expect("a mapping that there is can be removed");
    }
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
