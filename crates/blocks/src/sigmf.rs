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

use millstream_flow::registry::{BlockType, ParameterKind, discard, part_of};
use millstream_flow::{Registry, for_item};
use std::io;
use std::path::{Path, PathBuf};

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

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        BlockType::declare("sigmf_source", "Reads a SigMF recording; its metadata becomes tags.")
            .required("path", ParameterKind::Text, "its .sigmf-meta or .sigmf-data file")
            .example("path = \"in.sigmf-meta\"")
            .optional("first", 0i64, "first sample to read, counted from 0")
            .optional("count", 0i64, "most samples to read; 0: all to the end of the file")
            .incidental("path")
            .incidental("first")
            .incidental("count")
            .reads(&["out: Complex<f32>"], |parameters| {
                let (first, count) = part_of(parameters)?;
                let source = SigmfSource::open(Path::new(parameters.text("path")))?;
                Ok(Box::new(source.part(first, count)?))
            }),
    );
    registry.register(
        BlockType::declare("sigmf_sink", "Writes a SigMF recording, a new capture after each gap.")
            .writes_file("path", "its .sigmf-meta or .sigmf-data file")
            .optional("rate_hz", 0.0, "samples per second, if no tag contains it")
            .choice("item", &["cf32", "sc16"], crate::ITEM)
            .example("path = \"out.sigmf-meta\"\nrate_hz = 1e6")
            .writes(discard, |parameters| {
                let rate_hz = Some(parameters.number("rate_hz")).filter(|rate| *rate > 0.0);
                let path = Path::new(parameters.text("path"));
                let existing = parameters.existing();
                for_item!(parameters, T: cf32 | sc16 =>
                    SigmfSink::<T>::new(path, rate_hz)?.existing(existing))
            }),
    );
}
