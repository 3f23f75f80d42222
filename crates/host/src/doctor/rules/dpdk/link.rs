//! The carrier of a device, as long as the kernel still has the device.

use super::{DEVICES, devices};
use crate::doctor::{Finding, MachineFiles};

/// Checks whether each device that the kernel still has has a carrier.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let of = |device: super::Device| {
        let name = device.interface.as_ref()?;
        // For an interface that is down, the kernel reports no carrier state.
        let file = format!("{DEVICES}/{}/net/{name}/carrier", device.address);
        let finding = match view.read(&file) {
            Some(seen) if seen.value == "1" => Finding::good("the link is up").seen([seen]),
            Some(seen) if seen.value == "0" => Finding::fails("no link: check the cable")
                .seen([seen])
                .mend_by_hand(format!("ip link set {name} up; ethtool {name}")),
            _ => Finding::unknown(format!("{name} is down, so its link is not known"))
                .mend_by_hand(format!("ip link set {name} up; ethtool {name}")),
        };
        Some(finding.about(device.address))
    };
    devices(view).into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::machine;
    use super::{DEVICES, check};
    use crate::doctor::Verdict::{Absent, Fails, Good};

    #[test]
    fn a_cable_has_to_be_plugged_in() {
        let there = machine("e1000e", Some("eth0"));
        assert_eq!(there.verdict(check), Good);
        let carrier = format!("{DEVICES}/0000:03:00.0/net/eth0/carrier");
        assert_eq!(there.with(&carrier, "0\n").verdict(check), Fails);
        assert_eq!(machine("vfio-pci", None).verdict(check), Absent, "the kernel sees it no more");
    }
}
