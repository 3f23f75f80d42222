//! A sink that writes sound to a WAV file.
//!
//! RIFF/WAVE as of "Multimedia Programming Interface and Data Specifications 1.0" (IBM and
//! Microsoft, 1991), 32-bit floats as of "New Multimedia Data Types and Data Techniques"
//! (Microsoft, 1994): little-endian chunks, each with its length before it.

use crate::{ITEM, Made, Sample};
use millstream_flow::blocks::{FileSink, name_whole};
use millstream_flow::registry::{BlockType, ParameterKind, Parameters, discard};
use millstream_flow::{Block, BlockError, Context, Counter, In, Item, Metric, Ports};
use millstream_flow::{Registry, Work};
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Small slices are gathered to this many bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// The bytes around the samples: `WAVE`, and the chunks `fmt `, `fact` and the head of `data`.
const HEADER_BYTES: usize = 56;

/// The format of samples in the file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WavFormat {
    /// 16-bit integers; full scale is 1.
    Int16,
    /// 32-bit floats.
    Float32,
}

/// The error of a WAV file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WavError {
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is too long: its lengths have 32 bits.
    #[error(
        "{} would be longer than 4 GiB, the limit of a WAV file: end the graph earlier (block \
         head), or use file_sink",
        path.display()
    )]
    TooLong {
        /// The file.
        path: PathBuf,
    },
}

/// Writes a WAV file: of real items one channel, of complex ones two (left is the real part).
///
/// Like other files of this library it is called `NAME.part` until it is complete and on the disk.
/// Without items there is no file.
///
/// Ports: `in`. Metrics: `clipped`, values beyond full scale, which 16 bits cannot hold.
#[derive(Debug, Ports)]
pub struct WavSink<T: Item> {
    input: In<T>,
    path: PathBuf,
    rate_hz: u32,
    format: WavFormat,
    file: Option<BufWriter<File>>,
    data_bytes: u64,
    clipped: Counter,
}

/// An item with one or more channels of sound.
pub trait Sound: Item {
    /// The number of channels.
    const CHANNELS: u16;
    /// Returns the value of each channel.
    fn channels(&self) -> impl Iterator<Item = f32>;
}

impl Sound for f32 {
    const CHANNELS: u16 = 1;
    fn channels(&self) -> impl Iterator<Item = f32> {
        std::iter::once(*self)
    }
}

impl Sound for Sample {
    const CHANNELS: u16 = 2;
    fn channels(&self) -> impl Iterator<Item = f32> {
        [self.re, self.im].into_iter()
    }
}

impl WavFormat {
    fn value_bytes(self) -> u16 {
        match self {
            Self::Int16 => 2,
            Self::Float32 => 4,
        }
    }

    /// Returns the format's number in `fmt `.
    fn tag(self) -> u16 {
        match self {
            Self::Int16 => 1,
            Self::Float32 => 3,
        }
    }
}

impl<T: Sound> WavSink<T> {
    /// Creates a sink to `path`, at `rate_hz` items per second. The file is created when the graph
    /// starts.
    #[must_use]
    pub fn new(path: &Path, rate_hz: u32, format: WavFormat) -> Self {
        let (path, data_bytes) = (path.to_owned(), 0);
        let (input, clipped) = (In::new(), Counter::default());
        Self { input, path, rate_hz, format, file: None, data_bytes, clipped }
    }

    fn item_bytes(&self) -> u16 {
        T::CHANNELS * self.format.value_bytes()
    }

    fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            header[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let frames = self.data_bytes / u64::from(self.item_bytes());
        let length = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
        put(b"RIFF");
        put(&length(HEADER_BYTES as u64 - 8 + self.data_bytes));
        put(b"WAVEfmt ");
        put(&16u32.to_le_bytes());
        put(&self.format.tag().to_le_bytes());
        put(&T::CHANNELS.to_le_bytes());
        put(&self.rate_hz.to_le_bytes());
        put(&self.rate_hz.saturating_mul(self.item_bytes().into()).to_le_bytes());
        put(&self.item_bytes().to_le_bytes());
        put(&(8 * self.format.value_bytes()).to_le_bytes());
        // Floats need this chunk, and integers may have it.
        put(b"fact");
        put(&4u32.to_le_bytes());
        put(&length(frames));
        put(b"data");
        put(&length(self.data_bytes));
        header
    }

    fn create(&mut self) -> io::Result<()> {
        let file = File::create(FileSink::<u8>::part_of(&self.path))?;
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, file);
        file.write_all(&self.header())?;
        self.file = Some(file);
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut clipped = 0;
        for value in self.input.slice().iter().flat_map(Sound::channels) {
            match self.format {
                WavFormat::Float32 => file.write_all(&value.to_le_bytes())?,
                WavFormat::Int16 => {
                    clipped += u64::from(!(-1.0..=1.0).contains(&value));
                    // NaN becomes silence.
                    let whole = (value.clamp(-1.0, 1.0) * f32::from(i16::MAX)).round() as i16;
                    file.write_all(&whole.to_le_bytes())?;
                }
            }
        }
        self.clipped.add(clipped);
        Ok(())
    }

    /// Writes the lengths into the file, and renames it.
    fn finish_file(&mut self) -> io::Result<()> {
        let header = self.header();
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let part = FileSink::<u8>::part_of(&self.path);
        if self.data_bytes == 0 {
            return fs::remove_file(part);
        }
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header)?;
        file.flush()?;
        name_whole(file.get_ref(), &part, &self.path)
    }

    fn fail(&self, source: io::Error) -> BlockError {
        WavError::Write { path: self.path.clone(), source }.into()
    }
}

