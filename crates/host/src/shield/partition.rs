//! Version 2: a partition, whose CPUs the kernel takes from all other groups
//! (Documentation/admin-guide/cgroup-v2.rst, "cpuset.cpus.partition").

use super::groups::{keep_pins, tree};
use super::threads::{cpus_of, name, rest};
use super::{Changes, ShieldError, ShieldReport, ShieldSpec, write};
use crate::journal::Origins;
use std::path::{Path, PathBuf};

/// Makes the partition; returns the file that takes processes into it, which go to the group `own`
/// at the end. `state` reads the kernel's state of a partition.
pub(super) fn make(
    root: &Path,
    own: &Path,
    plan: &ShieldSpec,
    changes: &mut Changes,
    account: &mut ShieldReport,
    state: impl Fn(&Path) -> Result<String, ShieldError>,
) -> Result<PathBuf, ShieldError> {
    let home = plan.under.as_ref().map_or_else(|| root.to_owned(), |under| root.join(under));
    let all = cpus_of(&home.join("cpuset.cpus.effective"))?;
    account.rest = rest(&all, plan)?;
    // Up to Linux 6.1 a thread loses its affinity when the CPUs of its group change.
    keep_pins(&tree(&home), ["cgroup.threads", "cpuset.cpus.effective"], changes)?;
    if let Some(change) = changes.journal().give_cpusets(&home)? {
        changes.push(change);
    }
    let group = home.join(name(""));
    let origins = Origins { guests: Some(own.to_owned()), residents: Vec::new() };
    changes.push(changes.journal().make_group(&group, origins)?);
    write(&group.join("cpuset.cpus"), &plan.cpus.to_string())?;
    let partition = group.join("cpuset.cpus.partition");
    write(&partition, "root")?;
    match state(&partition)?.trim() {
        "root" => Ok(group.join(DOOR)),
        says => Err(ShieldError::Partition { cpus: plan.cpus.clone(), says: says.to_owned() }),
    }
}

/// The file of a group that takes processes, each with all its threads.
pub(super) const DOOR: &str = "cgroup.procs";
