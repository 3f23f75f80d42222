//! What a verb hands back, and the one JSON document that `--json` prints.

use millstream_sys::Environment;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::time::SystemTime;

/// What a verb found out.
pub struct Report {
    /// The job was done: the exit status follows it.
    pub ok: bool,
    /// The verb's own figures.
    pub results: Value,
}

impl Report {
    /// The job was done.
    pub fn done(results: impl Serialize) -> anyhow::Result<Self> {
        Self::new(true, results)
    }

    /// The job ran to its end; `ok` says whether it succeeded.
    pub fn new(ok: bool, results: impl Serialize) -> anyhow::Result<Self> {
        Ok(Self { ok, results: serde_json::to_value(results)? })
    }
}

/// The document of `--json`: one object on standard output, whatever happened.
#[derive(Serialize)]
pub struct Document {
    command: Vec<String>,
    environment: Environment,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Document {
    /// Starts the document of this invocation.
    pub fn for_command(arguments: impl Iterator<Item = String>) -> Self {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        Self {
            command: arguments.collect(),
            environment: Environment::read(Path::new("/"), &now),
            results: None,
            error: None,
        }
    }

    /// Adds how it ended.
    pub fn finish(&mut self, outcome: anyhow::Result<Report>) {
        match outcome {
            Ok(report) => self.results = Some(report.results),
            Err(error) => self.error = Some(format!("{error:#}")),
        }
    }

    /// Prints the document.
    pub fn print(&self) {
        match serde_json::to_string_pretty(self) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("millstream: cannot write the JSON document: {error}"),
        }
    }
}

/// A number as people like to read it: whole, or with three decimals.
pub fn short(value: f64) -> String {
    if value == value.trunc() { format!("{value:.0}") } else { format!("{value:.3}") }
}
