//! Items into a file.

use crate::{Block, BlockError, Context, In, Item, PortVisitor, Work};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Small slices are gathered to this many bytes.
const BUFFER_BYTES: usize = 256 << 10;

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}{}", path.display(), hint(source))]
pub struct FileSinkError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "; free some space, or write elsewhere",
        io::ErrorKind::ResourceBusy => {
            "; this graph or another program reads or writes it: write elsewhere"
        }
        io::ErrorKind::NotFound => "; make its folder first",
        _ => "",
    }
}

/// Writes items into a file as they lie in memory.
///
/// The file gets its name when everything is written: until then it is called `NAME.part`, so
/// a file of that name is always a whole one. After a failure the part remains. Without a single
/// item there is no file, and one that was there before remains. A file that somebody reads or
/// writes through these blocks is refused (advisory locks, flock(2)). Pipes and devices are
/// written directly.
///
/// Ports: `in`.
#[derive(Debug)]
pub struct FileSink<T: Item> {
    /// Items.
    pub input: In<T>,
    path: PathBuf,
    /// Somebody used the file when this block was made. A source of the same graph may have read a
    /// short one to its end, and let go of it, before this block starts.
    used: bool,
    /// Where the bytes go until the end, and the open file.
    part: Option<(PathBuf, BufWriter<File>)>,
}

impl<T: Item + bytemuck::NoUninit> FileSink<T> {
    /// Writes to `path`. The file is created when the graph starts.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let regular = fs::metadata(path).is_ok_and(|data| data.is_file());
        let file = if regular { File::options().write(true).open(path).ok() } else { None };
        let used = file.is_some_and(|file| refuse_if_used(&file).is_err());
        Self { input: In::new(), path: path.to_owned(), used, part: None }
    }

    /// What the file at `path` is called until it is whole.
    #[must_use]
    pub fn part_of(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        name.into()
    }

    fn create(&self) -> io::Result<(PathBuf, BufWriter<File>)> {
        let (part, file) = match fs::metadata(&self.path) {
            Ok(data) if data.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(data) if !data.is_file() => {
                (self.path.clone(), File::options().write(true).open(&self.path)?)
            }
            _ if self.used => return Err(io::ErrorKind::ResourceBusy.into()),
            found => {
                if found.is_ok() {
                    refuse_if_used(&File::options().write(true).open(&self.path)?)?;
                }
                let part = Self::part_of(&self.path);
                // Not truncated before it is known to be nobody else's.
                let file = File::options().write(true).create(true).truncate(false).open(&part)?;
                refuse_if_used(&file)?;
                file.set_len(0)?;
                (part, file)
            }
        };
        Ok((part, BufWriter::with_capacity(BUFFER_BYTES, file)))
    }

    fn finish_file(&mut self) -> io::Result<()> {
        let Some((part, mut file)) = self.part.take() else { return Ok(()) };
        file.flush()?;
        if part == self.path {
            return Ok(());
        }
        match file.get_ref().metadata()?.len() {
            0 => fs::remove_file(part),
            _ => fs::rename(part, &self.path),
        }
    }

    fn fail(&self, source: io::Error) -> BlockError {
        FileSinkError { path: self.path.clone(), source }.into()
    }
}

impl<T: Item + bytemuck::NoUninit> Block for FileSink<T> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        ports.input("in", &mut self.input);
    }

    fn start(&mut self) -> Result<(), BlockError> {
        self.part = Some(self.create().map_err(|source| self.fail(source))?);
        Ok(())
    }

    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let input = self.input.slice();
        let items = input.len();
        if let Some((_, file)) = &mut self.part {
            let written = file.write_all(bytemuck::cast_slice(input));
            written.map_err(|source| self.fail(source))?;
        }
        self.input.consume(items);
        Ok(Work::Continue)
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.finish_file().map_err(|source| self.fail(source))
    }
}

