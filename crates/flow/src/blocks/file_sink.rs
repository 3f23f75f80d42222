//! Items into a file.

mod direct;

use super::whole::name_whole;
use crate::{Block, BlockError, BlockMemory, Context, In, Item, Ports, Work};
use direct::{BLOCK_BYTES, DirectWriter, WRITE_BYTES_MIN};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Small slices are gathered to this many bytes.
const BUFFER_BYTES: usize = 256 << 10;

/// The error of a file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}{}", path.display(), hint(source))]
pub struct FileSinkError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
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

/// Writes items into a file in their memory format.
///
/// The file gets its name when all of it is on the disk; until then it is called `NAME.part`. So a
/// file `NAME` is always complete, even after a power failure. After a failure the part remains.
/// Without an item no file is written, and an earlier file of that name remains. A file that
/// another of these blocks reads or writes is refused (advisory locks, flock(2)). Pipes and devices
/// are written directly.
///
/// Ports: `in`.
#[derive(Debug, Ports)]
pub struct FileSink<T: Item> {
    /// Items.
    pub input: In<T>,
    path: PathBuf,
    /// The file was in use when this block was made. A source of the same graph may have read a
    /// short file to its end and closed it before this block starts.
    used: bool,
    /// The temporary name and the open file, until the end.
    part: Option<(PathBuf, BufWriter<File>)>,
    /// Whether whole blocks are to bypass the page cache where that is possible.
    wants_direct: bool,
    /// The direct writer, as long as everything so far was written through it.
    direct: Option<DirectWriter>,
}

impl<T: Item + bytemuck::NoUninit> FileSink<T> {
    /// Writes to `path`. The file is created when the graph starts.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let regular = fs::metadata(path).is_ok_and(|data| data.is_file());
        let file = if regular { File::options().write(true).open(path).ok() } else { None };
        let used = file.is_some_and(|file| refuse_if_used(&file).is_err());
        Self {
            input: In::new(),
            path: path.to_owned(),
            used,
            part: None,
            wants_direct: false,
            direct: None,
        }
    }

    /// Writes whole blocks directly from the ring to the disk, where the file system can. Fewer
    /// than 64 KiB are delayed until more come.
    ///
    /// `millstream rx --rate 100e6 --duration 5` of an emulated radio on two busy cores, ext4: the
    /// page cache took 3.2 to 5.7 s of CPU per 10⁹ samples and lost up to a third of them to the
    /// disk (`dd` got 0.43 GB/s there), this 1.9 to 2.7 s and at most 0.1 % (`dd oflag=direct`: 1.3
    /// to 1.5 GB/s, with 4 MiB a write no faster than with 1). Space reserved ahead with
    /// fallocate(2) made no difference.
    #[must_use]
    pub fn direct(mut self) -> Self {
        self.wants_direct = true;
        self.input = In::with_min_items((WRITE_BYTES_MIN / size_of::<T>().max(1)).max(1));
        self
    }

    /// Returns the temporary name of the file at `path`.
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
                // Not truncated before the lock is held: another block may be using the file.
                let file = File::options().write(true).create(true).truncate(false).open(&part)?;
                refuse_if_used(&file)?;
                file.set_len(0)?;
                (part, file)
            }
        };
        Ok((part, BufWriter::with_capacity(BUFFER_BYTES, file)))
    }

    /// Ends direct writing: the rest goes through the page cache.
    fn end_direct(&mut self) -> io::Result<()> {
        if let (Some(direct), Some((_, file))) = (self.direct.take(), &mut self.part) {
            self.input.set_min_items(1);
            file.seek(SeekFrom::Start(direct.offset))?;
        }
        Ok(())
    }

    /// Gives the gathered items to the system, so that they outlive this process.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self) -> Result<(), FileSinkError> {
        let flushed = self.part.as_mut().map_or(Ok(()), |(_, file)| file.flush());
        flushed.map_err(|source| FileSinkError { path: self.path.clone(), source })
    }

    /// Writes some of the items that are there; returns how many bytes.
    fn write(&mut self) -> io::Result<usize> {
        if let Some(direct) = &mut self.direct {
            match direct.write(bytemuck::cast_slice(self.input.slice()))? {
                // The last bytes of all, or the disk needs another alignment.
                0 => self.end_direct()?,
                written => return Ok(written),
            }
        }
        let bytes: &[u8] = bytemuck::cast_slice(self.input.slice());
        if let Some((_, file)) = &mut self.part {
            file.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn finish_file(&mut self) -> io::Result<()> {
        self.end_direct()?;
        let Some((part, mut file)) = self.part.take() else { return Ok(()) };
        file.flush()?;
        if part == self.path {
            return Ok(());
        }
        match file.get_ref().metadata()?.len() {
            0 => fs::remove_file(part),
            _ => name_whole(file.get_ref(), &part, &self.path),
        }
    }

    fn fail(&self, source: io::Error) -> BlockError {
        FileSinkError { path: self.path.clone(), source }.into()
    }
}

impl<T: Item + bytemuck::NoUninit> Block for FileSink<T> {
    fn start(&mut self) -> Result<(), BlockError> {
        let (part, file) = self.create().map_err(|source| self.fail(source))?;
        if self.wants_direct && part != self.path && BLOCK_BYTES.is_multiple_of(size_of::<T>()) {
            self.direct = DirectWriter::open(&part);
        }
        self.part = Some((part, file));
        Ok(())
    }

    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let bytes = self.write().map_err(|source| self.fail(source))?;
        self.input.consume(bytes / size_of::<T>().max(1));
        Ok(Work::Continue)
    }

    fn memory(&self) -> Option<BlockMemory> {
        Some(BlockMemory::none())
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.finish_file().map_err(|source| self.fail(source))
    }
}

impl<T: Item> Drop for FileSink<T> {
    /// After a failure the written part remains; an empty file is removed.
    fn drop(&mut self) {
        let Some((part, mut file)) = self.part.take() else { return };
        // The failure is reported already; this one would follow from it.
        let _ = file.flush();
        if part != self.path && file.get_ref().metadata().is_ok_and(|data| data.len() == 0) {
            let _ = fs::remove_file(part);
        }
    }
}

/// Locks the file until it is closed, unless it is locked already.
fn refuse_if_used(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::ResourceBusy.into()),
        // Some file systems have no locks: then the file cannot be locked already.
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
        let steps = crate::blocks::whole::STEPS.take();
        assert_eq!(steps, ["sync the file", "rename", "sync the folder"]);
        let expected: Vec<u8> = [1i16, 2, 3, -1].iter().flat_map(|x| x.to_ne_bytes()).collect();
        assert_eq!(fs::read(&path).unwrap(), expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no part is left");
    }

    #[test]
    fn around_the_page_cache_every_byte_arrives_in_its_place() {
        // Not in memory, where there is no page cache to bypass.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("out.bin");
        for count in [0u32, 1, 1023, 1024, 1025, 100_000] {
            let items: Vec<u32> = (0..count).collect();
            let mut mock = Mock::new(FileSink::<u32>::new(&path).direct());
            for piece in items.chunks(7001) {
                mock.feed("in", piece);
                mock.run().unwrap();
            }
            mock.end("in");
            mock.run().unwrap();
            let written = if count == 0 { Vec::new() } else { fs::read(&path).unwrap() };
            let expected: Vec<u8> = items.iter().flat_map(|item| item.to_ne_bytes()).collect();
            assert!(written == expected, "{count} items, {} bytes", written.len());
        }
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
