//! What can be wrong with a file of samples.

use std::io;
use std::path::PathBuf;

/// An error in a file of samples.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileSourceError {
    /// It cannot be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Neither its name nor a parameter gives the format.
    #[error(
        "the name of {} does not show the sample format: set the format to sc16, cf32, cu8 or \
         ci8",
        path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// No samples.
    #[error("{} is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The part to read begins at or behind its end.
    #[error(
        "sample {first} is behind the end: {} has {samples} samples; give a `first` below that",
        path.display()
    )]
    BehindEnd {
        /// The file.
        path: PathBuf,
        /// The first sample of the part.
        first: u64,
        /// The samples of the file.
        samples: u64,
    },
    /// Its size is not a multiple of the sample size.
    #[error(
        "{} has {bytes} bytes, but each {format} sample takes {sample_bytes} bytes: the file is \
         not complete, or it is not a {format} file",
        path.display()
    )]
    PartialSample {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The format it should have.
        format: &'static str,
        /// Size of a sample.
        sample_bytes: usize,
    },
}
