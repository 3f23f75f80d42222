//! Two network cards on one wire, behind an emulated IOMMU: one for DPDK, one for the kernel.

use crate::error::Error;
use std::path::{Path, PathBuf};

/// A pair of cards.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cards {
    model: Model,
    /// The path of a socket through which the guest reaches QEMU's monitor.
    monitor: PathBuf,
}

/// A card that QEMU emulates, with drivers in Debian's kernels and in DPDK.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Model {
    /// QEMU's name.
    name: &'static str,
    /// The kernel's module.
    module: &'static str,
    /// DPDK's driver.
    plug_in: &'static str,
}

const MODELS: [Model; 3] = [
    Model { name: "e1000e", module: "e1000e", plug_in: "net_e1000" },
    Model { name: "e1000", module: "e1000", plug_in: "net_e1000" },
    Model { name: "vmxnet3", module: "vmxnet3", plug_in: "net_vmxnet3" },
];

/// The addresses of the cards on the guest's bus: DPDK's, the kernel's.
pub const ADDRESSES: [&str; 2] = ["0000:00:04.0", "0000:00:05.0"];
/// The address of a device that reads and writes any address that a program tells it.
pub const TESTER: &str = "0000:00:06.0";
/// Options of the guest's kernel: a one-shot timer whose interrupt is lost by an emulated IOMMU on
/// a busy machine would never fire again.
pub const KERNEL_WORDS: [&str; 2] = ["nohz=off", "highres=off"];
/// The kernel module that takes a device from the kernel without an IOMMU; tests expect its
/// refusal.
const UNSAFE_MODULE: &str = "uio_pci_generic";
/// Debian's folder of DPDK's drivers.
const PLUG_INS: &str = "/usr/lib/x86_64-linux-gnu/dpdk";

impl Cards {
    /// Returns two cards of that model. `monitor` is an unused path.
    ///
    /// # Errors
    /// The known names.
    pub fn new(model: &str, monitor: PathBuf) -> Result<Self, String> {
        let found = MODELS.iter().find(|known| known.name == model);
        let names = || MODELS.map(|known| known.name).join(", ");
        let model = *found.ok_or_else(|| {
            format!("`{model}` is not a known model of network card: use one of {}", names())
        })?;
        Ok(Self { model, monitor })
    }

    /// Returns QEMU's arguments.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let path = self.monitor.display();
        let name = self.model.name;
        let mut all = vec![
            ("-chardev", format!("socket,id=monitor,path={path},server=on,wait=off")),
            ("-mon", "chardev=monitor,mode=readline".to_owned()),
            ("-chardev", format!("socket,id=line,path={path}")),
            ("-device", "isa-serial,chardev=line,index=2,irq=5".to_owned()),
        ];
        for (number, address) in ADDRESSES.iter().enumerate() {
            let slot = &address[8..];
            all.push(("-netdev", format!("hubport,id=port{number},hubid=0")));
            let card = format!("{name},id=card{number},netdev=port{number},addr={slot}");
            all.push(("-device", card));
        }
        // Without the mask it would reach 256 MiB only.
        let tester = format!("edu,addr={},dma_mask=0xffffffffffffffff", &TESTER[8..]);
        all.push(("-device", tester));
        all.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect()
    }

    /// Returns the modules of the guest.
    #[must_use]
    pub fn modules(&self) -> [&'static str; 2] {
        [self.model.module, UNSAFE_MODULE]
    }

    /// Returns DPDK's drivers for the cards, from this system.
    ///
    /// # Errors
    /// When DPDK is not installed.
    pub fn plug_ins(&self) -> Result<Vec<PathBuf>, Error> {
        let wanted = [self.model.plug_in, "bus_pci", "bus_vdev", "mempool_ring"];
        let folder = plug_ins(Path::new(PLUG_INS))?;
        Ok(wanted.map(|name| folder.join(format!("librte_{name}.so"))).to_vec())
    }
}

/// Finds `pmds-23.0`, or the installed version.
fn plug_ins(folder: &Path) -> Result<PathBuf, Error> {
    let entries = std::fs::read_dir(folder).map_err(crate::error::at(folder))?;
    let mut found = entries.flatten().map(|entry| entry.path()).filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pmds-"))
    });
    let none = || Error::Missing {
        program: "DPDK".to_owned(),
        package: "dpdk",
        source: std::io::ErrorKind::NotFound.into(),
    };
    found.next().ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_cards_are_on_one_wire_and_the_first_has_a_name() {
        let cards = Cards::new("e1000e", "/nowhere/monitor".into()).unwrap();
        let arguments = cards.arguments();
        let has = |text: &str| arguments.iter().any(|argument| argument == text);
        assert!(has("e1000e,id=card0,netdev=port0,addr=04.0"), "{arguments:?}");
        assert!(has("hubport,id=port1,hubid=0") && has("-mon"));
        assert!(has("edu,addr=06.0,dma_mask=0xffffffffffffffff"), "{arguments:?}");
    }

    #[test]
    fn a_card_that_there_is_not_is_refused_with_those_that_there_are() {
        let error = Cards::new("rtl8139", "/nowhere/monitor".into()).unwrap_err();
        assert!(error.contains("rtl8139") && error.contains("e1000e, e1000, vmxnet3"), "{error}");
    }
}
