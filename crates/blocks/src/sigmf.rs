//! Recordings with SigMF metadata (SigMF 1.0.0).

mod description;
mod fields;
mod files;
mod read;
mod sink;
mod source;

pub use files::{RecordingNames, of as names_of};
pub use read::{Annotation, Capture, SigmfRecording, read_metadata};
pub use sink::{SigmfSample, SigmfSink};
pub use source::SigmfSource;

use millstream_flow::BlockError;
use millstream_flow::registry::{BlockParameters, RecordingPart, WrittenFile};
use std::io;
use std::path::PathBuf;

/// The error of a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SigmfError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The metadata is not JSON.
    #[error("{} is not valid SigMF metadata: {source}", path.display())]
    Metadata {
        /// The file.
        path: PathBuf,
        /// The parser's error, with the position.
        source: serde_json::Error,
    },
    /// The metadata describes a recording that cannot be played.
    #[error("cannot play {}: {reason}", path.display())]
    Unplayable {
        /// The metadata.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The name, the format and the data are inconsistent.
    #[error("cannot use the file {}: {reason}", path.display())]
    Samples {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// The recording has no samples.
    #[error("{} is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a whole number of samples.
    #[error(
        "{} has {bytes} bytes, but each sample takes {sample_bytes} bytes: the file is not \
         complete, or it has another format",
        path.display()
    )]
    PartialSample {
        /// The file.
        path: PathBuf,
        /// Its size, bytes.
        bytes: u64,
        /// The size of a sample, bytes.
        sample_bytes: u64,
    },
}

/// Reads a SigMF recording; its metadata becomes tags.
#[derive(BlockParameters)]
#[block(sigmf_source, reads("out: Complex<f32>"), example = "path = \"in.sigmf-meta\"")]
struct SourceParameters {
    /// its .sigmf-meta or .sigmf-data file
    #[parameter(incidental)]
    path: PathBuf,
    #[parameter(flatten)]
    part: RecordingPart,
}

impl SourceParameters {
    fn make(self) -> Result<SigmfSource, BlockError> {
        SigmfSource::open(&self.path)?.part(self.part.first, self.part.most())
    }
}

/// Writes a SigMF recording, a new capture after each gap.
#[derive(BlockParameters)]
#[block(
    sigmf_sink,
    writes(discard),
    items(cf32, sc16),
    example = "path = \"out.sigmf-meta\"\nrate_hz = 1e6"
)]
struct SinkParameters {
    /// its .sigmf-meta or .sigmf-data file
    path: WrittenFile,
    /// samples per second, if no tag contains it
    rate_hz: Option<f64>,
}

impl SinkParameters {
    fn make<T: SigmfSample>(self) -> Result<SigmfSink<T>, BlockError> {
        let rate_hz = self.rate_hz.filter(|rate_hz| *rate_hz > 0.0);
        Ok(SigmfSink::new(&self.path.path, rate_hz)?.existing(self.path.existing))
    }
}
