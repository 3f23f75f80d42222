//! The `millstream` command, run as a user would.
//!
//! One program holds all of these tests, because linking dominates the build time.

mod atsc_live;
mod batch;
mod captures;
mod cases;
mod common;
mod dashboard;
mod demo;
mod doctor;
mod fault;
mod find;
mod generate;
mod inspect;
mod kills;
mod names;
mod net;
mod out_of_range;
mod outputs;
mod outside;
mod plan;
mod radio;
mod run;
mod run_plans;
mod rx;
mod rx_dest;
mod shield;
mod streams;
mod threads;
mod tune;
mod tx;
mod usage;
mod watch;

/// The program that is run.
const PROGRAM: &str = env!("CARGO_BIN_EXE_millstream");
