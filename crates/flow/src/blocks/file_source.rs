//! Samples from a file.

mod error;
mod format;

pub use error::FileSourceError;
pub use format::SampleFormat;

use crate::registry::{BlockParameters, ParameterField, RecordingPart};
use crate::{Block, BlockError, BlockFacts, Context, Counter, Out, Ports, Work};
use crate::{ParameterKind, ParameterValue};
use millstream_output::open_input;
use num_complex::Complex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Reads complex samples from a raw I/Q file, then ends. From a pipe it takes the bytes that are
/// there, and never blocks its partition.
///
/// A sample with an infinite or NaN component becomes zero: a single one in a day's recording is no
/// reason to end, and no block downstream could use it.
///
/// Ports: `out`. Metrics: `not_finite`, the number of such samples; a large number means that the
/// file is not cf32.
#[derive(Debug, Ports)]
pub struct FileSource {
    /// Samples; full scale of sc16 is ±1.0.
    pub output: Out<Complex<f32>>,
    path: PathBuf,
    file: File,
    /// A pipe or device, whose reads may block for ever.
    may_wait: bool,
    format: SampleFormat,
    buffer: Box<[u8]>,
    /// The range of `buffer` with bytes that were read and not converted yet.
    held: Range<usize>,
    /// Samples of the file before the next one.
    samples: u64,
    /// Samples of the file before the end of the part to read.
    end: u64,
    not_finite: Counter,
}

impl FileSource {
    /// Opens a file; `-` is standard input. Without a format its extension decides (`.sc16`,
    /// `.cs16`, `.ci16`, `.cf32`, `.fc32`, `.cfile`, `.cu8`, `.ci8`, `.cs8`).
    ///
    /// # Errors
    /// [`FileSourceError`]: the file's name or size is wrong.
    pub fn open(path: &Path, format: Option<SampleFormat>) -> Result<Self, FileSourceError> {
        Self::open_sized(path, format, None)
    }

