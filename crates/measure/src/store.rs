//! The store of results: one SQLite file. A record is stored whole, as its line of JSON; the
//! columns in the same row serve to find it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use millstream_cpu::folders;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use serde::Serialize;

use crate::design::{StartResult, Unit};
use crate::record::{Record, RecordError};

mod begun;
mod held;

pub use begun::Begun;

/// The longest wait while another process uses the file.
const PATIENCE: Duration = Duration::from_secs(10);
/// The version of the tables.
const VERSION: i64 = 2;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS record (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL, variant TEXT NOT NULL, name TEXT NOT NULL, series TEXT NOT NULL,
        load TEXT NOT NULL, restart INTEGER NOT NULL, sample INTEGER NOT NULL,
        started TEXT NOT NULL, kernel TEXT NOT NULL,
        count INTEGER NOT NULL, max_ns INTEGER NOT NULL, body TEXT NOT NULL,
        UNIQUE (run, variant, name, series, load, restart, sample)
    );
";

/// The reason why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// SQLite failed on the file.
    #[error("the store {path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
    /// The folder of the file cannot be made.
    #[error("cannot use the store {path}: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the kernel.
        source: std::io::Error,
    },
    /// A later version made it.
    #[error("the store {path} has version {version}, newer than {VERSION}: use a newer millstream")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i64,
    },
    /// A record in it is wrong.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// There is no such run.
    #[error("no run has a name that begins with `{0}`; `millstream-lab lab list` shows the runs")]
    NoRun(String),
    /// There is no run at all.
    #[error("{0} contains no run yet: `millstream-lab lab run PLAN` makes one, or give --store")]
    Empty(PathBuf),
    /// Several runs begin with the prefix.
    #[error("the names of several runs begin with `{prefix}`: {runs}. Write more of the name")]
    Several {
        /// The requested prefix.
        prefix: String,
        /// The matching runs.
        runs: String,
    },
    /// A run of that name exists.
    #[error(
        "there is already a run `{0}`: give this one another --name, or continue the old one with \
         `millstream-lab lab resume`"
    )]
    Exists(String),
    /// Another process carries it out.
    #[error("another process is measuring the run `{0}`: wait until it ends, or stop it")]
    Alive(String),
    /// The store has the run, but not its plan and command.
    #[error(
        "no run whose name begins with `{0}` can be continued: it was not begun with this store, \
         or an older millstream began it; `millstream-lab lab list` shows the runs"
    )]
    NotBegun(String),
    /// Another record has the same place.
    #[error(
        "the run `{0}` already contains another record of the same variant, measurement, load, \
         start and sample. Nothing was added: give these records another --name"
    )]
    Taken(String),
    /// There is no home directory.
    #[error("no place for results (XDG_STATE_HOME and HOME are not set): give --store FILE")]
    NoPlace,
}

/// A run and variant in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The run.
    pub run: String,
    /// The variant; may be empty.
    pub variant: String,
    /// The start time (RFC 3339).
    pub started: String,
    /// The kernel.
    pub kernel: String,
    /// Its measurements, separated by commas.
    pub names: String,
    /// Its loads, separated by commas.
    pub loads: String,
    /// The starts of the cell with the most.
    pub restarts: u32,
    /// Records.
    pub records: u32,
    /// The largest latency, nanoseconds.
    pub max_ns: u64,
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
    held: Option<held::RunLock>,
}

impl Store {
    /// Returns the path of the user's store: `$XDG_STATE_HOME/millstream/lab.sqlite`, usually below
    /// `~/.local/state`.
    ///
    /// # Errors
    /// [`StoreError::NoPlace`].
    pub fn path_of_user(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, StoreError> {
        let state = folders::state(variable).ok_or(StoreError::NoPlace)?;
        Ok(state.join("millstream/lab.sqlite"))
    }

    /// Opens a store; makes it if it does not exist.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder
            .map_or(Ok(()), std::fs::create_dir_all)
            .map_err(|source| StoreError::Folder { path: path.to_owned(), source })?;
        let fail = |source| StoreError::Sqlite { path: path.to_owned(), source };
        let connection = Connection::open(path).map_err(fail)?;
        let store = Self { path: path.to_owned(), connection, held: None };
        let version = store.prepare().map_err(fail)?;
        if version > VERSION {
            return Err(StoreError::Newer { path: path.to_owned(), version });
        }
        Ok(store)
    }

