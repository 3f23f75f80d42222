//! The store of results: one file of JSON lines, which only grows. Each line is one change, so a
//! change is there as a whole or, after a killed writer, not at all. Writers lock the file
//! (flock(2)); a reader needs no lock.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use millstream_cpu::folders;
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::design::{StartResult, Unit};
use crate::record::{Record, RecordError};

mod held;

/// The first line of a store.
const HEAD: &str = "{\"millstream_store\":3}\n";

/// The reason why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file, or its folder, cannot be used.
    #[error("cannot use the store {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The file is something else, or a store of another version.
    #[error(
        "{path} is no store of this version of millstream (line {line}: {source}): give another \
         --store FILE"
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// The line that cannot be read, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
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

/// A started run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// A line of the store.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    /// A run was started, so that it can be resumed.
    Begun(Begun),
    /// Results came.
    Added {
        /// The start whose earlier failure they replace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again: Option<Failure>,
        records: Vec<Record>,
        failures: Vec<Failure>,
    },
}

/// What the lines that were read say together.
#[derive(Debug, Default)]
struct Contents {
    begun: Vec<Begun>,
    records: Vec<Record>,
    failures: Vec<Failure>,
}

/// The place of a record in a store.
type Place<'r> = (&'r str, &'r str, &'r str, &'r str, &'r str, u32, u32);

fn place(record: &Record) -> Place<'_> {
    let Record { run, variant, name, load, restart, sample, measured, .. } = record;
    (run, variant, name, &measured.series, load, *restart, *sample)
}

/// Whether two failures are of the same start.
fn is_same_start(one: &Failure, other: &Failure) -> bool {
    let start =
        |of: &Failure| (of.run.clone(), of.variant.clone(), of.name.clone(), of.load.clone());
    one.restart == other.restart && start(one) == start(other)
}

impl Contents {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Begun(begun) => {
                self.begun.retain(|one| one.run != begun.run);
                self.begun.push(begun);
            }
            Change::Added { again, records, failures } => {
                let is_again = |failure: &Failure| {
                    let again = again.as_ref().is_some_and(|again| is_same_start(failure, again));
                    again && !failure.partial
                };
                self.failures.retain(|failure| !is_again(failure));
                for failure in failures {
                    self.failures.retain(|one| !is_same_start(one, &failure));
                    self.failures.push(failure);
                }
                self.records.extend(records);
            }
        }
    }

    /// Returns those of the records that are new.
    fn new_ones(&self, records: &[Record]) -> Result<Vec<Record>, StoreError> {
        let mut known: BTreeMap<Place<'_>, &Record> =
            self.records.iter().map(|record| (place(record), record)).collect();
        let mut new = Vec::new();
        for record in records {
            if record.environment.kernel_release.is_none() {
                return Err(RecordError::NoEnvironment.into());
            }
            match known.get(&place(record)) {
                None => new.push(record.clone()),
                Some(one) if *one == record => continue,
                // A number that was written and read again may end in another digit.
                Some(one) if Record::parse(&record.to_line())? == **one => continue,
                Some(_) => return Err(StoreError::Taken(record.run.clone())),
            }
            known.insert(place(record), record);
        }
        Ok(new)
    }
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    /// The bytes that were read, and what they say.
    read: u64,
    lines: usize,
    contents: Contents,
    held: Option<held::RunLock>,
}