    /// Opens a file of which only the first `samples` are samples, whatever is behind them.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of_samples(
        path: &Path,
        format: SampleFormat,
        samples: u64,
    ) -> Result<Self, FileSourceError> {
        Self::open_sized(path, Some(format), Some(samples))
    }

    fn open_sized(
        path: &Path,
        format: Option<SampleFormat>,
        samples: Option<u64>,
    ) -> Result<Self, FileSourceError> {
        let path = path.to_owned();
        let extension = path.extension().and_then(|extension| extension.to_str());
        let file = open_input(&path);
        let metadata = file.as_ref().map_err(copy_error).and_then(File::metadata);
        let (file, metadata) = match (file, metadata) {
            (Ok(_), Ok(metadata)) if metadata.is_dir() => {
                return Err(FileSourceError::Read {
                    path,
                    source: io::ErrorKind::IsADirectory.into(),
                });
            }
            (Ok(file), Ok(metadata)) => (file, metadata),
            (Err(source), _) | (_, Err(source)) => {
                return Err(FileSourceError::Read { path, source });
            }
        };
        let Some(format) = format.or_else(|| extension.and_then(SampleFormat::of_source)) else {
            return Err(FileSourceError::UnknownFormat { path });
        };
        // Pipes and devices have no size; a wrong length shows at their end.
        if metadata.is_file() && samples.is_none() {
            check_size(&path, metadata.len(), format)?;
        }
        // Keeps a file sink from replacing the file while it is read. Not every file system has
        // locks.
        let _ = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared);
        let buffer = vec![0; CHUNK_BYTES].into_boxed_slice();
        let may_wait = !metadata.is_file();
        Ok(Self {
            output: Out::new(),
            path,
            file,
            may_wait,
            format,
            buffer,
            held: 0..0,
            samples: 0,
            end: samples.unwrap_or(u64::MAX),
            not_finite: Counter::new(),
        })
    }

    /// Reads only a part of the file: `count` samples from `first` on, or up to its end if that
    /// comes earlier.
    ///
    /// # Errors
    /// As [`seek`](Self::seek), and [`FileSourceError::BehindEnd`]: a part without a sample would
    /// look like a success.
    pub fn part(mut self, first: u64, count: u64) -> Result<Self, FileSourceError> {
        if first > 0 {
            let failed = |source| FileSourceError::Read { path: self.path.clone(), source };
            let metadata = self.file.metadata().map_err(failed)?;
            let samples = metadata.len() / self.format.sample_bytes() as u64;
            if metadata.is_file() && first >= samples {
                return Err(FileSourceError::BehindEnd { path: self.path, first, samples });
            }
            self.seek(first)?;
        }
        self.end = self.end.min(first.saturating_add(count));
        Ok(self)
    }

    /// Goes on at a sample of the file, counted from its first one.
    ///
    /// # Errors
    /// [`FileSourceError::Read`]: the file is a pipe, or cannot be read.
    pub fn seek(&mut self, sample: u64) -> Result<(), FileSourceError> {
        let at = SeekFrom::Start(sample.saturating_mul(self.format.sample_bytes() as u64));
        let failed = |source| FileSourceError::Read { path: self.path.clone(), source };
        self.file.seek(at).map_err(failed)?;
        (self.held, self.samples) = (0..0, sample);
        Ok(())
    }

    /// Whether a read would not block, now or within `patience`.
    fn is_readable(&self, patience: Duration) -> bool {
        let timeout = Timespec::try_from(patience).ok();
        let mut files = [PollFd::new(&self.file, PollFlags::IN)];
        // An interrupted wait counts as a short one; the read reports any other failure.
        !matches!(poll(&mut files, timeout.as_ref()), Ok(0) | Err(rustix::io::Errno::INTR))
    }

    /// Returns the number of whole samples that were read and not converted yet.
    fn samples_held(&self) -> usize {
        self.held.len() / self.format.sample_bytes()
    }

    /// Reads ahead, if nothing is read yet; returns the number of samples that the next call of
    /// `work` produces. Only for a regular file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn prepare(&mut self) -> Result<usize, FileSourceError> {
        let left = usize::try_from(self.end.saturating_sub(self.samples)).unwrap_or(usize::MAX);
        let room = self.output.slice_mut().len().min(left);
        if room > 0 && self.samples_held() == 0 {
            self.fill()?;
        }
        Ok(self.samples_held().min(room))
    }

    /// Appends as many bytes to the buffer as there are and as fit: many small reads would cost
    /// more than the conversion. Returns false at the end of the file.
    fn fill(&mut self) -> Result<bool, FileSourceError> {
        self.buffer.copy_within(self.held.clone(), 0);
        self.held = 0..self.held.len();
        loop {
            match self.file.read(&mut self.buffer[self.held.end..]) {
                Ok(0) if self.held.is_empty() && self.samples == 0 => {
                    return Err(FileSourceError::Empty { path: self.path.clone() });
                }
                Ok(0) if self.held.is_empty() => return Ok(false),
                Ok(0) => {
                    let whole = self.samples * self.format.sample_bytes() as u64;
                    let bytes = whole + self.held.len() as u64;
                    return Err(partial(&self.path, bytes, self.format));
                }
                Ok(bytes) => {
                    self.held.end += bytes;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(FileSourceError::Read { path: self.path.clone(), source });
                }
            }
        }
    }
}

impl Block for FileSource {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        let left = usize::try_from(self.end.saturating_sub(self.samples)).unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(Work::Finished);
        }
        let room = self.output.slice_mut().len().min(left);
        if room == 0 {
            return Ok(Work::Continue);
        }
        if self.samples_held() == 0 {
            if self.may_wait && !self.is_readable(context.may_block) {
                return Ok(Work::Again(Duration::ZERO));
            }
            if !self.fill()? {
                return Ok(Work::Finished);
            }
        }
        let samples = self.samples_held().min(room);
        let end = self.held.start + samples * self.format.sample_bytes();
        let bytes = &self.buffer[self.held.start..end];
        let output = &mut self.output.slice_mut()[..samples];
        self.not_finite.add(self.format.convert(bytes, output));
        self.output.produce(samples);
        self.samples += samples as u64;
        self.held.start = end;
        // A pipe may give less than a sample at a time.
        Ok(if samples == 0 { Work::Again(Duration::ZERO) } else { Work::Continue })
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.metric("not_finite", &self.not_finite);
    }
}

