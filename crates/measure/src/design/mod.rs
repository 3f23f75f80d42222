//! The design of a run: which measurements beside which loads, from how many fresh starts, each
//! with how many samples, in which order, and when it is enough.
//!
//! One long measurement hides what differs from start to start, and many short ones by hand are
//! done in an order that mixes the machine's drift with what is compared. So a run goes in rounds:
//! each round has every cell (variant × measurement × load) once, in an order that is drawn anew,
//! and every cell is a fresh start of the program with several samples in it. What differs within
//! and between starts is told apart ([`variance`]), and the run ends when the figure wanted is
//! known well enough in every cell, or at the last round. It looks seldom: after a look it goes on
//! for as many rounds as the width of the intervals asks for ([`next_look`]).

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
