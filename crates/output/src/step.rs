//! The order in which a file becomes complete.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Gives the file `part`, all of which was written through `file`, the name `path`. Its bytes reach
/// the disk (fsync(2)) before it gets the name, and the folder does before this returns: without
/// the first there can be an empty file of that name after a power failure, without the second no
/// file.
///
/// # Errors
/// The file system's; `part` still exists then.
pub fn name_whole(file: &File, part: &Path, path: &Path) -> io::Result<()> {
    name_by(file, part, path, |part, path| fs::rename(part, path))
}

pub(crate) fn name_by(
    file: &File,
    part: &Path,
    path: &Path,
    rename: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    step("sync the file", || file.sync_all())?;
    step("rename", || rename(part, path))?;
    step("sync the folder", || sync_folder(path))
}

/// Makes the names in the folder of `path` last.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match File::open(folder.unwrap_or(Path::new(".")))?.sync_all() {
        // Not every file system can, or needs to.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Runs `act`; tests record the order.
pub(crate) fn step(_name: &'static str, act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    #[cfg(test)]
    STEPS.with_borrow_mut(|steps| steps.push(_name));
    act()
}

#[cfg(test)]
thread_local! {
    /// The steps that the calling thread has done.
    pub(crate) static STEPS: std::cell::RefCell<Vec<&'static str>> = const {
        std::cell::RefCell::new(Vec::new())
    };
}
