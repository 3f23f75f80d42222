//! Threads behind the shield and before it.

use super::{Account, Changes, Plan, ShieldError, read, write};
use crate::cpu_set::CpuSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Those that start threads meanwhile are met again, so often.
const ROUNDS: usize = 5;

/// The CPUs that are left for the others.
fn rest(all: &CpuSet, plan: &Plan) -> Result<CpuSet, ShieldError> {
    let rest: CpuSet = all.iter().filter(|cpu| !plan.cpus.contains(*cpu)).collect();
    let known = plan.cpus.iter().all(|cpu| all.contains(cpu));
    if plan.cpus.is_empty() || rest.is_empty() || !known {
        return Err(ShieldError::Cpus { cpus: plan.cpus.clone(), all: all.clone() });
    }
    Ok(rest)
}

fn cpus_of(path: &Path) -> Result<CpuSet, ShieldError> {
    Ok(read(path)?.parse().unwrap_or_default())
}

/// A name that no other shield has.
fn name(what: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("millstream{what}-{}-{number}", std::process::id())
}

/// Two groups: one for the application, one to which all others are moved.
pub(super) fn version_1(
    root: &Path,
    prefix: &str,
    plan: &Plan,
    changes: &mut Changes<'_>,
    account: &mut Account,
) -> Result<PathBuf, ShieldError> {
    let home = plan.under.as_ref().map_or_else(|| root.to_owned(), |under| root.join(under));
    let file = |name: &str| format!("{prefix}{name}");
    let all = cpus_of(&home.join(file("cpus")))?;
    account.rest = rest(&all, plan)?;
    let memory = read(&home.join(file("mems")))?;
    // Before anything is moved, which may forget it.
    let threads = members(&home.join("tasks"))?;
    changes.list.push(changes.journal.keep_pins(&threads, &all)?);
    let mut make = |what: &str, cpus: &CpuSet| -> Result<PathBuf, ShieldError> {
        let group = home.join(name(what));
        changes.list.push(changes.journal.make_group(&group)?);
        write(&group.join(file("cpus")), &cpus.to_string())?;
        write(&group.join(file("mems")), memory.trim())?;
        Ok(group)
    };
    let inside = make("", &plan.cpus)?;
    let others = make("-rest", &account.rest)?;
    let (mut moved, mut kept) = (0, Vec::new());
    for _ in 0..ROUNDS {
        let before = moved;
        kept.clear();
        for thread in members(&home.join("tasks"))? {
            if plan.leave.contains(&process_of(thread)) {
                continue;
            }
            match fs::write(others.join("tasks"), thread.to_string()) {
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

/// A partition: the kernel takes its CPUs from everybody else.
pub(super) fn version_2(
    root: &Path,
    plan: &Plan,
    changes: &mut Changes<'_>,
    account: &mut Account,
) -> Result<PathBuf, ShieldError> {
    let home = plan.under.as_ref().map_or_else(|| root.to_owned(), |under| root.join(under));
    let all = cpus_of(&home.join("cpuset.cpus.effective"))?;
    account.rest = rest(&all, plan)?;
    let control = home.join("cgroup.subtree_control");
    if !read(&control)?.split_whitespace().any(|name| name == "cpuset") {
        // Left on: other groups may rely on it by the time that this shield is lowered.
        write(&control, "+cpuset")?;
    }
    let group = home.join(name(""));
    changes.list.push(changes.journal.make_group(&group)?);
    write(&group.join("cpuset.cpus"), &plan.cpus.to_string())?;
    let partition = group.join("cpuset.cpus.partition");
    write(&partition, "root")?;
    let says = read(&partition)?.trim().to_owned();
    if says != "root" {
        return Err(ShieldError::Partition { cpus: plan.cpus.clone(), says });
    }
    Ok(group.join("cgroup.procs"))
}

fn members(file: &Path) -> Result<Vec<i32>, ShieldError> {
    Ok(read(file)?.lines().filter_map(|line| line.parse().ok()).collect())
}

/// The process of a thread.
fn process_of(thread: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(thread)
}

fn name_of(thread: i32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{thread}/comm")).ok()?.trim().to_owned())
}
