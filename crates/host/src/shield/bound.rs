//! Threads that only the kernel places: sched_setaffinity(2) refuses them with `EINVAL`.
//!
//! A work queue's rescuer is an example. It is bound to the CPU where it helps and stays there,
//! until the CPUs of all groups are assigned again: up to Linux 6.1 (later versions fixed it,
//! "cgroup/cpuset: Fix ... PF_NO_SETAFFINITY") the end of a partition puts it on all CPUs. User
//! space cannot put it back; that does no harm, because it is bound again before it helps the next
//! time, but it is reported.

use millstream_cpu::folders::numbers;
use millstream_cpu::proc::Stat;
use millstream_cpu::{CpuSet, threads};
use std::path::Path;

/// One such thread.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    thread: u32,
    name: String,
    cpus: CpuSet,
}

/// Returns all of them, with their CPUs.
pub(super) fn all(root: &Path) -> Vec<Bound> {
    let proc = root.join("proc");
    numbers(&proc).iter().filter_map(|number| of(&proc.join(number.to_string()))).collect()
}

/// Returns those with other CPUs than before: `thread rcu_gp (0-3, was 2)`.
pub(super) fn moved(root: &Path, before: &[Bound]) -> Vec<String> {
    let moved = |bound: &Bound| {
        let now = of(&root.join(format!("proc/{}", bound.thread)))?;
        let is_other = now.name == bound.name && now.cpus != bound.cpus;
        is_other.then(|| format!("thread {} ({}, was {})", bound.name, now.cpus, bound.cpus))
    };
    before.iter().filter_map(moved).collect()
}

fn of(folder: &Path) -> Option<Bound> {
    if !Stat::read(folder)?.is_bound() {
        return None;
    }
    let thread = threads::read(folder)?;
    Some(Bound { thread: thread.tid, cpus: thread.allowed.parse().ok()?, name: thread.name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn task(root: &Path, id: u32, cpus: &str, flags: u64) {
        let folder = root.join(format!("proc/{id}"));
        fs::create_dir_all(&folder).unwrap();
        let mut fields = vec!["1".to_owned(); 50];
        fields[9 - 4] = flags.to_string();
        fs::write(folder.join("stat"), format!("{id} (a) b) S {}", fields.join(" "))).unwrap();
        let status = format!(
            "Cpus_allowed_list:\t{cpus}\nvoluntary_ctxt_switches:\t1\n\
             nonvoluntary_ctxt_switches:\t1\n"
        );
        fs::write(folder.join("status"), status).unwrap();
    }

    #[test]
    fn what_the_kernel_has_moved_is_told() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        task(root, 3, "2", 0x0420_8060);
        task(root, 4, "1", 0x0420_8060);
        task(root, 200, "2", 0x0040_0000);
        let before = all(root);
        assert_eq!(before.len(), 2);
        assert!(moved(root, &before).is_empty());
        task(root, 3, "0-3", 0x0420_8060);
        task(root, 200, "0-3", 0x0040_0000);
        fs::remove_dir_all(root.join("proc/4")).unwrap();
        assert_eq!(moved(root, &before), ["thread a) b (0-3, was 2)"]);
    }
}
