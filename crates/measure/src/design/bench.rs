//! Where a plan is carried out, and what a start there gives.

use super::plan::Cell;
use crate::Failure;
use crate::record::Record;

/// One fresh start of one cell.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    /// The run's name.
    pub run: &'a str,
    /// What is measured.
    pub cell: &'a Cell,
    /// Which start of it, from 0.
    pub restart: u32,
    /// Which start of the run, from 0, and how many are foreseen.
    pub number: (usize, usize),
}

/// Where a plan is carried out: a machine, or a test's imitation of one.
pub trait MeasuringMachine {
    /// Starts the load and the program, and takes all samples: without their place in the run.
    ///
    /// # Errors
    /// [`StartFailure`].
    fn start(&mut self, unit: &Unit<'_>) -> Result<StartResult, StartFailure>;

    /// Keeps for good what a start gave, all or none, in place of an earlier failure of that start.
    ///
    /// # Errors
    /// Why not, in words.
    fn keep(&mut self, unit: &Unit<'_>, given: &StartResult) -> Result<(), String>;

    /// Whether somebody asked to end.
    fn ended(&self) -> bool;

    /// Says of a record of a start of `cell` where it belongs.
    fn place(&self, record: &mut Record, cell: &Cell) {
        record.variant.clone_from(&cell.variant);
        record.side = cell.side;
        record.name.clone_from(&cell.name);
        record.load.clone_from(&cell.load.name);
    }

    /// Whether a record that has its place is of a start of `cell`.
    fn is_of(&self, record: &Record, cell: &Cell) -> bool {
        record.variant == cell.variant && record.name == cell.name && record.load == cell.load.name
    }
}

/// What a start gave, or what is known of a whole run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartResult {
    /// Samples.
    pub records: Vec<Record>,
    /// Parts that gave none.
    pub failures: Vec<Failure>,
}

/// Why a start gave nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartFailure {
    /// It failed, in words; others may do better.
    Start(String),
    /// Nothing can be started here now, in words.
    Place(String),
}

impl From<String> for StartFailure {
    fn from(reason: String) -> Self {
        Self::Start(reason)
    }
}