impl<T: Item> Drop for FileSink<T> {
    /// After a failure: what was written remains, an empty file does not.
    fn drop(&mut self) {
        let Some((part, mut file)) = self.part.take() else { return };
        // The failure has been told already; this one would follow from it.
        let _ = file.flush();
        if part != self.path && file.get_ref().metadata().is_ok_and(|data| data.len() == 0) {
            let _ = fs::remove_file(part);
        }
    }
}

/// Locks the file until it is closed, unless somebody else has it locked.
fn refuse_if_used(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::ResourceBusy.into()),
        // Some file systems have no locks: then nobody can have one.
        Err(TryLockError::Error(_)) | Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mock;

    #[test]
    fn the_file_appears_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        fs::write(&path, "old").unwrap();
        let mut mock = Mock::new(FileSink::<[i16; 2]>::new(&path));
        mock.feed("in", &[[1i16, 2], [3, -1]]);
        mock.run().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old", "nothing is replaced before the end");
        mock.end("in");
        mock.run().unwrap();
        let expected: Vec<u8> = [1i16, 2, 3, -1].iter().flat_map(|x| x.to_ne_bytes()).collect();
        assert_eq!(fs::read(&path).unwrap(), expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no part is left");
    }

    #[test]
    fn without_an_item_there_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        fs::write(&path, "old").unwrap();
        let mut mock = Mock::new(FileSink::<u8>::new(&path));
        mock.end("in");
        mock.run().unwrap();
        drop(mock);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no part is left");
    }

    #[test]
    fn after_a_failure_the_part_remains_if_it_holds_anything() {
        let folder = tempfile::tempdir().unwrap();
        for (name, items) in [("empty", &[][..]), ("some", &[7u8, 8])] {
            let mut mock = Mock::new(FileSink::<u8>::new(&folder.path().join(name)));
            mock.feed("in", items);
            mock.run().unwrap();
        }
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(left, [folder.path().join("some.part")]);
        assert_eq!(fs::read(&left[0]).unwrap(), [7, 8]);
    }

    #[test]
    fn a_file_that_is_read_or_written_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sc16");
        fs::write(&path, [0; 64]).unwrap();
        let source = crate::blocks::FileSource::open(&path, None).unwrap();
        let mut early = Mock::new(FileSink::<u8>::new(&path));
        let error = Mock::new(FileSink::<u8>::new(&path)).run().unwrap_err().to_string();
        let expected = "; this graph or another program reads or writes it: write elsewhere";
        assert!(error.ends_with(expected), "{error}");
        drop(source);
        let error = early.run().unwrap_err().to_string();
        assert!(error.ends_with(expected), "read to its end before the start: {error}");
        let mut first = Mock::new(FileSink::<u8>::new(&path));
        first.feed("in", &[1u8]);
        first.run().unwrap();
        let error = Mock::new(FileSink::<u8>::new(&path)).run().unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
        first.end("in");
        first.run().unwrap();
        assert_eq!(fs::read(&path).unwrap(), [1]);
    }

    #[test]
    fn a_file_that_cannot_be_created_is_an_error_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no/out.bin");
        let error = Mock::new(FileSink::<u8>::new(&path)).run().unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot write {}: No such file", path.display())));
        assert!(error.ends_with("; make its folder first"), "{error}");
        let error = Mock::new(FileSink::<u8>::new(folder.path())).run().unwrap_err().to_string();
        assert!(error.ends_with("is a directory"), "{error}");
    }

    #[test]
    fn a_full_disk_is_an_error_with_a_hint() {
        // Every write to this device fails with ENOSPC (null(4)).
        let mut mock = Mock::new(FileSink::<u8>::new(Path::new("/dev/full")));
        mock.feed("in", &[1u8]);
        mock.end("in");
        let error = mock.run().unwrap_err().to_string();
        assert!(error.starts_with("cannot write /dev/full: No space left on device"), "{error}");
        assert!(error.ends_with("; free some space, or write elsewhere"), "{error}");
    }
}