fn is_protected(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

impl Store {
    /// Returns the path of the user's store: `$XDG_STATE_HOME/millstream/lab.jsonl`, usually below
    /// `~/.local/state`.
    ///
    /// # Errors
    /// [`StoreError::NoPlace`].
    pub fn path_of_user(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, StoreError> {
        let state = folders::state(variable).ok_or(StoreError::NoPlace)?;
        Ok(state.join("millstream/lab.jsonl"))
    }

    /// Opens a store; makes it if it does not exist.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let open = || {
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                std::fs::create_dir_all(folder)?;
            }
            match OpenOptions::new().read(true).append(true).create(true).open(path) {
                // It can be read all the same; a change fails by itself.
                Err(error) if is_protected(&error) => File::open(path),
                opened => opened,
            }
        };
        let file = open().map_err(fail(path))?;
        let (path, contents) = (path.to_owned(), Contents::default());
        let mut store = Self { path, file, read: 0, lines: 0, contents, held: None };
        store.refresh()?;
        Ok(store)
    }

    /// Reads what was added meanwhile, but for a line without an end: its writer was killed, or is
    /// still writing.
    fn refresh(&mut self) -> Result<(), StoreError> {
        let mut bytes = Vec::new();
        let mut read = || {
            self.file.seek(SeekFrom::Start(self.read))?;
            self.file.read_to_end(&mut bytes)
        };
        read().map_err(fail(&self.path))?;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let is_whole = line.last() == Some(&b'\n');
            if !is_whole && (self.lines > 0 || HEAD.as_bytes().starts_with(line)) {
                break;
            }
            if self.lines > 0 || line != HEAD.as_bytes() {
                let change = serde_json::from_slice(line).map_err(|source| StoreError::Other {
                    path: self.path.clone(),
                    line: self.lines + 1,
                    source,
                })?;
                self.contents.apply(change);
            }
            self.read += line.len() as u64;
            self.lines += 1;
        }
        Ok(())
    }

    /// Adds the change that `make` finds with the newest contents.
    fn change<T>(
        &mut self,
        make: impl FnOnce(&Contents) -> Result<(T, Change), StoreError>,
    ) -> Result<T, StoreError> {
        self.file.lock().map_err(fail(&self.path))?;
        let done = || {
            self.refresh()?;
            let (result, change) = make(&self.contents)?;
            let head = if self.read == 0 { HEAD } else { "" };
            // A number that JSON has not would make the whole file unreadable.
            let readable = |line: String| serde_json::from_str::<Change>(&line).map(|_| line);
            let line = serde_json::to_string(&change).and_then(readable).map_err(io::Error::from);
            let write = || {
                let lines = format!("{head}{}\n", line?);
                // The rest of a killed writer's line goes.
                self.file.set_len(self.read)?;
                self.file.write_all(lines.as_bytes())?;
                self.file.sync_data()?;
                self.read += lines.len() as u64;
                self.lines += lines.lines().count();
                Ok(())
            };
            write().map_err(fail(&self.path))?;
            self.contents.apply(change);
            Ok(result)
        };
        let done = done();
        // It ends with the process, too.
        let _ = self.file.unlock();
        done
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
    /// [`StoreError::File`]; [`StoreError::Record`] for a record without its machine;
    /// [`StoreError::Taken`] when another record has the same place in its run.
    pub fn add(&mut self, known: &StartResult) -> Result<usize, StoreError> {
        self.put(None, known)
    }

    /// Adds the results of a start, all or none, in place of an earlier failure of that start.
    ///
    /// # Errors
    /// As [`Store::add`].
    pub fn keep(&mut self, unit: &Unit<'_>, given: &StartResult) -> Result<(), StoreError> {
        let Unit { run, cell, restart, .. } = unit;
        let again = Failure {
            run: (*run).to_owned(),
            variant: cell.variant.clone(),
            name: cell.name.clone(),
            load: cell.load.name.clone(),
            restart: *restart,
            ..Failure::default()
        };
        self.put(Some(again), given).map(drop)
    }

    fn put(&mut self, again: Option<Failure>, known: &StartResult) -> Result<usize, StoreError> {
        self.change(|contents| {
            let records = contents.new_ones(&known.records)?;
            let failures = known.failures.clone();
            Ok((records.len(), Change::Added { again, records, failures }))
        })
    }

    /// Stores a started run, which this process holds until the store is closed. The name must be
    /// new, or that of a run without any record or failure.
    ///
    /// # Errors
    /// [`StoreError::Exists`]; [`StoreError::Alive`]; [`StoreError`].
    pub fn begin(&mut self, begun: &Begun) -> Result<(), StoreError> {
        self.held = None;
        self.held = Some(held::RunLock::hold(&self.path, &begun.run)?);
        self.change(|contents| {
            let Contents { records, failures, .. } = contents;
            if records.iter().any(|one| one.run == begun.run)
                || failures.iter().any(|one| one.run == begun.run)
            {
                return Err(StoreError::Exists(begun.run.clone()));
            }
            // A path that is no text cannot be written.
            let folder = begun.folder.to_string_lossy().into_owned().into();
            Ok(((), Change::Begun(Begun { folder, ..begun.clone() })))
        })
    }

    /// Finds the started run with this prefix; `last` is the one that was started last.
    ///
    /// # Errors
    /// [`StoreError::NotBegun`], [`StoreError::Several`].
    pub fn begun(&self, prefix: &str) -> Result<Begun, StoreError> {
        let all = &self.contents.begun;
        let run = match prefix {
            "last" => all.last().map(|begun| begun.run.clone()),
            _ => match one_of(all.iter().map(|begun| &*begun.run), prefix) {
                Err(StoreError::NoRun(_)) => None,
                run => Some(run?),
            },
        };
        let begun = run.and_then(|run| all.iter().find(|begun| begun.run == run));
        // It may exist without a plan: imported.
        begun.cloned().ok_or_else(|| StoreError::NotBegun(prefix.to_owned()))
    }

    /// Returns the known results of a run to resume, which this process holds until the store is
    /// closed. Starts without a result are left out: they are missing, and are made again.
    ///
    /// # Errors
    /// [`StoreError::Alive`]; [`StoreError`].
    pub fn take_up(&mut self, run: &str) -> Result<StartResult, StoreError> {
        self.held = None;
        self.held = Some(held::RunLock::hold(&self.path, run)?);
        self.refresh()?;
        let mut failures = self.failures(run);
        failures.retain(|failure| failure.partial);
        Ok(StartResult { records: self.records(run, None), failures })
    }

    /// Returns the names of runs without any record.
    #[must_use]
    pub fn without_records(&self) -> Vec<String> {
        let Contents { begun, records, failures } = &self.contents;
        let begun = begun.iter().map(|begun| &begun.run);
        let mut runs: Vec<_> = begun.chain(failures.iter().map(|failure| &failure.run)).collect();
        runs.retain(|run| records.iter().all(|record| record.run != **run));
        runs.sort_unstable();
        runs.dedup();
        runs.into_iter().cloned().collect()
    }

    /// Returns the starts of a run that have no result.
    #[must_use]
    pub fn failures(&self, run: &str) -> Vec<Failure> {
        self.contents.failures.iter().filter(|failure| failure.run == run).cloned().collect()
    }

    /// Lists every run and variant, the oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<Listed> {
        let mut all: Vec<Listed> = Vec::new();
        let mut at: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for record in &self.contents.records {
            let at = *at.entry((&record.run, &record.variant)).or_insert_with(|| {
                all.push(Listed::of(record));
                all.len() - 1
            });
            all[at].add(record);
        }
        all.sort_by(|one, other| one.started.cmp(&other.started));
        all
    }

    /// Finds the run with this prefix; `last` is the one that was added last.
    ///
    /// # Errors
    /// [`StoreError::Empty`], [`StoreError::NoRun`], [`StoreError::Several`].
    pub fn find(&self, prefix: &str) -> Result<String, StoreError> {
        let mut runs = self.contents.records.iter().map(|record| &*record.run);
        match prefix {
            "last" => runs
                .next_back()
                .map(str::to_owned)
                .ok_or_else(|| StoreError::Empty(self.path.clone())),
            _ => one_of(runs, prefix),
        }
    }

    /// Returns the records of a run, of one variant or of all, in the order in which they were
    /// added.
    #[must_use]
    pub fn records(&self, run: &str, variant: Option<&str>) -> Vec<Record> {
        let wanted = |record: &&Record| {
            record.run == run && variant.is_none_or(|variant| record.variant == variant)
        };
        self.contents.records.iter().filter(wanted).cloned().collect()
    }
}

