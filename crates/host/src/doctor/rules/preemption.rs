//! The kernel's preemption model (CONFIG_PREEMPT_*, Documentation/scheduler).

use crate::doctor::{Finding, MachineFiles, Verdict};

const CHOICE: &str = "sys/kernel/debug/sched/preempt";
const DEBUGFS: &str = "/sys/kernel/debug debugfs ";

/// Checks whether the kernel can be interrupted while it works for another thread.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let Some(version) = view.read("proc/sys/kernel/version") else { return Vec::new() };
    if version.value.contains("PREEMPT_RT") {
        return vec![Finding::good("a real-time kernel").seen([version])];
    }
    if !version.value.contains("PREEMPT_DYNAMIC") {
        let text = "not a real-time kernel; install one (Debian: linux-image-rt-amd64)";
        return vec![Finding::unknown(text).seen([version])];
    }
    vec![match view.choice(CHOICE) {
        Some((model, line)) if matches!(model.as_str(), "full" | "lazy") => {
            Finding::good(format!("preemption is {model}")).seen([line])
        }
        Some((model, line)) => {
            // With `voluntary` the kernel yields at some places, with `none` only at the end.
            let weight = if model == "none" { Verdict::Matters } else { Verdict::Minor };
            Finding::of(weight, format!("preemption is {model}, and could be full"))
                .seen([line])
                .mend_by_write(CHOICE, "full")
                .at_risk("programs that need throughput become slower")
        }
        None if view.has(CHOICE) => Finding::unknown(
            "preemption can be chosen, but this kernel is locked down: boot with preempt=full",
        )
        .seen([version]),
        // The folder has mode 0700: it looks empty to every user but root.
        None if is_mounted(view) => Finding::unknown(
            "preemption can be chosen; only root can read what is chosen: run with sudo",
        )
        .seen([version]),
        None => Finding::unknown("preemption can be chosen, but debugfs is not mounted")
            .seen([version])
            .mend_by_hand("mount -t debugfs none /sys/kernel/debug"),
    }]
}

fn is_mounted(view: &MachineFiles) -> bool {
    let mounts = view.read("proc/mounts");
    mounts.is_some_and(|mounts| mounts.value.lines().any(|line| line.contains(DEBUGFS)))
}

#[cfg(test)]
mod tests {
    use super::{CHOICE, check};
    use crate::doctor::Verdict::{Absent, Good, Matters, Minor, Unknown};
    use crate::doctor::machine::TestMachine;

    fn kernel(version: &str) -> TestMachine {
        TestMachine::new().with("proc/sys/kernel/version", version)
    }

    #[test]
    fn models_are_told_apart() {
        assert_eq!(kernel("#1 SMP PREEMPT_RT Debian").verdict(check), Good);
        assert_eq!(kernel("#1 SMP Debian").verdict(check), Unknown);
        let dynamic = kernel("#1 SMP PREEMPT_DYNAMIC");
        assert_eq!(dynamic.verdict(check), Unknown);
        assert!(dynamic.one(check).mend.is_some(), "debugfs can be mounted");
        let dynamic = dynamic.with("proc/mounts", "debugfs /sys/kernel/debug debugfs rw 0 0\n");
        let closed = dynamic.one(check);
        assert_eq!((closed.verdict, closed.mend), (Unknown, None), "mounted, but only for root");
        let dynamic = dynamic.with(CHOICE, "(none) voluntary full\n");
        let found = dynamic.one(check);
        assert_eq!(
            (found.verdict, &*found.says),
            (Matters, "preemption is none, and could be full")
        );
        assert!(found.mend.unwrap().risk.is_some());
        let dynamic = dynamic.with(CHOICE, "none (voluntary) full\n");
        assert_eq!(dynamic.verdict(check), Minor);
        assert_eq!(dynamic.with(CHOICE, "none voluntary (full)\n").verdict(check), Good);
        let locked = kernel("#1 SMP PREEMPT_DYNAMIC").with(CHOICE, "").one(check);
        assert_eq!((locked.verdict, locked.mend), (Unknown, None), "mounted, and tells nothing");
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }
}
