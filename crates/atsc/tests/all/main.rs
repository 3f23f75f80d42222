//! The receiver and the transmitter, from outside.
//!
//! One program contains all of these tests, because linking is the expensive part.

mod captures;
mod common;
mod drawn;
mod echoes;
mod graph;
mod in_step;
mod loopback;
mod moves;
mod no_signal;
mod silence;
mod spoilt;
mod steady_state;
mod times;
mod transmitter;
