//! The queue of a processor for frames from software: loopback, veth, RPS
//! (Documentation/admin-guide/sysctl/net.rst, netdev_max_backlog).

use crate::doctor::{Finding, Rule, Topic, View};

/// See the file's head.
pub const RULE: Rule = Rule {
    id: "netdev-backlog",
    topic: Topic::Network,
    why: "frames between processes of one machine are dropped where this queue is full",
    check,
};

const FILE: &str = "proc/sys/net/core/netdev_max_backlog";
const WANTED: i64 = 10_000;

fn check(view: &View) -> Vec<Finding> {
    let Some((frames, seen)) = view.number(FILE) else { return Vec::new() };
    let dropped = view.read("proc/net/softnet_stat").and_then(|stat| {
        let second = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
        stat.value.lines().map(second).sum::<Option<u64>>()
    });
    let dropped = dropped.unwrap_or(0);
    let says = format!("{frames} frames; {dropped} were dropped since boot");
    if dropped == 0 || frames >= WANTED {
        return vec![Finding::good(says).seen([seen])];
    }
    vec![
        Finding::costs(says)
            .seen([seen])
            .cost(format!("{dropped} frames since boot"))
            .mend_by_write(FILE, WANTED.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::{FILE, RULE};
    use crate::doctor::Verdict::{Absent, Costs, Good};
    use crate::doctor::machine::Machine;

    #[test]
    fn it_costs_where_frames_were_dropped() {
        let machine = Machine::new().with(FILE, "1000\n");
        assert_eq!(machine.verdict(&RULE), Good);
        let machine = machine.with("proc/net/softnet_stat", "0000ffff 0000001f 00000000\n");
        let found = machine.one(&RULE);
        assert_eq!((found.verdict, &*found.cost.unwrap()), (Costs, "31 frames since boot"));
        assert_eq!(machine.with(FILE, "10000\n").verdict(&RULE), Good);
        assert_eq!(Machine::new().verdict(&RULE), Absent);
    }
}
