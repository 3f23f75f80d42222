//! The ATSC receiver beside GNU Radio's: its cost, its limits, its pictures of a signal.
//!
//! The program makes every recording itself, of packets that carry their number. One rule judges
//! the output of our receiver and of GNU Radio's packet by packet.

mod bench;
mod emission;
mod ensemble;
mod gnuradio;
mod grid;
mod ours;
mod recording;
mod score;
mod store;
mod sweep;
mod table;
mod tableau;

pub use bench::{
    AtscBench, AtscCase, AtscFigures, AtscRun, AtscSubject, BlockShare, ECHOES, Echoed,
    ReceiverBench, ReceiverFigures,
};
pub use emission::Emission;
pub use ensemble::Ensemble;
pub use gnuradio::RECEIVER;
pub use grid::{Axis, BACKGROUND_CN_DB, Point, grid};
pub use recording::Recording;
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

/// The reason why a measurement broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtscError {
    /// The signal does not exist.
    #[error(transparent)]
    Signal(#[from] ImpairmentError),
    /// A file.
    #[error("cannot use the file {}: {source}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] millstream_output::OutputError),
    /// Our graph cannot be built.
    #[error(transparent)]
    Graph(#[from] GraphFileError),
    /// Our graph broke off.
    #[error(transparent)]
    Run(#[from] RunError),
    /// GNU Radio broke off.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The topology of the machine is unknown.
    #[error("cannot read the CPUs of this machine: {0}")]
    Machine(TopologyError),
    /// There is no plan for all CPUs.
    #[error("cannot calculate a plan of the receiver for this machine: {0}")]
    Plan(String),
}

/// Adds the file to an error.
fn file<E>(path: &Path) -> impl FnOnce(E) -> AtscError
where
    io::Error: From<E>,
{
    let path = path.to_owned();
    move |source| AtscError::File { path, source: source.into() }
}
