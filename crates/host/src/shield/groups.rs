//! Control groups, and the threads in them.

use super::{Changes, ShieldError, read};
use millstream_cpu::CpuSet;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns a group and all below it, outermost first.
pub(super) fn tree(home: &Path) -> Vec<PathBuf> {
    let mut groups = vec![home.to_owned()];
    let mut next = 0;
    while let Some(group) = groups.get(next) {
        let entries = fs::read_dir(group).into_iter().flatten().flatten();
        let is_group =
            |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        groups.extend(entries.map(|entry| entry.path()).filter(is_group).collect::<Vec<_>>());
        next += 1;
    }
    groups
}

/// Returns the threads that a file of a group lists.
pub(super) fn members(file: &Path) -> Result<Vec<i32>, ShieldError> {
    Ok(read(file)?.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Returns the threads of this process.
pub(super) fn own_threads() -> Result<Vec<i32>, ShieldError> {
    let path = Path::new("/proc/self/task");
    let failed = |source| ShieldError::File { path: path.to_owned(), source };
    let entries = fs::read_dir(path).map_err(failed)?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Records the CPUs of all threads of some groups, to restore them at the end. `tasks` and `cpus`
/// are the files of a group that list its threads, and the CPUs of its unpinned threads.
pub(super) fn keep_pins(
    groups: &[PathBuf],
    [tasks, cpus]: [&str; 2],
    changes: &mut Changes,
) -> Result<(), ShieldError> {
    let mut threads: BTreeMap<CpuSet, Vec<i32>> = BTreeMap::new();
    for group in groups {
        // A group without the file has its parent's CPUs.
        let texts = group.ancestors().map(|at| fs::read_to_string(at.join(cpus)).ok());
        let anywhere = texts.flatten().next().and_then(|text| text.parse().ok());
        // A group that was removed meanwhile does not matter.
        let members = members(&group.join(tasks)).unwrap_or_default();
        threads.entry(anywhere.unwrap_or_default()).or_default().extend(members);
    }
    for (anywhere, threads) in threads.iter().filter(|(_, threads)| !threads.is_empty()) {
        changes.push(changes.journal().keep_pins(threads, anywhere)?);
    }
    Ok(())
}
