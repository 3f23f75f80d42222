//! The queue of a processor for frames from software: loopback, veth, RPS
//! (Documentation/admin-guide/sysctl/net.rst, netdev_max_backlog).

use super::budget::statistic;
use crate::doctor::{Finding, MachineFiles, Verdict};

const FILE: &str = "proc/sys/net/core/netdev_max_backlog";
const WANTED: i64 = 10_000;

/// One in ten minutes.
const RARE_PER_SECOND: f64 = 1.0 / 600.0;

pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let Some((frames, seen)) = view.number(FILE) else { return Vec::new() };
    let dropped = statistic(view, "dropped", 1).map_or(0, |(frames, _)| frames);
    let says = format!("{frames} frames; {dropped} were dropped since boot");
    if dropped == 0 || frames >= WANTED {
        return vec![Finding::good(says).seen([seen])];
    }
    // A few frames lost long ago say little about the stream.
    let is_rare = view.per_second(dropped).is_some_and(|rate| rate < RARE_PER_SECOND);
    let weight = if is_rare { Verdict::Minor } else { Verdict::Fails };
    vec![
        Finding::of(weight, says)
            .seen([seen])
            .cost(format!("{dropped} frames since boot"))
            .mend_by_write(FILE, WANTED.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::{FILE, check};
    use crate::doctor::Verdict::{Absent, Fails, Good, Minor};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn it_costs_where_frames_were_dropped() {
        let machine = TestMachine::new().with(FILE, "1000\n");
        assert_eq!(machine.verdict(check), Good);
        let machine = machine.with("proc/net/softnet_stat", "0000ffff 0000001f 00000000\n");
        let found = machine.one(check);
        assert_eq!((found.verdict, &*found.cost.unwrap()), (Fails, "31 frames since boot"));
        let machine = machine.with("proc/uptime", "86400.00 1.00\n");
        assert_eq!(machine.verdict(check), Minor, "31 in a day");
        assert_eq!(machine.with(FILE, "10000\n").verdict(check), Good);
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }
}
