//! The plans and commands of started runs, so that an interrupted run can be resumed.

use super::held::RunLock;
use super::{Store, StoreError};
use crate::Failure;
use crate::design::{StartResult, Unit};
use rusqlite::{Connection, params};
use std::path::PathBuf;

pub(super) const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS begun (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL UNIQUE, command TEXT NOT NULL, folder TEXT NOT NULL, plan TEXT NOT NULL
    );
    CREATE TABLE IF NOT EXISTS failure (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL, variant TEXT NOT NULL, name TEXT NOT NULL, load TEXT NOT NULL,
        restart INTEGER NOT NULL, partial INTEGER NOT NULL, body TEXT NOT NULL,
        UNIQUE (run, variant, name, load, restart)
    );
";

/// A started run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// The run's name.
    pub run: String,
    /// The command line, the program's own name first.
    pub command: Vec<String>,
    /// The working folder of the command: relative paths start there.
    pub folder: PathBuf,
    /// The plan's text; the file may have changed since.
    pub plan: String,
}

impl Store {
    /// Stores a started run, which this process holds until the store is closed. The name must be
    /// new, or that of a run without any record or failure.
    ///
    /// # Errors
    /// [`StoreError::Exists`]; [`StoreError::Alive`]; [`StoreError`].
    pub fn begin(&mut self, begun: &Begun) -> Result<(), StoreError> {
        self.held = None;
        self.held = Some(RunLock::hold(&self.path, &begun.run)?);
        let query = "SELECT EXISTS (SELECT 1 FROM record WHERE run = ?1)
                         OR EXISTS (SELECT 1 FROM failure WHERE run = ?1)";
        let exists: bool = self
            .connection
            .query_row(query, [&begun.run], |row| row.get(0))
            .map_err(self.fail())?;
        if exists {
            return Err(StoreError::Exists(begun.run.clone()));
        }
        let Begun { run, command, folder, plan } = begun;
        let command = serde_json::to_string(command).expect("a list of texts");
        let values = params![run, command, folder.to_string_lossy(), plan];
        let insert = "REPLACE INTO begun (run, command, folder, plan) VALUES (?1, ?2, ?3, ?4)";
        self.connection.execute(insert, values).map(drop).map_err(self.fail())
    }

    /// Finds the started run with this prefix; `last` is the one that was started last.
    ///
    /// # Errors
    /// [`StoreError::NotBegun`], [`StoreError::Several`], [`StoreError::Sqlite`].
    pub fn begun(&self, prefix: &str) -> Result<Begun, StoreError> {
        let mut runs = self.texts("SELECT run FROM begun ORDER BY id", [])?;
        let run = match prefix {
            "last" => runs.pop().ok_or_else(|| StoreError::NoRun(prefix.to_owned())),
            _ => super::one_of(runs, prefix),
        };
        let run = match run {
            // It may exist without a plan: imported, or older than this table.
            Err(StoreError::NoRun(_)) => return Err(StoreError::NotBegun(prefix.to_owned())),
            run => run?,
        };
        let query = "SELECT command, folder, plan FROM begun WHERE run = ?1";
        let row = self.connection.query_row(query, [&run], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get(2)?))
        });
        let (command, folder, plan) = row.map_err(self.fail())?;
        let command = serde_json::from_str(&command).unwrap_or_default();
        Ok(Begun { run, command, folder: folder.into(), plan })
    }

    /// Returns the known results of a run to resume, which this process holds until the store is
    /// closed. Starts without a result are left out: they are missing, and are made again.
    ///
    /// # Errors
    /// [`StoreError::Alive`]; [`StoreError`].
    pub fn take_up(&mut self, run: &str) -> Result<StartResult, StoreError> {
        self.held = None;
        self.held = Some(RunLock::hold(&self.path, run)?);
        let mut failures = self.failures(run)?;
        failures.retain(|failure| failure.partial);
        Ok(StartResult { records: self.records(run, None)?, failures })
    }

    /// Returns the names of runs without any record.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn without_records(&self) -> Result<Vec<String>, StoreError> {
        let query = "SELECT run FROM begun UNION SELECT run FROM failure
                     EXCEPT SELECT run FROM record ORDER BY run";
        self.texts(query, [])
    }

    /// Returns the starts of a run that have no result.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn failures(&self, run: &str) -> Result<Vec<Failure>, StoreError> {
        let lines = self.texts("SELECT body FROM failure WHERE run = ?1 ORDER BY id", [run])?;
        Ok(lines.iter().filter_map(|line| Failure::of_line(line)).collect())
    }
}

