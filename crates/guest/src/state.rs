//! The state that a command may change and has to restore: settings of the kernel that are files,
//! and CPUs and classes of threads. It is recorded before and after, and compared byte for byte.

use millstream_cpu::proc::{Stat, value};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The folders of settings.
const FOLDERS: [&str; 6] = [
    "proc/irq",
    "proc/sys",
    "sys/fs/cgroup",
    "sys/bus/iio/devices",
    "sys/kernel/config",
    "sys/devices/system/cpu",
];

/// The suffixes of files that change by themselves; members of groups are compared by thread.
const LIVELY: [&str; 5] = ["cgroup.procs", "cgroup.threads", "tasks", "ns_last_pid", ".pressure"];

/// The largest part of a setting that is compared, bytes.
const LONGEST: usize = 4096;

/// The settings and threads of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineState {
    settings: BTreeMap<PathBuf, Vec<u8>>,
    threads: BTreeMap<String, String>,
    /// CPUs of threads that only the kernel may place.
    bound: BTreeMap<String, String>,
}

impl MachineState {
    /// Reads the state below a root folder, `/` for this machine. Unreadable files are left out.
    #[must_use]
    pub fn take(root: &Path) -> Self {
        let mut state = Self::default();
        for Thread { name, cpus, how, is_bound } in threads(root) {
            if is_bound {
                state.bound.insert(name.clone(), cpus);
                state.threads.insert(name, how);
            } else {
                state.threads.insert(name, format!("CPUs {cpus}, {how}"));
            }
        }
        for folder in FOLDERS {
            state.walk(&root.join(folder), 0);
        }
        state
    }

    fn walk(&mut self, folder: &Path, depth: u32) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            // Devices of a bus are links at the first level; deeper links lead elsewhere.
            let Ok(kind) = (if depth == 0 { fs::metadata(&path) } else { entry.metadata() }) else {
                continue;
            };
            if kind.is_dir() {
                self.settings.insert(path.clone(), Vec::new());
                self.walk(&path, depth + 1);
            } else if kind.is_file()
                && kind.permissions().mode() & 0o222 != 0
                && !LIVELY.iter().any(|lively| name.to_string_lossy().ends_with(lively))
                && let Ok(mut text) = fs::read(&path)
            {
                text.truncate(LONGEST);
                self.settings.insert(path, text);
            }
        }
    }

    /// Returns the numbers of settings and threads.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        (self.settings.len(), self.threads.len())
    }

    /// Returns the differences, a line each. New and ended threads are not differences.
    #[must_use]
    pub fn changes(&self, now: &Self) -> Vec<String> {
        let show = |text: Option<&Vec<u8>>| {
            text.map_or("not there".to_owned(), |text| {
                format!("`{}`", String::from_utf8_lossy(text).escape_debug())
            })
        };
        let mut paths: Vec<_> = self.settings.keys().chain(now.settings.keys()).collect();
        paths.sort();
        paths.dedup();
        let settings = paths.into_iter().filter_map(|path| {
            let (before, after) = (self.settings.get(path), now.settings.get(path));
            let differ = before != after;
            differ.then(|| format!("{}: {}, was {}", path.display(), show(after), show(before)))
        });
        let threads = self.threads.iter().filter_map(|(thread, before)| {
            let after = now.threads.get(thread).filter(|after| *after != before)?;
            Some(format!("thread {thread}: {after}, was {before}"))
        });
        settings.chain(threads).collect()
    }

    /// Returns the threads that the kernel has moved and only the kernel can place: a line each. It
    /// also moves them without any cause by us: a work queue's rescuer goes where it is needed, and
    /// up to Linux 6.1 the end of a partition of CPUs lets it run on all.
    #[must_use]
    pub fn moved_by_kernel(&self, now: &Self) -> Vec<String> {
        let moved = self.bound.iter().filter_map(|(thread, before)| {
            let after = now.bound.get(thread).filter(|after| *after != before)?;
            Some(format!("thread {thread}: CPUs {after}, was {before}; only the kernel places it"))
        });
        moved.collect()
    }
}

/// A thread by its number and start time, with its CPUs, class and group.
struct Thread {
    name: String,
    cpus: String,
    how: String,
    is_bound: bool,
}