fn copy_error(error: &io::Error) -> io::Error {
    error.kind().into()
}

fn partial(path: &Path, bytes: u64, format: SampleFormat) -> FileSourceError {
    let (format, sample_bytes) = (format.name(), format.sample_bytes());
    FileSourceError::PartialSample { path: path.to_owned(), bytes, format, sample_bytes }
}

fn check_size(path: &Path, bytes: u64, format: SampleFormat) -> Result<(), FileSourceError> {
    if bytes == 0 {
        return Err(FileSourceError::Empty { path: path.to_owned() });
    }
    if bytes % (format.sample_bytes() as u64) != 0 {
        return Err(partial(path, bytes, format));
    }
    Ok(())
}

/// Reads complex samples from a raw I/Q file.
#[derive(BlockParameters)]
#[block(file_source, reads("out: Complex<f32>"), example = "path = \"in.sc16\"")]
struct FileSourceParameters {
    /// the file; -: standard input
    #[parameter(incidental)]
    path: PathBuf,
    /// sc16, cf32, cu8, ci8, or auto: by the file's extension
    #[parameter(default = "auto", incidental)]
    format: SourceFormat,
    #[parameter(flatten)]
    part: RecordingPart,
}

/// `None`: by the file's extension.
struct SourceFormat(Option<SampleFormat>);

impl ParameterField for SourceFormat {
    const KIND: ParameterKind = ParameterKind::Text;

    fn of_value(value: &ParameterValue) -> Result<Self, String> {
        let name = value.to_string();
        let format = SampleFormat::of_source(&name);
        if format.is_none() && name != "auto" {
            return Err("sc16, cf32, cu8, ci8 or auto".to_owned());
        }
        Ok(Self(format))
    }
}

