//! The rights of this process and its user: real-time priorities and locked memory (sched(7),
//! "Privileges and resource limits"; getrlimit(2)).

use crate::doctor::{Evidence, Finding, MachineFiles, Verdict};
use millstream_cpu::proc::own_group;

const CAP_SYS_NICE: u32 = 23;

/// Returns whether this process has a capability.
fn has_capability(view: &MachineFiles, number: u32) -> Option<(bool, Evidence)> {
    let seen = view.line("proc/self/status", "CapEff:")?;
    let bits = u64::from_str_radix(&seen.value, 16).ok()?;
    Some((bits >> number & 1 == 1, seen))
}

/// Returns the soft and the hard limit of a resource, from /proc/self/limits.
fn limits(view: &MachineFiles, name: &str) -> Option<(u64, u64, Evidence)> {
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

/// Checks the right to real-time priorities.
pub fn priorities(view: &MachineFiles) -> Vec<Finding> {
    if let Some((true, seen)) = has_capability(view, CAP_SYS_NICE) {
        let any = Finding::good("this process may have any priority").seen([seen]);
        return [any].into_iter().chain(group(view)).collect();
    }
    let Some((soft, hard, seen)) = limits(view, "Max realtime priority") else {
        return Vec::new();
    };
    if soft > 0 {
        let says = format!("this user may use priorities up to {}", soft.min(99));
        return vec![Finding::good(says).seen([seen])];
    }
    let command = match hard {
        0 => "echo '@audio - rtprio 95' > /etc/security/limits.d/95-realtime.conf  # log in again",
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

const CAP_IPC_LOCK: u32 = 14;

/// Enough for rings, frame memory and a program, bytes.
const LOCKED_WANTED: u64 = 256 << 20;

/// Checks the memory that this user may lock (RLIMIT_MEMLOCK).
pub fn memory(view: &MachineFiles) -> Vec<Finding> {
    if let Some((true, seen)) = has_capability(view, CAP_IPC_LOCK) {
        return vec![Finding::good("this process may lock any amount of memory").seen([seen])];
    }
    let Some((soft, _, seen)) = limits(view, "Max locked memory") else { return Vec::new() };
    if soft >= LOCKED_WANTED {
        return vec![Finding::good("this user may lock enough memory").seen([seen])];
    }
    let says = format!("this user may lock {} MiB only", soft >> 20);
    let command =
        "echo '* - memlock unlimited' > /etc/security/limits.d/95-memlock.conf  # log in again";
    vec![Finding::matters(says).seen([seen]).mend_by_hand(command)]
}

#[cfg(test)]
mod tests {
    use super::{memory, priorities};
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
        let found = user("0", "0").one(priorities);
        assert_eq!(found.verdict, Matters);
        assert!(found.mend.unwrap().command.contains("limits.d"));
        assert_eq!(user("0", "95").one(priorities).mend.unwrap().command, "ulimit -r unlimited");
        assert_eq!(
            user("unlimited", "unlimited").one(priorities).says,
            "this user may use priorities up to 99"
        );
        assert_eq!(TestMachine::new().verdict(priorities), Absent);
    }

    #[test]
    fn the_privilege_does_not_help_in_a_group_without_time() {
        let root = TestMachine::new().with("proc/self/status", "CapEff:\t000001ffffffffff\n");
        assert_eq!(root.verdict(priorities), Good);
        let file = "sys/fs/cgroup/cpu/radio/cpu.rt_runtime_us";
        let root = root.with("proc/self/cgroup", "4:cpu,cpuacct:/radio\n0::/\n").with(file, "0\n");
        let found = root.all(priorities);
        assert_eq!((found.len(), found[1].verdict), (2, Matters));
        assert_eq!(found[1].mend.as_ref().unwrap().command, format!("echo 950000 > /{file}"));
    }

    fn locking(limit: &str) -> TestMachine {
        let line = format!("Max locked memory         {limit}  {limit}  bytes\n");
        TestMachine::new().with("proc/self/limits", &line)
    }

    #[test]
    fn a_small_limit_costs() {
        let found = locking("8388608").one(memory);
        assert_eq!((found.verdict, &*found.says), (Matters, "this user may lock 8 MiB only"));
        assert_eq!(locking("unlimited").verdict(memory), Good);
        assert_eq!(TestMachine::new().verdict(memory), Absent);
        let root = locking("0").with("proc/self/status", "CapEff:\t000001ffffffffff\n");
        assert_eq!(root.verdict(memory), Good);
    }
}
