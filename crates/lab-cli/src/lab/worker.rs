//! `millstream-lab lab worker`: a worker of a load profile; for internal use.

use crate::output::Report;
use crate::results::ResultShape;
use millstream_lab::load;
use std::io::{BufReader, stdin, stdout};

/// Serves one worker of a load profile.
#[derive(clap::Args)]
pub struct Args {}

/// It prints no document.
pub fn results() -> Vec<ResultShape> {
    Vec::new()
}

/// Ends with its input.
pub fn run(Args {}: Args) -> anyhow::Result<Report> {
    load::serve(BufReader::new(stdin()), &mut stdout())?;
    Ok(Report::none())
}

/// Arguments that start it.
pub const WORKER: &[&str] = &["lab", "worker"];
