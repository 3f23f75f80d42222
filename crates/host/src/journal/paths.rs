//! The paths that a journal may name: the settings that this program changes, and no other.
//!
//! A journal is a file, and its lines are followed with the rights of the reader. Whoever can write
//! one can therefore change what the lines may name: so a line can only name what is listed here,
//! and only where the kernel's own file systems are. The types are made from the lists, both when a
//! change is recorded and when a journal is read.

use rustix::fs::statfs;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The settings, except those of control groups; `*` stands for any part of one name.
const SETTINGS: [&str; 29] = [
    "proc/irq/*/smp_affinity_list",
    "proc/sys/kernel/numa_balancing",
    "proc/sys/kernel/sched_rt_runtime_us",
    "proc/sys/kernel/timer_migration",
    "proc/sys/kernel/watchdog",
    "proc/sys/kernel/watchdog_cpumask",
    "proc/sys/net/core/netdev_budget",
    "proc/sys/net/core/netdev_max_backlog",
    "proc/sys/net/core/rmem_max",
    "proc/sys/net/core/wmem_max",
    "proc/sys/vm/nr_hugepages",
    "proc/sys/vm/swappiness",
    "sys/bus/iio/devices/*/buffer/enable",
    "sys/bus/iio/devices/*/buffer/length",
    "sys/bus/iio/devices/*/current_timestamp_clock",
    "sys/bus/iio/devices/*/scan_elements/*_en",
    "sys/bus/iio/devices/*/trigger/current_trigger",
    "sys/class/net/*/queues/*/rps_cpus",
    "sys/class/net/*/threaded",
    "sys/devices/system/clocksource/*/current_clocksource",
    "sys/devices/system/cpu/*/cpufreq/scaling_governor",
    "sys/devices/system/cpu/*/cpuidle/*/disable",
    "sys/kernel/debug/sched/preempt",
    "sys/kernel/debug/tracing/osnoise/cpus",
    "sys/kernel/debug/tracing/osnoise/timerlat_period_us",
    "sys/kernel/mm/ksm/run",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/tracing/osnoise/cpus",
    "sys/kernel/tracing/osnoise/timerlat_period_us",
];

/// The settings of a control group, which may be mounted anywhere.
const OF_GROUPS: [&str; 3] = ["cpu.rt_runtime_us", "cpuset.cpus", "cpus"];

/// The beginning of the name of every group that this program makes.
const OURS: &str = "millstream";

/// A machine: this one, or files below a folder.
#[derive(Clone, Debug)]
pub(super) struct Root(PathBuf);

impl Root {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Returns whether the files are this machine's, which the kernel makes.
    pub(super) fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Returns a path of the caller's as one of the machine.
    pub(super) fn inner<P>(&self, path: &Path) -> io::Result<P>
    where
        P: TryFrom<PathBuf, Error = io::Error>,
    {
        match path.strip_prefix(&self.0) {
            Ok(inner) => Path::new("/").join(inner).try_into(),
            Err(_) => Err(refused(format!("the path leaves {}", self.0.display()))),
        }
    }

    /// Returns where a file or folder of the machine is; the error is `NotFound` when it is gone.
    pub(super) fn find(&self, place: &impl Place) -> io::Result<PathBuf> {
        let path = self.place(place.path());
        fs::symlink_metadata(&path)?;
        self.check(&path, place.kinds())?;
        Ok(path)
    }

    /// Returns where a folder of the machine is to be made.
    pub(super) fn room(&self, place: &impl Place) -> io::Result<PathBuf> {
        let path = self.place(place.path());
        self.check(path.parent().unwrap_or(&path), place.kinds())?;
        Ok(path)
    }

    fn place(&self, inner: &Path) -> PathBuf {
        self.0.join(inner.strip_prefix("/").unwrap_or(inner))
    }

    /// Refuses a path that is not in a file system of the kernel or, on a machine of files, leads
    /// out of it after its links are resolved.
    fn check(&self, path: &Path, kinds: &[u32]) -> io::Result<()> {
        if !self.is_live() {
            return self.contains(path);
        }
        let kind = statfs(path)?.f_type;
        if kinds.iter().any(|known| i64::from(*known) == kind) {
            return Ok(());
        }
        Err(refused(format!("{} is not in the kernel's file system", path.display())))
    }

    /// Refuses a path that leads out of the root folder, after its existing links are resolved.
    pub(super) fn contains(&self, path: &Path) -> io::Result<()> {
        let mut there = path.ancestors().filter(|at| fs::symlink_metadata(at).is_ok());
        let real = fs::canonicalize(there.next().unwrap_or(path))?;
        if real.starts_with(fs::canonicalize(&self.0)?) {
            return Ok(());
        }
        let (root, real) = (self.0.display(), real.display());
        Err(refused(format!("the path leaves {root}: it resolves to {real}")))
    }
}

