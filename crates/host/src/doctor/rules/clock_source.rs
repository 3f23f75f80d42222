//! The clock source of the kernel (Documentation/timers/timekeeping.rst).

use crate::doctor::{Finding, MachineFiles, measure};

const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";

/// Checks whether a program can read the kernel's clock without a system call.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let current = format!("{FOLDER}/current_clocksource");
    let Some(seen) = view.read(&current) else { return Vec::new() };
    let others = view.read(&format!("{FOLDER}/available_clocksource"));
    let name = seen.value.clone();
    // The sources that the vDSO reads (arch/*/include/asm/vdso/clocksource.h).
    let fast = ["tsc", "arch_sys_counter", "hyperv_clocksource_tsc_page", "riscv_clocksource"];
    let is_fast = fast.contains(&name.as_str());
    let better = others.as_ref().and_then(|others| {
        others.value.split_whitespace().find(|other| fast.contains(other)).map(str::to_owned)
    });
    let finding = match (is_fast, better) {
        (true, _) => Finding::good(format!("{name}, which user space reads directly")),
        (false, Some(better)) => {
            Finding::matters(format!("{name}, although {better} is available"))
                .mend_by_write(&current, better)
                .at_risk("the kernel stopped using a clock that it found wrong")
        }
        (false, None) if name == "kvm-clock" => {
            Finding::good("kvm-clock, which user space reads directly")
        }
        (false, None) => Finding::matters(format!("{name}, the best available"))
            .mend_by_hand("boot with tsc=reliable if the TSC of this machine is invariant"),
    };
    let finding = finding.seen([seen].into_iter().chain(others));
    vec![match view.is_here() {
        true => {
            let ns = measure::clock_read_ns();
            finding.cost(format!("{ns:.0} ns to read the time (measured)"))
        }
        false => finding,
    }]
}

#[cfg(test)]
mod tests {
    use super::{FOLDER, check};
    use crate::doctor::Verdict::{Absent, Good, Matters};
    use crate::doctor::machine::TestMachine;

    fn machine(current: &str, available: &str) -> TestMachine {
        TestMachine::new()
            .with(&format!("{FOLDER}/current_clocksource"), current)
            .with(&format!("{FOLDER}/available_clocksource"), available)
    }

    #[test]
    fn a_slow_clock_costs() {
        let found = machine("hpet\n", "hpet acpi_pm\n").one(check);
        assert_eq!((found.verdict, &*found.says), (Matters, "hpet, the best available"));
        let found = machine("hpet\n", "tsc hpet\n").one(check);
        let mend = found.mend.unwrap();
        assert_eq!(mend.command, format!("echo tsc > /{FOLDER}/current_clocksource"));
        assert!(mend.risk.is_some());
        assert_eq!(machine("tsc\n", "tsc\n").verdict(check), Good);
        assert_eq!(machine("kvm-clock\n", "kvm-clock\n").verdict(check), Good);
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }
}