    fn prepare(&self) -> rusqlite::Result<i64> {
        self.connection.busy_timeout(PATIENCE)?;
        let version = self.connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version < VERSION {
            self.connection.execute_batch(&[TABLES, begun::TABLES].concat())?;
            self.connection.pragma_update(None, "user_version", VERSION)?;
        }
        Ok(version)
    }

    fn fail(&self) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        let path = self.path.clone();
        move |source| StoreError::Sqlite { path: path.clone(), source }
    }

    /// Returns the first column of a query.
    fn texts(&self, query: &str, values: impl Params) -> Result<Vec<String>, StoreError> {
        let rows = || -> rusqlite::Result<Vec<String>> {
            self.connection.prepare(query)?.query_map(values, |row| row.get(0))?.collect()
        };
        rows().map_err(self.fail())
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds results, all or none. Records that the store has already are unchanged. Returns the
    /// number of new records.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`]; [`StoreError::Record`] for a record without its machine;
    /// [`StoreError::Taken`] when another record has the same place in its run.
    pub fn add(&mut self, known: &StartResult) -> Result<usize, StoreError> {
        self.put(None, known)
    }

    /// Adds the results of a start, all or none, in place of an earlier failure of that start.
    ///
    /// # Errors
    /// As [`Store::add`].
    pub fn keep(&mut self, unit: &Unit<'_>, given: &StartResult) -> Result<(), StoreError> {
        self.put(Some(unit), given).map(drop)
    }

    fn put(&mut self, unit: Option<&Unit<'_>>, known: &StartResult) -> Result<usize, StoreError> {
        let fail = self.fail();
        let change = self.connection.transaction().map_err(&fail)?;
        let mut added = 0;
        unit.map_or(Ok(()), |unit| begun::forget(&change, unit)).map_err(&fail)?;
        begun::add(&change, &known.failures).map_err(&fail)?;
        for record in &known.records {
            let kernel = record.environment.kernel_release.as_deref();
            let kernel = kernel.ok_or(RecordError::NoEnvironment)?;
            let (measured, line) = (&record.measured, record.to_line());
            let histogram = &measured.observed.histogram;
            let done = change.execute(
                "INSERT OR IGNORE INTO record (run, variant, name, series, load, restart, sample,
                     started, kernel, count, max_ns, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                params![
                    record.run,
                    record.variant,
                    record.name,
                    measured.series,
                    record.load,
                    record.restart,
                    record.sample,
                    measured.started,
                    kernel,
                    i64::try_from(histogram.count()).unwrap_or(i64::MAX),
                    i64::try_from(histogram.max_ns()).unwrap_or(i64::MAX),
                    line,
                ],
            );
            let new = done.map_err(&fail)?;
            added += new;
            // The text alone does not suffice: a number that was read and written again may end in
            // another digit.
            let known = || -> rusqlite::Result<bool> {
                let known = "SELECT body FROM record WHERE run = ?1 AND variant = ?2 AND name = ?3
                         AND series = ?4 AND load = ?5 AND restart = ?6 AND sample = ?7";
                let Record { run, variant, name, load, restart, sample, .. } = record;
                let place = params![run, variant, name, measured.series, load, restart, sample];
                let body: String = change.query_row(known, place, |row| row.get(0))?;
                Ok(body == line || Record::parse(&body).is_ok_and(|known| known == *record))
            };
            if new == 0 && !known().map_err(&fail)? {
                return Err(StoreError::Taken(record.run.clone()));
            }
        }
        change.commit().map_err(&fail)?;
        Ok(added)
    }

    /// Lists every run and variant, the oldest first.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn list(&self) -> Result<Vec<Listed>, StoreError> {
        let listed = |row: &Row<'_>| {
            Ok(Listed {
                run: row.get(0)?,
                variant: row.get(1)?,
                started: row.get(2)?,
                kernel: row.get(3)?,
                names: row.get(4)?,
                loads: row.get(5)?,
                restarts: row.get(6)?,
                records: row.get(7)?,
                max_ns: row.get::<_, i64>(8)?.unsigned_abs(),
            })
        };
        let query = || -> rusqlite::Result<Vec<Listed>> {
            let mut query = self.connection.prepare(
                "SELECT run, variant, min(started), min(kernel), group_concat(DISTINCT name),
                     group_concat(DISTINCT load), max(restart) + 1, count(*), max(max_ns)
                 FROM record GROUP BY run, variant ORDER BY min(started), min(id)",
            )?;
            query.query_map([], listed)?.collect()
        };
        query().map_err(self.fail())
    }

    /// Finds the run with this prefix; `last` is the one that was added last.
    ///
    /// # Errors
    /// [`StoreError::Empty`], [`StoreError::NoRun`], [`StoreError::Several`].
    pub fn find(&self, prefix: &str) -> Result<String, StoreError> {
        let newest = "SELECT run FROM record ORDER BY id DESC LIMIT 1";
        if prefix == "last" {
            let run = self.connection.query_row(newest, [], |row| row.get(0)).optional();
            return run.map_err(self.fail())?.ok_or_else(|| StoreError::Empty(self.path.clone()));
        }
        one_of(self.list()?.into_iter().map(|listed| listed.run).collect(), prefix)
    }

    /// Returns the records of a run, of one variant or of all, in the order in which they were
    /// added.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn records(&self, run: &str, variant: Option<&str>) -> Result<Vec<Record>, StoreError> {
        let query = "SELECT body FROM record
                     WHERE run = ?1 AND (?2 IS NULL OR variant = ?2) ORDER BY id";
        let lines = self.texts(query, params![run, variant])?;
        lines.iter().map(|line| Ok(Record::parse(line)?)).collect()
    }
}

