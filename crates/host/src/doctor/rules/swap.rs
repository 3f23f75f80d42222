//! Swap: memory on a disk (proc_swaps(5)).

use crate::doctor::{Finding, MachineFiles};

const SWAPPINESS: &str = "proc/sys/vm/swappiness";

/// Checks whether memory of a program can be moved to a disk.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let Some(mut swaps) = view.read("proc/swaps") else { return Vec::new() };
    let areas = swaps.value.lines().count().saturating_sub(1);
    swaps.value = format!("{areas} areas");
    if areas == 0 {
        return vec![Finding::good("there is no swap").seen([swaps])];
    }
    match view.number(SWAPPINESS) {
        Some((swappiness, seen)) if swappiness <= 1 => {
            vec![Finding::good("the kernel swaps only as the last resort").seen([swaps, seen])]
        }
        seen => vec![
            Finding::matters("pages that are not locked go to disk when others read files")
                .seen([swaps].into_iter().chain(seen.map(|(_, seen)| seen)))
                .mend_by_write(SWAPPINESS, "1"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::{SWAPPINESS, check};
    use crate::doctor::Verdict::{Absent, Good, Matters};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn swap_costs_unless_it_is_the_last_resort() {
        let head = "Filename\tType\tSize\tUsed\tPriority\n";
        assert_eq!(TestMachine::new().with("proc/swaps", head).verdict(check), Good);
        let swaps = format!("{head}/dev/sda2 partition 100 0 -2\n");
        let machine = TestMachine::new().with("proc/swaps", &swaps).with(SWAPPINESS, "60\n");
        let found = machine.one(check);
        assert_eq!(found.verdict, Matters);
        assert_eq!(found.mend.unwrap().command, "sysctl -w vm.swappiness=1");
        assert_eq!(machine.with(SWAPPINESS, "1\n").verdict(check), Good);
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }
}
