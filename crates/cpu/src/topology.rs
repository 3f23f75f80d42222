//! Topology of the CPUs and their caches, from sysfs
//! (Documentation/ABI/stable/sysfs-devices-system-cpu).

mod capacity;
mod recorded;

pub use capacity::FULL as FULL_CAPACITY;
pub use recorded::{RecordedError, RecordedMachine};

use crate::cpu_set::CpuSet;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The online CPUs of a machine and their topology.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Topology {
    /// One entry for each online CPU, ascending.
    pub cores: Vec<Core>,
}

/// One logical CPU.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Core {
    /// Number of the CPU.
    pub cpu: usize,
    /// Number of the package (socket).
    pub package: usize,
    /// Number of the NUMA node; 0 on a machine without NUMA.
    pub node: usize,
    /// Work per time relative to the fastest CPU of the machine, which has [`FULL_CAPACITY`].
    pub capacity: u32,
    /// CPUs on the same physical core, itself included.
    pub smt_siblings: CpuSet,
    /// Data and unified caches, from the nearest.
    pub caches: Vec<Cache>,
}

/// One cache as seen by a CPU.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Cache {
    /// 1 to 4.
    pub level: u32,
    /// Size in bytes.
    pub size_bytes: u64,
    /// CPUs that share it.
    pub shared_by: CpuSet,
}

/// The reason why the topology could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A file is missing or unreadable.
    #[error("cannot read {}: {source}; check that /sys is mounted", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file has unexpected contents.
    #[error("{} contains `{text}`, but {expected} was expected", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Its contents.
        text: String,
        /// The expected contents.
        expected: &'static str,
    },
}

impl Topology {
    /// Reads the topology below `root`: `/` for this machine.
    ///
    /// # Errors
    /// [`TopologyError`] when the tree has no list of online CPUs or a file is invalid. Files that
    /// virtual machines lack (caches, packages, nodes) have defaults.
    pub fn read(root: &Path) -> Result<Self, TopologyError> {
        let cpus = root.join("sys/devices/system/cpu");
        let path = cpus.join("online");
        let online = read_cpus(&path)?.ok_or_else(|| TopologyError::Read {
            path,
            source: io::Error::from_raw_os_error(libc::ENOENT),
        })?;
        let capacities = capacity::read(root, &online)?;
        let cores = online
            .iter()
            .map(|cpu| Core::read(&cpus.join(format!("cpu{cpu}")), cpu, capacities[&cpu]));
        Ok(Self { cores: cores.collect::<Result<_, _>>()? })
    }

    /// Makes a topology of unknown CPUs: equal cores of one node.
    #[must_use]
    pub fn flat(cpus: &CpuSet) -> Self {
        Self { cores: cpus.iter().map(Core::unknown).collect() }
    }

    /// Returns the same machine with only these CPUs, for a process that may use no others. The
    /// sharing of caches stays.
    #[must_use]
    pub fn only(&self, cpus: &CpuSet) -> Self {
        let cores = self.cores.iter().filter(|core| cpus.contains(core.cpu));
        Self { cores: cores.cloned().collect() }
    }

    /// Returns the online CPUs.
    #[must_use]
    pub fn cpus(&self) -> CpuSet {
        self.cores.iter().map(|core| core.cpu).collect()
    }

    /// Returns the number of physical cores.
    #[must_use]
    pub fn physical_cores(&self) -> usize {
        let first = |core: &&Core| core.smt_siblings.iter().next() == Some(core.cpu);
        self.cores.iter().filter(first).count()
    }
}

impl Core {
    fn unknown(cpu: usize) -> Self {
        let smt_siblings = CpuSet::from_iter([cpu]);
        Self { cpu, package: 0, node: 0, capacity: FULL_CAPACITY, smt_siblings, caches: Vec::new() }
    }

    fn read(folder: &Path, cpu: usize, capacity: u32) -> Result<Self, TopologyError> {
        let itself = || CpuSet::from_iter([cpu]);
        let topology = folder.join("topology");
        let siblings = read_cpus(&topology.join("core_cpus_list"))?;
        let siblings = match siblings {
            Some(siblings) => siblings,
            // The name before Linux 5.3.
            None => read_cpus(&topology.join("thread_siblings_list"))?.unwrap_or_else(itself),
        };
        Ok(Self {
            cpu,
            // -1 where the architecture does not report it.
            package: read_number(&topology.join("physical_package_id"))?
                .map_or(0, |id| usize::try_from(id).unwrap_or(0)),
            node: node(folder),
            capacity,
            smt_siblings: siblings,
            caches: caches(&folder.join("cache"), &itself())?,
        })
    }

    /// Returns the cache of this level, if there is one.
    #[must_use]
    pub fn cache(&self, level: u32) -> Option<&Cache> {
        self.caches.iter().find(|cache| cache.level == level)
    }
}

/// Reads the node, which is the link `nodeN` in the CPU's folder.
fn node(folder: &Path) -> usize {
    let names = crate::folders::names(folder);
    let number = |name: &String| name.strip_prefix("node")?.parse().ok();
    names.iter().filter_map(number).min().unwrap_or(0)
}

fn caches(folder: &Path, itself: &CpuSet) -> Result<Vec<Cache>, TopologyError> {
    let mut caches = Vec::new();
    for index in 0.. {
        let folder = folder.join(format!("index{index}"));
        let Some(level) = read_number(&folder.join("level"))? else { break };
        let kind = read_as(&folder.join("type"), "a kind", |text| Some(text.to_owned()))?;
        if kind.is_some_and(|kind| kind == "Instruction") {
            continue;
        }
        caches.push(Cache {
            level: u32::try_from(level).unwrap_or(0),
            size_bytes: read_size(&folder.join("size"))?.unwrap_or(0),
            shared_by: read_cpus(&folder.join("shared_cpu_list"))?
                .unwrap_or_else(|| itself.clone()),
        });
    }
    caches.sort_by_key(|cache| cache.level);
    Ok(caches)
}

/// Reads a value; `None` where there is no such file.
fn read_as<T>(
    path: &Path,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, TopologyError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text.trim().to_owned(),
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TopologyError::Read { path: path.to_owned(), source }),
    };
    let value = parse(&text);
    let wrong = || TopologyError::Content { path: path.to_owned(), text, expected };
    value.ok_or_else(wrong).map(Some)
}

fn read_cpus(path: &Path) -> Result<Option<CpuSet>, TopologyError> {
    read_as(path, "a CPU list", |text| text.parse().ok())
}

fn read_number(path: &Path) -> Result<Option<i64>, TopologyError> {
    read_as(path, "a number", |text| text.parse().ok())
}

fn read_size(path: &Path) -> Result<Option<u64>, TopologyError> {
    read_as(path, "a size like 48K", parse_size)
}

/// Parses `48K` or `2M`, in bytes.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
