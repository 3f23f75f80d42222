//! The isolation of the stream's processors from other work: at boot (`isolcpus`, `nohz_full`,
//! `rcu_nocbs`; Documentation/admin-guide/kernel-parameters.txt) or by a cpuset partition.

use crate::doctor::{Finding, MachineFiles};
use millstream_cpu::CpuSet;

/// Checks whether other work is kept off the stream's CPUs.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let stream = view.stream_cpus();
    if stream.is_empty() {
        return vec![Finding::unknown("there is only one CPU: nothing to keep free")];
    }
    let list = |file: &str| view.read(&format!("sys/devices/system/cpu/{file}"));
    let isolated = list("isolated");
    let tickless = list("nohz_full");
    let set = |found: &Option<crate::doctor::Evidence>| -> CpuSet {
        found.as_ref().and_then(|list| list.value.parse().ok()).unwrap_or_default()
    };
    let lacks = |set: &CpuSet| stream.iter().any(|cpu| !set.contains(cpu));
    let mut missing = Vec::new();
    if lacks(&set(&isolated)) {
        missing.push(format!("no isolcpus={stream}: ordinary threads run there"));
    }
    if lacks(&set(&tickless)) {
        missing.push(format!("no nohz_full={stream}: the tick stays on"));
    }
    let boot = view.read("proc/cmdline");
    let offloaded = boot.as_ref().is_some_and(|boot| boot.value.contains("rcu_nocbs="))
        || !lacks(&set(&tickless));
    if !offloaded {
        missing.push(format!("no rcu_nocbs={stream}: RCU callbacks run there"));
    }
    let seen: Vec<_> = isolated.into_iter().chain(tickless).collect();
    if missing.is_empty() {
        return vec![Finding::good(format!("kept free at boot: {}", stream.named())).seen(seen)];
    }
    // The cost depends on the other processes, hence minor; a shield does most of it without a
    // boot.
    vec![
        Finding::minor(missing.join("; "))
            .seen(seen)
            .mend_by_hand(format!("millstream host shield {stream} -- COMMAND")),
    ]
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Good, Minor, Unknown};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn what_is_missing_is_told_by_its_boot_parameter() {
        let machine = TestMachine::with_two_cpus().with("sys/devices/system/cpu/isolated", "1\n");
        let found = machine.one(check);
        assert_eq!(found.verdict, Minor);
        let expected = "no nohz_full=1: the tick stays on; no rcu_nocbs=1: RCU callbacks run there";
        assert_eq!(found.says, expected);
        assert_eq!(found.mend.unwrap().command, "millstream host shield 1 -- COMMAND");
    }

    #[test]
    fn a_cpu_that_has_all_is_good() {
        let machine = TestMachine::with_two_cpus()
            .with("sys/devices/system/cpu/isolated", "1\n")
            .with("sys/devices/system/cpu/nohz_full", "1\n");
        assert_eq!(machine.verdict(check), Good);
    }

    #[test]
    fn one_cpu_cannot_be_kept_free() {
        assert_eq!(TestMachine::new().verdict(check), Unknown);
    }
}
