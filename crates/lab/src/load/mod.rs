//! Load beside a measurement: profiles as data, workers in processes of their own that are gone
//! with whoever started them, and proof that they did what they should while something was
//! measured.

mod kinds;
mod running;
mod worker;

pub use running::{LoadError, RunningLoad};
pub use worker::serve;
