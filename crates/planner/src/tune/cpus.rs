//! The orders in which CPUs are assigned to partitions.

use millstream_cpu::{Core, CpuSet, Topology};
use std::collections::BTreeSet;

/// Returns orders of CPUs: near ones next to each other, that reversed, and a hardware thread of
/// every core before the second of any.
pub(super) fn cpu_orders(
    topology: Option<&Topology>,
    allowed: &CpuSet,
) -> Vec<(String, Vec<usize>)> {
    let known: Vec<&Core> = topology.map_or(Vec::new(), |topology| {
        topology.cores.iter().filter(|core| allowed.contains(core.cpu)).collect()
    });
    let first = |cpus: &CpuSet| cpus.iter().next().unwrap_or(0);
    let shared = |core: &Core, level| core.cache(level).map_or(0, |cache| first(&cache.shared_by));
    let mut near = known.clone();
    near.sort_by_key(|core| {
        let caches = (shared(core, 3), shared(core, 2));
        (core.node, core.package, caches, first(&core.smt_siblings), core.cpu)
    });
    let thread = |core: &&Core| core.smt_siblings.iter().position(|cpu| cpu == core.cpu);
    let mut spread = near.clone();
    spread.sort_by_key(thread);
    let numbers = |cores: &[&Core]| cores.iter().map(|core| core.cpu).collect::<Vec<_>>();
    let (near, spread) = match near.is_empty() {
        true => (allowed.iter().collect(), allowed.iter().collect()),
        false => (numbers(&near), numbers(&spread)),
    };
    let back: Vec<usize> = spread.iter().rev().copied().collect();
    let mut orders = vec![
        ("pinned, a core each".to_owned(), spread),
        ("pinned, neighbours together".to_owned(), near),
        ("pinned, in reverse".to_owned(), back),
    ];
    let mut seen = BTreeSet::new();
    orders.retain(|(_, order)| seen.insert(order.clone()));
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_threads_of_one_core_come_together_or_far_apart() {
        let core = |cpu: usize, siblings: [usize; 2]| Core {
            cpu,
            package: 0,
            node: 0,
            smt_siblings: siblings.into_iter().collect(),
            caches: Vec::new(),
            capacity: 1024,
        };
        let siblings = [[0, 2], [1, 3], [0, 2], [1, 3]];
        let cores = (0..4).map(|cpu| core(cpu, siblings[cpu])).collect();
        let orders = cpu_orders(Some(&Topology { cores }), &(0..4).collect());
        let orders: Vec<_> = orders.into_iter().map(|(_, order)| order).collect();
        assert_eq!(orders, [[0, 1, 2, 3], [0, 2, 1, 3], [3, 2, 1, 0]]);
    }
}
