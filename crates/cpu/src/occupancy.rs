//! The part of the last cache that a process has filled (Documentation/arch/x86/resctrl.rst).

use crate::folders;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of resctrl, where it is mounted.
const RESCTRL: &str = "sys/fs/resctrl";

/// The last caches as resctrl sees the group of this process.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Occupancy {
    /// The group, as a path below resctrl; `/` is that of all programs without a group.
    pub group: String,
    /// Bytes that the group has in each last cache.
    pub bytes: Vec<u64>,
}

/// Returns the occupancy of the calling process; below `root`, `/` for this machine.
///
/// # Errors
/// The reason, with the next step: resctrl is not mounted, or does not count.
pub fn of_this_process(root: &Path) -> Result<Occupancy, String> {
    let groups = fs::read_to_string(root.join("proc/self/cpu_resctrl_groups")).unwrap_or_default();
    let field = |key: &str| groups.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let (control, monitor) = (field("res:").unwrap_or(""), field("mon:").unwrap_or(""));
    if control.is_empty() {
        return Err(if root.join(RESCTRL).is_dir() {
            "resctrl is not mounted; mount it: mount -t resctrl resctrl /sys/fs/resctrl".to_owned()
        } else {
            "this machine's kernel and processor have no resctrl".to_owned()
        });
    }
    let mut group = PathBuf::from(control.trim_start_matches('/'));
    if !monitor.is_empty() {
        group.push("mon_groups");
        group.push(monitor);
    }
    let folder = root.join(RESCTRL).join(&group).join("mon_data");
    let read = |name: String| {
        let text = fs::read_to_string(folder.join(name).join("llc_occupancy")).ok()?;
        text.trim().parse().ok()
    };
    let caches = folders::names(&folder);
    let bytes: Vec<u64> =
        caches.into_iter().filter(|name| name.starts_with("mon_L3")).filter_map(read).collect();
    if bytes.is_empty() {
        return Err(format!(
            "resctrl counts no occupancy in {}; it needs a processor with cache monitoring (CMT)",
            folder.display()
        ));
    }
    Ok(Occupancy { group: format!("/{}", group.display()), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_group_of_the_process_is_read() {
        for (groups, folder, group) in [
            ("res:/\nmon:\n", "", "/"),
            ("res:/\nmon:ours\n", "mon_groups/ours/", "/mon_groups/ours"),
            ("res:radio\nmon:\n", "radio/", "/radio"),
            ("res:radio\nmon:rx\n", "radio/mon_groups/rx/", "/radio/mon_groups/rx"),
        ] {
            let file = |name: &str| format!("sys/fs/resctrl/{folder}mon_data/{name}/llc_occupancy");
            let root = machine(&[
                ("proc/self/cpu_resctrl_groups", groups),
                (&file("mon_L3_00"), "4096\n"),
                (&file("mon_L3_01"), "Unavailable\n"),
                (&file("mon_L3_02"), "65536\n"),
            ]);
            let expected = Occupancy { group: group.into(), bytes: vec![4096, 65536] };
            assert_eq!(of_this_process(root.path()), Ok(expected));
        }
    }

    #[test]
    fn what_is_missing_is_named_with_the_next_step() {
        let why = |files: &[(&str, &str)]| of_this_process(machine(files).path()).unwrap_err();
        assert!(why(&[]).contains("have no resctrl"));
        let none = ("proc/self/cpu_resctrl_groups", "res:\nmon:\n");
        let folder = ("sys/fs/resctrl/x", "");
        assert!(why(&[none, folder]).contains("mount -t resctrl"));
        let group = ("proc/self/cpu_resctrl_groups", "res:/\nmon:\n");
        assert!(why(&[group, folder]).contains("cache monitoring"));
    }
}
