//! The merging of equal pages (Documentation/admin-guide/mm/ksm.rst).

use crate::doctor::{DoctorRule, Finding, MachineFiles, Topic};

/// See the file's head.
pub const RULE: DoctorRule = DoctorRule {
    id: "same-page-merging",
    topic: Topic::Memory,
    why: "a merged page must be copied before it can be written, and the scan takes a CPU",
    check,
};

const FILE: &str = "sys/kernel/mm/ksm/run";

fn check(view: &MachineFiles) -> Vec<Finding> {
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
    use super::{FILE, RULE};
    use crate::doctor::Verdict::{Absent, Good, Minor};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn a_scan_costs() {
        assert_eq!(TestMachine::new().with(FILE, "1\n").verdict(&RULE), Minor);
        assert_eq!(TestMachine::new().with(FILE, "0\n").verdict(&RULE), Good);
        assert_eq!(TestMachine::new().verdict(&RULE), Absent);
    }
}
