//! Stored plans by machine and graph: a folder of files that users can read and edit.

use super::machine::MachineDescription;
use millstream_cpu::{fnv1a, folders};
use millstream_flow::file::read_text;
use millstream_flow::plan::Plan;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The extension of a stored plan.
const SUFFIX: &str = "toml";

/// The key of a stored plan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlanKey {
    graph: u64,
    machine: u64,
}

impl PlanKey {
    /// Makes the key of a graph, by its [structure](millstream_flow::GraphFile::structure), on a
    /// machine.
    #[must_use]
    pub fn of(structure: &str, machine: &MachineDescription) -> Self {
        Self { graph: fnv1a(structure.as_bytes()), machine: fnv1a(machine.description.as_bytes()) }
    }

    fn file_name(&self) -> String {
        format!("{:016x}-{:016x}.{SUFFIX}", self.graph, self.machine)
    }
}

/// A stored plan and its measurements.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StoredPlan {
    /// The graph's name when it was tuned.
    pub graph: String,
    /// The machine as text; the lookup uses the name of the file.
    pub machine: String,
    /// The time of tuning, RFC 3339.
    pub tuned_at: String,
    /// A description of the plan's changes.
    pub what: String,
    /// The unit of the figure: `items/s` or `items per CPU second`.
    pub unit: String,
    /// Median figure.
    pub figure: f64,
    /// Ratio to the default plan's figure.
    pub gain: f64,
    /// Lower limit of the gain.
    pub gain_low: f64,
    /// Upper limit of the gain.
    pub gain_high: f64,
    /// Time in blocks for each item of the sources, nanoseconds: runs are compared with it.
    pub ns_per_item: f64,
    /// Spread of single measurements of that: standard deviation over mean.
    pub ns_per_item_spread: f64,
    /// Items of one measurement; a much shorter run is not compared.
    pub items: u64,
    /// Entries of the graph's own plan that were ignored, as TOML; empty if they were applied.
    #[serde(default)]
    pub set_aside: String,
    /// The plan, which users may edit.
    pub plan: Plan,
}

/// The reason why the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanStoreError {
    /// A file or folder.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// `read`, `write`, `write into` or `remove`.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// An invalid stored plan.
    #[error("{} is not a stored plan: {reason}; correct the file or remove it", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// No folder for the store.
    #[error(
        "there is no place to store plans, because neither XDG_STATE_HOME nor HOME is set: set \
         one of them to a folder"
    )]
    NoFolder,
}

/// A file of the store, and its contents or the reading error.
pub type StoreFile = (PathBuf, Result<StoredPlan, PlanStoreError>);

/// A folder of stored plans.
#[derive(Clone, Debug)]
pub struct PlanStore {
    folder: PathBuf,
}

impl PlanStore {
    /// Returns the user's store, by the XDG Base Directory Specification 0.8: `$XDG_STATE_HOME`
    /// (which must be absolute), else `$HOME/.local/state`; in it `millstream/plans`.
    ///
    /// # Errors
    /// [`PlanStoreError::NoFolder`]: neither is set.
    pub fn of_user(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<Self, PlanStoreError> {
        let state = folders::state(variable).ok_or(PlanStoreError::NoFolder)?;
        let folder = state.join("millstream/plans");
        Ok(Self { folder })
    }

    /// Returns the path of the plan of this key, whether it exists or not.
    #[must_use]
    pub fn path(&self, key: &PlanKey) -> PathBuf {
        self.folder.join(key.file_name())
    }

    /// Loads the plan of this key, if there is one.
    ///
    /// # Errors
    /// [`PlanStoreError`]: it cannot be read.
    pub fn load(&self, key: &PlanKey) -> Result<Option<StoredPlan>, PlanStoreError> {
        read(&self.path(key))
    }

    /// Checks that plans can be stored, before a search that takes long.
    ///
    /// # Errors
    /// [`PlanStoreError`]: the folder cannot be made or no file be written in it.
    pub fn check(&self) -> Result<(), PlanStoreError> {
        let path = self.folder.join(format!(".check-{}", std::process::id()));
        let tried = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(&path, []))
            .and_then(|()| fs::remove_file(&path));
        let path = self.folder.clone();
        tried.map_err(|source| PlanStoreError::Io { doing: "write into", path, source })
    }

