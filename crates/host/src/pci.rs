//! Network cards on the PCI bus, and their drivers (Linux, Documentation/ABI/testing/sysfs-bus-pci,
//! Documentation/driver-api/vfio.rst).

use millstream_cpu::folders;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const BUS: &str = "/sys/bus/pci";
/// The prefix of a network device's class.
const NETWORK: &str = "0x02";

/// A network device on the bus.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Card {
    /// The address, `0000:03:00.0`.
    pub address: String,
    /// The bound driver.
    pub driver: Option<String>,
}

/// Returns the network devices of this machine, by their addresses.
#[must_use]
pub fn cards() -> Vec<Card> {
    cards_of(Path::new(BUS))
}

/// Returns the driver bound to a device.
#[must_use]
pub fn driver_of(address: &str) -> Option<String> {
    link_name(&device(Path::new(BUS), address).join("driver"))
}

/// Returns the IOMMU group of a device; `None` without an IOMMU.
#[must_use]
pub fn iommu_group(address: &str) -> Option<String> {
    link_name(&device(Path::new(BUS), address).join("iommu_group"))
}

/// Returns what the IOMMU does for the group of a device: `DMA` and `DMA-FQ` refuse all addresses
/// but those that a driver of the kernel or VFIO has mapped, `identity` refuses none. Without an
/// IOMMU it is `None`.
#[must_use]
pub fn iommu_domain(address: &str) -> Option<String> {
    let text = fs::read_to_string(domain_file(&iommu_group(address)?)).ok()?;
    Some(text.trim().to_owned())
}

/// Sets that for a device that no driver has, as [`release`] leaves it, and that is alone in its
/// group.
///
/// # Errors
/// The kernel's error.
pub fn set_iommu_domain(address: &str, domain: &str) -> io::Result<()> {
    let group = iommu_group(address).ok_or(io::ErrorKind::NotFound)?;
    fs::write(domain_file(&group), domain)
}

/// Returns the kernel's interface on a device, while a kernel driver has it.
#[must_use]
pub fn interface_of(address: &str) -> Option<String> {
    folders::names(&device(Path::new(BUS), address).join("net")).into_iter().next()
}

/// Returns the PCI device of a kernel interface; `None` for those that are not on the bus. A virtio
/// device stands between the two.
#[must_use]
pub fn of_interface(interface: &str) -> Option<String> {
    let device = fs::canonicalize(format!("/sys/class/net/{interface}/device")).ok()?;
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    device.ancestors().take(2).filter_map(name).find(|name| is_address(name))
}

/// Binds a device to a driver, and only that driver may take it from now on, like `dpdk-devbind.py
/// --bind`. The driver has to be loaded.
///
/// # Errors
/// The kernel's error; `NotFound` when the driver did not take the device.
pub fn bind(address: &str, driver: &str) -> io::Result<()> {
    place(address, driver)?;
    match driver_of(address) {
        Some(found) if found == driver => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, format!("{driver} does not take it"))),
    }
}

/// Returns a device to the kernel driver that matches it.
///
/// # Errors
/// The kernel's error.
pub fn give_back(address: &str) -> io::Result<()> {
    // The kernel takes an empty line as no name.
    place(address, "\n")
}

/// Takes a device from its driver, and no other may take it.
///
/// # Errors
/// The kernel's error.
pub fn release(address: &str) -> io::Result<()> {
    // No driver has that name.
    place(address, "none")
}

fn domain_file(group: &str) -> String {
    format!("/sys/kernel/iommu_groups/{group}/type")
}

fn place(address: &str, driver: &str) -> io::Result<()> {
    let folder = device(Path::new(BUS), address);
    fs::write(folder.join("driver_override"), driver)?;
    if folder.join("driver").exists() {
        fs::write(folder.join("driver/unbind"), address)?;
    }
    fs::write(Path::new(BUS).join("drivers_probe"), address)
}

fn cards_of(bus: &Path) -> Vec<Card> {
    let card = |address: String| {
        let folder = device(bus, &address);
        let class = fs::read_to_string(folder.join("class")).ok()?;
        let driver = link_name(&folder.join("driver"));
        class.starts_with(NETWORK).then_some(Card { address, driver })
    };
    folders::names(&bus.join("devices")).into_iter().filter_map(card).collect()
}

fn device(bus: &Path, address: &str) -> PathBuf {
    bus.join("devices").join(address)
}

fn link_name(link: &Path) -> Option<String> {
    Some(fs::read_link(link).ok()?.file_name()?.to_string_lossy().into_owned())
}

/// Returns whether the name is like `0000:03:00.0`.
fn is_address(name: &str) -> bool {
    let shape = |(place, byte): (usize, u8)| match place {
        4 | 7 => byte == b':',
        10 => byte == b'.',
        _ => byte.is_ascii_hexdigit(),
    };
    name.len() == 12 && name.bytes().enumerate().all(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_devices_are_told_from_others_with_their_drivers() {
        let bus = tempfile::tempdir().unwrap();
        let devices = [("0000:03:00.0", "0x020000\n"), ("0000:00:1f.2", "0x010601\n")];
        for (address, class) in devices {
            let folder = device(bus.path(), address);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("class"), class).unwrap();
            std::os::unix::fs::symlink("../../drivers/igb", folder.join("driver")).unwrap();
        }
        let found = cards_of(bus.path());
        let card = Card { address: "0000:03:00.0".to_owned(), driver: Some("igb".to_owned()) };
        assert_eq!(found, [card]);
        assert_eq!(cards_of(&bus.path().join("none")), []);
    }

    #[test]
    fn an_address_is_told_from_the_device_below_it() {
        assert!(is_address("0000:03:00.0") && is_address("10de:3b:1f.7"));
        for name in ["virtio0", "0000:03:00", "0000:03:00.00", "0000-03:00.0", "000g:03:00.0"] {
            assert!(!is_address(name), "{name}");
        }
        assert_eq!(of_interface("lo"), None);
    }
}
