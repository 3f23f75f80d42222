//! The record of the machine that every result carries.

mod kernel;
mod nic;

pub use kernel::{KernelOrigin, sha256};
pub use nic::{Nic, NicCoalescing};

use crate::cpu_set::CpuSet;
use crate::proc::value;
use crate::topology::Topology;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The machine of a measurement. Facts that the machine does not report are `None`; the host's name
/// is left out on purpose. Facts that an older record lacks read as unknown.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Version of millstream.
    pub millstream_version: String,
    /// Time of the record, as given by the caller (RFC 3339).
    pub timestamp: String,
    /// Kernel release, `6.12.1-amd64`.
    pub kernel_release: Option<String>,
    /// Kernel build, `#1 SMP PREEMPT_DYNAMIC …`.
    pub kernel_version: Option<String>,
    /// The kernel's command line.
    pub kernel_command_line: Option<String>,
    /// FNV-1a (64 bits, hexadecimal) of the kernel's configuration as stored in `/proc/config.gz`
    /// or `/boot/config-RELEASE`: distinguishes kernels of one release.
    pub kernel_config_hash: Option<String>,
    /// The package of the kernel, and hashes of its files; only in records, see
    /// [`Environment::with_kernel_origin`].
    pub kernel_origin: Option<KernelOrigin>,
    /// `rt`, `full`, `lazy`, `voluntary` or `none`, with `(dynamic)` if it can be switched.
    pub preemption: Option<String>,
    /// The kernel's status of each vulnerability that has a mitigation or needs one.
    pub mitigations: BTreeMap<String, String>,
    /// Architecture, `x86_64`.
    pub architecture: String,
    /// The processor's name of itself.
    pub cpu_model: Option<String>,
    /// Version of the processor's microcode.
    pub microcode: Option<String>,
    /// CPUs online.
    pub cpus_online: CpuSet,
    /// CPUs this process may use.
    pub cpus_allowed: CpuSet,
    /// CPUs isolated at boot.
    pub cpus_isolated: CpuSet,
    /// Physical cores online.
    pub physical_cores: usize,
    /// NUMA nodes with CPUs.
    pub numa_nodes: usize,
    /// Data and unified caches of the first CPU.
    pub caches: Vec<CacheSize>,
    /// Frequency governor of the first CPU.
    pub governor: Option<String>,
    /// Source of the kernel's clock.
    pub clock_source: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Whether the CPU reports a hypervisor.
    pub hypervisor: bool,
    /// Network devices with hardware, real or emulated, behind them.
    pub nics: Vec<Nic>,
}

/// A cache level in the record.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct CacheSize {
    /// 1 to 4.
    pub level: u32,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Number of CPUs that share it.
    pub shared_by: usize,
}

impl Environment {
    /// Reads the record below `root` (`/` for this machine); `timestamp` is the time now, in RFC
    /// 3339. Unreadable facts are left empty: a record never makes a measurement fail.
    #[must_use]
    pub fn read(root: &Path, timestamp: &str) -> Self {
        let topology = Topology::read(root).ok();
        let cores = topology.as_ref().map_or(&[][..], |topology| &topology.cores);
        let cpu_info = text(root, "proc/cpuinfo").unwrap_or_default();
        let kernel_version = text(root, "proc/sys/kernel/version");
        let sysfs_cpus = |name| {
            let list = text(root, &format!("sys/devices/system/cpu/{name}"));
            list.and_then(|list| list.parse().ok()).unwrap_or_default()
        };
        let kernel_release = text(root, "proc/sys/kernel/osrelease");
        Self {
            millstream_version: env!("CARGO_PKG_VERSION").to_owned(),
            timestamp: timestamp.to_owned(),
            kernel_config_hash: config_hash(root),
            kernel_origin: None,
            kernel_release,
            kernel_command_line: text(root, "proc/cmdline"),
            microcode: value(&cpu_info, "microcode").map(str::to_owned),
            preemption: kernel_version.as_deref().map(|version| preemption(root, version)),
            kernel_version,
            mitigations: mitigations(root),
            architecture: std::env::consts::ARCH.to_owned(),
            cpu_model: value(&cpu_info, "model name")
                .or_else(|| value(&cpu_info, "Model"))
                .map(str::to_owned),
            cpus_online: sysfs_cpus("online"),
            cpus_allowed: allowed(root),
            cpus_isolated: sysfs_cpus("isolated"),
            physical_cores: topology.as_ref().map_or(0, Topology::physical_cores),
            numa_nodes: cores.iter().map(|c| c.node).collect::<CpuSet>().len(),
            caches: caches(cores),
            governor: text(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: text(
                root,
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
            memory_bytes: memory_bytes(root),
            hypervisor: value(&cpu_info, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            nics: nic::read(root),
        }
    }
}

impl Environment {
    /// Adds the origin of the kernel, whose image is read for that.
    #[must_use]
    pub fn with_kernel_origin(mut self, root: &Path) -> Self {
        let of = |text: &Option<String>| text.clone().unwrap_or_default();
        let (release, build) = (of(&self.kernel_release), of(&self.kernel_version));
        self.kernel_origin = KernelOrigin::read(root, &release, &build);
        self
    }
}

fn text(root: &Path, path: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(path)).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn config_hash(root: &Path) -> Option<String> {
    let release = text(root, "proc/sys/kernel/osrelease").unwrap_or_default();
    let config = fs::read(root.join("proc/config.gz"))
        .or_else(|_| fs::read(root.join(format!("boot/config-{release}"))));
    Some(format!("{:016x}", crate::fnv1a(&config.ok()?)))
}

/// Returns the model chosen at boot or run time (debugfs shows `none voluntary (full)`; root only),
/// otherwise the one in the kernel's version.
fn preemption(root: &Path, version: &str) -> String {
    if version.contains("PREEMPT_RT") {
        return "rt".to_owned();
    }
    let dynamic = version.contains("PREEMPT_DYNAMIC");
    let chosen = text(root, "sys/kernel/debug/sched/preempt");
    let chosen = chosen
        .as_deref()
        .and_then(|line| Some(line.split_once('(')?.1.split_once(')')?.0))
        .unwrap_or(match () {
            () if dynamic => "unknown",
            () if version.contains("PREEMPT") => "full",
            () => "none or voluntary",
        });
    format!("{chosen}{}", if dynamic { " (dynamic)" } else { "" })
}

fn mitigations(root: &Path) -> BTreeMap<String, String> {
    let folder = root.join("sys/devices/system/cpu/vulnerabilities");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let states = entries.filter_map(|entry| {
        let state = fs::read_to_string(entry.path()).ok()?.trim().to_owned();
        (state != "Not affected").then_some((entry.file_name().into_string().ok()?, state))
    });
    states.collect()
}

fn allowed(root: &Path) -> CpuSet {
    let status = text(root, "proc/self/status").unwrap_or_default();
    value(&status, "Cpus_allowed_list").and_then(|list| list.parse().ok()).unwrap_or_default()
}

fn caches(cores: &[crate::Core]) -> Vec<CacheSize> {
    let caches = cores.first().map_or(&[][..], |core| &core.caches);
    let record = |cache: &crate::Cache| CacheSize {
        level: cache.level,
        size_bytes: cache.size_bytes,
        shared_by: cache.shared_by.len(),
    };
    caches.iter().map(record).collect()
}

fn memory_bytes(root: &Path) -> Option<u64> {
    let info = text(root, "proc/meminfo")?;
    value(&info, "MemTotal")?.strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}
