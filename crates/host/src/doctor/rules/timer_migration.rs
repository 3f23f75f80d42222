//! Timer migration: timers set on one processor may fire on another (Documentation,
//! sysctl/kernel.rst).

use crate::doctor::{Finding, MachineFiles};

const FILE: &str = "proc/sys/kernel/timer_migration";

/// Checks whether a timer of one CPU may fire on another.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    match view.number(FILE) {
        Some((0, seen)) => vec![Finding::good("timers fire where they were set").seen([seen])],
        Some((_, seen)) => vec![
            Finding::minor("timers of idle CPUs move to busy ones")
                .seen([seen])
                .mend_by_write(FILE, "0"),
        ],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE, check};
    use crate::doctor::Verdict::{Absent, Good, Minor};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn migration_costs() {
        let found = TestMachine::new().with(FILE, "1\n").one(check);
        assert_eq!(found.verdict, Minor);
        assert_eq!(found.mend.unwrap().command, "sysctl -w kernel.timer_migration=0");
        assert_eq!(TestMachine::new().with(FILE, "0\n").verdict(check), Good);
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }
}
