//! The wake-up time of a processor (Documentation/admin-guide/pm/cpuidle.rst).

use crate::doctor::{Evidence, Finding, MachineFiles, Verdict, Write};

/// The longest exit latency that is worth its power, microseconds: about one context switch.
const LATENCY_MAX_US: i64 = 10;

/// Beyond it a wake-up takes longer than a few frames of 1500 bytes at 50 MS/s.
const LATENCY_GREAT_US: i64 = 50;

/// Checks how long the stream's CPUs need to wake up from their deepest idle state.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let mut deep = Vec::new();
    let mut worst: Option<(i64, Evidence)> = None;
    let mut states = 0;
    for cpu in view.stream_cpus().iter() {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle");
        for state in view.names(&folder) {
            let file = |name: &str| format!("{folder}/{state}/{name}");
            let Some((latency, evidence)) = view.number(&file("latency")) else { continue };
            states += 1;
            let is_off = view.number(&file("disable")).is_some_and(|(off, _)| off != 0);
            if is_off || latency <= LATENCY_MAX_US {
                continue;
            }
            deep.push(Write { path: file("disable"), text: "1".to_owned() });
            if worst.as_ref().is_none_or(|(known, _)| *known < latency) {
                worst = Some((latency, evidence));
            }
        }
    }
    let driver = view.read("sys/devices/system/cpu/cpuidle/current_driver");
    match worst {
        Some((latency, evidence)) => {
            let is_great = latency > LATENCY_GREAT_US;
            let weight = if is_great { Verdict::Matters } else { Verdict::Minor };
            let says = format!("{} idle states of stream CPUs are deep", deep.len());
            let finding = Finding::of(weight, says)
                .seen(driver.into_iter().chain([evidence]))
                .cost(format!("up to {latency} us a wake-up (the kernel's own figure)"));
            vec![finding.mend_by_writes(deep)]
        }
        None if states > 0 => vec![Finding::good("no deep idle state is on").seen(driver)],
        None if super::steal::is_guest(view) => vec![
            Finding::unknown("the idle states of the hypervisor's CPUs are not visible here")
                .seen(driver),
        ],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Matters, Unknown};
    use crate::doctor::machine::TestMachine;

    fn machine(latency_us: &str, off: &str) -> TestMachine {
        let state = "sys/devices/system/cpu/cpu1/cpuidle/state3";
        TestMachine::with_two_cpus()
            .with(&format!("{state}/latency"), latency_us)
            .with(&format!("{state}/disable"), off)
    }

    #[test]
    fn a_deep_state_that_is_on_costs_its_latency() {
        let found = machine("133\n", "0\n").one(check);
        assert_eq!(found.verdict, Matters);
        assert_eq!(found.cost.unwrap(), "up to 133 us a wake-up (the kernel's own figure)");
        let command = "echo 1 > /sys/devices/system/cpu/cpu1/cpuidle/state3/disable";
        assert_eq!(found.mend.unwrap().command, command);
    }

    #[test]
    fn shallow_ones_and_those_switched_off_are_good() {
        assert_eq!(machine("2\n", "0\n").verdict(check), Good);
        assert_eq!(machine("133\n", "1\n").verdict(check), Good);
    }

    #[test]
    fn without_states_a_guest_cannot_know() {
        assert_eq!(TestMachine::with_two_cpus().verdict(check), Absent);
        let guest = TestMachine::with_two_cpus().with("proc/cpuinfo", "flags\t: hypervisor\n");
        assert_eq!(guest.verdict(check), Unknown);
    }
}