fn refused(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

/// The kinds of file systems (statfs(2), `f_type`).
const CONTROL_GROUPS: [u32; 2] = [0x0027_e0eb, 0x6367_7270];
/// The same, and configfs, which has the timers of Industrial I/O.
const MADE_KINDS: [u32; 3] = [0x0027_e0eb, 0x6367_7270, 0x6265_6570];
/// procfs, sysfs, debugfs, tracefs.
const SETTINGS_KINDS: [u32; 4] = [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163];

/// A path within a machine, and the file systems that may have it.
pub(super) trait Place {
    fn path(&self) -> &Path;
    fn kinds(&self) -> &[u32];
}

/// Defines a type of path that is made, and read from a journal, only if it passes a check.
macro_rules! place {
    ($(#[$about:meta])* $name:ident, $what:literal, $check:expr, $kinds:expr) => {
        $(#[$about])*
        #[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
        #[serde(try_from = "PathBuf")]
        pub(super) struct $name(PathBuf);

        impl TryFrom<PathBuf> for $name {
            type Error = io::Error;

            fn try_from(path: PathBuf) -> io::Result<Self> {
                if is_plain(&path) && ($check)(&path) {
                    return Ok(Self(path));
                }
                Err(refused(format!("`{}` is no {}", path.display(), $what)))
            }
        }

        impl Place for $name {
            fn path(&self) -> &Path {
                &self.0
            }

            fn kinds(&self) -> &[u32] {
                ($kinds)(&self.0)
            }
        }
    };
}

place!(
    /// A setting that this program changes: a file.
    SettingPath,
    "setting that this program changes",
    |path: &Path| is_listed(path) || is_of_group(path),
    |path: &Path| if is_listed(path) { &SETTINGS_KINDS[..] } else { &CONTROL_GROUPS[..] }
);
place!(
    /// A control group: a folder.
    GroupPath,
    "path of a control group",
    |_: &Path| true,
    |_: &Path| &CONTROL_GROUPS[..]
);
place!(
    /// A group, or a timer, that this program made: a folder.
    MadePath,
    "group that this program makes",
    |path: &Path| named(path).is_some_and(|name| name.starts_with(OURS)),
    |_: &Path| &MADE_KINDS[..]
);

/// Returns whether a path names one place only: absolute, and without `..`.
fn is_plain(path: &Path) -> bool {
    let mut parts = path.components();
    parts.next() == Some(Component::RootDir)
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn named(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn is_of_group(path: &Path) -> bool {
    named(path).is_some_and(|name| OF_GROUPS.contains(&name))
}

fn is_listed(path: &Path) -> bool {
    #[cfg(test)]
    if fits("proc/*/coredump_filter", path) {
        return true;
    }
    SETTINGS.iter().any(|pattern| fits(pattern, path))
}

fn fits(pattern: &str, path: &Path) -> bool {
    let Some(text) = path.to_str().and_then(|text| text.strip_prefix('/')) else { return false };
    let part = |(pattern, name): (&str, &str)| match pattern.strip_prefix('*') {
        Some(end) => name.len() > end.len() && name.ends_with(end),
        None => pattern == name,
    };
    pattern.split('/').count() == text.split('/').count()
        && pattern.split('/').zip(text.split('/')).all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_a_setting() {
        let is = |path: &str| SettingPath::try_from(PathBuf::from(path)).is_ok();
        let listed = ["/proc/sys/vm/swappiness", "/proc/irq/24/smp_affinity_list"];
        let of_groups = ["/sys/fs/cgroup/a/cpuset.cpus", "/dev/cpuset/a/cpus"];
        assert!(listed.iter().chain(&of_groups).all(|path| is(path)));
        for path in [
            "/etc/shadow",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/vm/swappiness/",
            "/proc/sys/vm/../kernel/core_pattern",
            "/proc/irq/../smp_affinity_list",
            "/proc/irq//smp_affinity_list",
            "proc/sys/vm/swappiness",
            "/tmp/proc/sys/vm/swappiness",
            "/tmp/../cpuset.cpus",
            "/sys/bus/iio/devices/a/scan_elements/_en",
            "/sys/fs/cgroup/release_agent",
            "",
            "/",
        ] {
            assert!(!is(path), "{path}");
        }
        assert!(MadePath::try_from(PathBuf::from("/sys/fs/cgroup/user.slice")).is_err());
        assert!(MadePath::try_from(PathBuf::from("/sys/fs/cgroup/millstream-1")).is_ok());
        assert!(GroupPath::try_from(PathBuf::from("/sys/fs/cgroup/../../etc")).is_err());
    }

    #[test]
    fn a_listed_name_outside_the_kernels_file_systems_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["cpuset.cpus", "cpus"].map(|name| folder.path().join(name));
        for file in &files {
            fs::write(file, "0-3\n").unwrap();
            let path: SettingPath = Root::new(Path::new("/")).inner(file).unwrap();
            let error = Root::new(Path::new("/")).find(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        }
        let live = Root::new(Path::new("/"));
        let path: SettingPath = live.inner(Path::new("/proc/sys/vm/swappiness")).unwrap();
        assert_eq!(live.find(&path).unwrap(), Path::new("/proc/sys/vm/swappiness"));
    }
}
