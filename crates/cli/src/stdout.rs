//! Who has standard output: samples and plans for pipes, or the document of `--json`. No other
//! output may go there then.

use millstream_flow::{GraphFile, Registry};
use millstream_output::names_standard_output;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The name of standard output, which [`millstream_output`] knows.
const NAME: &str = "-";

/// Whether samples go to standard output.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether `--json` was given, once the command line is read: a command behind `--` may have one of
/// its own.
static JSON: OnceLock<bool> = OnceLock::new();

/// Says whether `--json` was given.
pub fn set_json(json: bool) {
    let _ = JSON.set(json);
}

/// Whether standard output belongs to the document of `--json`.
pub fn is_json() -> bool {
    JSON.get().copied().unwrap_or_else(|| std::env::args_os().any(|word| word == "--json"))
}

/// Returns the path to open for data that are to be written to `out`: `-` is standard output. If
/// `out` is standard output under any name, the text at the end goes to standard error.
pub fn for_data(out: &Path) -> anyhow::Result<PathBuf> {
    if !names_standard_output(out) {
        return Ok(out.to_owned());
    }
    anyhow::ensure!(
        !is_json(),
        "the samples and the JSON document of --json cannot both go to standard output: write the \
         samples to a file, or leave out --json"
    );
    TAKEN.store(true, Ordering::Relaxed);
    Ok(NAME.into())
}

/// Leaves standard output to a graph if one of its blocks writes there.
pub fn for_graph(file: &GraphFile, registry: &Registry, set: &[String]) -> anyhow::Result<()> {
    for path in file.written_files(registry, set)? {
        for_data(&path)?;
    }
    Ok(())
}

/// The name in texts of a path from [`for_data`], if it is standard output.
pub fn name(path: &Path) -> Option<&'static str> {
    (path == Path::new(NAME)).then_some("standard output")
}

/// Whether samples went to standard output.
pub fn end_samples() -> bool {
    TAKEN.swap(false, Ordering::Relaxed)
}
