//! The requirements of DPDK, and the network devices that it could use.

pub(in crate::doctor) mod driver;
pub(in crate::doctor) mod iommu;
pub(in crate::doctor) mod link;
pub(in crate::doctor) mod node;
pub(in crate::doctor) mod pages;
pub(in crate::doctor) mod vfio;

use crate::doctor::{Evidence, MachineFiles};

const DEVICES: &str = "sys/bus/pci/devices";
const DRIVERS: &str = "sys/bus/pci/drivers";

/// A network device on the PCI bus.
struct Device {
    /// `0000:03:00.0`
    address: String,
    /// The driver bound to it.
    driver: Option<String>,
    /// The kernel's interface on it.
    interface: Option<String>,
}

impl Device {
    /// Returns the driver as evidence.
    fn seen(&self) -> Evidence {
        let value = self.driver.clone().unwrap_or_else(|| "none".to_owned());
        Evidence { path: format!("/{DEVICES}/{}/driver", self.address), value }
    }
}

/// Returns the network devices: PCI class 02.
fn devices(view: &MachineFiles) -> Vec<Device> {
    let drivers = view.names(DRIVERS);
    let device = |address: String| {
        let class = view.read(&format!("{DEVICES}/{address}/class"))?;
        if !class.value.starts_with("0x02") {
            return None;
        }
        let has = |driver: &&String| view.has(&format!("{DRIVERS}/{driver}/{address}"));
        let driver = drivers.iter().find(has).cloned();
        let interface = view.names(&format!("{DEVICES}/{address}/net")).into_iter().next();
        Some(Device { address, driver, interface })
    };
    view.names(DEVICES).into_iter().filter_map(device).collect()
}

#[cfg(test)]
use crate::doctor::machine::TestMachine;

/// Returns a machine with one network device of that driver, and an interface on it.
#[cfg(test)]
fn machine(driver: &str, interface: Option<&str>) -> TestMachine {
    let device = format!("{DEVICES}/0000:03:00.0");
    let machine = TestMachine::with_two_cpus()
        .with(&format!("{device}/class"), "0x020000\n")
        .with(&format!("{DEVICES}/0000:00:00.0/class"), "0x060000\n")
        .with(&format!("{DRIVERS}/{driver}/0000:03:00.0"), "");
    match interface {
        Some(name) => machine.with(&format!("{device}/net/{name}/carrier"), "1\n"),
        None => machine,
    }
}
