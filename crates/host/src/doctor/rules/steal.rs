//! Time that the hypervisor gives to other machines (proc_stat(5)).

use crate::doctor::{Finding, MachineFiles, Verdict, measure};

/// Returns whether the processor reports a hypervisor.
pub fn is_guest(view: &MachineFiles) -> bool {
    let flags = view.line("proc/cpuinfo", "flags");
    flags.is_some_and(|flags| flags.value.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// The share of steal that matters, 0 to 1.
const SHARE: f64 = 0.001;

/// The share that no buffer compensates: the rest does not suffice for a stream that needs a CPU.
const GREAT_SHARE: f64 = 0.05;

/// Checks the share of time that the hypervisor gives to other machines.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    if !is_guest(view) {
        return vec![Finding::good("no hypervisor")];
    }
    let Some(mut stat) = view.line("proc/stat", "cpu ") else { return Vec::new() };
    let since_boot = measure::steal_share("cpu 0 0 0 0 0 0 0 0", &format!("cpu {}", stat.value));
    let now = view.is_here().then(|| {
        std::thread::sleep(measure::STEAL_WINDOW);
        let later = view.line("proc/stat", "cpu ").map(|later| later.value).unwrap_or_default();
        measure::steal_share(&format!("cpu {}", stat.value), &format!("cpu {later}"))
    });
    let now = now.flatten();
    let Some(share) = since_boot else { return Vec::new() };
    stat.value = format!("steal {:.2} %", share * 1e2);
    let recent = now.map_or(String::new(), |now| {
        format!("; {:.1} % in the last {} ms", now * 1e2, measure::STEAL_WINDOW.as_millis())
    });
    let says = format!("the hypervisor took {:.2} % of the time since boot{recent}", share * 1e2);
    let worst = share.max(now.unwrap_or(0.0));
    // The share since boot counts: an observation of half a second sees a single moment.
    let weight = if share > GREAT_SHARE { Verdict::Fails } else { Verdict::Matters };
    let finding = match worst > SHARE {
        true => Finding::of(weight, says)
            .cost(format!("{:.2} ms in each second, in pauses of any length", share * 1e3))
            .mend_by_hand("dedicate host CPUs to this virtual machine, on its hypervisor"),
        false => Finding::good(says),
    };
    vec![finding.seen([stat])]
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Fails, Good, Matters};
    use crate::doctor::machine::TestMachine;

    fn guest() -> TestMachine {
        TestMachine::new().with("proc/cpuinfo", "processor: 0\nflags\t\t: fpu hypervisor sse\n")
    }

    #[test]
    fn a_guest_is_told_its_share() {
        let found = guest().with("proc/stat", "cpu  50 0 0 40 0 0 0 10 0 0\ncpu0 1\n").one(check);
        assert_eq!(found.verdict, Fails);
        assert_eq!(found.says, "the hypervisor took 10.00 % of the time since boot");
        assert_eq!(found.cost.unwrap(), "100.00 ms in each second, in pauses of any length");
        let some = guest().with("proc/stat", "cpu  50 0 0 49 0 0 0 1 0 0\n");
        assert_eq!(some.verdict(check), Matters);
        let calm = guest().with("proc/stat", "cpu  50 0 0 49 0 0 0 0 0 0\n");
        assert_eq!(calm.verdict(check), Good);
        assert_eq!(guest().verdict(check), Absent);
    }

    #[test]
    fn bare_metal_is_good() {
        let machine = TestMachine::new().with("proc/cpuinfo", "flags\t: fpu hypervisors\n");
        assert_eq!(machine.verdict(check), Good);
    }
}
