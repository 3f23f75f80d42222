//! Small files, written at once.

use crate::part::{inherit, with_ending};
use crate::place::{Place, duplicate, follow, is_place_of_devices};
use crate::step::{name_whole, step};
use crate::{Existing, OutputError, OutputFile};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Temporary names of one process and file.
const NAMES_MAX: u32 = 1000;

/// Writes a file of these bytes, which a user has named.
///
/// # Errors
/// [`OutputError`], as of [`OutputFile::create`]; an old file is unchanged then, and no part is
/// left.
pub fn write_whole(path: &Path, bytes: &[u8], existing: Existing) -> Result<(), OutputError> {
    let mut file = OutputFile::create(path, existing)?;
    if let Err(error) = file.write_all(bytes) {
        // A half of a small file is useless; drop removes the empty part.
        let _ = file.set_len(0);
        return Err(file.fail(error));
    }
    file.complete()
}

/// Replaces a file of the program's own, which nobody else writes: readers find the old one or the
/// new one, also if this process is killed. Several processes may do it at the same time.
///
/// # Errors
/// [`OutputError`]; the old file is unchanged then.
pub fn update_whole(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    replace(path, bytes, false)
}

/// As [`update_whole`], and the bytes are on the disk when it returns.
///
/// # Errors
/// [`OutputError`]; the old file is unchanged then.
pub fn store_whole(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    replace(path, bytes, true)
}

fn replace(path: &Path, bytes: &[u8], lasts: bool) -> Result<(), OutputError> {
    let fail = |source: io::Error| OutputError::of(path, source);
    let (target, old) = match follow(path, 1)? {
        Place::Regular(target, _) if is_place_of_devices(&target) => {
            return Err(OutputError::NoDevice { path: path.to_owned() });
        }
        Place::Regular(target, old) => (target, old),
        Place::Special(at) => {
            let mut file = File::options().write(true).open(at).map_err(fail)?;
            return file.write_all(bytes).map_err(fail);
        }
        Place::Descriptor(number) => {
            return duplicate(number).and_then(|mut file| file.write_all(bytes)).map_err(fail);
        }
    };
    for number in 0..NAMES_MAX {
        let part = with_ending(&target, &format!(".{}-{number}.part", std::process::id()));
        let mut file = match File::options().write(true).create_new(true).open(&part) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            file => file.map_err(fail)?,
        };
        let written = (|| {
            old.as_ref().map_or(Ok(()), |old| inherit(&file, old))?;
            file.write_all(bytes)?;
            if lasts {
                return name_whole(&file, &part, &target);
            }
            step("rename", || fs::rename(&part, &target))
        })();
        if written.is_err() {
            // A file that cannot be removed either is left.
            let _ = fs::remove_file(&part);
        }
        return written.map_err(fail);
    }
    Err(fail(io::ErrorKind::AlreadyExists.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::STEPS;

    const ALL: [&str; 3] = ["sync the file", "rename", "sync the folder"];

    #[test]
    fn the_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_promise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_whole(&path, b"all", Existing::Refuse).unwrap();
        assert_eq!(STEPS.take(), ALL);
        store_whole(&path, b"new").unwrap();
        assert_eq!(STEPS.take(), ALL);
        update_whole(&path, b"newer").unwrap();
        assert_eq!(STEPS.take(), ["rename"]);
        assert_eq!(fs::read(&path).unwrap(), b"newer");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no part is left");
    }

    #[test]
    fn what_cannot_be_written_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        write_whole(&folder.path().join("no/a"), b"new", Existing::Replace).unwrap_err();
        for write in [store_whole, update_whole] {
            write(&folder.path().join("no/a"), b"new").unwrap_err();
            write(folder.path(), b"new").unwrap_err();
        }
        write_whole(folder.path(), b"new", Existing::Replace).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
