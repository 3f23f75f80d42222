//! The memory that this user may lock (getrlimit(2), RLIMIT_MEMLOCK).

use super::rt_limit::{has_capability, limits};
use crate::doctor::{Finding, MachineFiles};

const CAP_IPC_LOCK: u32 = 14;

/// Enough for rings, frame memory and a program, bytes.
const WANTED: u64 = 256 << 20;

pub fn check(view: &MachineFiles) -> Vec<Finding> {
    if let Some((true, seen)) = has_capability(view, CAP_IPC_LOCK) {
        return vec![Finding::good("this process may lock any memory").seen([seen])];
    }
    let Some((soft, _, seen)) = limits(view, "Max locked memory") else { return Vec::new() };
    if soft >= WANTED {
        return vec![Finding::good("this user may lock enough memory").seen([seen])];
    }
    let says = format!("this user may lock {} MiB only", soft >> 20);
    let command =
        "echo '* - memlock unlimited' > /etc/security/limits.d/95-memlock.conf  # log in anew";
    vec![Finding::matters(says).seen([seen]).mend_by_hand(command)]
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Matters};
    use crate::doctor::machine::TestMachine;

    fn user(limit: &str) -> TestMachine {
        let line = format!("Max locked memory         {limit}  {limit}  bytes\n");
        TestMachine::new().with("proc/self/limits", &line)
    }

    #[test]
    fn a_small_limit_costs() {
        let found = user("8388608").one(check);
        assert_eq!((found.verdict, &*found.says), (Matters, "this user may lock 8 MiB only"));
        assert_eq!(user("unlimited").verdict(check), Good);
        assert_eq!(TestMachine::new().verdict(check), Absent);
        let root = user("0").with("proc/self/status", "CapEff:\t000001ffffffffff\n");
        assert_eq!(root.verdict(check), Good);
    }
}