fn threads(root: &Path) -> Vec<Thread> {
    let below = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let processes = below(root.join("proc")).filter(|entry| {
        entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit())
    });
    let tasks = processes.flat_map(|process| below(process.path().join("task")));
    tasks.filter_map(|task| thread(&task.path())).collect()
}

/// Reads proc_pid_stat(5), fields 1, 2, 9, 22, 40 and 41, proc_pid_status(5) and
/// proc_pid_cgroup(5).
fn thread(folder: &Path) -> Option<Thread> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let stat = Stat::read(folder)?;
    let field = |number| stat.field::<String>(number).unwrap_or_default();
    let status = read("status")?;
    let allowed = value(&status, "Cpus_allowed_list")?;
    let group = read("cgroup")?.replace('\n', " ");
    let name = format!("{} ({}), started {}", folder.file_name()?.to_str()?, stat.name, field(22));
    let how = format!("class {}:{}, group {group}", field(41), field(40)).trim_end().to_owned();
    let is_bound = stat.is_bound();
    Some(Thread { name, cpus: allowed.to_owned(), how, is_bound })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn task(root: &Path, id: u32, cpus: &str) {
        flagged(root, id, cpus, 7);
    }

    fn flagged(root: &Path, id: u32, cpus: &str, flags: u64) {
        let folder = format!("proc/{id}/task/{id}");
        let mut fields = vec!["7".to_owned(); 50];
        fields[9 - 5] = flags.to_string();
        let stat = format!("{id} (a) b) S 1 {}", fields.join(" "));
        put(root, &format!("{folder}/stat"), &stat);
        put(root, &format!("{folder}/status"), &format!("Name:\ta\nCpus_allowed_list:\t{cpus}\n"));
        put(root, &format!("{folder}/cgroup"), "0::/\n");
    }

    #[test]
    fn every_change_is_found_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        put(root, "proc/irq/5/smp_affinity_list", "0-3\n");
        put(root, "sys/fs/cgroup/cgroup.subtree_control", "\n");
        put(root, "sys/fs/cgroup/cgroup.procs", "1\n");
        task(root, 1, "0-3");
        task(root, 2, "0-3");
        let before = MachineState::take(root);
        assert_eq!(before.count(), (3, 2), "{before:?}");
        put(root, "sys/fs/cgroup/cgroup.procs", "1\n2\n");
        task(root, 3, "1");
        assert!(before.changes(&MachineState::take(root)).is_empty());
        put(root, "proc/irq/5/smp_affinity_list", "0-2\n");
        put(root, "sys/fs/cgroup/mine/cpuset.cpus", "3\n");
        task(root, 2, "0-2");
        let changes = before.changes(&MachineState::take(root));
        let found: Vec<_> =
            changes.iter().map(|line| line.trim_start_matches(root.to_str().unwrap())).collect();
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(found[0], "/proc/irq/5/smp_affinity_list: `0-2\\n`, was `0-3\\n`");
        assert!(found[2].ends_with("cpuset.cpus: `3\\n`, was not there"), "{found:?}");
        assert!(found[3].starts_with("thread 2 (a) b), started 7: CPUs 0-2"), "{found:?}");
    }

    #[test]
    fn a_thread_that_only_the_kernel_places_is_told_but_no_change() {
        let root = tempfile::tempdir().unwrap();
        // The flags of a rescuer and of a user's thread, as Linux 6.1 shows them.
        flagged(root.path(), 3, "2", 0x0420_8060);
        flagged(root.path(), 200, "2", 0x0040_0000);
        let before = MachineState::take(root.path());
        flagged(root.path(), 3, "0-3", 0x0420_8060);
        let after = MachineState::take(root.path());
        assert!(before.changes(&after).is_empty());
        let moved = before.moved_by_kernel(&after);
        assert_eq!(moved.len(), 1);
        assert!(moved[0].starts_with("thread 3 (a) b), started 7: CPUs 0-3, was 2;"), "{moved:?}");
        flagged(root.path(), 200, "0-3", 0x0040_0000);
        assert_eq!(before.changes(&MachineState::take(root.path())).len(), 1);
    }
}
