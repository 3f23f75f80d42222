//! Messages to a file, each a line (JSON Lines).

use crate::DropCause;
use crate::outlet::{Outcomes, Outlet, OutletError};
use crate::publications::Publications;
use crate::sink::{PublishSink, PublishedItem, SinkParameters};
use millstream_flow::blocks::RehearsedBlock;
use millstream_flow::registry::{BlockParameters, WrittenFile};
use millstream_flow::{BlockError, Item};
use millstream_output::{Existing, OutputError, OutputFile};
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bytes of one write.
const OUT_BYTES: usize = 256 << 10;

/// A file of JSON Lines, called `NAME.part` until it is complete.
///
/// A message counts as acknowledged when the kernel has it. After an error the file ends with the
/// last complete line, and the outlet tries again. A pipe or a device gets the lines, too.
pub struct JsonlOutlet {
    path: PathBuf,
    existing: Existing,
    file: Option<OutputFile>,
    /// The bytes of the file's complete lines.
    bytes: u64,
    out: Vec<u8>,
    messages: u64,
}

impl JsonlOutlet {
    /// Creates the outlet; the file is created when the graph starts.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let (out, existing) = (Vec::with_capacity(OUT_BYTES), Existing::Refuse);
        Self { path: path.to_owned(), existing, file: None, bytes: 0, out, messages: 0 }
    }

    /// Lets the new file replace an old one of its name, when it is complete.
    #[must_use]
    pub fn overwrite(self) -> Self {
        self.existing(Existing::Replace)
    }

    pub(crate) fn existing(mut self, existing: Existing) -> Self {
        self.existing = existing;
        self
    }

    fn cannot(&self, error: io::Error) -> OutletError {
        OutputError::of(&self.path, error).into()
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = file.write_all(&self.out);
        if written.is_err() {
            // A part of a line may be there. If it cannot be removed now, the next try does it.
            file.set_len(self.bytes)?;
            file.seek_to(self.bytes)?;
        }
        written
    }
}

impl From<OutputError> for OutletError {
    fn from(error: OutputError) -> Self {
        Self(error.to_string())
    }
}

impl Outlet for JsonlOutlet {
    fn name(&self) -> String {
        format!("file {}", self.path.display())
    }

    fn away_cause(&self) -> DropCause {
        DropCause::FileError
    }

    fn check(&mut self) -> Result<(), OutletError> {
        self.file = Some(OutputFile::create(&self.path, self.existing)?);
        Ok(())
    }

    fn open(&mut self) -> Result<(), OutletError> {
        self.messages = 0;
        self.out.clear();
        if self.file.is_none() {
            return self.check();
        }
        let bytes = self.bytes;
        let placed = self.file.as_mut().map(|file| {
            file.set_len(bytes)?;
            file.seek_to(bytes)
        });
        placed.transpose().map(drop).map_err(|error| self.cannot(error))
    }

    fn push(&mut self, message: &[u8]) -> bool {
        if !self.out.is_empty() && self.out.len() + message.len() + 1 > OUT_BYTES {
            return false;
        }
        self.out.extend_from_slice(message);
        self.out.push(b'\n');
        self.messages += 1;
        true
    }

    fn exchange(&mut self, _: Instant) -> Result<Outcomes, OutletError> {
        self.write().map_err(|error| self.cannot(error))?;
        self.bytes += self.out.len() as u64;
        self.out.clear();
        Ok(Outcomes { acknowledged: std::mem::take(&mut self.messages), refused: 0 })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn close(&mut self) -> Result<(), OutletError> {
        Ok(self.file.take().map_or(Ok(()), OutputFile::complete)?)
    }
}

/// Writes packets, tags and events to a file of lines.
#[derive(BlockParameters)]
#[block(
    jsonl_sink,
    writes,
    items(u8, i8, i16, sc16, f32, cf32),
    with = Publications,
    example = "path = \"packets.jsonl\""
)]
struct JsonlParameters {
    /// the file (JSON Lines); -: standard output
    path: WrittenFile,
    #[parameter(flatten)]
    sink: SinkParameters,
}

impl JsonlParameters {
    fn make<T: PublishedItem>(self, of: &Publications) -> Result<PublishSink<T>, BlockError> {
        let outlet = JsonlOutlet::new(&self.path.path).existing(self.path.existing);
        self.sink.make(outlet, of)
    }

    fn rehearse<T: Item>(self, _: &Publications) -> RehearsedBlock<T> {
        SinkParameters::stand_in()
    }
}