impl Listed {
    /// The row of this record's run and variant, without it.
    fn of(record: &Record) -> Self {
        Self {
            run: record.run.clone(),
            variant: record.variant.clone(),
            started: record.measured.started.clone(),
            kernel: record.environment.kernel_release.clone().unwrap_or_default(),
            names: String::new(),
            loads: String::new(),
            restarts: 0,
            records: 0,
            max_ns: 0,
        }
    }

    fn add(&mut self, record: &Record) {
        let started = &record.measured.started;
        if *started < self.started {
            self.started.clone_from(started);
        }
        for (list, name) in [(&mut self.names, &record.name), (&mut self.loads, &record.load)] {
            if self.records == 0 {
                list.clone_from(name);
            } else if list.split(',').all(|one| one != name) {
                *list += &format!(",{name}");
            }
        }
        self.restarts = self.restarts.max(record.restart + 1);
        self.records += 1;
        self.max_ns = self.max_ns.max(record.measured.observed.histogram.max_ns());
    }
}

/// Says that the store at a path cannot be used.
fn fail(path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |source| StoreError::File { path, source }
}

/// Returns the one of these runs with this prefix.
fn one_of<'r>(runs: impl Iterator<Item = &'r str>, prefix: &str) -> Result<String, StoreError> {
    let mut runs: Vec<_> = runs.filter(|run| run.starts_with(prefix)).collect();
    if runs.contains(&prefix) {
        return Ok(prefix.to_owned());
    }
    runs.sort_unstable();
    runs.dedup();
    match runs[..] {
        [run] => Ok(run.to_owned()),
        [] => Err(StoreError::NoRun(prefix.to_owned())),
        _ => Err(StoreError::Several { prefix: prefix.to_owned(), runs: runs.join(", ") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::MeasurementPlan;
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
        let path = folder.path().join("deep/lab.jsonl");
        let records = [place("run 1", "a", 0), place("run 1", "a", 1), place("run 1", "b", 0)];
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.add(&known(&records)).unwrap(), 3);
        assert_eq!(store.add(&known(&records)).unwrap(), 0, "the same again");
        let other = Record { command: vec!["x".to_owned()], ..place("run 1", "b", 0) };
        let error = store.add(&known(&[place("run 1", "b", 1), other])).unwrap_err().to_string();
        assert!(error.contains("`run 1` already contains another record"), "{error}");
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.records("run 1", Some("a")), records[..2]);
        assert_eq!(store.records("run 1", None).len(), 3);
        let listed = store.list();
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
    fn what_says_nothing_of_its_machine_is_refused_and_so_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let mut store = Store::open(&path).unwrap();
        let mut nowhere = place("r", "", 1);
        nowhere.environment.kernel_release = None;
        let error = store.add(&known(&[place("r", "", 0), nowhere])).unwrap_err().to_string();
        assert!(error.contains("does not describe the machine"), "{error}");
        assert_eq!(store.list(), [], "all or none");
        drop(store);
        for other in ["this is no store, and far too long to be an empty one", "SQLite format 3\0"]
        {
            std::fs::write(&path, other).unwrap();
            let error = Store::open(&path).unwrap_err().to_string();
            assert!(error.contains("is no store of this version of millstream (line 1"), "{error}");
        }
    }

    #[test]
    fn a_line_of_a_killed_writer_is_as_if_it_had_not_been_begun() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let mut store = Store::open(&path).unwrap();
        store.add(&known(&[place("r", "", 0)])).unwrap();
        let mut beside = OpenOptions::new().append(true).open(&path).unwrap();
        beside.write_all(b"{\"added\":{\"records\":[").unwrap();
        assert_eq!(Store::open(&path).unwrap().records("r", None).len(), 1);
        let mut second = Store::open(&path).unwrap();
        second.add(&known(&[place("r", "", 1)])).unwrap();
        assert_eq!(store.add(&known(&[place("r", "", 1)])).unwrap(), 0, "it sees what others add");
        assert_eq!(Store::open(&path).unwrap().records("r", None).len(), 2);
    }

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
        assert_eq!(store.failures("night 2"), failures);
        assert_eq!(store.begun("last").unwrap(), begun("night 2"));
        assert_eq!(store.without_records(), ["night 1"]);
        assert_eq!(store.begun("night 1").unwrap(), begun("night 1"));
        assert!(matches!(store.begun("night"), Err(StoreError::Several { .. })));
        assert!(matches!(store.begun("day"), Err(StoreError::NotBegun(_))));
        let known = store.take_up("night 2").unwrap();
        assert_eq!(known, StartResult { records, failures: failures[1..].to_vec() });
        assert_eq!(store.failures("night 2"), failures, "until the start is made again");
        let error = store.begin(&begun("night 2")).unwrap_err().to_string();
        assert!(error.contains("lab resume"), "{error}");
        let plan = "name = \"p\"\nmeasurement = [{ name = \"boot\", args = [] }]";
        let cell = MeasurementPlan::parse(plan).unwrap().cells().unwrap().remove(0);
        let unit = Unit { run: "night 2", cell: &cell, restart: 0, number: (0, 1) };
        store.keep(&unit, &known).unwrap();
        assert_eq!(store.failures("night 2"), failures[1..]);
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
}
