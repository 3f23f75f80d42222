//! `millstream-lab lab worker`: a worker of a load profile; for internal use.

use crate::output::Report;
use millstream_lab::load;
use serde_json::Value;
use std::io::{BufReader, stdin, stdout};

/// Serves one worker of a load profile.
#[derive(clap::Args)]
pub struct Args {}

/// Ends with its input.
pub fn run(Args {}: Args) -> anyhow::Result<Report> {
    load::serve(BufReader::new(stdin()), &mut stdout())?;
    Ok(Report::done(String::new(), Value::Null))
}

/// Arguments that start it.
pub const WORKER: &[&str] = &["lab", "worker"];
