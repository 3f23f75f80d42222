//! A device behind `ivshmem-doorbell` (QEMU): its shared memory is a window on the PCI bus, its
//! interrupt comes by MSI-X, and VFIO gives a program both (QEMU, docs/specs/ivshmem-spec.rst).

use crate::vfio::{VfioDevice, VfioError};
use std::fs::File;
use std::path::Path;

/// Vendor and device of ivshmem.
const IDS: [&str; 2] = ["0x1af4", "0x1110"];
/// The folder of devices of vfio-pci.
const BOUND: &str = "/sys/bus/pci/drivers/vfio-pci";
const REGION_BAR2: u32 = 2;

/// The device, open.
#[derive(Debug)]
pub struct Ivshmem {
    /// The source of its memory mapping.
    pub(super) device: VfioDevice,
    /// Offset of the shared memory in the device's file.
    pub(super) memory_offset: u64,
    /// Readable after an interrupt (eventfd(2)).
    pub(super) line: File,
}

/// Opens the first device of vfio-pci.
///
/// # Errors
/// [`VfioError`].
pub fn open() -> Result<Ivshmem, VfioError> {
    let name = find(Path::new(BOUND)).ok_or(VfioError::NoDevice)?;
    let device = VfioDevice::open(&name)?;
    let (memory_offset, line) = (device.region(REGION_BAR2)?, device.interrupt()?);
    Ok(Ivshmem { device, memory_offset, line })
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
