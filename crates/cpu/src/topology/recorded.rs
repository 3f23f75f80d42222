//! Recorded machines: topologies as TOML, for plans and tests of other machines.
//!
//! ```toml
//! description = "four cores in two clusters"
//! cpus = "0-3"
//! cores = ["0", "1", "2", "3"]     # CPUs of one core each; without it no SMT
//! packages = ["0-3"]               # without it one
//! nodes = ["0-3"]                  # without it the packages
//!
//! [capacity]                       # work in a time, the fastest has 1024; without it all have
//! "2-3" = 512
//!
//! [[cache]]
//! level = 2
//! size = "512K"
//! per = ["0-1", "2-3"]             # or "core", "package"
//! cpus = "0-3"                     # which CPUs have it; without it all
//! ```

use super::{Cache, Core, FULL_CAPACITY, Topology, parse_size};
use crate::cpu_set::CpuSet;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Machines that come with the program.
const MACHINES: &[(&str, &str)] = &[
    ("2x-xeon-gold-6130", include_str!("../../machines/2x-xeon-gold-6130.toml")),
    ("apple-m1", include_str!("../../machines/apple-m1.toml")),
    ("cortex-a53", include_str!("../../machines/cortex-a53.toml")),
    ("graviton-3", include_str!("../../machines/graviton-3.toml")),
    ("i7-6950x", include_str!("../../machines/i7-6950x.toml")),
    ("i9-12900k", include_str!("../../machines/i9-12900k.toml")),
    ("rk3588", include_str!("../../machines/rk3588.toml")),
    ("ryzen-7-1700", include_str!("../../machines/ryzen-7-1700.toml")),
    ("ryzen-9-7950x", include_str!("../../machines/ryzen-9-7950x.toml")),
    ("vm-2", include_str!("../../machines/vm-2.toml")),
];

/// A recorded machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RecordedMachine {
    /// The machine in words.
    pub description: String,
    /// Its topology.
    pub topology: Topology,
}

/// An error of a recorded machine.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordedError {
    /// Not TOML, or not a machine.
    #[error("cannot read the description of the machine: {0}")]
    Syntax(String),
    /// CPUs that the machine does not have.
    #[error("{key} contains CPUs {found}, but the machine has CPUs {cpus}")]
    Cpus {
        /// The key.
        key: String,
        /// The CPUs given there.
        found: CpuSet,
        /// The CPUs of the machine.
        cpus: CpuSet,
    },
    /// An invalid value.
    #[error("{key} is {found}: write {expected}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
    /// No such machine.
    #[error("there is no machine called `{name}`; there are: {}", known.join(", "))]
    Unknown {
        /// The name that was given.
        name: String,
        /// The known machines.
        known: Vec<&'static str>,
    },
}

