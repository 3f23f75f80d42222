//! `millstream host net schema`: the shape of the configuration file.

use crate::output::Report;
use millstream_net::config::SCHEMA;

/// Prints the JSON schema of the configuration file, for editors and other programs.
#[derive(clap::Args)]
pub struct Args {}

/// Prints it.
pub fn run(_args: &Args) -> anyhow::Result<Report> {
    Ok(Report::done(SCHEMA.to_owned(), serde_json::from_str(SCHEMA)?))
}
