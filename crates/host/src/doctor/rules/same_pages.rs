//! The merging of equal pages (Documentation/admin-guide/mm/ksm.rst).

use crate::doctor::{Finding, MachineFiles};

const FILE: &str = "sys/kernel/mm/ksm/run";

/// Checks whether the kernel merges equal pages.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    match view.number(FILE) {
        Some((1, seen)) => vec![
            Finding::minor("ksmd scans memory and merges pages")
                .seen([seen])
                .mend_by_write(FILE, "0"),
        ],
        Some((_, seen)) => vec![Finding::good("ksmd does not run").seen([seen])],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE, check};
    use crate::doctor::Verdict::{Absent, Good, Minor};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn a_scan_costs() {
        assert_eq!(TestMachine::new().with(FILE, "1\n").verdict(check), Minor);
        assert_eq!(TestMachine::new().with(FILE, "0\n").verdict(check), Good);
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }
}