/// Returns the one of these runs with this prefix.
fn one_of(mut runs: Vec<String>, prefix: &str) -> Result<String, StoreError> {
    if runs.iter().any(|run| run == prefix) {
        return Ok(prefix.to_owned());
    }
    runs.retain(|run| run.starts_with(prefix));
    runs.sort();
    runs.dedup();
    match &runs[..] {
        [run] => Ok(run.clone()),
        [] => Err(StoreError::NoRun(prefix.to_owned())),
        _ => Err(StoreError::Several { prefix: prefix.to_owned(), runs: runs.join(", ") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn known(records: &[Record]) -> StartResult {
        StartResult { records: records.to_vec(), failures: Vec::new() }
    }

    fn place(run: &str, variant: &str, restart: u32) -> Record {
        let (run, variant) = (run.to_owned(), variant.to_owned());
        Record { run, variant, restart, ..record("timer", &[5, 7]) }
    }

    #[test]
    fn what_is_added_is_there_once_also_for_the_next_who_opens_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/lab.sqlite");
        let records = [place("run 1", "a", 0), place("run 1", "a", 1), place("run 1", "b", 0)];
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.add(&known(&records)).unwrap(), 3);
        assert_eq!(store.add(&known(&records)).unwrap(), 0, "the same again");
        let other = Record { command: vec!["x".to_owned()], ..place("run 1", "b", 0) };
        let error = store.add(&known(&[place("run 1", "b", 1), other])).unwrap_err().to_string();
        assert!(error.contains("`run 1` already contains another record"), "{error}");
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.records("run 1", Some("a")).unwrap(), records[..2]);
        assert_eq!(store.records("run 1", None).unwrap().len(), 3);
        let listed = store.list().unwrap();
        assert_eq!((listed.len(), listed[0].restarts, listed[0].records), (2, 2, 2));
        assert_eq!((&*listed[0].names, listed[0].max_ns), ("timer", 7));
    }

    #[test]
    fn a_run_is_found_by_as_much_of_its_name_as_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("s")).unwrap();
        let error = store.find("last").unwrap_err().to_string();
        assert!(error.contains("contains no run yet: `millstream-lab lab run"), "{error}");
        store.add(&known(&["night-1", "night-10", "day"].map(|run| place(run, "", 0)))).unwrap();
        assert_eq!(store.find("d").unwrap(), "day");
        assert_eq!(store.find("night-1").unwrap(), "night-1");
        assert_eq!(store.find("last").unwrap(), "day");
        let error = store.find("night").unwrap_err().to_string();
        assert!(error.contains("night-1, night-10. Write more"), "{error}");
        assert!(store.find("x").unwrap_err().to_string().contains("a name that begins with `x`"));
    }

    #[test]
    fn what_says_nothing_of_its_machine_is_refused_and_so_is_a_later_store() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let mut store = Store::open(&path).unwrap();
        let mut nowhere = place("r", "", 1);
        nowhere.environment.kernel_release = None;
        let error = store.add(&known(&[place("r", "", 0), nowhere])).unwrap_err().to_string();
        assert!(error.contains("does not describe the machine"), "{error}");
        assert_eq!(store.list().unwrap(), [], "all or none");
        store.connection.pragma_update(None, "user_version", 3).unwrap();
        drop(store);
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains("version 3, newer than 2"), "{error}");
        std::fs::write(&path, "this is no store, and far too long to be an empty one").unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::Sqlite { .. })));
    }
}
