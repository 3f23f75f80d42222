//! A sink that writes sound to a WAV file.
//!
//! RIFF/WAVE as of "Multimedia Programming Interface and Data Specifications 1.0" (IBM and
//! Microsoft, 1991), 32-bit floats as of "New Multimedia Data Types and Data Techniques"
//! (Microsoft, 1994): little-endian chunks, each with its length before it. Lengths beyond 4 GiB as
//! of EBU Tech 3306 (RF64), whose chunk `ds64` takes the place of one called `JUNK`.

mod header;

use crate::Sample;
use header::{DATA_AT, WavHeader};
use millstream_flow::Work;
use millstream_flow::blocks::is_due;
use millstream_flow::registry::{BlockParameters, WrittenFile};
use millstream_flow::{Block, BlockError, BlockFacts, Context, Counter, In, Item, Ports};
use millstream_output::{Existing, OutputError, OutputFile};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Small slices are gathered to this many bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// The format of samples in the file.
#[derive(BlockParameters, Clone, Copy, Debug, Eq, PartialEq)]
pub enum WavFormat {
    /// 16-bit integers; full scale is 1.
    Int16,
    /// 32-bit floats.
    Float32,
}

/// Writes a WAV file: of real items one channel, of complex ones two (left is the real part).
///
/// Like other files of this library it is called `NAME.part` until it is complete and on the disk,
/// and an old one is refused unless it may be [overwritten](Self::overwrite). Its header is brought
/// up to date every second, so what a killed process leaves can be played. Without items the file
/// has only its header. In a pipe the length is unknown (0xFFFFFFFF).
///
/// Ports: `in`. Metrics: `clipped`, values beyond full scale, which 16 bits cannot hold.
#[derive(Debug, Ports)]
pub struct WavSink<T: Item> {
    input: In<T>,
    path: PathBuf,
    rate_hz: u32,
    format: WavFormat,
    existing: Existing,
    file: Option<BufWriter<OutputFile>>,
    data_bytes: u64,
    /// When the header was last right.
    updated: Option<Instant>,
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
        let (input, clipped) = (In::new(), Counter::default());
        let (path, existing) = (path.to_owned(), Existing::Refuse);
        let (file, data_bytes, updated) = (None, 0, None);
        Self { input, path, rate_hz, format, existing, file, data_bytes, updated, clipped }
    }

    /// Lets the new file replace an old one of its name, when it is complete.
    #[must_use]
    pub fn overwrite(self) -> Self {
        self.existing(Existing::Replace)
    }

    fn existing(mut self, existing: Existing) -> Self {
        self.existing = existing;
        self
    }

    fn item_bytes(&self) -> u16 {
        T::CHANNELS * self.format.value_bytes()
    }

    fn header(&self, data_bytes: Option<u64>) -> [u8; DATA_AT] {
        let (format, channels, rate_hz) = (self.format, T::CHANNELS, self.rate_hz);
        WavHeader { format, channels, rate_hz, data_bytes }.to_bytes()
    }

    fn create(&mut self) -> Result<(), OutputError> {
        let file = OutputFile::create(&self.path, self.existing)?;
        let data_bytes = file.is_regular().then_some(0);
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, file);
        file.write_all(&self.header(data_bytes)).map_err(|error| self.fail(error))?;
        self.file = Some(file);
        Ok(())
    }

    /// Gives the system all that was written, and then a header that counts it.
    fn update(&mut self) -> io::Result<()> {
        let header = self.header(Some(self.data_bytes));
        let Some(file) = &mut self.file else { return Ok(()) };
        file.flush()?;
        let file = file.get_mut();
        if file.is_regular() { file.write_all_at(&header, 0) } else { Ok(()) }
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

    fn fail(&self, source: io::Error) -> OutputError {
        OutputError::of(&self.path, source)
    }
}

impl<T: Sound> Block for WavSink<T> {
    fn start(&mut self) -> Result<(), BlockError> {
        Ok(self.create()?)
    }

    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        let items = self.input.slice().len();
        self.write().map_err(|source| self.fail(source))?;
        self.data_bytes += items as u64 * u64::from(self.item_bytes());
        self.input.consume(items);
        if is_due(&mut self.updated, context.now) {
            self.update().map_err(|source| self.fail(source))?;
        }
        Ok(Work::Continue)
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.update().map_err(|source| self.fail(source))?;
        let Some(file) = self.file.take() else { return Ok(()) };
        let file = file.into_inner().map_err(|error| self.fail(error.into_error()))?;
        Ok(file.complete()?)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.metric("clipped", &self.clipped);
    }
}

/// Writes sound to a WAV file, named .part until it is complete.
#[derive(BlockParameters)]
#[block(
    wav_sink,
    writes(discard),
    items(f32, cf32),
    example = "path = \"out.wav\"\nrate_hz = 48000"
)]
struct WavParameters {
    /// the file; -: standard output
    path: WrittenFile,
    /// items per second
    #[parameter(least = 1)]
    rate_hz: u32,
    /// how values lie in the file
    format: WavFormat,
}

