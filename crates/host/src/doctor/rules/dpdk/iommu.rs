//! The IOMMU, which confines devices to their own memory (Documentation/driver-api/vfio.rst).

use super::devices;
use crate::doctor::{Evidence, Finding, MachineFiles};

const FOLDER: &str = "sys/class/iommu";

/// Checks whether an IOMMU confines the devices.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    if devices(view).is_empty() {
        return Vec::new();
    }
    let units = view.names(FOLDER);
    let seen = Evidence { path: format!("/{FOLDER}"), value: units.join(" ") };
    if !units.is_empty() {
        return vec![Finding::good("an IOMMU is on").seen([seen])];
    }
    let intel = view.read("proc/cpuinfo").is_some_and(|info| info.value.contains("GenuineIntel"));
    let words = if intel { "intel_iommu=on iommu=pt" } else { "iommu=pt" };
    let edit = format!("sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{words} /' /etc/default/grub");
    vec![
        Finding::fails(
            "no IOMMU is on: enable it in the firmware's settings (VT-d, AMD-Vi), and \
             for the kernel",
        )
        .seen([seen])
        .mend_by_hand(format!("{edit} && update-grub && reboot"))
        .at_risk("the machine restarts"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::machine;
    use super::check;
    use crate::doctor::Verdict::{Absent, Fails, Good};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn an_iommu_has_to_be_on() {
        let found = machine("vfio-pci", None).with("proc/cpuinfo", "GenuineIntel").one(check);
        assert_eq!(found.verdict, Fails);
        assert!(found.mend.unwrap().command.contains("intel_iommu=on"));
        let on = machine("vfio-pci", None).with("sys/class/iommu/dmar0/x", "");
        assert_eq!(on.verdict(check), Good);
        assert_eq!(TestMachine::new().verdict(check), Absent, "nothing to be kept apart");
    }
}
