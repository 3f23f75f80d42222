//! The interface between a plan and the machine that runs it, and the result of a start.

use super::plan::Cell;
use crate::Failure;
use crate::record::Record;

/// One fresh start of one cell.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    /// The run's name.
    pub run: &'a str,
    /// The measured cell.
    pub cell: &'a Cell,
    /// The number of the start within the cell, from 0.
    pub restart: u32,
    /// The number of the start within the run, from 0, and the planned total.
    pub number: (usize, usize),
}

/// A machine that runs a plan, or a test's imitation of one.
pub trait MeasuringMachine {
    /// Starts the load and the program, and takes all samples, without their place in the run.
    ///
    /// # Errors
    /// [`StartFailure`].
    fn start(&mut self, unit: &Unit<'_>) -> Result<StartResult, StartFailure>;

    /// Stores the results of a start permanently, all or none, in place of an earlier failure of
    /// that start.
    ///
    /// # Errors
    /// The reason of the failure, in words.
    fn keep(&mut self, unit: &Unit<'_>, given: &StartResult) -> Result<(), String>;

    /// Returns whether the user or a signal asked to end.
    fn ended(&self) -> bool;

    /// Writes the place of a start of `cell` into its record.
    fn place(&self, record: &mut Record, cell: &Cell) {
        record.variant.clone_from(&cell.variant);
        record.side = cell.side;
        record.name.clone_from(&cell.name);
        record.load.clone_from(&cell.load.name);
    }

    /// Returns whether a placed record belongs to a start of `cell`.
    fn is_of(&self, record: &Record, cell: &Cell) -> bool {
        record.variant == cell.variant && record.name == cell.name && record.load == cell.load.name
    }
}

/// The results of a start, or the known results of a whole run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartResult {
    /// Samples.
    pub records: Vec<Record>,
    /// Parts without a result.
    pub failures: Vec<Failure>,
}

/// The reason why a start has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartFailure {
    /// This start failed, in words; others may succeed.
    Start(String),
    /// No start is possible here now, in words.
    Place(String),
}

impl From<String> for StartFailure {
    fn from(reason: String) -> Self {
        Self::Start(reason)
    }
}
