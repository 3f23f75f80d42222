//! The CPUs that a task was given: it makes no more threads than that.

use millstream_cpu::CpuSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The number of CPUs that a process may use, and what limits it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CpuBudget {
    /// CPUs, at least 1.
    pub cpus: usize,
    /// The limit: `affinity`, `SLURM_CPUS_PER_TASK` or `cpu.max`.
    pub limit: &'static str,
}

impl CpuBudget {
    /// Reads the limits of this process: `allowed` is its affinity, `variable` its environment, and
    /// `root` the file system with `proc` and `sys/fs/cgroup`.
    #[must_use]
    pub fn read(
        allowed: Option<&CpuSet>,
        variable: impl Fn(&str) -> Option<String>,
        root: &Path,
    ) -> Self {
        let affinity = allowed.map(|cpus| cpus.iter().count());
        let slurm = variable("SLURM_CPUS_PER_TASK").and_then(|text| text.trim().parse().ok());
        let limits =
            [("affinity", affinity), ("SLURM_CPUS_PER_TASK", slurm), ("cpu.max", quota(root))];
        let known = limits.into_iter().filter_map(|(limit, cpus)| Some((cpus?, limit)));
        let (cpus, limit) = known.min_by_key(|(cpus, _)| *cpus).unwrap_or((1, "affinity"));
        Self { cpus: cpus.max(1), limit }
    }
}

/// The smallest quota of the process's control group and of those above it, in whole CPUs
/// (cgroup v2, cpu.max).
fn quota(root: &Path) -> Option<usize> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let top = root.join("sys/fs/cgroup");
    let group = top.join(own);
    let above = group.ancestors().take_while(|path| path.starts_with(&top));
    above.filter_map(|path: &Path| cpus_of(path.join("cpu.max"))).min()
}

fn cpus_of(path: PathBuf) -> Option<usize> {
    let text = fs::read_to_string(path).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    // Half a CPU runs one thread; one and a half run one without throttling.
    let cpus = (quota / period).floor();
    cpus.is_finite().then_some((cpus as usize).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let four: CpuSet = "0-3".parse().unwrap();
        let none = |_: &str| None;
        let budget =
            |variable: fn(&str) -> Option<String>| CpuBudget::read(Some(&four), variable, root);
        assert_eq!(budget(none), CpuBudget { cpus: 4, limit: "affinity" });
        assert_eq!(budget(|_| Some("3".to_owned())).cpus, 3);
        assert_eq!(budget(|_| Some("many".to_owned())).cpus, 4);
        fs::create_dir_all(root.join("proc/self")).unwrap();
        fs::create_dir_all(root.join("sys/fs/cgroup/job/task")).unwrap();
        fs::write(root.join("proc/self/cgroup"), "0::/job/task\n").unwrap();
        fs::write(root.join("sys/fs/cgroup/job/cpu.max"), "250000 100000\n").unwrap();
        fs::write(root.join("sys/fs/cgroup/job/task/cpu.max"), "max 100000\n").unwrap();
        let found = budget(|_| Some("3".to_owned()));
        assert_eq!(found, CpuBudget { cpus: 2, limit: "cpu.max" });
        fs::write(root.join("sys/fs/cgroup/job/task/cpu.max"), "50000 100000\n").unwrap();
        assert_eq!(budget(none).cpus, 1);
        assert_eq!(CpuBudget::read(None, none, Path::new("/none")).cpus, 1);
    }
}
