//! Who shares a physical core with the stream.

use crate::cpu_set::CpuSet;
use crate::doctor::{Finding, Rule, Topic, View};
use crate::topology::Topology;

/// See the file's head.
pub const RULE: Rule = Rule {
    id: "smt-rivals",
    topic: Topic::Cpu,
    why: "whatever runs on the other thread of a core takes half of its units and caches",
    check,
};

fn check(view: &View) -> Vec<Finding> {
    let Ok(topology) = Topology::read(view.root()) else {
        return vec![Finding::unknown("/sys tells no topology")];
    };
    let stream = view.stream_cpus();
    let cores = topology.cores.iter().filter(|core| stream.contains(core.cpu));
    let rivals: CpuSet = cores
        .flat_map(|core| core.smt_siblings.iter())
        .filter(|sibling| !stream.contains(*sibling))
        .collect();
    let seen = view.read("sys/devices/system/cpu/smt/control");
    if rivals.is_empty() {
        return vec![Finding::good("no other CPU shares a core with the stream's").seen(seen)];
    }
    let own: CpuSet = stream.iter().chain(rivals.iter()).collect();
    let file = format!("sys/devices/system/cpu/cpu{}/topology", rivals.iter().next().unwrap_or(0));
    let seen = seen.into_iter().chain(view.read(&format!("{file}/core_cpus_list")));
    vec![
        Finding::minor(format!(
            "{} on a core with the stream's {}",
            rivals.named(),
            stream.named()
        ))
        .seen(seen.collect::<Vec<_>>())
        .mend_by_hand(format!("millstream shield {own} -- COMMAND")),
    ]
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::doctor::Verdict::{Good, Minor, Unknown};
    use crate::doctor::machine::Machine;

    #[test]
    fn a_sibling_that_is_not_the_streams_is_a_rival() {
        let siblings = "sys/devices/system/cpu/cpu1/topology/core_cpus_list";
        let found = Machine::with_two_cpus().with(siblings, "0-1\n").one(&RULE);
        assert_eq!(found.verdict, Minor);
        assert_eq!(found.mend.unwrap().command, "millstream shield 0-1 -- COMMAND");
        assert_eq!(Machine::with_two_cpus().with(siblings, "1\n").verdict(&RULE), Good);
    }

    #[test]
    fn without_a_topology_nothing_is_known() {
        assert_eq!(Machine::new().verdict(&RULE), Unknown);
    }
}
