//! Version 2: a partition, whose CPUs the kernel takes from all other groups
//! (Documentation/admin-guide/cgroup-v2.rst, "cpuset.cpus.partition").

use super::groups::{keep_pins, tree};
use super::threads::{cpus_of, rest};
use super::{Changes, PacketHandling, ShieldError, ShieldReport, ShieldSpec, write};
use crate::journal::Origins;
use crate::unique;
use millstream_cpu::threads::ThreadInfo;
use std::path::{Path, PathBuf};

/// Makes the partition; returns the file that takes processes into it, which go to the group `own`
/// at the end. `state` reads the kernel's state of a partition.
///
/// The network's threads (`packets`) that are to run with the application enter it, too: those of
/// the root's group may not run on CPUs that a partition has.
pub(super) fn make(
    (root, own): (&Path, &Path),
    plan: &ShieldSpec,
    packets: &[ThreadInfo],
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
    let group = home.join(unique::name(""));
    let is_with = plan.napi.as_ref().is_some_and(|napi| napi.place == PacketHandling::With);
    // They leave it for its parent, which is theirs only here.
    let near = if is_with && plan.under.is_none() { packets } else { &[] };
    let residents = near.iter().map(|one| one.tid as i32).collect();
    let origins = Origins { guests: Some(own.to_owned()), residents };
    changes.push(changes.journal().make_group(&group, origins)?);
    write(&group.join("cpuset.cpus"), &plan.cpus.to_string())?;
    let partition = group.join("cpuset.cpus.partition");
    write(&partition, "root")?;
    match state(&partition)?.trim() {
        "root" => {}
        says => {
            return Err(ShieldError::Partition { cpus: plan.cpus.clone(), says: says.to_owned() });
        }
    }
    let door = group.join(DOOR);
    for one in near {
        let entered = write(&door, &one.tid.to_string());
        let refused = entered.map_err(|error| format!("{} stays where it is: {error}", one.name));
        account.warnings.extend(refused.err());
    }
    Ok(door)
}

/// The file of a group that takes processes, each with all its threads.
pub(super) const DOOR: &str = "cgroup.procs";
