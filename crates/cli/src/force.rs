//! `--force`: whether a verb may replace a file.

use anyhow::Result;
use millstream_output::{Existing, OutputFile, check, write_whole};
use std::path::Path;

/// The option of every verb that writes a file which its user names.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct ForceArgs {
    /// Replace a file that exists already. Without this option it is an error.
    #[arg(long)]
    force: bool,
}

impl ForceArgs {
    /// Returns what becomes of an old file.
    pub fn existing(self) -> Existing {
        Existing::replace_if(self.force)
    }

    /// Whether the option was given.
    pub fn is_given(self) -> bool {
        self.force
    }

    /// Checks, before the work, whether a file may be written.
    pub fn check(self, path: &Path) -> Result<()> {
        Ok(check(path, self.existing())?)
    }

    /// Creates a file, which has to be completed.
    pub fn create(self, path: &Path) -> Result<OutputFile> {
        Ok(OutputFile::create(path, self.existing())?)
    }

    /// Writes a whole file.
    pub fn write(self, path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
        Ok(write_whole(path, content.as_ref(), self.existing())?)
    }
}
