//! The store, as command line options.

use millstream_cpu::folders;
use millstream_measure::store::Store;
use std::path::PathBuf;

/// The store's path.
#[derive(clap::Args)]
pub struct StoreArgs {
    /// File with the results. The default is lab.jsonl in $XDG_STATE_HOME/millstream
    /// (~/.local/state/millstream).
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

impl StoreArgs {
    /// Opens the store.
    pub fn open(&self) -> anyhow::Result<Store> {
        let path = match &self.store {
            Some(path) => path.clone(),
            None => Store::path_of_user(folders::variable)?,
        };
        Ok(Store::open(&path)?)
    }
}
