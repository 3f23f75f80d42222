//! The version of cpusets on this machine, and their folder (cpuset(7);
//! Documentation/admin-guide/cgroup-v2.rst).

use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// A hierarchy of cpusets.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hierarchy {
    /// Version 1: single threads are moved away.
    V1 {
        /// The root.
        root: PathBuf,
        /// The prefix of its files: `cpuset.cpus`, or `cpus` with the old mount option.
        prefix: &'static str,
    },
    /// Version 2: a partition takes CPUs from all other groups.
    V2 {
        /// The root.
        root: PathBuf,
    },
}

impl Hierarchy {
    /// Finds the hierarchy below a root folder, `/` for this machine; `None` where the kernel has
    /// no cpusets, or they are not mounted.
    #[must_use]
    pub fn find(root: &Path) -> Option<Self> {
        let mounts = fs::read_to_string(root.join("proc/mounts")).ok()?;
        let mounts: Vec<[&str; 3]> = mounts
            .lines()
            .filter_map(|line| {
                let mut fields = line.split(' ').skip(1);
                Some([fields.next()?, fields.next()?, fields.next()?])
            })
            .collect();
        let below = |path: &str| root.join(path.trim_start_matches('/'));
        let first = mounts.iter().find_map(|[path, kind, options]| {
            let is_cpuset = options.split(',').any(|option| option == "cpuset");
            match *kind {
                "cgroup" if is_cpuset => {
                    let root = below(path);
                    let old = !root.join("cpuset.cpus").exists() && root.join("cpus").exists();
                    Some(Self::V1 { root, prefix: if old { "" } else { "cpuset." } })
                }
                "cpuset" => Some(Self::V1 { root: below(path), prefix: "" }),
                _ => None,
            }
        });
        first.or_else(|| {
            let of_v2 = mounts.iter().filter(|[_, kind, _]| *kind == "cgroup2");
            of_v2.map(|[path, ..]| below(path)).find_map(|root| {
                let controllers = fs::read_to_string(root.join("cgroup.controllers")).ok()?;
                let has = controllers.split_whitespace().any(|name| name == "cpuset");
                has.then_some(Self::V2 { root })
            })
        })
    }

    /// Returns the description in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::V1 { .. } => "cpusets of version 1",
            Self::V2 { .. } => "a cpuset partition of version 2",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(mounts: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files.iter().chain(&[("proc/mounts", mounts)]) {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn both_versions_are_found_and_the_first_is_taken_where_cpusets_are_in_it() {
        let v2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        let controllers = ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n");
        let root = machine(v2, &[controllers]);
        let folder = root.path().join("sys/fs/cgroup");
        assert_eq!(Hierarchy::find(root.path()), Some(Hierarchy::V2 { root: folder }));
        let v1 = "cgroup /cg cgroup rw,relatime,cpuset 0 0\n";
        let root = machine(&format!("{v2}{v1}"), &[("cg/cpuset.cpus", "0-1\n"), controllers]);
        let expected = Hierarchy::V1 { root: root.path().join("cg"), prefix: "cpuset." };
        assert_eq!(Hierarchy::find(root.path()), Some(expected));
        let root = machine("none /cg cpuset rw 0 0\n", &[("cg/cpus", "0-1\n")]);
        let expected = Hierarchy::V1 { root: root.path().join("cg"), prefix: "" };
        assert_eq!(Hierarchy::find(root.path()), Some(expected));
    }

    #[test]
    fn a_version_2_without_the_controller_is_none() {
        let v2 = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let file = ("sys/fs/cgroup/unified/cgroup.controllers", "\n");
        assert_eq!(Hierarchy::find(machine(v2, &[file]).path()), None);
        assert_eq!(Hierarchy::find(machine("", &[]).path()), None);
    }
}
