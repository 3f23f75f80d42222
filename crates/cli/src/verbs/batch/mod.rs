//! `millstream batch`: one graph over many recordings and parameters. One file a job.

mod join;
mod list;
mod map;
mod part;
mod ran;
mod run;
mod split;
mod table;
mod task;

use millstream_batch::Batch;
use std::path::Path;

group! {
    typed;
    /// Runs one graph over many recordings and combinations of parameters.
    ///
    /// A manifest (TOML) names recordings, a graph and parameters. Each combination is a task. Its
    /// name is a hash of all that decides its result, so a batch that is run again does only what
    /// is missing. The guide docs/guides/batch.md explains it step by step.
    BatchVerb: Run(run), List(list), Table(table), Map(map), Split(split), Task(task),
}

impl Args {
    /// Whether it runs a graph in this process, which may open links.
    pub fn opens_links(&self) -> bool {
        matches!(self.what, BatchVerb::Task(_))
    }
}

/// The manifest of every one of them.
#[derive(clap::Args)]
pub struct ManifestArg {
    /// The manifest of the batch.
    #[arg(value_name = "MANIFEST.toml")]
    manifest: std::path::PathBuf,
}

impl ManifestArg {
    /// Reads and expands it.
    fn read(&self) -> anyhow::Result<Batch> {
        read(&self.manifest)
    }
}

fn read(manifest: &Path) -> anyhow::Result<Batch> {
    Ok(Batch::of(manifest, crate::release())?)
}
