//! Raw I/Q files, repeated without end.

use super::{Antenna, Sc16, quantise, sc16, sigmf};
use crate::Error;
use millstream_dsp::chunks::Chunks;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The samples read from the file in one system call.
const CHUNK_SAMPLES: usize = 1 << 16;

/// The format of a sample in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemFormat {
    /// Little-endian signed 16-bit I and Q.
    Sc16,
    /// Little-endian 32-bit float I and Q, 1.0 = full scale.
    Cf32,
}

impl ItemFormat {
    fn bytes(self) -> usize {
        match self {
            Self::Sc16 => 4,
            Self::Cf32 => 8,
        }
    }
}

/// The arguments of [`FileAntenna::open`].
pub(super) struct OpenFile<'a> {
    /// The specification, for error texts.
    pub spec: &'a str,
    /// The file in the specification.
    pub path: PathBuf,
    /// The format in the specification, if any.
    pub format: Option<ItemFormat>,
}

impl OpenFile<'_> {
    pub(super) fn error(&self, path: &Path, reason: impl Into<String>) -> Error {
        Error::AntennaFile {
            spec: self.spec.to_owned(),
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// The samples of a file: timestamp t is sample `t % length`.
///
/// The file is read in chunks ahead of use, so a file that shrinks or fails while in use gives
/// zeros and a count, never a crash.
#[derive(Debug)]
pub struct FileAntenna {
    file: File,
    format: ItemFormat,
    length: u64,
    chunk: Vec<Sc16>,
    raw: Vec<u8>,
    chunk_start: u64,
    starved: u64,
}

impl FileAntenna {
    pub(super) fn open(request: OpenFile<'_>) -> Result<Self, Error> {
        let (path, format) = resolve(&request)?;
        let fail = |reason: String| request.error(&path, reason);
        let file = open_regular(&path).map_err(|error| fail(error.to_string()))?;
        let meta = file.metadata().map_err(|error| fail(error.to_string()))?;
        let (bytes, item) = (meta.len(), format.bytes() as u64);
        if bytes == 0 {
            return Err(fail("the file is empty".to_owned()));
        }
        if bytes % item != 0 {
            return Err(fail(format!(
                "{bytes} bytes is not a multiple of {item}, the size of a {format:?} sample: the \
                 file is truncated, or has another format"
            )));
        }
        check_content(&file, format, bytes).map_err(fail)?;
        Ok(Self {
            file,
            format,
            length: bytes / item,
            chunk: Vec::with_capacity(CHUNK_SAMPLES),
            raw: vec![0; CHUNK_SAMPLES * format.bytes()],
            chunk_start: 0,
            starved: 0,
        })
    }

    /// Loads the chunk that begins at sample `start` of the file.
    fn load(&mut self, start: u64) {
        let samples = (self.length - start).min(CHUNK_SAMPLES as u64) as usize;
        let item = self.format.bytes();
        let raw = &mut self.raw[..samples * item];
        let got = read_up_to(&self.file, raw, start * item as u64) / item;
        raw[got * item..].fill(0);
        self.starved += (samples - got) as u64;
        self.chunk.clear();
        match self.format {
            ItemFormat::Sc16 => self.chunk.extend_from_slice(raw.in_chunks().0),
            ItemFormat::Cf32 => self.chunk.extend(raw.in_chunks().0.iter().map(from_cf32)),
        }
        self.chunk_start = start;
    }
}

impl Antenna for FileAntenna {
    fn prepare(&mut self, _rate_hz: f64) {}

    fn fill(&mut self, tick: u64, out: &mut [Sc16]) {
        let mut at = tick % self.length;
        let mut rest = out;
        while !rest.is_empty() {
            let inside = at.wrapping_sub(self.chunk_start);
            if inside >= self.chunk.len() as u64 {
                self.load(at);
                continue;
            }
            let source = &self.chunk[inside as usize..];
            let count = source.len().min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(&source[..count]);
            rest = later;
            at = (at + count as u64) % self.length;
        }
    }

    fn starved_samples(&self) -> u64 {
        self.starved
    }
}

fn from_cf32(item: &[u8; 8]) -> Sc16 {
    let [a, b, c, d, e, f, g, h] = *item;
    let (i, q) = (f32::from_le_bytes([a, b, c, d]), f32::from_le_bytes([e, f, g, h]));
    sc16(quantise(f64::from(i)), quantise(f64::from(q)))
}

/// Reads until `buffer` is full, the file ends or fails; returns the bytes read.
fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> usize {
    let mut got = 0;
    while got < buffer.len() {
        match file.read_at(&mut buffer[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    got
}

/// Opens a regular file. Others may have no end, or nobody who writes to them: a radio would wait
/// for that without hearing a signal.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file: copy it into one"));
    }
    File::open(path)
}

/// Returns the data file and its format: stated, by extension, or by SigMF metadata.
fn resolve(request: &OpenFile<'_>) -> Result<(PathBuf, ItemFormat), Error> {
    let path = &request.path;
    if let Some(format) = request.format {
        return Ok((path.clone(), format));
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("sc16") => Ok((path.clone(), ItemFormat::Sc16)),
        Some("cf32") => Ok((path.clone(), ItemFormat::Cf32)),
        Some("sigmf-meta" | "sigmf-data") => sigmf::resolve(request),
        _ => Err(request.error(
            path,
            "the extension names no I/Q format known here (.sc16, .cf32, .sigmf-meta, \
             .sigmf-data): state it with `,format=sc16` or `,format=cf32`",
        )),
    }
}

/// Rejects content that is clearly not an I/Q file of this format.
fn check_content(file: &File, format: ItemFormat, bytes: u64) -> Result<(), String> {
    let mut head = [0u8; 4096];
    let head_bytes = read_up_to(file, &mut head, 0);
    let head = &head[..head_bytes];
    let kind = match head {
        [b'R', b'I', b'F', b'F', ..] => Some("a RIFF (WAV) file: convert it to raw I/Q"),
        [0x1f, 0x8b, ..] => Some("a gzip file: unpack it"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("a Zstandard file: unpack it"),
        [0x89, b'P', b'N', b'G', ..] => Some("a PNG picture"),
        [b'{', ..] if std::str::from_utf8(head).is_ok() => Some("a JSON text"),
        _ if is_transport_stream(head, bytes) => {
            Some("an MPEG transport stream: use `atsc:FILE.ts` to transmit it")
        }
        _ => None,
    };
    if let Some(kind) = kind {
        return Err(format!("the file contains {kind}, not I/Q samples"));
    }
    let implausible = |item: &[u8; 4]| {
        let value = f32::from_le_bytes(*item);
        !value.is_finite() || value.abs() > 1e6
    };
    if format == ItemFormat::Cf32 && head.in_chunks().0.iter().any(implausible) {
        return Err("not 32-bit float I/Q: values are beyond a million, or not numbers; try \
             `,format=sc16`"
            .to_owned());
    }
    Ok(())
}

fn is_transport_stream(head: &[u8], bytes: u64) -> bool {
    bytes % 188 == 0 && head.len() >= 3 * 188 && head.iter().step_by(188).all(|&b| b == 0x47)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
