//! Files that are complete or absent, even if the machine stops at any moment.
//!
//! A file is written under another name. Its bytes reach the disk (fsync(2)) before it gets its own
//! name, and the folder does before the file is reported as written: without the first there can be
//! an empty file of that name after a power failure, without the second no file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Gives the file `part`, all of which was written through `file`, the name `path`.
///
/// # Errors
/// The file system's; `part` still exists then.
pub fn name_whole(file: &File, part: &Path, path: &Path) -> io::Result<()> {
    step("sync the file", || file.sync_all())?;
    step("rename", || fs::rename(part, path))?;
    step("sync the folder", || sync_folder(path))
}

/// Writes a file of these bytes through `part`, which is removed in any case.
///
/// # Errors
/// The file system's; `path` is unchanged then.
pub fn write_whole(part: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(part)?;
    let written = file.write_all(bytes).and_then(|()| name_whole(&file, part, path));
    if written.is_err() {
        // A file that cannot be removed either is left.
        let _ = fs::remove_file(part);
    }
    written
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match File::open(folder.unwrap_or(Path::new(".")))?.sync_all() {
        // Not every file system can, or needs to.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Runs `act`; tests record the order.
fn step(_name: &'static str, act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    #[cfg(test)]
    STEPS.with_borrow_mut(|steps| steps.push(_name));
    act()
}

#[cfg(test)]
thread_local! {
    /// The steps that the calling thread has done.
    pub(super) static STEPS: std::cell::RefCell<Vec<&'static str>> = const {
        std::cell::RefCell::new(Vec::new())
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_promise() {
        let folder = tempfile::tempdir().unwrap();
        let (part, path) = (folder.path().join("a.part"), folder.path().join("a"));
        write_whole(&part, &path, b"all").unwrap();
        assert_eq!(STEPS.take(), ["sync the file", "rename", "sync the folder"]);
        assert_eq!((fs::read(&path).unwrap(), part.exists()), (b"all".to_vec(), false));
    }

    #[test]
    fn what_cannot_be_written_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        write_whole(&folder.path().join("no/a.part"), &path, b"new").unwrap_err();
        // A name that is taken by a folder.
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        let part = folder.path().join("taken.part");
        write_whole(&part, &taken, b"new").unwrap_err();
        assert_eq!((fs::read(&path).unwrap(), part.exists()), (b"old".to_vec(), false));
    }
}