    /// Stores a plan; a concurrent reader gets the old one or the new one.
    ///
    /// # Errors
    /// [`PlanStoreError`]: the folder cannot be made or the file not be written.
    pub fn save(&self, key: &PlanKey, record: &StoredPlan) -> Result<PathBuf, PlanStoreError> {
        let path = self.path(key);
        let text = format!(
            "# Found by `millstream graph tune`, used by `millstream run`. The plan at the end\n\
             # may be edited; `millstream graph tune GRAPH --forget` or removing this file\n\
             # forgets it.\n\n{}",
            toml::to_string(record).expect("a record has nothing that TOML cannot say")
        );
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| Ok(millstream_output::store_whole(&path, text.as_bytes())?));
        match written {
            Ok(()) => Ok(path),
            Err(source) => Err(PlanStoreError::Io { doing: "write", path, source }),
        }
    }

    /// Removes a plan; returns whether there was one.
    ///
    /// # Errors
    /// [`PlanStoreError::Io`]: it cannot be removed.
    pub fn forget(&self, key: &PlanKey) -> Result<bool, PlanStoreError> {
        let path = self.path(key);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(PlanStoreError::Io { doing: "remove", path, source }),
        }
    }

    /// Lists all stored plans, by file name, including unreadable ones.
    ///
    /// # Errors
    /// [`PlanStoreError::Io`]: the folder cannot be read.
    pub fn list(&self) -> Result<Vec<StoreFile>, PlanStoreError> {
        let path = self.folder.clone();
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(PlanStoreError::Io { doing: "read", path, source }),
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|suffix| suffix == SUFFIX));
        paths.sort();
        let found = paths.into_iter().filter_map(|path| {
            // A plan that is removed at this moment is skipped.
            let record = read(&path).transpose()?;
            Some((path, record))
        });
        Ok(found.collect())
    }
}

fn read(path: &Path) -> Result<Option<StoredPlan>, PlanStoreError> {
    let path = path.to_owned();
    match read_text(&path) {
        Ok(text) => toml::from_str(&text).map(Some).map_err(|error| {
            let reason = error.message().to_owned();
            PlanStoreError::Content { path, reason }
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(PlanStoreError::Io { doing: "read", path, source }),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::tune) fn record() -> StoredPlan {
        StoredPlan {
            graph: "graphs/a.toml".to_owned(),
            machine: "a CPU".to_owned(),
            tuned_at: "2026-11-22T08:00:00Z".to_owned(),
            what: "rings inside: 48 KiB".to_owned(),
            unit: "items/s".to_owned(),
            figure: 6.25e6,
            gain: 1.038,
            gain_low: 1.02,
            gain_high: 1.05,
            ns_per_item: 160.0,
            ns_per_item_spread: 0.02,
            items: 3_125_000,
            set_aside: String::new(),
            plan: Plan::default(),
        }
    }

    fn key(graph: u64) -> PlanKey {
        PlanKey { graph, machine: 7 }
    }

    #[test]
    fn what_is_stored_comes_back_and_can_be_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let store = PlanStore { folder: folder.path().join("not/yet/there") };
        assert_eq!(store.load(&key(1)).unwrap(), None);
        assert!(store.list().unwrap().is_empty());
        let path = store.save(&key(1), &record()).unwrap();
        assert_eq!(store.load(&key(1)).unwrap(), Some(record()));
        store.save(&key(2), &record()).unwrap();
        let names: Vec<_> = store.list().unwrap().into_iter().map(|(path, _)| path).collect();
        assert_eq!(names, [path.clone(), store.path(&key(2))]);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 2, "nothing beside");
        assert!(store.forget(&key(1)).unwrap());
        assert!(!store.forget(&key(1)).unwrap());
    }

    #[test]
    fn people_may_edit_it_and_are_told_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let store = PlanStore { folder: folder.path().to_owned() };
        let path = store.save(&key(1), &record()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# Found by `millstream graph tune`"), "{text}");
        fs::write(&path, text.replace("inside_bytes = 65536", "inside_bytes = 49152")).unwrap();
        assert_eq!(store.load(&key(1)).unwrap().unwrap().plan.buffers.inside_bytes, 49152);
        fs::write(&path, text.replace("inside_bytes", "inner_bytes")).unwrap();
        let error = store.load(&key(1)).unwrap_err().to_string();
        assert!(error.contains("is not a stored plan: unknown field `inner_bytes`"), "{error}");
        assert!(store.list().unwrap()[0].1.is_err());
    }

    #[test]
    fn it_lies_where_the_specification_says() {
        let of = |state: Option<&str>, home: Option<&str>| {
            let variable = |name: &str| match name {
                "XDG_STATE_HOME" => state.map(PathBuf::from),
                _ => home.map(PathBuf::from),
            };
            PlanStore::of_user(variable).map(|store| store.folder.display().to_string()).ok()
        };
        assert_eq!(of(Some("/s"), Some("/h")).unwrap(), "/s/millstream/plans");
        let fallback = "/h/.local/state/millstream/plans";
        assert_eq!(of(None, Some("/h")).unwrap(), fallback);
        assert_eq!(of(Some("relative"), Some("/h")).unwrap(), fallback, "must be ignored");
        assert_eq!(of(None, None), None);
    }
}
