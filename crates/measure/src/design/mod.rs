//! The design of a run: measurements, the loads during them, the number of fresh starts and of
//! samples in each, the order, and the rule to stop.
//!
//! One long measurement hides differences from start to start, and many short ones by hand come in
//! an order that mixes the machine's drift with the comparison. So a run goes in rounds: each round
//! has every cell (variant × measurement × load) once, in a new random order, and every cell is a
//! fresh start of the program with several samples in it. The variance within and between starts is
//! separated ([`variance`]), and the run ends when the wanted figure is known well enough in every
//! cell, or at the last round. It checks seldom: after a check it continues for as many rounds as
//! the width of the intervals requires ([`next_look`]).

mod bench;
mod look;
mod plan;
mod progress;
mod quiet;
pub mod run;
pub mod variance;

pub use bench::{MeasuringMachine, StartFailure, StartResult, Unit};
pub use look::next_look;
pub use plan::{Cell, MeasurementPlan, MeasurementPlanError, PlannedMeasurement, Variant};
pub use quiet::{ActivityCounters, OtherActivity, QuietCondition};
pub use run::{MeasurementRunError, run};
pub use variance::VarianceShares;