impl RecordedMachine {
    /// Returns the names of the machines that come with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        MACHINES.iter().map(|(name, _)| *name)
    }

    /// Returns a machine that comes with the program.
    ///
    /// # Errors
    /// [`RecordedError::Unknown`] with the known names.
    pub fn named(name: &str) -> Result<Self, RecordedError> {
        match MACHINES.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Self::from_toml(text),
            None => Err(RecordedError::Unknown {
                name: name.to_owned(),
                known: Self::names().collect(),
            }),
        }
    }

    /// Reads a machine from TOML.
    ///
    /// # Errors
    /// [`RecordedError`] names the key and the problem.
    pub fn from_toml(text: &str) -> Result<Self, RecordedError> {
        let raw: Raw = toml::from_str(text)
            .map_err(|error| RecordedError::Syntax(error.to_string().trim_end().to_owned()))?;
        let topology = raw.topology()?;
        Ok(Self { description: raw.description, topology })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    description: String,
    cpus: CpuSet,
    #[serde(default)]
    cores: Vec<CpuSet>,
    #[serde(default)]
    packages: Vec<CpuSet>,
    #[serde(default)]
    nodes: Vec<CpuSet>,
    #[serde(default)]
    capacity: BTreeMap<String, u32>,
    #[serde(default)]
    cache: Vec<RawCache>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCache {
    level: u32,
    size: String,
    per: Per,
    cpus: Option<CpuSet>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Per {
    Word(String),
    Lists(Vec<CpuSet>),
}

impl Raw {
    fn topology(&self) -> Result<Topology, RecordedError> {
        self.check("cores", &self.cores)?;
        self.check("packages", &self.packages)?;
        self.check("nodes", &self.nodes)?;
        let capacities = self.capacities()?;
        let mut cores: Vec<Core> = self
            .cpus
            .iter()
            .map(|cpu| {
                let package = index(&self.packages, cpu);
                let node = if self.nodes.is_empty() { package } else { index(&self.nodes, cpu) };
                let capacity = capacities.get(&cpu).copied().unwrap_or(FULL_CAPACITY);
                let smt_siblings = group(&self.cores, cpu).unwrap_or(CpuSet::from_iter([cpu]));
                Core { cpu, package, node, capacity, smt_siblings, caches: Vec::new() }
            })
            .collect();
        for (number, cache) in self.cache.iter().enumerate() {
            self.add(&format!("cache {}", number + 1), cache, &mut cores)?;
        }
        if cores.is_empty() {
            let (key, found) = ("cpus".to_owned(), "empty".to_owned());
            return Err(RecordedError::Value { key, found, expected: "at least one CPU" });
        }
        Ok(Topology { cores })
    }

    fn add(&self, key: &str, raw: &RawCache, cores: &mut [Core]) -> Result<(), RecordedError> {
        let size_bytes = parse_size(&raw.size).ok_or_else(|| RecordedError::Value {
            key: format!("size of {key}"),
            found: raw.size.clone(),
            expected: "a size like 48K",
        })?;
        let of = raw.cpus.as_ref().unwrap_or(&self.cpus);
        self.check(&format!("cpus of {key}"), std::slice::from_ref(of))?;
        if let Per::Lists(lists) = &raw.per {
            self.check(&format!("per of {key}"), lists)?;
        }
        for core in cores.iter_mut().filter(|core| of.contains(core.cpu)) {
            let shared_by = match &raw.per {
                Per::Word(word) if word == "core" => core.smt_siblings.clone(),
                Per::Word(word) if word == "package" => {
                    group(&self.packages, core.cpu).unwrap_or_else(|| self.cpus.clone())
                }
                Per::Word(word) => {
                    return Err(RecordedError::Value {
                        key: format!("per of {key}"),
                        found: word.clone(),
                        expected: "\"core\", \"package\" or a list of CPU lists",
                    });
                }
                Per::Lists(lists) => {
                    group(lists, core.cpu).unwrap_or(CpuSet::from_iter([core.cpu]))
                }
            };
            core.caches.push(Cache { level: raw.level, size_bytes, shared_by });
            core.caches.sort_by_key(|cache| cache.level);
        }
        Ok(())
    }

    fn capacities(&self) -> Result<BTreeMap<usize, u32>, RecordedError> {
        let mut capacities = BTreeMap::new();
        for (cpus, capacity) in &self.capacity {
            let value = |expected| RecordedError::Value {
                key: format!("capacity of {cpus:?}"),
                found: capacity.to_string(),
                expected,
            };
            let set: CpuSet = cpus.parse().map_err(|_| value("CPUs like \"0-3\" as its key"))?;
            self.check("capacity", std::slice::from_ref(&set))?;
            if !(1..=FULL_CAPACITY).contains(capacity) {
                return Err(value("1 to 1024, which the fastest CPU has"));
            }
            capacities.extend(set.iter().map(|cpu| (cpu, *capacity)));
        }
        Ok(capacities)
    }

    /// Checks that the machine has every CPU that is named.
    fn check(&self, key: &str, sets: &[CpuSet]) -> Result<(), RecordedError> {
        match sets.iter().find(|set| set.iter().any(|cpu| !self.cpus.contains(cpu))) {
            None => Ok(()),
            Some(found) => Err(RecordedError::Cpus {
                key: key.to_owned(),
                found: found.clone(),
                cpus: self.cpus.clone(),
            }),
        }
    }
}

fn index(groups: &[CpuSet], cpu: usize) -> usize {
    groups.iter().position(|group| group.contains(cpu)).unwrap_or(0)
}

fn group(groups: &[CpuSet], cpu: usize) -> Option<CpuSet> {
    groups.iter().find(|group| group.contains(cpu)).cloned()
}
