//! The driver of the device: DPDK takes a device from vfio-pci.

use super::{Device, devices};
use crate::doctor::{Finding, MachineFiles};

/// Checks whether each device is bound to a driver that DPDK can use.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    devices(view).iter().map(|device| of(view, device)).collect()
}

fn of(view: &MachineFiles, device: &Device) -> Finding {
    let Device { address, driver, interface } = device;
    let bind = format!("dpdk-devbind.py --bind=vfio-pci {address}");
    let up = interface.as_ref().is_some_and(|name| {
        let state = view.read(&format!("sys/class/net/{name}/operstate"));
        state.is_some_and(|state| state.value == "up")
    });
    let finding = match (driver.as_deref(), interface) {
        (Some("vfio-pci"), _) => Finding::good("vfio-pci drives the device, so DPDK can take it"),
        (Some(own @ ("mlx4_core" | "mlx5_core")), _) => {
            Finding::good(format!("its driver {own} shares the device with DPDK"))
        }
        (Some(uio @ ("uio_pci_generic" | "igb_uio")), _) => Finding::matters(format!(
            "{uio} drives it: the device can write to any memory of the machine"
        ))
        .mend_by_hand(bind),
        (Some(kernel), Some(name)) if up => {
            Finding::unknown(format!("the kernel's {kernel} has it, and uses it as {name}"))
                .mend_by_hand(format!("ip link set {name} down; {bind}"))
                .at_risk("this machine can no longer be reached over that interface")
        }
        (Some(kernel), _) => {
            Finding::fails(format!("the kernel's {kernel} has it")).mend_by_hand(bind)
        }
        (None, _) => Finding::fails("no driver has it").mend_by_hand(bind),
    };
    finding.about(address.clone()).seen([device.seen()])
}

#[cfg(test)]
mod tests {
    use super::super::machine;
    use super::check;
    use crate::doctor::Verdict::{Absent, Fails, Good, Matters, Unknown};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn a_device_is_to_be_with_vfio() {
        assert_eq!(machine("vfio-pci", None).verdict(check), Good);
        let idle = machine("e1000e", Some("eth0")).one(check);
        assert_eq!((idle.verdict, idle.subject.as_deref()), (Fails, Some("0000:03:00.0")));
        let command = idle.mend.unwrap().command;
        assert_eq!(command, "dpdk-devbind.py --bind=vfio-pci 0000:03:00.0");
        let used = machine("e1000e", Some("eth0")).with_eth0().one(check);
        assert!(used.verdict == Unknown && used.mend.unwrap().risk.is_some());
        assert_eq!(machine("igb_uio", None).verdict(check), Matters);
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }
}
