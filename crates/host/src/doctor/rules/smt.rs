//! The hardware threads that share a physical core with the stream.

use crate::doctor::{Finding, MachineFiles};
use millstream_cpu::CpuSet;
use millstream_cpu::{Core, Topology};

/// Checks whether a hardware thread beside a CPU of the stream can run other programs.
pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let Ok(topology) = Topology::read(view.root()) else {
        return vec![Finding::unknown("/sys shows no topology")];
    };
    let stream = view.stream_cpus();
    let cores: Vec<_> = topology.cores.iter().filter(|core| stream.contains(core.cpu)).collect();
    let rivals: CpuSet = cores
        .iter()
        .flat_map(|core| core.smt_siblings.iter())
        .filter(|sibling| !stream.contains(*sibling))
        .collect();
    let seen = view.read("sys/devices/system/cpu/smt/control");
    if rivals.is_empty() {
        return vec![Finding::good("no other CPU shares a core with the stream's").seen(seen)];
    }
    let own: CpuSet = stream.iter().chain(rivals.iter()).collect();
    let is_shared = |core: &&Core| core.smt_siblings.iter().any(|cpu| rivals.contains(cpu));
    let shared = cores.into_iter().filter(is_shared);
    // Older kernels have only the second name.
    let siblings = shared.filter_map(|core| {
        let file = |name| format!("sys/devices/system/cpu/cpu{}/topology/{name}", core.cpu);
        let names = ["core_cpus_list", "thread_siblings_list"];
        names.into_iter().find_map(|name| view.read(&file(name)))
    });
    let says = format!("{} on a core with the stream's {}", rivals.named(), stream.named());
    let finding = Finding::minor(says).seen(seen.into_iter().chain(siblings));
    vec![finding.mend_by_hand(format!("millstream host shield {own} -- COMMAND"))]
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Good, Minor, Unknown};
    use crate::doctor::machine::TestMachine;

    #[test]
    fn a_sibling_that_is_not_the_streams_is_a_rival() {
        let siblings = "sys/devices/system/cpu/cpu1/topology/core_cpus_list";
        let found = TestMachine::with_two_cpus().with(siblings, "0-1\n").one(check);
        assert_eq!(found.verdict, Minor);
        assert_eq!(found.evidence[0].path, format!("/{siblings}"), "where it stands");
        assert_eq!(found.mend.unwrap().command, "millstream host shield 0-1 -- COMMAND");
        assert_eq!(TestMachine::with_two_cpus().with(siblings, "1\n").verdict(check), Good);
    }

    #[test]
    fn without_a_topology_nothing_is_known() {
        assert_eq!(TestMachine::new().verdict(check), Unknown);
    }
}
