//! The names of a recording's files.

use super::SigmfError;
use millstream_output::part_of;
use std::path::{Path, PathBuf};

/// The two files of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingNames {
    /// The metadata.
    pub meta: PathBuf,
    /// The samples, unless the metadata names another file.
    pub data: PathBuf,
}

impl RecordingNames {
    /// Whether the recording was not completed.
    pub fn is_part(&self) -> bool {
        self.meta.extension().is_some_and(|end| end == "part")
            || self.data.extension().is_some_and(|end| end == "part")
    }
}

/// Returns the files of the recording that has `path` as one of its names: `.sigmf-meta` or
/// `.sigmf-data`, or either with `.part`, if it was not completed. `None` for another name.
#[must_use]
pub fn of(path: &Path) -> Option<RecordingNames> {
    let is_part = path.extension().is_some_and(|end| end == "part");
    let name = if is_part { path.with_extension("") } else { path.to_owned() };
    let extension = name.extension()?;
    if extension != "sigmf-meta" && extension != "sigmf-data" {
        return None;
    }
    let (meta, data) = (name.with_extension("sigmf-meta"), name.with_extension("sigmf-data"));
    let (meta_part, data_part) = (part_of(&meta), part_of(&data));
    // A crash may come between the names of the two.
    let wants_part = is_part || !meta.exists() && !data.exists();
    let either = |wants_part, part: PathBuf, whole: PathBuf| {
        if part.exists() && (wants_part || !whole.exists()) { part } else { whole }
    };
    Some(RecordingNames {
        meta: either(wants_part, meta_part, meta),
        data: either(wants_part, data_part, data),
    })
}

/// Returns the error of a name that is not a recording's.
pub(super) fn not_named(path: &Path, reason: &str) -> SigmfError {
    SigmfError::Samples { path: path.to_owned(), reason: reason.to_owned() }
}
