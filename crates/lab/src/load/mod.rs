//! Load during a measurement: profiles as data, workers in processes that end with their starter,
//! and proof that they worked while the measurement ran.

mod kinds;
mod running;
mod worker;

pub use running::{LoadError, RunningLoad};
pub use worker::serve;
