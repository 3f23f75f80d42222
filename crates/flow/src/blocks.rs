//! Blocks that every graph needs. One file each; the file is the example to copy.

mod copy;
mod file_sink;
mod file_source;
mod head;
mod null_sink;
mod null_source;
mod rehearsed_block;
mod throttle;
mod vector_sink;
mod vector_source;

pub use copy::Copy;
pub use file_sink::{FileSink, is_due};
pub use file_source::{FileSource, FileSourceError, SampleFormat};
pub use head::Head;
pub use null_sink::NullSink;
pub use null_source::NullSource;
pub use rehearsed_block::RehearsedBlock;
pub use throttle::Throttle;
pub use vector_sink::{Collected, VectorSink};
pub use vector_source::VectorSource;
