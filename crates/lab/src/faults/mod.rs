//! The fault matrix: the faults of a radio, and the outcome of its streams.
//!
//! Each case is one round of a soak ([`crate::soak`]) with one stream of an emulated radio in this
//! process. Its faults occur in the middle, or throughout. The rules of the soak judge it: the
//! ledger balances, it agrees with the device's own counts, the received samples are those of their
//! time, and the stream continues or ends with one error.

mod cases;
mod rig;

pub use cases::{CASES, FaultCase};

use crate::Direction;
use crate::soak::{self, RoundOutcome, RoundPlan, SoakError, StreamEnd};
use millstream_emulator::Error;
use rig::FaultRadio;
use serde::Serialize;
use std::collections::BTreeMap;

/// Samples per second of every case: slow, so that only its faults cause trouble.
pub const RATE_HZ: f64 = 1e6;

/// The result of one case.
#[derive(Debug, Clone, Serialize)]
pub struct FaultRow {
    /// The case.
    pub fault: &'static str,
    /// The direction of the samples.
    pub direction: Direction,
    /// The faults, as the radio parses them.
    pub specs: Vec<String>,
    /// Hits of the faults.
    pub hits: u64,
    /// Samples that should have come, or that the stream accepted.
    pub expected: u64,
    /// Samples that came, or were transmitted.
    pub delivered: u64,
    /// Samples lost, by cause; those of an unknown outcome are `unknown`.
    pub lost: BTreeMap<&'static str, u64>,
    /// Whether expected = delivered + lost.
    pub balances: bool,
    /// Samples that the device sent, or transmitted, by its own count.
    pub device_samples: u64,
    /// The range of `device_samples` by the ledger. Its width: the ledger's unaccounted samples,
    /// and those of a start that was repeated.
    pub ledger_samples: (u64, u64),
    /// Samples whose value was not that of their time.
    pub wrong_samples: u64,
    /// Longest time without progress since the fault was switched on, milliseconds.
    pub recovery_ms: f64,
    /// Its end.
    pub ending: StreamEnd,
    /// Violated conditions; empty when all hold.
    pub complaints: Vec<String>,
}

/// The reason why a case could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// The emulated radio did not start.
    #[error("the emulated radio failed: {0}")]
    Emulator(#[from] Error),
    /// The emulated radio does not know a fault of the case.
    #[error(transparent)]
    Soak(#[from] SoakError),
}

/// Runs one case in one direction.
///
/// # Errors
/// [`MatrixError`] when it could not run at all; trouble of the stream is in the row.
pub fn run(case: &'static FaultCase, direction: Direction) -> Result<FaultRow, MatrixError> {
    let plan = RoundPlan::of_case(case, direction);
    let outcome = soak::run(&plan, &mut FaultRadio::start(case)?, || false)?;
    Ok(FaultRow::of(case, direction, outcome))
}

impl FaultRow {
    fn of(case: &FaultCase, direction: Direction, outcome: RoundOutcome) -> Self {
        let RoundOutcome { accounts, mut complaints, .. } = outcome;
        let account = accounts.into_iter().next().unwrap_or_default();
        // A soak has more rounds.
        if case.throughout && account.hits == 0 {
            complaints.push("the fault hit nothing, so nothing was tested".to_owned());
        }
        let (device_samples, books) = match direction {
            Direction::Rx => (account.radio.rx_samples, account.rx),
            Direction::Tx => (account.radio.tx_samples, account.tx),
        };
        let books = books.unwrap_or_default();
        Self {
            fault: case.name,
            direction,
            specs: case.specs(direction),
            hits: account.hits,
            expected: books.expected,
            delivered: books.delivered,
            lost: books.lost,
            balances: books.balances,
            device_samples,
            ledger_samples: books.radio_samples,
            wrong_samples: books.wrong_samples,
            recovery_ms: account.recovery_s * 1e3,
            ending: account.end,
            complaints,
        }
    }

    /// Samples lost by any cause.
    pub fn lost_total(&self) -> u64 {
        self.lost.values().sum()
    }
}