impl<T: Sound> Block for WavSink<T> {
    fn start(&mut self) -> Result<(), BlockError> {
        self.create().map_err(|source| self.fail(source))
    }

    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let items = self.input.slice().len();
        let bytes = self.data_bytes + items as u64 * u64::from(self.item_bytes());
        if bytes > u64::from(u32::MAX) - HEADER_BYTES as u64 {
            return Err(WavError::TooLong { path: self.path.clone() }.into());
        }
        self.write().map_err(|source| self.fail(source))?;
        self.data_bytes = bytes;
        self.input.consume(items);
        Ok(Work::Continue)
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.finish_file().map_err(|source| self.fail(source))
    }

    fn metrics(&self) -> Vec<(&'static str, Metric)> {
        vec![("clipped", Metric::from(&self.clipped))]
    }
}

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        BlockType::declare(
            "wav_sink",
            "Writes sound to a WAV file, named .part until it is complete.",
        )
        .required("path", ParameterKind::Text, "the file")
        .required("rate_hz", ParameterKind::Integer, "items per second")
        .choice("format", &["int16", "float32"], "how values lie in the file")
        .choice("item", &["f32", "cf32"], ITEM)
        .example("path = \"out.wav\"\nrate_hz = 48000")
        .incidental("path")
        .writes(discard, make),
    );
}

fn make(parameters: &Parameters) -> Made {
    let path = Path::new(parameters.text("path"));
    let rate_hz = u32::try_from(parameters.integer("rate_hz")).ok().filter(|rate| *rate > 0);
    let rate_hz = rate_hz.ok_or_else(|| parameters.wrong("rate_hz", "1 to 4294967295"))?;
    let format = match parameters.text("format") {
        "float32" => WavFormat::Float32,
        _ => WavFormat::Int16,
    };
    match parameters.text("item") {
        "cf32" => Ok(Box::new(WavSink::<Sample>::new(path, rate_hz, format))),
        _ => Ok(Box::new(WavSink::<f32>::new(path, rate_hz, format))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    fn written<T: Sound>(format: WavFormat, items: &[T]) -> (Option<Vec<u8>>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.wav");
        let mut mock = Mock::new(WavSink::<T>::new(&path, 48_000, format));
        mock.feed("in", items);
        mock.run().unwrap();
        assert!(!path.exists(), "not before it is whole");
        mock.end("in");
        mock.run().unwrap();
        let clipped = mock.block.clipped.get();
        drop(mock);
        let bytes = fs::read(&path).ok();
        let files = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, usize::from(bytes.is_some()), "no part is left");
        (bytes, clipped)
    }

    #[test]
    fn real_items_are_one_channel_of_whole_numbers() {
        let (bytes, clipped) = written(WavFormat::Int16, &[0.0f32, 0.5, -1.0, 1.5, f32::NAN]);
        let mut expected = Vec::new();
        expected.extend(b"RIFF\x3a\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00");
        // 48 000 items and 96 000 bytes a second, 2 bytes an item, 16 bits a value.
        expected.extend(b"\x80\xbb\x00\x00\x00\x77\x01\x00\x02\x00\x10\x00");
        expected.extend(b"fact\x04\x00\x00\x00\x05\x00\x00\x00data\x0a\x00\x00\x00");
        for value in [0i16, 16384, -32767, 32767, 0] {
            expected.extend(value.to_le_bytes());
        }
        assert_eq!((bytes, clipped), (Some(expected), 2));
    }

    #[test]
    fn complex_items_are_two_channels_and_floats_stay_as_they_are() {
        let (bytes, clipped) = written(WavFormat::Float32, &[Sample::new(0.25, -7.5)]);
        let bytes = bytes.unwrap();
        assert_eq!(bytes[20..24], [3, 0, 2, 0], "floats, two channels");
        assert_eq!(bytes[32..36], [8, 0, 32, 0]);
        assert_eq!(bytes[56..60], 0.25f32.to_le_bytes());
        assert_eq!(bytes[60..], (-7.5f32).to_le_bytes());
        assert_eq!(clipped, 0);
    }

    #[test]
    fn without_an_item_there_is_no_file() {
        assert_eq!(written::<f32>(WavFormat::Int16, &[]), (None, 0));
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let path = Path::new("/not/there/out.wav");
        let mut mock = Mock::new(WavSink::<f32>::new(path, 8000, WavFormat::Int16));
        mock.feed("in", &[0.0_f32]);
        let error = mock.run().unwrap_err().to_string();
        assert!(error.contains("cannot write /not/there/out.wav: No such file"), "{error}");
    }
}
