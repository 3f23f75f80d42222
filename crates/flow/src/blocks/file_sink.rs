//! Items into a file.

use crate::registry::{BlockParameters, WrittenFile};
use crate::{Block, BlockError, BlockFacts, BlockMemory, Context, In, Item, Ports, Work};
use millstream_output::{BLOCK_BYTES, DirectWriter, WRITE_BYTES_MIN};
use millstream_output::{Existing, OutputError, OutputFile, is_in_use};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Small slices are gathered to this many bytes.
const BUFFER_BYTES: usize = 256 << 10;
/// And for this long at most.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Writes items into a file in their memory format.
///
/// The file gets its name when all of it is on the disk; until then it is called `NAME.part`. So a
/// file `NAME` is always complete, even after a power failure. After a failure the part remains.
/// Without an item the file is empty. A file that exists is refused unless it may be
/// [overwritten](Self::overwrite), and so is one that another of these blocks reads or writes
/// (advisory locks, flock(2)). Pipes and devices are written directly, and `-` is standard output:
/// see [`OutputFile`].
///
/// Ports: `in`.
#[derive(Debug, Ports)]
pub struct FileSink<T: Item> {
    /// Items.
    pub input: In<T>,
    path: PathBuf,
    existing: Existing,
    /// The file was in use when this block was made. A source of the same graph may have read a
    /// short file to its end and closed it before this block starts.
    used: bool,
    /// When everything so far was last given to the system.
    flushed: Option<Instant>,
    /// The open file, until the end.
    file: Option<BufWriter<OutputFile>>,
    /// Whether whole blocks are to bypass the page cache where that is possible.
    wants_direct: bool,
    /// The direct writer, as long as everything so far was written through it.
    direct: Option<DirectWriter>,
}

impl<T: Item + bytemuck::NoUninit> FileSink<T> {
    /// Writes to `path`. The file is created when the graph starts.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            input: In::new(),
            path: path.to_owned(),
            existing: Existing::Refuse,
            used: is_in_use(path),
            flushed: None,
            file: None,
            wants_direct: false,
            direct: None,
        }
    }

    /// Lets the new file replace an old one of its name, when it is complete.
    #[must_use]
    pub fn overwrite(self) -> Self {
        self.existing(Existing::Replace)
    }

    /// Sets what becomes of an old file of its name.
    #[must_use]
    pub fn existing(mut self, existing: Existing) -> Self {
        self.existing = existing;
        self
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

    fn create(&self) -> Result<OutputFile, OutputError> {
        if self.used {
            return Err(OutputError::of(&self.path, io::ErrorKind::ResourceBusy.into()));
        }
        OutputFile::create(&self.path, self.existing)
    }

    /// Ends direct writing: the rest goes through the page cache.
    fn end_direct(&mut self) -> io::Result<()> {
        if let (Some(direct), Some(file)) = (self.direct.take(), &mut self.file) {
            self.input.set_min_items(1);
            file.get_mut().seek_to(direct.offset)?;
        }
        Ok(())
    }

    /// Gives the gathered items to the system, so that they outlive this process.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self) -> Result<(), OutputError> {
        let flushed = self.file.as_mut().map_or(Ok(()), BufWriter::flush);
        flushed.map_err(|source| self.fail(source))
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
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn fail(&self, source: io::Error) -> OutputError {
        OutputError::of(&self.path, source)
    }
}

/// Whether a second has passed since `last`, which becomes `now` then: what a sink gathers in
/// memory is given to the system after that time, also if the process is killed.
#[must_use]
pub fn is_due(last: &mut Option<Instant>, now: Instant) -> bool {
    let due = last.is_none_or(|last| now.saturating_duration_since(last) >= FLUSH_EVERY);
    if due {
        *last = Some(now);
    }
    due
}

impl<T: Item + bytemuck::NoUninit> Block for FileSink<T> {
    fn start(&mut self) -> Result<(), BlockError> {
        let file = self.create()?;
        if self.wants_direct && BLOCK_BYTES % size_of::<T>() == 0 {
            self.direct = file.part().and_then(DirectWriter::open);
        }
        self.file = Some(BufWriter::with_capacity(BUFFER_BYTES, file));
        Ok(())
    }

    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        let bytes = self.write().map_err(|source| self.fail(source))?;
        if is_due(&mut self.flushed, context.now) {
            self.flush()?;
        }
        self.input.consume(bytes / size_of::<T>().max(1));
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.memory(BlockMemory::none());
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.end_direct().map_err(|source| self.fail(source))?;
        let Some(file) = self.file.take() else { return Ok(()) };
        let file = file.into_inner().map_err(|error| self.fail(error.into_error()))?;
        Ok(file.complete()?)
    }
}

/// Writes items to a file, named .part until it is complete.
#[derive(BlockParameters)]
#[block(file_sink, writes(discard), items(u8, cf32, f32, sc16), example = "path = \"out.u8\"")]
struct FileSinkParameters {
    /// the file; -: standard output
    path: WrittenFile,
}

impl FileSinkParameters {
    fn make<T: Item + bytemuck::NoUninit>(self) -> FileSink<T> {
        FileSink::new(&self.path.path).existing(self.path.existing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mock;
    use std::fs;

    #[test]
    fn the_file_appears_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        fs::write(&path, "old").unwrap();
        let error = Mock::new(FileSink::<u8>::new(&path)).run().unwrap_err().to_string();
        assert!(error.contains("exists already: choose another name, or add --force"), "{error}");
        let mut mock = Mock::new(FileSink::<[i16; 2]>::new(&path).overwrite());
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
    fn around_the_page_cache_every_byte_arrives_in_its_place() {
        // Not in memory, where there is no page cache to bypass.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("out.bin");
        for count in [0u32, 1, 1023, 1024, 1025, 100_000] {
            let items: Vec<u32> = (0..count).collect();
            let mut mock = Mock::new(FileSink::<u32>::new(&path).direct().overwrite());
            for piece in items.chunks(7001) {
                mock.feed("in", piece);
                mock.run().unwrap();
            }
            mock.end("in");
            mock.run().unwrap();
            let written = fs::read(&path).unwrap();
            let expected: Vec<u8> = items.iter().flat_map(|item| item.to_ne_bytes()).collect();
            assert!(written == expected, "{count} items, {} bytes", written.len());
        }
    }

    #[test]
    fn without_an_item_the_file_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        fs::write(&path, "old").unwrap();
        let mut mock = Mock::new(FileSink::<u8>::new(&path).overwrite());
        mock.end("in");
        mock.run().unwrap();
        drop(mock);
        assert_eq!(fs::read(&path).unwrap(), b"", "an old file would look like the result");
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
        let mut early = Mock::new(FileSink::<u8>::new(&path).overwrite());
        let error =
            Mock::new(FileSink::<u8>::new(&path).overwrite()).run().unwrap_err().to_string();
        let expected = "; this graph or another program reads or writes it: write elsewhere";
        assert!(error.ends_with(expected), "{error}");
        drop(source);
        let error = early.run().unwrap_err().to_string();
        assert!(error.ends_with(expected), "read to its end before the start: {error}");
        let mut first = Mock::new(FileSink::<u8>::new(&path).overwrite());
        first.feed("in", &[1u8]);
        first.run().unwrap();
        let error =
            Mock::new(FileSink::<u8>::new(&path).overwrite()).run().unwrap_err().to_string();
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