impl FileSourceParameters {
    fn make(self) -> Result<FileSource, FileSourceError> {
        FileSource::open(&self.path, self.format.0)?.part(self.part.first, self.part.most())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mock;
    use std::fs;

    fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    #[test]
    fn full_scale_of_sc16_is_one() {
        let samples = [[32767i16, -32767], [0, 16384], [-32768, 1]];
        let bytes: Vec<u8> = samples.as_flattened().iter().flat_map(|x| x.to_le_bytes()).collect();
        let (_folder, path) = file("a.sc16", &bytes);
        let mut mock = Mock::new(FileSource::open(&path, None).unwrap());
        mock.run().unwrap();
        let scale = |x: i16| f32::from(x) * (1.0 / 32767.0);
        let expected = samples.map(|[re, im]| Complex::new(scale(re), scale(im)));
        assert_eq!(expected[0].re, 1.0);
        assert_eq!(mock.take::<Complex<f32>>("out"), expected);
    }

    #[test]
    fn a_long_cf32_file_comes_back_whole() {
        let samples: Vec<Complex<f32>> =
            (0..100_000).map(|i| Complex::new(i as f32, -0.5 * i as f32)).collect();
        let (_folder, path) = file("a.cf32", bytemuck::cast_slice(&samples));
        let mut mock = Mock::with_room(FileSource::open(&path, None).unwrap(), 1000);
        mock.run().unwrap();
        assert!(mock.is_finished());
        assert_eq!(mock.take::<Complex<f32>>("out"), samples);
    }

    #[test]
    fn a_seek_goes_on_at_that_sample() {
        let samples: Vec<Complex<f32>> = (0..20_000).map(|i| Complex::new(i as f32, 0.5)).collect();
        let (_folder, path) = file("a.cf32", bytemuck::cast_slice(&samples));
        let mut mock = Mock::with_room(FileSource::open(&path, None).unwrap(), 1000);
        mock.call().unwrap();
        let first = mock.take::<Complex<f32>>("out");
        assert!(!first.is_empty() && first.len() < 15_000 && first == samples[..first.len()]);
        mock.block.seek(15_000).unwrap();
        mock.run().unwrap();
        assert_eq!(mock.take::<Complex<f32>>("out"), samples[15_000..]);
    }

    #[test]
    fn a_part_has_only_its_samples() {
        let samples: Vec<Complex<f32>> = (0..20_000).map(|i| Complex::new(i as f32, 0.5)).collect();
        let (_folder, path) = file("a.cf32", bytemuck::cast_slice(&samples));
        for (first, count, last) in
            [(0, 20_000, 20_000), (0, 1, 1), (9_000, 9_000, 18_000), (19_999, u64::MAX, 20_000)]
        {
            let source = FileSource::open(&path, None).unwrap().part(first, count).unwrap();
            let mut mock = Mock::with_room(source, 1000);
            mock.run().unwrap();
            assert!(mock.is_finished());
            let expected = &samples[first as usize..last];
            assert_eq!(mock.take::<Complex<f32>>("out"), expected, "{first} {count}");
        }
        for first in [20_000, 99_999, u64::MAX] {
            let error = FileSource::open(&path, None).unwrap().part(first, 5).unwrap_err();
            let error = error.to_string();
            assert!(error.contains("a.cf32 has 20000 samples; give a `first` below"), "{error}");
        }
    }

    #[test]
    fn files_that_are_no_samples_are_told_apart() {
        let open = |name: &str, bytes: &[u8], format| {
            let (folder, path) = file(name, bytes);
            let error = FileSource::open(&path, format).unwrap_err().to_string();
            error.replace(&format!("{}/", folder.path().display()), "")
        };
        assert_eq!(
            open("film.mp4", &[0; 8], None),
            "the name of film.mp4 does not show the sample format: set the format to sc16, cf32, \
             cu8 or ci8"
        );
        assert_eq!(open("a.sc16", &[], None), "a.sc16 is empty");
        assert_eq!(
            open("film.mp4", &[0; 9], Some(SampleFormat::Cf32)),
            "film.mp4 has 9 bytes, but each cf32 sample takes 8 bytes: the file is not complete, \
             or it is not a cf32 file"
        );
    }

    #[test]
    fn a_missing_file_or_a_folder_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none.sc16");
        let error = FileSource::open(&path, None).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot read {}: No such file", path.display())));
        let error = FileSource::open(folder.path(), None).unwrap_err().to_string();
        assert!(error.ends_with("is a directory"), "{error}");
    }

    #[test]
    fn a_sample_that_is_no_number_becomes_zero_and_counts() {
        let mut samples = [Complex::new(0.5f32, 0.5); 10];
        samples[3].re = f32::INFINITY;
        samples[7].im = f32::NAN;
        // Their sum is not finite, the values are.
        samples[8] = Complex::new(f32::MAX, f32::MAX);
        let (_folder, path) = file("a.cf32", bytemuck::cast_slice(&samples));
        let mut mock = Mock::new(FileSource::open(&path, None).unwrap());
        mock.run().unwrap();
        [samples[3], samples[7]] = [Complex::ZERO; 2];
        assert_eq!(mock.take::<Complex<f32>>("out"), samples);
        assert_eq!(mock.block.not_finite.get(), 2);
    }

    #[test]
    fn a_pipe_or_device_without_a_sample_is_empty_too() {
        let source = FileSource::open(Path::new("/dev/null"), Some(SampleFormat::Sc16));
        let error = Mock::new(source.unwrap()).run().unwrap_err().to_string();
        assert_eq!(error, "/dev/null is empty");
    }

    #[test]
    fn a_file_that_shrinks_while_it_is_read_is_told() {
        let (_folder, path) = file("a.cf32", &[0; 64]);
        let source = FileSource::open(&path, None).unwrap();
        fs::write(&path, [0; 12]).unwrap();
        let error = Mock::new(source).run().unwrap_err().to_string();
        assert!(
            error.contains("a.cf32 has 12 bytes, but each cf32 sample takes 8 bytes"),
            "{error}"
        );
    }
}
