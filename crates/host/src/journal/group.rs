//! A control group that was made, and the threads moved into it (cgroups(7), cpuset(7),
//! Documentation/admin-guide/cgroup-v2.rst).

use super::file::found;
use super::paths::{GroupPath, MadePath, Place, Root};
use millstream_cpu::CpuSet;
use millstream_cpu::folders::numbers;
use millstream_cpu::proc::Stat;
use millstream_cpu::sched::{self, Class};
use rustix::thread::{CpuSet as Mask, Pid, sched_getaffinity};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The destinations of a group's members when it is removed: where they came from.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Origins {
    /// The group of the processes that entered by themselves, and of those that they started.
    /// `None`, or a removed group: the parent.
    pub guests: Option<PathBuf>,
    /// Threads of the parent that may have been moved in.
    pub residents: Vec<i32>,
}

/// A folder of a control group. Undoing moves its members back and removes it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct OfGroup {
    pub(super) path: MadePath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guests: Option<GroupPath>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    residents: Vec<i32>,
}

impl OfGroup {
    pub(super) fn of(root: &Root, path: &Path, origins: Origins) -> io::Result<Self> {
        let guests = origins.guests.map(|group| root.inner(&group)).transpose()?;
        Ok(Self { path: root.inner(path)?, guests, residents: origins.residents })
    }

    pub(super) fn apply(&self, root: &Root) -> io::Result<()> {
        fs::create_dir(root.room(&self.path)?)
    }

    pub(super) fn undo(&self, root: &Root) -> io::Result<bool> {
        let Some(path) = found(root.find(&self.path))?.filter(|path| path.is_dir()) else {
            return Ok(false);
        };
        let parent = path.parent().unwrap_or(&path);
        // A partition (version 2) returns its CPUs first.
        let partition = path.join("cpuset.cpus.partition");
        if partition.exists() {
            fs::write(partition, "member")?;
        }
        // Processes that start others meanwhile are moved in a later round, and those that are
        // ending need a moment to disappear.
        const ROUNDS: usize = 100;
        const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);
        for round in 0..ROUNDS {
            if round > 0 {
                std::thread::sleep(PAUSE);
            }
            let (file, members) = members(&path)?;
            for member in members.lines() {
                let home = self.home_of(root, member);
                let home = home.as_deref().unwrap_or(parent);
                // A thread that has ended meanwhile does not matter. A group may have become unable
                // to take members (version 2: when its own children get controllers).
                if fs::write(home.join(file), member).is_err() && home != parent {
                    let _ = fs::write(parent.join(file), member);
                }
            }
            match fs::remove_dir(&path) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                // The kernel removes a group with its files; a machine of files does not.
                Err(error)
                    if error.kind() == io::ErrorKind::DirectoryNotEmpty && !root.is_live() =>
                {
                    fs::remove_dir_all(&path)?;
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "it does not become empty"))
    }

    /// Returns the destination of a member; `None`: the parent.
    fn home_of(&self, root: &Root, member: &str) -> Option<PathBuf> {
        let is_resident = member.parse().is_ok_and(|thread| self.residents.contains(&thread));
        let guests = self.guests.as_ref().filter(|_| !is_resident)?;
        root.find(guests).ok().filter(|group| group.is_dir())
    }
}

impl fmt::Display for OfGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (not there)", self.path.path().display())
    }
}

/// Returns the name of a control group's file that takes members, and the members: single threads
/// in version 1, whole processes in version 2.
fn members(group: &Path) -> io::Result<(&'static str, String)> {
    let file = if group.join("tasks").exists() { "tasks" } else { "cgroup.procs" };
    Ok((file, found(fs::read_to_string(group.join(file)))?.unwrap_or_default()))
}

/// The CPUs of threads that were pinned by others, because a move through a group may lose them;
/// and the class of threads that get another one.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct OfPins {
    pub(super) pins: Vec<Pin>,
}

/// A thread with its CPUs.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Pin {
    thread: i32,
    /// The start time, because a later thread may get the same number.
    started: u64,
    cpus: CpuSet,
    /// The scheduling class, if it is to be restored, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    /// The name, where the kernel may end the thread and start another one for the same work: the
    /// names of NAPI threads contain the number of their queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl Pin {
    /// Reads all changeable properties of a thread; `None` when it has ended.
    pub(super) fn whole(thread: u32) -> Option<Self> {
        let class = sched::of_thread(thread).map(|class| class.to_string());
        let thread = thread as i32;
        let name = fs::read_to_string(format!("/proc/{thread}/comm")).ok();
        Some(Self { thread, started: started(thread)?, cpus: allowed(thread)?, class, name })
    }

    /// Reads the CPUs of a thread; `None` when it may run anywhere or has ended.
    pub(super) fn of(thread: i32, anywhere: &CpuSet) -> Option<Self> {
        let cpus = allowed(thread)?;
        let started = started(thread)?;
        (cpus != *anywhere).then_some(Self { thread, started, cpus, class: None, name: None })
    }

    /// Returns the thread itself, or the one that the kernel has started in its place.
    fn successor(&self) -> Option<u32> {
        if started(self.thread) == Some(self.started) {
            return Some(self.thread as u32);
        }
        let name = self.name.as_ref()?;
        let is_it = |number: &u32| {
            fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|now| now == *name)
        };
        numbers("/proc".as_ref()).into_iter().find(is_it)
    }

    fn restore(&self) -> io::Result<bool> {
        let Some(thread) = self.successor() else { return Ok(false) };
        let class = self.class.as_ref().and_then(|class| class.parse::<Class>().ok());
        let class = class.filter(|class| sched::of_thread(thread) != Some(*class));
        class.map_or(Ok(()), |class| sched::set_thread(thread, class))?;
        if allowed(thread as i32).is_none_or(|now| now == self.cpus) {
            return Ok(class.is_some());
        }
        millstream_cpu::thread::confine(thread, &self.cpus)?;
        Ok(true)
    }
}

