//! `millstream host net schema`: the shape of the configuration file.

use crate::output::Report;
use millstream_net::config::schema;

/// Prints the JSON schema of the configuration file, which editors and other programs can use.
#[derive(clap::Args)]
pub struct Args {}

/// Prints it.
pub fn run(Args {}: Args) -> anyhow::Result<Report> {
    let schema = schema();
    Ok(Report::done(serde_json::to_string_pretty(&schema)? + "\n", schema))
}
