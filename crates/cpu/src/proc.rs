//! Files of a process or thread in its folder, `/proc/PID` or `/proc/PID/task/TID`.

use std::fs;
use std::path::Path;
use std::str::FromStr;

/// The contents of `stat` (proc_pid_stat(5)).
#[derive(Clone, Debug)]
pub struct Stat {
    /// The name, which may hold any characters, parentheses too.
    pub name: String,
    /// Field 3 and those after it.
    fields: String,
}

impl Stat {
    /// Reads the file of a folder; `None` if its process or thread has ended.
    #[must_use]
    pub fn read(folder: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(folder.join("stat")).ok()?)
    }

    /// Parses the text of the file; `None` if it has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (head, fields) = text.rsplit_once(") ")?;
        let (_, name) = head.split_once('(')?;
        Some(Self { name: name.to_owned(), fields: fields.to_owned() })
    }

    /// Returns a field by its number in the manual page, from 3.
    #[must_use]
    pub fn field<T: FromStr>(&self, number: usize) -> Option<T> {
        self.fields.split_ascii_whitespace().nth(number - 3)?.parse().ok()
    }

    /// Whether sched_setaffinity(2) refuses the thread because the kernel places it
    /// (`PF_NO_SETAFFINITY`, include/linux/sched.h).
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.field(9).is_some_and(|flags: u64| flags & 0x0400_0000 != 0)
    }
}

/// Returns the value of the first line `key: value`, as in `status` (proc_pid_status(5)).
#[must_use]
pub fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find_map(|(name, value)| (name.trim() == key).then(|| value.trim()))
}

/// Returns the control group of this process in the hierarchy of a controller of version 1, or of
/// version 2, without the slash at its beginning (cgroups(7), "/proc/\[pid\]/cgroup").
#[must_use]
pub fn own_group(root: &Path, controller: Option<&str>) -> Option<String> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(":/")?;
        let is_it = match controller {
            Some(name) => controllers.split(',').any(|one| one == name),
            None => controllers.is_empty(),
        };
        is_it.then(|| path.trim_start_matches('/').to_owned())
    })
}

/// Reads the effective capabilities of the process or thread with this folder, a bit each.
#[must_use]
pub fn capabilities(folder: &Path) -> Option<u64> {
    let status = fs::read_to_string(folder.join("status")).ok()?;
    u64::from_str_radix(value(&status, "CapEff")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_process_is_below_the_root_of_its_hierarchy() {
        let root = tempfile::tempdir().unwrap();
        let group = |controller| own_group(root.path(), controller);
        assert_eq!(group(None), None);
        let file = root.path().join("proc/self/cgroup");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "4:cpu,cpuacct:/radio\n3:cpuset://odd\n0::/user.slice\n").unwrap();
        assert_eq!(group(Some("cpu")).as_deref(), Some("radio"));
        assert_eq!(group(Some("cpuset")).as_deref(), Some("odd"), "never an absolute path");
        assert_eq!(group(None).as_deref(), Some("user.slice"));
        assert_eq!(group(Some("memory")), None);
    }
}
