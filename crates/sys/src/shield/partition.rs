//! Version 2: a partition, whose CPUs the kernel takes from everybody else
//! (Documentation/admin-guide/cgroup-v2.rst, "cpuset.cpus.partition").

use super::groups::{keep_pins, tree};
use super::threads::{cpus_of, name, rest};
use super::{Account, Changes, Plan, ShieldError, read, write};
use std::fs;
use std::path::{Path, PathBuf};

/// Makes the partition; the file that takes processes into it. `state` reads what the kernel says
/// of a partition.
pub(super) fn make(
    root: &Path,
    plan: &Plan,
    changes: &mut Changes,
    account: &mut Account,
    state: impl Fn(&Path) -> Result<String, ShieldError>,
) -> Result<PathBuf, ShieldError> {
    let home = plan.under.as_ref().map_or_else(|| root.to_owned(), |under| root.join(under));
    let all = cpus_of(&home.join("cpuset.cpus.effective"))?;
    account.rest = rest(&all, plan)?;
    // Up to Linux 6.1 a thread forgets where it was pinned when the CPUs of its group change.
    keep_pins(&tree(&home), ["cgroup.threads", "cpuset.cpus.effective"], changes)?;
    if let Some(change) = changes.journal().give_cpusets(&home)? {
        changes.push(change);
    }
    let group = home.join(name(""));
    changes.push(changes.journal().make_group(&group)?);
    write(&group.join("cpuset.cpus"), &plan.cpus.to_string())?;
    let partition = group.join("cpuset.cpus.partition");
    write(&partition, "root")?;
    match state(&partition)?.trim() {
        "root" => Ok(group.join(DOOR)),
        says => Err(ShieldError::Partition { cpus: plan.cpus.clone(), says: says.to_owned() }),
    }
}

/// A group's file that takes processes, each with all its threads.
const DOOR: &str = "cgroup.procs";

/// The door of the group that this process is in, below the root of a hierarchy.
pub(super) fn own_door(root: &Path, hierarchy: &Path) -> PathBuf {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    hierarchy.join(own).join(DOOR)
}

/// The state of a partition as its file tells.
pub(super) fn state(partition: &Path) -> Result<String, ShieldError> {
    read(partition)
}
