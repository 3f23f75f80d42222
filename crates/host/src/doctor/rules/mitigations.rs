//! The kernel's mitigations of processor faults (Documentation/admin-guide/hw-vuln/index.rst): they
//! cost time at every system call and interrupt.

use crate::doctor::{Evidence, Finding, MachineFiles, measure};

/// Checks which mitigations make system calls and interrupts slower.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let folder = "sys/devices/system/cpu/vulnerabilities";
    let read = |name: String| view.read(&format!("{folder}/{name}"));
    let all: Vec<Evidence> = view.names(folder).into_iter().filter_map(read).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let is_on = |found: &Evidence| found.value.starts_with("Mitigation");
    let on: Vec<_> = all.into_iter().filter(is_on).collect();
    if on.is_empty() {
        return vec![Finding::good("no mitigation is on").seen(view.read("proc/cmdline"))];
    }
    let says = format!(
        "{} mitigations are on: they protect against other programs, and cost speed",
        on.len()
    );
    let finding = Finding::unknown(says).seen(on);
    vec![match view.is_here() {
        true => {
            let ns = measure::system_call_ns();
            finding.cost(format!("part of {ns:.0} ns that an empty system call takes (measured)"))
        }
        false => finding,
    }]
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Unknown};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn they_are_counted_and_never_blamed() {
        let file = "sys/devices/system/cpu/vulnerabilities/spectre_v2";
        let found = TestMachine::new().with(file, "Mitigation: Retpolines\n").one(check);
        assert_eq!((found.verdict, found.evidence.len()), (Unknown, 1));
        assert!(found.says.starts_with("1 mitigations are on") && found.mend.is_none());
        assert_eq!(TestMachine::new().with(file, "Not affected\n").verdict(check), Good);
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }
}
