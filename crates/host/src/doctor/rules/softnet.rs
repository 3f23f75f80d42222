//! Limits of network processing, and how often they were reached
//! (Documentation/admin-guide/sysctl/net.rst).

use crate::doctor::{Evidence, Finding, MachineFiles, Verdict};

const STATISTICS: &str = "proc/net/softnet_stat";

/// Returns a column of the kernel's network statistics, summed over all CPUs
/// (Documentation/networking): 1 counts dropped frames, 2 how often a CPU had to stop with work
/// left.
fn statistic(view: &MachineFiles, name: &str, column: usize) -> Option<(u64, Evidence)> {
    let mut seen = view.read(STATISTICS)?;
    let number = |line: &str| u64::from_str_radix(line.split_whitespace().nth(column)?, 16).ok();
    let times = seen.value.lines().map(number).sum::<Option<u64>>()?;
    seen.value = format!("{name} {times}");
    Some((times, seen))
}

/// Returns the verdict on what happened so often since boot; `rare` is a rate per second.
fn weight(view: &MachineFiles, times: u64, rare: f64, often: Verdict) -> Verdict {
    // A few frames lost long ago say little about the stream.
    if view.per_second(times).is_some_and(|rate| rate < rare) { Verdict::Minor } else { often }
}

const BUDGET: &str = "proc/sys/net/core/netdev_budget";
const BUDGET_WANTED: i64 = 600;

/// Checks the limit of one round of network processing.
pub fn budget(view: &MachineFiles) -> Vec<Finding> {
    let Some((packets, seen)) = view.number(BUDGET) else { return Vec::new() };
    let squeezed = statistic(view, "time_squeeze", 2);
    let times = squeezed.as_ref().map_or(0, |(times, _)| *times);
    let seen = [seen].into_iter().chain(squeezed.map(|(_, seen)| seen));
    if packets >= BUDGET_WANTED || times == 0 {
        let says = format!("{packets} packets per soft interrupt; {times} times it had more");
        return vec![Finding::good(says).seen(seen)];
    }
    let says = format!("a soft interrupt may handle {packets} packets, too few for this traffic");
    // Rare: one in a minute.
    vec![
        Finding::of(weight(view, times, 1.0 / 60.0, Verdict::Matters), says)
            .seen(seen)
            .cost(format!("frames were left waiting {times} times since boot"))
            .mend_by_write(BUDGET, BUDGET_WANTED.to_string()),
    ]
}

const BACKLOG: &str = "proc/sys/net/core/netdev_max_backlog";
const BACKLOG_WANTED: i64 = 10_000;

/// Checks the queue of a processor for frames from software: loopback, veth, RPS.
pub fn backlog(view: &MachineFiles) -> Vec<Finding> {
    let Some((frames, seen)) = view.number(BACKLOG) else { return Vec::new() };
    let dropped = statistic(view, "dropped", 1).map_or(0, |(frames, _)| frames);
    let says = format!("the queue has {frames} frames; {dropped} were dropped since boot");
    if dropped == 0 || frames >= BACKLOG_WANTED {
        return vec![Finding::good(says).seen([seen])];
    }
    // Rare: one in ten minutes.
    vec![
        Finding::of(weight(view, dropped, 1.0 / 600.0, Verdict::Fails), says)
            .seen([seen])
            .cost(format!("{dropped} frames since boot"))
            .mend_by_write(BACKLOG, BACKLOG_WANTED.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::{BACKLOG, BUDGET, STATISTICS, backlog, budget};
    use crate::doctor::Verdict::{Absent, Fails, Good, Matters, Minor};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn a_small_budget_costs_where_it_ran_out() {
        let machine = TestMachine::new().with(BUDGET, "300\n");
        assert_eq!(machine.verdict(budget), Good);
        let machine = machine.with(STATISTICS, "00ff 00 0a 00\n00ff 00 06 00\n");
        let found = machine.one(budget);
        assert_eq!(found.verdict, Matters);
        assert_eq!(found.cost.unwrap(), "frames were left waiting 16 times since boot");
        let machine = machine.with("proc/uptime", "86400.00 1.00\n");
        assert_eq!(machine.verdict(budget), Minor, "16 times in a day");
        assert_eq!(machine.with(BUDGET, "600\n").verdict(budget), Good);
        assert_eq!(TestMachine::new().verdict(budget), Absent);
    }

    #[test]
    fn a_short_backlog_costs_where_frames_were_dropped() {
        let machine = TestMachine::new().with(BACKLOG, "1000\n");
        assert_eq!(machine.verdict(backlog), Good);
        let machine = machine.with(STATISTICS, "0000ffff 0000001f 00000000\n");
        let found = machine.one(backlog);
        assert_eq!((found.verdict, &*found.cost.unwrap()), (Fails, "31 frames since boot"));
        let machine = machine.with("proc/uptime", "86400.00 1.00\n");
        assert_eq!(machine.verdict(backlog), Minor, "31 in a day");
        assert_eq!(machine.with(BACKLOG, "10000\n").verdict(backlog), Good);
        assert_eq!(TestMachine::new().verdict(backlog), Absent);
    }
}
