//! The cpuset controller, enabled for the children of a group
//! (Documentation/admin-guide/cgroup-v2.rst, "Enabling and Disabling").

use super::entry::UndoOutcome;
use super::file::found;
use super::paths::{GroupPath, Place, Root};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A group whose children got cpusets.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct OfCpusets {
    pub(super) group: GroupPath,
}

impl OfCpusets {
    fn file(&self, root: &Root) -> io::Result<PathBuf> {
        Ok(root.find(&self.group)?.join("cgroup.subtree_control"))
    }

    /// Returns whether the children have cpusets.
    pub(super) fn is_on(&self, root: &Root) -> io::Result<bool> {
        Ok(fs::read_to_string(self.file(root)?)?.split_whitespace().any(|name| name == "cpuset"))
    }

    pub(super) fn apply(&self, root: &Root) -> io::Result<()> {
        fs::write(self.file(root)?, "+cpuset")
    }

    pub(super) fn undo(&self, root: &Root) -> io::Result<UndoOutcome> {
        if !found(self.is_on(root))?.unwrap_or(false) {
            return Ok(UndoOutcome::Nothing);
        }
        let groups = fs::read_dir(root.find(&self.group)?)?.flatten().map(|entry| entry.path());
        if groups.filter(|path| path.is_dir()).any(|group| is_in_use(&group)) {
            return Ok(UndoOutcome::Left);
        }
        match fs::write(self.file(root)?, "-cpuset") {
            // A child has enabled the controller for its own children.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(UndoOutcome::Left),
            written => written.map(|()| UndoOutcome::PutBack),
        }
    }
}

impl fmt::Display for OfCpusets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cpusets of groups (off)", self.group.path().display())
    }
}

/// Returns whether a setting exists that would be lost with a group's cpuset.
fn is_in_use(group: &Path) -> bool {
    let is_set =
        |name: &str| fs::read_to_string(group.join(name)).is_ok_and(|text| !text.trim().is_empty());
    is_set("cpuset.cpus") || is_set("cpuset.mems")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a group of plain files, with cpusets enabled, and one child that has such a setting.
    fn group(cpus: &str) -> (tempfile::TempDir, Root, OfCpusets) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let control = OfCpusets { group: root.inner(folder.path()).unwrap() };
        fs::write(control.file(&root).unwrap(), "cpuset cpu\n").unwrap();
        fs::create_dir(folder.path().join("child")).unwrap();
        fs::write(folder.path().join("child/cpuset.cpus"), cpus).unwrap();
        (folder, root, control)
    }

    #[test]
    fn it_is_switched_off_again_unless_somebody_relies_on_it() {
        let (_folder, root, unused) = group("\n");
        assert!(unused.is_on(&root).unwrap());
        assert_eq!(unused.undo(&root).unwrap(), UndoOutcome::PutBack);
        assert_eq!(
            fs::read_to_string(unused.file(&root).unwrap()).unwrap(),
            "-cpuset",
            "as the kernel takes it"
        );
        assert_eq!(unused.undo(&root).unwrap(), UndoOutcome::Nothing, "it is off");
        let (folder, root, used) = group("2-3\n");
        assert_eq!(used.undo(&root).unwrap(), UndoOutcome::Left);
        assert_eq!(fs::read_to_string(used.file(&root).unwrap()).unwrap(), "cpuset cpu\n");
        drop(folder);
        assert_eq!(used.undo(&root).unwrap(), UndoOutcome::Nothing, "the group is gone");
    }
}
