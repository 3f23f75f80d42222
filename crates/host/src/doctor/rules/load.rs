//! The load of other programs (proc_loadavg(5)).

use crate::doctor::{Finding, MachineFiles};

/// The share of the CPUs from which on a thread that wakes up finds one busy often.
const MUCH: f64 = 0.5;

/// Checks how many threads of other programs want a CPU.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let (Some(mut seen), cpus) = (view.read("proc/loadavg"), view.online().iter().count()) else {
        return Vec::new();
    };
    let first = seen.value.split_whitespace().next().unwrap_or_default().to_owned();
    let Some(load) = first.parse().ok().filter(|load: &f64| load.is_finite() && cpus > 0) else {
        return Vec::new();
    };
    seen.value = first;
    let says = format!("{load} threads on average wanted a CPU in the last minute, of {cpus}");
    let finding = match load / cpus as f64 {
        share if share >= 1.0 => Finding::matters(format!("{says}: the stream waits for its turn")),
        share if share >= MUCH => Finding::minor(says),
        _ => Finding::good(says),
    };
    let finding = match finding.verdict.costs() {
        true => {
            finding.mend_by_hand("end what else runs, as top lists it, or give the stream CPUs")
        }
        false => finding,
    };
    vec![finding.seen([seen])]
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Matters, Minor};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn a_machine_whose_cpus_are_wanted_is_told_so() {
        let machine = |load: &str, cpus: &str| {
            TestMachine::new()
                .with("proc/loadavg", load)
                .with("sys/devices/system/cpu/online", cpus)
                .one(check)
        };
        let busy = machine("8.04 7.00 5.00 9/300 4711\n", "0-1\n");
        assert_eq!(busy.verdict, Matters);
        assert!(busy.says.starts_with("8.04 threads on average wanted a CPU"), "{}", busy.says);
        assert!(busy.mend.unwrap().command.starts_with("end what else runs"));
        assert_eq!(machine("1.20 0.10 0.10 1/300 4711\n", "0-1\n").verdict, Minor);
        let calm = machine("1.20 0.10 0.10 1/300 4711\n", "0-15\n");
        assert!(calm.verdict == Good && calm.mend.is_none());
        let odd = TestMachine::new().with("proc/loadavg", "nan\n");
        assert_eq!(odd.verdict(check), Absent);
    }
}
