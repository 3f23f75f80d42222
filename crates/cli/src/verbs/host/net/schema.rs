//! `millstream host net schema`: the shape of the configuration file.

use crate::output::Report;
use millstream_net::config::schema;
use serde_json::Value;

/// Prints the JSON schema of the configuration file, which editors and other programs can use.
#[derive(clap::Args)]
pub struct Args {}

crate::results! {
    /// The JSON schema of the configuration file (draft 2020-12).
    struct ConfigSchema {
        /// The schema.
        #[serde(flatten)]
        schema: Value,
    }
}

/// Prints it.
pub fn run(Args {}: Args) -> anyhow::Result<Report> {
    let schema = schema();
    Ok(Report::of(serde_json::to_string_pretty(&schema)? + "\n", &ConfigSchema { schema }))
}