fn allowed(thread: i32) -> Option<CpuSet> {
    let mask = sched_getaffinity(Some(Pid::from_raw(thread)?)).ok()?;
    Some((0..Mask::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).collect())
}

/// Returns the start time of a thread, clock ticks since boot (proc_pid_stat(5), field 22).
fn started(thread: i32) -> Option<u64> {
    Stat::read(format!("/proc/{thread}").as_ref())?.field(22)
}

impl OfPins {
    /// Restores all threads that it can; fails with the name of each that it could not.
    pub(super) fn undo(&self) -> io::Result<bool> {
        self.undo_by(Pin::restore)
    }

    fn undo_by(&self, restore: impl Fn(&Pin) -> io::Result<bool>) -> io::Result<bool> {
        let (mut any, mut failed) = (false, Vec::new());
        for pin in &self.pins {
            match restore(pin) {
                Ok(restored) => any |= restored,
                // It has just ended, or it is a kernel thread that cannot be moved and never was.
                Err(_) if started(pin.thread) != Some(pin.started) => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                Err(error) => failed.push((pin.thread, error)),
            }
        }
        let Some(kind) = failed.first().map(|(_, error)| error.kind()) else { return Ok(any) };
        let told = failed.iter().map(|(thread, error)| format!("thread {thread}: {error}"));
        Err(io::Error::new(kind, told.collect::<Vec<_>>().join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_emptied_into_its_parent_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (Root::new(folder.path()), folder.path().join("millstream"));
        fs::write(folder.path().join("tasks"), "").unwrap();
        let group = OfGroup::of(&root, &path, Origins::default()).unwrap();
        assert!(!group.undo(&root).unwrap(), "it is not there");
        group.apply(&root).unwrap();
        assert!(group.apply(&root).is_err(), "somebody else's is not taken");
        fs::write(path.join("tasks"), "4711\n").unwrap();
        assert!(group.undo(&root).unwrap());
        assert_eq!(fs::read_to_string(folder.path().join("tasks")).unwrap(), "4711");
        assert!(!path.exists());
    }

    #[test]
    fn those_in_a_group_go_back_to_where_each_came_from() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("own");
        fs::create_dir(&own).unwrap();
        for group in [root.path(), &own] {
            fs::write(group.join("tasks"), "").unwrap();
        }
        let origins = Origins { guests: Some(own.clone()), residents: vec![12] };
        let (machine, path) = (Root::new(root.path()), root.path().join("millstream"));
        let group = OfGroup::of(&machine, &path, origins).unwrap();
        let undo = |members: &str| {
            group.apply(&machine).unwrap();
            fs::write(path.join("tasks"), members).unwrap();
            assert!(group.undo(&machine).unwrap());
        };
        let tasks = |group: &Path| fs::read_to_string(group.join("tasks")).unwrap();
        undo("12\n4711\n");
        assert_eq!((tasks(root.path()), tasks(&own)), ("12".into(), "4711".into()));
        fs::remove_dir_all(&own).unwrap();
        undo("4712\n");
        assert_eq!(tasks(root.path()), "4712", "its group is gone");
    }

    #[test]
    fn one_pin_that_cannot_be_restored_does_not_keep_the_others_from_it() {
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let pin = Pin::whole(own as u32).unwrap();
        let pins = OfPins { pins: vec![pin.clone(), pin.clone(), pin] };
        let tried = std::cell::Cell::new(0);
        let error = pins.undo_by(|_| {
            tried.set(tried.get() + 1);
            match tried.get() {
                2 => Ok(true),
                number => Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{number}"))),
            }
        });
        let (error, tried) = (error.unwrap_err(), tried.get());
        assert_eq!((tried, error.kind()), (3, io::ErrorKind::PermissionDenied));
        assert_eq!(error.to_string(), format!("thread {own}: 1; thread {own}: 3"));
    }

    #[test]
    fn a_pin_that_was_lost_comes_back() {
        let all = millstream_cpu::thread::process_cpus().unwrap();
        let Some(first) = all.iter().next().filter(|_| all.len() > 1) else { return };
        std::thread::spawn(move || {
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            millstream_cpu::thread::unpin_current_thread().unwrap();
            assert_eq!(Pin::of(thread, &all), None, "anywhere is no pin");
            millstream_cpu::thread::pin_current_thread(first).unwrap();
            let pins = OfPins { pins: vec![Pin::of(thread, &all).unwrap()] };
            assert!(!pins.undo().unwrap(), "it was never lost");
            millstream_cpu::thread::unpin_current_thread().unwrap();
            assert!(pins.undo().unwrap());
            assert_eq!(millstream_cpu::thread::allowed_cpus().unwrap(), CpuSet::from_iter([first]));
            let other = Pin { started: 1, ..pins.pins[0].clone() };
            millstream_cpu::thread::unpin_current_thread().unwrap();
            assert!(!OfPins { pins: vec![other] }.undo().unwrap(), "another thread by now");
        })
        .join()
        .unwrap();
    }
}
