//! The user's right to real-time priorities (sched(7), "Privileges and resource limits").

use crate::doctor::{Evidence, Finding, MachineFiles, Verdict};
use millstream_cpu::proc::own_group;

const CAP_SYS_NICE: u32 = 23;

/// Returns whether this process has a capability.
pub fn has_capability(view: &MachineFiles, number: u32) -> Option<(bool, Evidence)> {
    let seen = view.line("proc/self/status", "CapEff:")?;
    let bits = u64::from_str_radix(&seen.value, 16).ok()?;
    Some((bits >> number & 1 == 1, seen))
}

/// Returns the soft and the hard limit of a resource, from /proc/self/limits.
pub fn limits(view: &MachineFiles, name: &str) -> Option<(u64, u64, Evidence)> {
    let seen = view.line("proc/self/limits", name)?;
    let mut fields = seen.value.split_whitespace().map(|field| match field {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    let (soft, hard) = (fields.next()??, fields.next()??);
    Some((soft, hard, seen))
}

/// Returns the verdict; a stream in the ordinary class needs no real-time priority.
fn weight(view: &MachineFiles) -> Verdict {
    if view.class().priority() > 0 { Verdict::Matters } else { Verdict::Minor }
}

pub fn check(view: &MachineFiles) -> Vec<Finding> {
    if let Some((true, seen)) = has_capability(view, CAP_SYS_NICE) {
        let mut findings = vec![Finding::good("this process may have any priority").seen([seen])];
        findings.extend(group(view));
        return findings;
    }
    let Some((soft, hard, seen)) = limits(view, "Max realtime priority") else {
        return Vec::new();
    };
    if soft > 0 {
        let says = format!("this user may use priorities up to {}", soft.min(99));
        return vec![Finding::good(says).seen([seen])];
    }
    let command = match hard {
        0 => "echo '@audio - rtprio 95' > /etc/security/limits.d/95-realtime.conf  # log in anew",
        _ => "ulimit -r unlimited",
    };
    let says = "this user gets no real-time priority";
    vec![Finding::of(weight(view), says).seen([seen]).mend_by_hand(command)]
}

/// Finds a control group of version 1 without time for real-time threads.
fn group(view: &MachineFiles) -> Option<Finding> {
    let group = own_group(view.root(), Some("cpu"))?;
    let file = format!("sys/fs/cgroup/cpu/{group}");
    let file = format!("{}/cpu.rt_runtime_us", file.trim_end_matches('/'));
    let (runtime_us, seen) = view.number(&file)?;
    let says = "the control group of this process has no time for real-time threads";
    (runtime_us == 0).then(|| {
        let finding = Finding::of(weight(view), says).about("control group").seen([seen]);
        finding.mend_by_write(&file, "950000")
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Matters};
    use crate::doctor::machine::TestMachine;

    fn user(soft: &str, hard: &str) -> TestMachine {
        let limit = format!("Max realtime priority     {soft}    {hard}    \n");
        TestMachine::new()
            .with("proc/self/status", "CapEff:\t0000000000000000\n")
            .with("proc/self/limits", &format!("Limit   Soft Limit   Hard Limit\n{limit}"))
    }

    #[test]
    fn a_user_without_a_limit_raised_gets_none() {
        let found = user("0", "0").one(check);
        assert_eq!(found.verdict, Matters);
        assert!(found.mend.unwrap().command.contains("limits.d"));
        assert_eq!(user("0", "95").one(check).mend.unwrap().command, "ulimit -r unlimited");
        assert_eq!(
            user("unlimited", "unlimited").one(check).says,
            "this user may use priorities up to 99"
        );
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }

    #[test]
    fn the_privilege_does_not_help_in_a_group_without_time() {
        let root = TestMachine::new().with("proc/self/status", "CapEff:\t000001ffffffffff\n");
        assert_eq!(root.verdict(check), Good);
        let file = "sys/fs/cgroup/cpu/radio/cpu.rt_runtime_us";
        let root = root.with("proc/self/cgroup", "4:cpu,cpuacct:/radio\n0::/\n").with(file, "0\n");
        let found = root.all(check);
        assert_eq!((found.len(), found[1].verdict), (2, Matters));
        assert_eq!(found[1].mend.as_ref().unwrap().command, format!("echo 950000 > /{file}"));
    }
}
