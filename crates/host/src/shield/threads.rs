//! Version 1: single threads are moved away.

use super::groups::{keep_pins, members, tree};
use super::{Changes, PacketHandling, ShieldError, ShieldReport, ShieldSpec, read, write};
use crate::journal::Origins;
use crate::unique;
use millstream_cpu::CpuSet;
use millstream_cpu::proc::value;
use millstream_cpu::threads::ThreadInfo;
use std::fs;
use std::path::{Path, PathBuf};

/// The rounds that catch threads started during the move.
const ROUNDS: usize = 5;

/// Returns the CPUs that are left for the others.
pub(super) fn rest(all: &CpuSet, plan: &ShieldSpec) -> Result<CpuSet, ShieldError> {
    let rest: CpuSet = all.iter().filter(|cpu| !plan.cpus.contains(*cpu)).collect();
    let known = plan.cpus.iter().all(|cpu| all.contains(cpu));
    if plan.cpus.is_empty() || rest.is_empty() || !known {
        return Err(ShieldError::Cpus { cpus: plan.cpus.clone(), all: all.clone() });
    }
    Ok(rest)
}

pub(super) fn cpus_of(path: &Path) -> Result<CpuSet, ShieldError> {
    Ok(read(path)?.parse().unwrap_or_default())
}

/// The hierarchy, the prefix of its files, and the group of this process.
pub(super) struct CpusetRoot<'a> {
    pub(super) root: &'a Path,
    pub(super) prefix: &'a str,
    pub(super) own: &'a Path,
}

/// Makes two groups: one for the application, one to which all other threads are moved.
pub(super) fn version_1(
    home: &CpusetRoot,
    plan: &ShieldSpec,
    packets: &[ThreadInfo],
    changes: &mut Changes,
    account: &mut ShieldReport,
) -> Result<PathBuf, ShieldError> {
    let CpusetRoot { root, prefix, own } = *home;
    let home = plan.under.as_ref().map_or_else(|| root.to_owned(), |under| root.join(under));
    let file = |name: &str| format!("{prefix}{name}");
    let all = cpus_of(&home.join(file("cpus")))?;
    account.rest = rest(&all, plan)?;
    let memory = read(&home.join(file("mems")))?;
    // Before the first move, which may lose the affinities.
    let groups = tree(&home);
    keep_pins(&groups, ["tasks", &file("cpus")], changes)?;
    narrow(&groups[1..], &file("cpus"), plan, changes, account);
    let mut make = |what: &str, cpus: &CpuSet, origins| -> Result<PathBuf, ShieldError> {
        let group = home.join(unique::name(what));
        changes.push(changes.journal().make_group(&group, origins)?);
        write(&group.join(file("cpus")), &cpus.to_string())?;
        write(&group.join(file("mems")), memory.trim())?;
        Ok(group)
    };
    // Later members are children of this process; the present threads are the others.
    let residents = members(&home.join("tasks"))?;
    let origins = Origins { guests: Some(own.to_owned()), residents };
    let inside = make("", &plan.cpus, origins)?;
    let others = make("-rest", &account.rest, Origins::default())?;
    let (mut moved, mut kept) = (0, Vec::new());
    for _ in 0..ROUNDS {
        let before = moved;
        kept.clear();
        for thread in members(&home.join("tasks"))? {
            if plan.leave.contains(&process_of(thread)) {
                continue;
            }
            let is_packets = packets.iter().any(|one| one.tid == thread as u32);
            let group = match plan.napi.as_ref().filter(|_| is_packets).map(|napi| napi.place) {
                Some(PacketHandling::With) => &inside,
                Some(PacketHandling::Anywhere) => continue,
                _ => &others,
            };
            match fs::write(group.join("tasks"), thread.to_string()) {
                Ok(()) => moved += 1,
                Err(_) => kept.extend(name_of(thread)),
            }
        }
        if moved == before {
            break;
        }
    }
    kept.sort();
    kept.dedup();
    (account.moved, account.kept) = (moved, kept);
    Ok(inside.join("tasks"))
}

/// Removes the shielded CPUs from existing groups, with the threads in them; innermost first,
/// because a group keeps the CPUs of those below it.
fn narrow(
    groups: &[PathBuf],
    file: &str,
    plan: &ShieldSpec,
    changes: &mut Changes,
    account: &mut ShieldReport,
) {
    for group in groups.iter().rev() {
        // A group that was removed meanwhile does not matter.
        let now = cpus_of(&group.join(file)).unwrap_or_default();
        let elsewhere: CpuSet = now.iter().filter(|cpu| !plan.cpus.contains(*cpu)).collect();
        if elsewhere == now {
            continue;
        }
        let threads = members(&group.join("tasks")).unwrap_or_default();
        let is_left = threads.iter().any(|thread| plan.leave.contains(&process_of(*thread)));
        let change = (!elsewhere.is_empty() && !is_left)
            .then(|| changes.journal().write_file(&group.join(file), &elsewhere.to_string()).ok());
        let list = match change.flatten() {
            Some(change) => {
                changes.push(change);
                &mut account.narrowed
            }
            None => &mut account.wide,
        };
        list.push(group.display().to_string());
    }
}

/// Returns the process of a thread.
fn process_of(thread: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    value(&status, "Tgid").and_then(|number| number.parse().ok()).unwrap_or(thread)
}

fn name_of(thread: i32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{thread}/comm")).ok()?.trim().to_owned())
}
