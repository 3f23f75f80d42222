//! Memory of another node: the node of the card, and pages that the kernel moves between nodes
//! (Documentation/admin-guide/sysctl/kernel.rst, numa_balancing).

use crate::doctor::{Finding, MachineFiles};
use millstream_cpu::CpuSet;

const BALANCING: &str = "proc/sys/kernel/numa_balancing";

/// Checks whether the card and the memory are on the stream's node, and stay there.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    const NODES: &str = "sys/devices/system/node";
    let is_node = |name: &String| {
        name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let nodes = view.names(NODES).into_iter().filter(is_node).count();
    if nodes < 2 {
        let text = "the machine has only one memory node";
        return if nodes == 1 { vec![Finding::good(text)] } else { Vec::new() };
    }
    let mut found = Vec::new();
    found.push(match view.number(BALANCING) {
        Some((0, seen)) => Finding::good("the kernel moves no memory between nodes").seen([seen]),
        Some((_, seen)) => Finding::matters("the kernel moves memory between nodes")
            .seen([seen])
            .mend_by_write(BALANCING, "0"),
        None => Finding::good(format!("{nodes} memory nodes; no memory is moved")),
    });
    for interface in view.interfaces() {
        let file = format!("sys/class/net/{interface}/device/numa_node");
        let Some((node, seen)) = view.number(&file).filter(|(node, _)| *node >= 0) else {
            continue;
        };
        let Some(near) = view.read(&format!("{NODES}/node{node}/cpulist")) else { continue };
        let near_cpus: CpuSet = near.value.parse().unwrap_or_default();
        let far: CpuSet =
            view.stream_cpus().iter().filter(|cpu| !near_cpus.contains(*cpu)).collect();
        let finding = match far.is_empty() {
            true => Finding::good("on the node of the stream's CPUs"),
            false => {
                Finding::matters(format!("on node {node}, the stream's {} on another", far.named()))
                    .mend_by_hand(format!("millstream host shield {near_cpus} -- COMMAND"))
            }
        };
        found.push(finding.about(interface).seen([seen, near]));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{BALANCING, check};
    use crate::doctor::Verdict::{Absent, Good, Matters};
    use crate::doctor::machine::TestMachine;

    fn two_nodes() -> TestMachine {
        TestMachine::new()
            .with("sys/devices/system/cpu/online", "0-3\n")
            .with("sys/devices/system/node/node0/cpulist", "0-1\n")
            .with("sys/devices/system/node/node1/cpulist", "2-3\n")
            .with(BALANCING, "0\n")
    }

    #[test]
    fn one_node_is_good() {
        let one = TestMachine::new().with("sys/devices/system/node/node0/cpulist", "0-3\n");
        assert_eq!(one.verdict(check), Good);
        assert_eq!(TestMachine::new().verdict(check), Absent);
    }

    #[test]
    fn balancing_costs() {
        assert_eq!(two_nodes().verdict(check), Good);
        assert_eq!(two_nodes().with(BALANCING, "1\n").verdict(check), Matters);
    }

    #[test]
    fn a_card_on_another_node_costs() {
        let machine = two_nodes().with_eth0().with("sys/class/net/eth0/device/numa_node", "0\n");
        let found = machine.all(check);
        assert_eq!(found[1].verdict, Matters);
        assert_eq!(found[1].says, "on node 0, the stream's CPUs 2-3 on another");
    }
}
