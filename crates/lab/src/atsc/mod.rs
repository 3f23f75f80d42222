//! The ATSC receiver: what it costs, what it hears, what it sees; beside GNU Radio's.
//!
//! Every recording is made here, of packets that hold their number: what a receiver puts out is
//! judged packet by packet, by one rule for ours and for GNU Radio's.

mod bench;
mod emission;
mod ensemble;
mod gnuradio;
mod grid;
mod ours;
mod portrait;
mod reception;
mod recording;
mod score;
mod store;
mod sweep;
mod table;
mod tableau;

pub use bench::{
    AtscBench, AtscFigures, AtscSubject, BlockShare, ECHOES, Echoed, ReceiverFigures, bench,
};
pub use emission::Emission;
pub use ensemble::Ensemble;
pub use gnuradio::GnuRadioReceiver;
pub use grid::{Axis, BACKGROUND_CN_DB, Point, grid};
pub use portrait::portrait;
pub use reception::{ReceptionMoment, ReceptionReport, SurveyError};
pub use recording::{Recording, RecordingResult, record};
pub use score::PacketScore;
pub use store::{ResultStore, StoredResult};
pub use sweep::{OURS, ParameterGrid, SETTLE_S, SPARE_S, peer_name, sweep};
pub use table::{LimitsTable, rate_word};
pub use tableau::tableau;

use crate::gnuradio::PeerError;
use millstream_atsc::tx::ImpairmentError;
use millstream_cpu::TopologyError;
use millstream_flow::{GraphFileError, RunError};
use std::io;
use std::path::{Path, PathBuf};

/// Why a measurement broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtscError {
    /// There is no such signal.
    #[error(transparent)]
    Signal(#[from] ImpairmentError),
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Our graph cannot be built.
    #[error(transparent)]
    Graph(#[from] GraphFileError),
    /// Our graph broke off.
    #[error(transparent)]
    Run(#[from] RunError),
    /// GNU Radio did.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The machine cannot be told.
    #[error("cannot see the CPUs of this machine: {0}")]
    Machine(TopologyError),
    /// No plan could be made for all CPUs.
    #[error("cannot plan the receiver for this machine: {0}")]
    Plan(String),
}

/// Adds the file to an error.
fn file(path: &Path) -> impl FnOnce(io::Error) -> AtscError {
    let path = path.to_owned();
    move |source| AtscError::File { path, source }
}