impl WavParameters {
    fn make<T: Sound>(self) -> WavSink<T> {
        let WrittenFile { path, existing } = self.path;
        WavSink::new(&path, self.rate_hz, self.format).existing(existing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;
    use std::fs;

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
        expected.extend(b"RIFF\x5e\x00\x00\x00WAVEJUNK\x1c\x00\x00\x00");
        expected.extend([0; 28]);
        expected.extend(b"fmt \x10\x00\x00\x00\x01\x00\x01\x00");
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
        assert_eq!(bytes[56..60], [3, 0, 2, 0], "floats, two channels");
        assert_eq!(bytes[68..72], [8, 0, 32, 0]);
        assert_eq!(bytes[92..96], 0.25f32.to_le_bytes());
        assert_eq!(bytes[96..], (-7.5f32).to_le_bytes());
        assert_eq!(clipped, 0);
    }

    #[test]
    fn without_an_item_there_is_a_header() {
        let bytes = written::<f32>(WavFormat::Int16, &[]).0.unwrap();
        assert_eq!((bytes.len(), &bytes[88..]), (DATA_AT, &[0; 4][..]));
    }

    #[test]
    fn an_old_file_stays_unless_it_may_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.wav");
        fs::write(&path, "old").unwrap();
        let sink = || WavSink::<f32>::new(&path, 8000, WavFormat::Int16);
        let error = Mock::new(sink()).run().unwrap_err().to_string();
        assert!(error.contains("exists already"), "{error}");
        let mut mock = Mock::new(sink().overwrite());
        mock.end("in");
        mock.run().unwrap();
        assert_eq!(fs::read(&path).unwrap().len(), DATA_AT);
    }

    #[test]
    fn after_a_kill_the_header_counts_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.wav");
        let mut mock = Mock::new(WavSink::<f32>::new(&path, 8000, WavFormat::Float32));
        let part = || fs::read(folder.path().join("out.wav.part")).unwrap();
        let length = |bytes: &[u8]| u32::from_le_bytes(bytes[88..92].try_into().unwrap()) as usize;
        for round in 1..=3 {
            mock.feed("in", &[0.5f32; 1000]);
            mock.run().unwrap();
            assert_eq!(length(&part()) + DATA_AT, part().len().min(length(&part()) + DATA_AT));
            // As if a second had passed.
            mock.block.updated = None;
            mock.call().unwrap();
            assert_eq!((length(&part()), part().len()), (4000 * round, DATA_AT + 4000 * round));
        }
    }

    #[test]
    fn beyond_4_gib_the_lengths_have_64_bits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.wav");
        let mut mock = Mock::new(WavSink::<Sample>::new(&path, 8000, WavFormat::Float32));
        mock.feed("in", &[Sample::new(0.0, 0.0)]);
        mock.run().unwrap();
        // As if so much were written: a hole.
        let bytes = 5u64 << 30;
        mock.block.data_bytes = bytes;
        mock.block.update().unwrap();
        let file = mock.block.file.as_mut().unwrap().get_mut();
        file.seek_to(DATA_AT as u64 + bytes).unwrap();
        mock.feed("in", &[Sample::new(0.25, -0.25)]);
        mock.end("in");
        mock.run().unwrap();
        let mut file = fs::File::open(&path).unwrap();
        assert_eq!(file.metadata().unwrap().len(), DATA_AT as u64 + bytes + 8);
        let mut head = [0; DATA_AT];
        std::io::Read::read_exact(&mut file, &mut head).unwrap();
        assert_eq!(&head[..20], b"RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0");
        let long = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
        let lengths = [DATA_AT as u64 - 8 + bytes + 8, bytes + 8, bytes / 8 + 1];
        assert_eq!([long(20), long(28), long(36)], lengths);
        assert_eq!((&head[84..88], &head[88..92]), (&b"data"[..], &[0xff; 4][..]));
    }

    #[test]
    fn a_pipe_gets_a_file_of_unknown_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        let mut reader = fs::File::options().read(true).write(true).open(&path).unwrap();
        let mut mock = Mock::new(WavSink::<f32>::new(&path, 8000, WavFormat::Int16));
        mock.feed("in", &[1.0f32; 3]);
        mock.end("in");
        mock.run().unwrap();
        let mut bytes = [0; DATA_AT + 6];
        std::io::Read::read_exact(&mut reader, &mut bytes).unwrap();
        assert_eq!((&bytes[4..8], &bytes[88..92]), (&[0xff; 4][..], &[0xff; 4][..]));
        assert_eq!(bytes[DATA_AT..], [0xff, 0x7f, 0xff, 0x7f, 0xff, 0x7f]);
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
