//! A control group that was made, and what was moved (cgroups(7), cpuset(7),
//! Documentation/admin-guide/cgroup-v2.rst).

use crate::cpu_set::CpuSet;
use crate::sched::{self, Class};
use rustix::thread::{CpuSet as Mask, Pid, sched_getaffinity};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder of control groups. Undone, what is in it goes to its parent, and it is removed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct OfGroup {
    pub(super) path: PathBuf,
}

impl OfGroup {
    pub(super) fn apply(&self) -> io::Result<()> {
        fs::create_dir(&self.path)
    }

    pub(super) fn undo(&self) -> io::Result<bool> {
        let Some(parent) = self.path.parent().filter(|_| self.path.is_dir()) else {
            return Ok(false);
        };
        // A partition (version 2) gives its CPUs back first.
        let partition = self.path.join("cpuset.cpus.partition");
        if partition.exists() {
            fs::write(partition, "member")?;
        }
        // Those that start processes meanwhile are met again, and those that are ending need a
        // moment to be gone.
        const ROUNDS: usize = 100;
        const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);
        for round in 0..ROUNDS {
            if round > 0 {
                std::thread::sleep(PAUSE);
            }
            let members = Members::of(&self.path)?;
            for member in &members.tasks {
                // One that has ended meanwhile does not matter.
                let _ = fs::write(parent.join(members.file), member);
            }
            match fs::remove_dir(&self.path) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                // Folders made of plain files, in tests.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    fs::remove_dir_all(&self.path)?;
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "it does not become empty"))
    }
}

/// What is in a control group.
struct Members {
    file: &'static str,
    tasks: Vec<String>,
}

impl Members {
    fn of(group: &Path) -> io::Result<Self> {
        // Threads one by one in version 1, processes as a whole in version 2.
        let file = if group.join("tasks").exists() { "tasks" } else { "cgroup.procs" };
        let text = match fs::read_to_string(group.join(file)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        Ok(Self { file, tasks: text.lines().map(str::to_owned).collect() })
    }
}

/// Where threads may run that somebody has pinned, as a move through a group may forget it; and the
/// class of those that are given another one.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct OfPins {
    pub(super) pins: Vec<Pin>,
}

/// One thread, and where it was.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Pin {
    thread: i32,
    /// When it was started, because another one may come to have its number.
    started: u64,
    cpus: CpuSet,
    /// Its scheduling class, where that is to come back, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    /// Its name, where the kernel may end it and start another one for the same: NAPI's have the
    /// number of their queue in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl Pin {
    /// All of a thread that may be changed; none where it has gone.
    pub(super) fn whole(thread: u32) -> Option<Self> {
        let class = sched::of_thread(thread).map(|class| class.to_string());
        let thread = thread.cast_signed();
        let name = fs::read_to_string(format!("/proc/{thread}/comm")).ok();
        Some(Self { thread, started: started(thread)?, cpus: allowed(thread)?, class, name })
    }

    /// Where a thread may run, unless that is anywhere or it has gone.
    pub(super) fn of(thread: i32, anywhere: &CpuSet) -> Option<Self> {
        let cpus = allowed(thread)?;
        let started = started(thread)?;
        (cpus != *anywhere).then_some(Self { thread, started, cpus, class: None, name: None })
    }

    /// The thread itself, or the one that the kernel has started in its place.
    fn successor(&self) -> Option<u32> {
        if started(self.thread) == Some(self.started) {
            return Some(self.thread.cast_unsigned());
        }
        let name = self.name.as_ref()?;
        let is_it =
            |path: &Path| fs::read_to_string(path.join("comm")).is_ok_and(|now| now == *name);
        let mut entries = fs::read_dir("/proc").ok()?.flatten();
        entries.find_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            is_it(&entry.path()).then_some(number)
        })
    }

    fn restore(&self) -> io::Result<bool> {
        let Some(thread) = self.successor() else { return Ok(false) };
        let class = self.class.as_ref().and_then(|class| class.parse::<Class>().ok());
        let class = class.filter(|class| sched::of_thread(thread) != Some(*class));
        class.map_or(Ok(()), |class| sched::set_thread(thread, class))?;
        if allowed(thread.cast_signed()).is_none_or(|now| now == self.cpus) {
            return Ok(class.is_some());
        }
        crate::thread::confine(thread, &self.cpus)?;
        Ok(true)
    }
}

fn allowed(thread: i32) -> Option<CpuSet> {
    let mask = sched_getaffinity(Some(Pid::from_raw(thread)?)).ok()?;
    Some((0..Mask::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).collect())
}

/// When a thread was started, clock ticks since boot (proc_pid_stat(5), field 22).
fn started(thread: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(22 - 3)?.parse().ok()
}

impl OfPins {
    pub(super) fn undo(&self) -> io::Result<bool> {
        let mut any = false;
        for pin in &self.pins {
            match pin.restore() {
                Ok(restored) => any |= restored,
                // It has ended just then, or is the kernel's and cannot be moved: nor was it.
                Err(_) if started(pin.thread) != Some(pin.started) => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                Err(error) => return Err(error),
            }
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_emptied_into_its_parent_and_removed() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("tasks"), "").unwrap();
        let group = OfGroup { path: root.path().join("inner") };
        assert!(!group.undo().unwrap(), "it is not there");
        group.apply().unwrap();
        assert!(group.apply().is_err(), "somebody else's is not taken");
        fs::write(group.path.join("tasks"), "4711\n").unwrap();
        assert!(group.undo().unwrap());
        assert_eq!(fs::read_to_string(root.path().join("tasks")).unwrap(), "4711");
        assert!(!group.path.exists());
    }

    #[test]
    fn a_pin_that_was_lost_comes_back() {
        let all = crate::thread::process_cpus().unwrap();
        let Some(first) = all.iter().next().filter(|_| all.len() > 1) else { return };
        std::thread::spawn(move || {
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            crate::thread::unpin_current_thread().unwrap();
            assert_eq!(Pin::of(thread, &all), None, "anywhere is no pin");
            crate::thread::pin_current_thread(first).unwrap();
            let pins = OfPins { pins: vec![Pin::of(thread, &all).unwrap()] };
            assert!(!pins.undo().unwrap(), "it was never lost");
            crate::thread::unpin_current_thread().unwrap();
            assert!(pins.undo().unwrap());
            assert_eq!(crate::thread::allowed_cpus().unwrap(), CpuSet::from_iter([first]));
            let other = Pin { started: 1, ..pins.pins[0].clone() };
            crate::thread::unpin_current_thread().unwrap();
            assert!(!OfPins { pins: vec![other] }.undo().unwrap(), "another thread by now");
        })
        .join()
        .unwrap();
    }
}
