//! The limits of one round of network processing (Documentation/admin-guide/sysctl/net.rst).

use crate::doctor::{Evidence, Finding, MachineFiles, Verdict, Write};

const PACKETS: &str = "proc/sys/net/core/netdev_budget";
const STATISTICS: &str = "proc/net/softnet_stat";
const WANTED: i64 = 600;

/// One in a minute.
const RARE_PER_SECOND: f64 = 1.0 / 60.0;

/// Returns a column of the kernel's network statistics, summed over all CPUs
/// (Documentation/networking): 1 counts dropped frames, 2 how often a CPU had to stop with work
/// left.
pub(super) fn statistic(view: &MachineFiles, name: &str, column: usize) -> Option<(u64, Evidence)> {
    let mut seen = view.read(STATISTICS)?;
    let number = |line: &str| u64::from_str_radix(line.split_whitespace().nth(column)?, 16).ok();
    let times = seen.value.lines().map(number).sum::<Option<u64>>()?;
    seen.value = format!("{name} {times}");
    Some((times, seen))
}

pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let Some((packets, seen)) = view.number(PACKETS) else { return Vec::new() };
    let squeezed = statistic(view, "time_squeeze", 2);
    let times = squeezed.as_ref().map_or(0, |(times, _)| *times);
    let seen = [seen].into_iter().chain(squeezed.map(|(_, seen)| seen));
    if packets >= WANTED || times == 0 {
        let says = format!("{packets} packets a turn; this ran out {times} times since boot");
        return vec![Finding::good(says).seen(seen)];
    }
    let is_rare = view.per_second(times).is_some_and(|rate| rate < RARE_PER_SECOND);
    let weight = if is_rare { Verdict::Minor } else { Verdict::Matters };
    vec![
        Finding::of(
            weight,
            format!("{packets} packets a turn are too few for this machine's traffic"),
        )
        .seen(seen)
        .cost(format!("frames were left waiting {times} times since boot"))
        .mend_by_writes(vec![Write { path: PACKETS.into(), text: WANTED.to_string() }]),
    ]
}

#[cfg(test)]
mod tests {
    use super::{PACKETS, STATISTICS, check};
    use crate::doctor::Verdict::{Absent, Good, Matters, Minor};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn it_costs_where_it_ran_out() {
        let machine = TestMachine::new().with(PACKETS, "300\n");
        assert_eq!(machine.verdict(check), Good);
        let machine = machine.with(STATISTICS, "00ff 00 0a 00\n00ff 00 06 00\n");
        let found = machine.one(check);
        assert_eq!(found.verdict, Matters);
        assert_eq!(found.cost.unwrap(), "frames were left waiting 16 times since boot");
        let machine = machine.with("proc/uptime", "86400.00 1.00\n");
        assert_eq!(machine.verdict(check), Minor, "16 times in a day");
        assert_eq!(machine.with(PACKETS, "600\n").verdict(check), Good);
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }
}