/// Removes the failure of a start.
pub(super) fn forget(connection: &Connection, unit: &Unit<'_>) -> rusqlite::Result<()> {
    let Unit { run, cell, restart, .. } = unit;
    let forget = "DELETE FROM failure WHERE run = ?1 AND variant = ?2 AND name = ?3 AND load = ?4
                      AND restart = ?5 AND NOT partial";
    let place = params![run, cell.variant, cell.name, cell.load.name, restart];
    connection.execute(forget, place).map(drop)
}

/// Adds failures; each replaces one in the same place.
pub(super) fn add(connection: &Connection, failures: &[Failure]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(
        "INSERT OR REPLACE INTO failure (run, variant, name, load, restart, partial, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for one in failures {
        let Failure { run, variant, name, load, restart, partial, .. } = one;
        insert.execute(params![run, variant, name, load, restart, partial, one.to_line()])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::MeasurementPlan;
    use crate::record::tests::record;

    fn begun(run: &str) -> Begun {
        let command = ["millstream", "lab", "run", "a plan.toml"].map(str::to_owned).to_vec();
        Begun { run: run.to_owned(), command, folder: "/x y".into(), plan: "name = \"p\"".into() }
    }

    #[test]
    fn a_run_is_taken_up_with_what_it_has_and_without_what_gave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let mut store = Store::open(&path).unwrap();
        store.begin(&begun("night 1")).unwrap();
        store.begin(&begun("night 1")).expect("it gave nothing yet");
        store.begin(&begun("night 2")).unwrap();
        let failure = |name: &str, partial| Failure {
            run: "night 2".to_owned(),
            name: name.to_owned(),
            load: "idle".to_owned(),
            partial,
            ..Failure::default()
        };
        let records = vec![crate::Record { run: "night 2".to_owned(), ..record("timer", &[5]) }];
        let failures = vec![failure("boot", false), failure("udp", true)];
        store.add(&StartResult { records: records.clone(), failures: failures.clone() }).unwrap();
        drop(store);
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.failures("night 2").unwrap(), failures);
        assert_eq!(store.begun("last").unwrap(), begun("night 2"));
        assert_eq!(store.without_records().unwrap(), ["night 1"]);
        assert_eq!(store.begun("night 1").unwrap(), begun("night 1"));
        assert!(matches!(store.begun("night"), Err(StoreError::Several { .. })));
        assert!(matches!(store.begun("day"), Err(StoreError::NotBegun(_))));
        let known = store.take_up("night 2").unwrap();
        assert_eq!(known, StartResult { records, failures: failures[1..].to_vec() });
        assert_eq!(store.failures("night 2").unwrap(), failures, "until the start is made again");
        let error = store.begin(&begun("night 2")).unwrap_err().to_string();
        assert!(error.contains("lab resume"), "{error}");
        let plan = "name = \"p\"\nmeasurement = [{ name = \"boot\", args = [] }]";
        let cell = MeasurementPlan::parse(plan).unwrap().cells().unwrap().remove(0);
        let unit = Unit { run: "night 2", cell: &cell, restart: 0, number: (0, 1) };
        store.keep(&unit, &known).unwrap();
        assert_eq!(store.failures("night 2").unwrap(), failures[1..]);
    }

    #[test]
    fn who_has_a_run_in_hand_has_it_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let [mut first, mut second] = [(); 2].map(|()| Store::open(&path).unwrap());
        first.begin(&begun("a b")).unwrap();
        let alive = |result: Result<(), _>| matches!(result, Err(StoreError::Alive(_)));
        assert!(alive(second.take_up("a b").map(drop)));
        assert!(alive(second.begin(&begun("a b"))));
        second.begin(&begun("a_b")).unwrap();
        drop(first);
        second.take_up("a b").unwrap();
        drop(second);
        let names = std::fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["s"], "no lock is left");
    }

    #[test]
    fn a_store_of_the_first_version_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let old = crate::Record { run: "old".to_owned(), ..record("timer", &[5]) };
        let mut store = Store::open(&path).unwrap();
        store.add(&StartResult { records: vec![old.clone()], failures: Vec::new() }).unwrap();
        store.connection.execute_batch("DROP TABLE begun; DROP TABLE failure").unwrap();
        store.connection.pragma_update(None, "user_version", 1).unwrap();
        drop(store);
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.records("old", None).unwrap(), [old]);
        assert!(matches!(store.begin(&begun("old")), Err(StoreError::Exists(_))));
        assert!(matches!(store.begun("old"), Err(StoreError::NotBegun(_))));
        store.begin(&begun("new")).unwrap();
        let new = crate::Record { run: "new".to_owned(), ..record("timer", &[6]) };
        let failures = vec![Failure { run: "new".to_owned(), ..Failure::default() }];
        store.add(&StartResult { records: vec![new], failures: failures.clone() }).unwrap();
        assert_eq!(store.failures("new").unwrap(), failures);
        assert_eq!(store.list().unwrap().len(), 2);
    }
}
