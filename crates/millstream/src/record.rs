//! Recordings with SigMF metadata: blocks that write and read them, and their description.
//!
//! A [`SigmfSink`] behind a source of `radio` writes a recording whose gaps are captures with
//! annotations; a [`SigmfRecording`] describes one, and a [`SigmfSource`] plays it.

pub use millstream_blocks::sigmf::{
    Annotation, Capture, RecordingNames, SigmfError, SigmfRecording, SigmfSample, SigmfSink,
    SigmfSource, names_of, read_metadata,
};
#[cfg(feature = "radio")]
pub use millstream_radio::block::{GapCause, RecordingSegment};
