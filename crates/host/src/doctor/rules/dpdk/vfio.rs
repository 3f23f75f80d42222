//! The kernel modules of VFIO.

use super::{DRIVERS, devices};
use crate::doctor::{Evidence, Finding, MachineFiles};

/// Checks whether the modules of VFIO are loaded.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    if devices(view).is_empty() {
        return Vec::new();
    }
    let path = format!("{DRIVERS}/vfio-pci");
    let there = view.has(&path);
    let value = if there { "there" } else { "missing" }.to_owned();
    let seen = Evidence { path: format!("/{path}"), value };
    let finding = match there {
        true => Finding::good("vfio-pci is loaded"),
        false => Finding::fails("vfio-pci is not loaded").mend_by_hand("modprobe vfio-pci"),
    };
    vec![finding.seen([seen])]
}

#[cfg(test)]
mod tests {
    use super::super::machine;
    use super::check;
    use crate::doctor::Verdict::{Absent, Fails, Good};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn the_driver_has_to_be_there() {
        assert_eq!(machine("vfio-pci", None).verdict(check), Good);
        let found = machine("e1000e", None).one(check);
        assert_eq!(found.verdict, Fails);
        assert_eq!(found.mend.unwrap().command, "modprobe vfio-pci");
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }
}
