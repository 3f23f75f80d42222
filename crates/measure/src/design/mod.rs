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
mod book;
mod look;
mod plan;
mod quiet;
pub mod run;
pub mod variance;

pub use bench::{Bench, Known, Trouble, Unit};
pub use look::next_look;
pub use plan::{Cell, Plan, PlanError, PlannedMeasurement, Variant};
pub use quiet::{Others, Quiet, Watch};
pub use run::{RunError, run};
pub use variance::Spread;
