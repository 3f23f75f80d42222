//! The order in which a file becomes complete.

use std::fs::File;
use std::io;
use std::path::Path;

/// Makes the names in the folder of `path` last.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match File::open(folder.unwrap_or(Path::new(".")))?.sync_all() {
        // Not every file system can, or needs to.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Runs `act`; tests record the order.
pub(crate) fn step<T>(_name: &'static str, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
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
