//! A topology for the search: distances between CPUs, and kinds of equal CPUs.

use super::costs::Distance;
use millstream_cpu::{Core, FULL_CAPACITY, Topology};
use std::collections::BTreeMap;

/// Capacities are compared in sixteenths: favoured cores that clock a few percent higher than the
/// others are not a kind of their own.
const CAPACITY_STEPS: f64 = 16.0;

/// Levels of the tree: core, L2, L3, node.
pub(super) const LEVELS: usize = 4;

/// CPUs by position (not by number).
#[derive(Clone, Debug)]
pub(super) struct CpuPositions {
    pub(super) cpus: Vec<Cpu>,
    distances: Vec<Distance>,
}

/// One CPU.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    pub(super) number: usize,
    /// Capacity relative to the fastest, in (0, 1].
    pub(super) capacity: f64,
    pub(super) node: usize,
    /// Bytes of the caches; 0 where unknown.
    pub(super) l2_bytes: u64,
    pub(super) l3_bytes: u64,
    /// The groups it belongs to, from the core to the node: numbers that are equal where CPUs are
    /// in one group of that level.
    pub(super) groups: [usize; LEVELS],
    /// The shape of each of these groups: equal where groups of a level are built alike.
    pub(super) shapes: [usize; LEVELS],
    /// The kind of the CPU itself.
    pub(super) kind: usize,
}

impl CpuPositions {
    pub(super) fn new(topology: &Topology) -> Self {
        let cores = &topology.cores;
        let groups = groups(cores);
        let mut cpus: Vec<Cpu> = cores.iter().zip(&groups).map(|(c, g)| Cpu::new(c, *g)).collect();
        name_shapes(&mut cpus);
        let distances = groups.iter().enumerate().flat_map(|(a, of_a)| {
            groups.iter().enumerate().map(move |(b, of_b)| {
                let level = (0..LEVELS).find(|level| of_a[*level] == of_b[*level]);
                match level {
                    _ if a == b => Distance::SameCpu,
                    Some(level) => Distance::ALL[1 + level],
                    None => Distance::OtherNode,
                }
            })
        });
        let distances = distances.collect();
        Self { cpus, distances }
    }

    pub(super) fn len(&self) -> usize {
        self.cpus.len()
    }

    pub(super) fn distance(&self, a: usize, b: usize) -> Distance {
        self.distances[a * self.cpus.len() + b]
    }

    pub(super) fn position(&self, number: usize) -> Option<usize> {
        self.cpus.iter().position(|cpu| cpu.number == number)
    }

    /// Whether it is the first hardware thread of its core.
    pub(super) fn is_first(&self, cpu: usize) -> bool {
        self.siblings(cpu).all(|sibling| sibling > cpu)
    }

    /// Returns the other hardware threads of the same core.
    pub(super) fn siblings(&self, cpu: usize) -> impl Iterator<Item = usize> + '_ {
        let of = |other: usize| self.cpus[other].groups[0];
        (0..self.len()).filter(move |other| *other != cpu && of(*other) == of(cpu))
    }
}

impl Cpu {
    fn new(core: &Core, groups: [usize; LEVELS]) -> Self {
        let share = f64::from(core.capacity) / f64::from(FULL_CAPACITY);
        let cache = |level| core.cache(level).map_or(0, |cache| cache.size_bytes);
        Self {
            number: core.cpu,
            node: core.node,
            capacity: ((share * CAPACITY_STEPS).round() / CAPACITY_STEPS).max(0.5 / CAPACITY_STEPS),
            l2_bytes: cache(2),
            l3_bytes: cache(3),
            groups,
            shapes: [0; LEVELS],
            kind: 0,
        }
    }
}

/// Returns the group of each CPU at each level, named by the position of its first member.
fn groups(cores: &[Core]) -> Vec<[usize; LEVELS]> {
    let together = |level: usize, a: &Core, b: &Core| match level {
        0 => a.smt_siblings.contains(b.cpu),
        1 | 2 => {
            let cache = a.cache(1 + u32::try_from(level).expect("two levels"));
            cache.is_some_and(|cache| cache.shared_by.contains(b.cpu))
        }
        _ => (a.package, a.node) == (b.package, b.node),
    };
    let mut groups: Vec<[usize; LEVELS]> = (0..cores.len()).map(|cpu| [cpu; LEVELS]).collect();
    for level in 0..LEVELS {
        for a in 0..cores.len() {
            // CPUs that share a lower level share this one, even if the files differ: the result is
            // a tree.
            let near = (0..a).find(|b| {
                (level > 0 && groups[a][level - 1] == groups[*b][level - 1])
                    || together(level, &cores[a], &cores[*b])
            });
            if let Some(near) = near {
                groups[a][level] = groups[near][level];
            }
        }
    }
    groups
}

/// Numbers the shapes of CPUs and groups, from the bottom up.
fn name_shapes(cpus: &mut [Cpu]) {
    let mut names = BTreeMap::new();
    let mut name = |parts: Vec<u64>| {
        let next = names.len();
        *names.entry(parts).or_insert(next)
    };
    for cpu in cpus.iter_mut() {
        cpu.kind = name(vec![0, cpu.capacity.to_bits(), cpu.l2_bytes, cpu.l3_bytes]);
    }
    for level in 0..LEVELS {
        let shape_below = |cpu: &Cpu| if level == 0 { cpu.kind } else { cpu.shapes[level - 1] };
        let mut members: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for cpu in cpus.iter() {
            members.entry(cpu.groups[level]).or_default().push(shape_below(cpu) as u64);
        }
        for (group, mut parts) in members {
            parts.sort_unstable();
            parts.push(1 + level as u64);
            let shape = name(parts);
            cpus.iter_mut()
                .filter(|cpu| cpu.groups[level] == group)
                .for_each(|cpu| cpu.shapes[level] = shape);
        }
    }
}
