//! A manifest with its tasks.

use crate::identity::{digest, of_recording, stamp};
use crate::manifest::{Setting, Split};
use crate::recordings::{identified, matches, merge};
use crate::{BatchError, Manifest, ResultFolder};
use millstream_flow::file::read_text;
use millstream_flow::{GraphFile, Registry};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Digits of a task's name: 80 bits of its hash.
const NAME_DIGITS: usize = 20;
/// Most tasks of a batch.
const TASKS_MAX: usize = 100_000;

/// A manifest that was read, with the tasks that it names.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The manifest's path, absolute.
    pub path: PathBuf,
    /// What the manifest says.
    pub manifest: Manifest,
    /// The tasks: setting by setting, each over all recordings; with `[split]` then the parts of
    /// each.
    pub tasks: Vec<Task>,
    /// The number of settings.
    pub settings: usize,
    /// The number of tasks that are no parts.
    pub wholes: usize,
    /// Recordings that were left out, as an earlier one has the same samples: both names.
    pub same: Vec<(String, String)>,
    /// Folders below a pattern that could not be read, and why: their recordings are left out.
    pub unread: Vec<String>,
    pub(crate) graph: GraphFile,
    pub(crate) graph_path: PathBuf,
    pub(crate) folder: PathBuf,
    /// A hash of the texts and the version, on which the tasks of given recordings depend.
    pub(crate) key: String,
}

/// One run of the graph.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Task {
    /// Its name: a hash of all that decides its result.
    pub name: String,
    /// The recording, as a path relative to the manifest.
    pub recording: Option<String>,
    /// What the recording is known by.
    pub identity: Option<String>,
    /// The parameters but those for recording and outputs.
    pub parameters: BTreeMap<String, String>,
    /// The part of the recording, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<TaskPart>,
    /// The number of its setting.
    #[serde(skip)]
    pub setting: usize,
}

/// A part of a recording.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TaskPart {
    /// Its number, from 1 on.
    pub number: usize,
    /// The number of parts.
    pub of: usize,
}

/// What decides the result of a task; its JSON document is hashed.
#[derive(Serialize)]
struct TaskKey<'a> {
    format: u32,
    recording: Option<&'a str>,
    recording_parameter: &'a str,
    /// A hash of the text: each task hashes its key.
    graph: &'a str,
    parameters: &'a Setting,
    outputs: &'a BTreeMap<String, String>,
    version: &'a str,
    /// The number of parts, and which this is; 0 is all of them joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<(usize, usize)>,
}

/// A manifest and its graph, as texts that were read.
pub(crate) struct Texts {
    pub(crate) path: PathBuf,
    pub(crate) manifest: String,
    pub(crate) graph_path: PathBuf,
    pub(crate) graph: String,
    /// See [`Batch::key`].
    pub(crate) key: String,
}

impl Texts {
    pub(crate) fn read(path: &Path, version: &str) -> Result<Self, BatchError> {
        let path = path.canonicalize().map_err(BatchError::read(path))?;
        let text = read_text(&path).map_err(BatchError::read(&path))?;
        let manifest = Manifest::read(&path, &text)?;
        let graph_path = folder_of(&path).join(&manifest.graph);
        let graph = read_text(&graph_path).map_err(BatchError::read(&graph_path))?;
        let key = serde_json::to_vec(&(version, &text, &graph)).unwrap_or_default();
        Ok(Self { path, manifest: text, graph_path, graph, key: digest(&key) })
    }

    /// Parses the graph, and returns a batch without tasks.
    pub(crate) fn batch(self, manifest: Manifest) -> Result<Batch, BatchError> {
        let graph = GraphFile::parse(&self.graph_path.display().to_string(), &self.graph)?;
        Ok(Batch {
            folder: folder_of(&self.path).to_owned(),
            path: self.path,
            manifest,
            tasks: Vec::new(),
            settings: 1,
            wholes: 0,
            same: Vec::new(),
            unread: Vec::new(),
            graph,
            graph_path: self.graph_path,
            key: self.key,
        })
    }
}

impl Batch {
    /// Reads a manifest and its graph, and expands it. `version` is that of the program that runs
    /// the tasks.
    ///
    /// # Errors
    /// [`BatchError`]: a file cannot be read or is wrong, a pattern matches no recording, there are
    /// too many tasks.
    pub fn of(path: &Path, version: &str) -> Result<Self, BatchError> {
        let texts = Texts::read(path, version)?;
        let manifest = Manifest::parse(&texts.path, &texts.manifest)?;
        let graph_hash = digest(texts.graph.as_bytes());
        let mut batch = texts.batch(manifest)?;
        let wrong = |reason| BatchError::Manifest { path: batch.path.clone(), reason };
        let settings = batch.manifest.settings().map_err(wrong)?;
        let parts = batch.manifest.split.map_or(0, |split| split.parts);
        let mut recordings = vec![None];
        if let Some(patterns) = &batch.manifest.recordings {
            let found = matches(&batch.folder, patterns, &batch.results()).map_err(wrong)?;
            within(settings.len(), found.0.len(), parts + 1).map_err(wrong)?;
            recordings = identified(&batch.folder, found.0)?;
            batch.unread = found.1;
        }
        batch.same = merge(&mut recordings);
        batch.wholes = settings.len() * recordings.len();
        batch.settings = settings.len();
        let of = |number: usize, recording: &Option<(String, String)>, part: usize| {
            let key = TaskKey {
                format: 2,
                recording: recording.as_ref().map(|(_, identity)| identity.as_str()),
                recording_parameter: &batch.manifest.recording_parameter,
                graph: &graph_hash,
                parameters: &settings[number],
                outputs: &batch.manifest.outputs,
                version,
                split: (parts > 0).then_some((parts, part)),
            };
            let mut name = digest(&serde_json::to_vec(&key).unwrap_or_default());
            name.truncate(NAME_DIGITS);
            let (recording, identity) = recording.clone().unzip();
            let parameters = settings[number].clone();
            let part = (part > 0).then_some(TaskPart { number: part, of: parts });
            Task { name, recording, identity, parameters, part, setting: number }
        };
        let pairs = || (0..settings.len()).flat_map(|n| recordings.iter().map(move |r| (n, r)));
        let wholes = pairs().map(|(number, recording)| of(number, recording, 0));
        let of = &of;
        let parts = pairs().flat_map(|(number, recording)| {
            (1..=parts).map(move |part| of(number, recording, part))
        });
        batch.tasks = wholes.chain(parts).collect();
        Ok(batch)
    }

    /// Returns the parts of a task, by their positions; none without `[split]` and for a part.
    #[must_use]
    pub fn parts_of(&self, task: usize) -> Range<usize> {
        match &self.manifest.split {
            Some(Split { parts }) if task < self.wholes => {
                let first = self.wholes + task * parts;
                first..first + parts
            }
            _ => 0..0,
        }
    }

    /// Returns the task that joins a part with its others, by its position.
    #[must_use]
    pub fn whole_of(&self, part: usize) -> Option<usize> {
        let Split { parts } = self.manifest.split?;
        Some(part.checked_sub(self.wholes)? / parts)
    }

    /// Checks each setting against the parameters of the graph and of its blocks.
    ///
    /// # Errors
    /// As [`GraphFile::structure`].
    pub fn check(&self, registry: &Registry) -> Result<(), BatchError> {
        let mut checked = None;
        for task in &self.tasks[..self.wholes] {
            if checked.replace(task.setting) != Some(task.setting) {
                self.graph.structure(registry, &self.set(task, Path::new("/")))?;
            }
        }
        Ok(())
    }

    /// Returns the graph that the tasks run.
    #[must_use]
    pub fn graph(&self) -> &GraphFile {
        &self.graph
    }

    /// Returns the path of the graph file.
    #[must_use]
    pub fn graph_path(&self) -> &Path {
        &self.graph_path
    }

    /// Returns the folder of the manifest: paths in it are relative to that.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder for results.
    #[must_use]
    pub fn results(&self) -> ResultFolder {
        let named = self.manifest.results.as_ref().map(|results| self.folder.join(results));
        ResultFolder::new(named.unwrap_or_else(|| self.path.with_extension("results")))
    }

    /// Returns the task whose name begins with `name`.
    ///
    /// # Errors
    /// [`BatchError::NoTask`]: none does, or several do.
    pub fn task(&self, name: &str) -> Result<&Task, BatchError> {
        let mut found = self.tasks.iter().filter(|task| task.name.starts_with(name));
        match (found.next(), found.next()) {
            (Some(task), None) if !name.is_empty() => Ok(task),
            _ => Err(BatchError::NoTask { manifest: self.path.clone(), name: name.to_owned() }),
        }
    }

    /// Returns the parameters of a task's graph, whose files go to `folder`.
    #[must_use]
    pub fn set(&self, task: &Task, folder: &Path) -> Vec<String> {
        let of = |(name, value): (&String, &String)| format!("{name}={value}");
        let outputs = self.manifest.outputs.iter();
        let outputs = outputs.map(|(name, file)| format!("{name}={}", folder.join(file).display()));
        let recording = task.recording.iter().map(|recording| {
            let path = self.folder.join(recording);
            format!("{}={}", self.manifest.recording_parameter, path.display())
        });
        task.parameters.iter().map(of).chain(outputs).chain(recording).collect()
    }

    /// Checks that a task's recording is the one that its name stands for; returns the sizes of its
    /// files and the times of their last changes.
    ///
    /// # Errors
    /// [`BatchError::Changed`], or it cannot be read.
    pub fn seen(&self, task: &Task) -> Result<String, BatchError> {
        let Some(recording) = &task.recording else { return Ok(String::new()) };
        let path = self.folder.join(recording);
        let seen = stamp(&path)?;
        match of_recording(&path, recording)? {
            identity if Some(&identity) == task.identity.as_ref() => Ok(seen),
            _ => Err(BatchError::Changed(path)),
        }
    }

    /// Checks that nobody has written to a task's recording since it was `seen`.
    ///
    /// # Errors
    /// As [`seen`](Self::seen).
    pub fn still(&self, task: &Task, seen: &str) -> Result<(), BatchError> {
        if self.seen(task)? == seen {
            return Ok(());
        }
        let recording = task.recording.as_deref().unwrap_or_default();
        Err(BatchError::Changed(self.folder.join(recording)))
    }

    /// Returns the recording of a task in words, and which part of it; empty without one.
    #[must_use]
    pub fn recording_words(&self, task: &Task) -> String {
        let recording = task.recording.clone().unwrap_or_default();
        match task.part {
            Some(TaskPart { number, of }) => format!("{recording} part {number} of {of}"),
            None => recording,
        }
    }

    /// Returns the swept parameters of a task in words: `a=1 b=2`; empty without a sweep.
    #[must_use]
    pub fn words(&self, task: &Task) -> String {
        let of = |name: &str| Some(format!("{name}={}", task.parameters.get(name)?));
        let swept: Vec<_> = self.manifest.swept().filter_map(of).collect();
        swept.join(" ")
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn within(settings: usize, recordings: usize, each: usize) -> Result<(), String> {
    match settings.saturating_mul(recordings).saturating_mul(each) {
        0..=TASKS_MAX => Ok(()),
        tasks => {
            let parts =
                if each > 1 { format!(" with {} parts each", each - 1) } else { String::new() };
            Err(format!(
                "{settings} settings and {recordings} recordings{parts} are {tasks} tasks, more \
                 than {TASKS_MAX}: use fewer values below [sweep], or several manifests with fewer \
                 recordings each"
            ))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Claim, TaskResult};
    use std::fs;

    /// Reads a manifest with this text.
    pub(crate) fn batch(folder: &Path, manifest: &str) -> Result<Batch, BatchError> {
        let graph = "[[block]]\nname = \"a\"\ntype = \"null_sink\"\n[graph]\nconnections = []\n";
        fs::write(folder.join("g.toml"), graph).unwrap();
        fs::write(folder.join("b.toml"), format!("graph = \"g.toml\"\n{manifest}")).unwrap();
        Batch::of(&folder.join("b.toml"), "1")
    }

    /// A batch of so many recordings.
    pub(crate) fn of_recordings(
        number: usize,
        manifest: &str,
    ) -> (tempfile::TempDir, Result<Batch, BatchError>) {
        let folder = tempfile::tempdir().unwrap();
        for at in 0..number {
            fs::write(folder.path().join(format!("{at}.cf32")), at.to_string()).unwrap();
        }
        let batch = batch(folder.path(), &format!("recordings = [\"*.cf32\"]\n{manifest}"));
        (folder, batch)
    }

    /// Gives a task a result with the number `x`.
    pub(crate) fn finish(batch: &Batch, task: usize, x: f64) {
        let Claim::Mine(claim) = batch.results().claim(&batch.tasks[task].name).unwrap() else {
            panic!("task {task} is not to be had");
        };
        let result = TaskResult {
            task: serde_json::Value::Null,
            made_by: BTreeMap::new(),
            numbers: BTreeMap::from([("x".to_owned(), x)]),
            files: BTreeMap::new(),
            remark: None,
            notes: Vec::new(),
            results: serde_json::Value::Null,
        };
        claim.finish(&result).unwrap();
    }

    #[test]
    fn more_tasks_than_a_batch_can_have_are_refused() {
        let sweep = "[sweep]\na = { from = 1, to = 50001, step = 1 }\n";
        let error = of_recordings(2, sweep).1.unwrap_err().to_string();
        assert!(error.contains("50001 settings and 2 recordings are 100002 tasks"), "{error}");
    }

    #[test]
    fn samples_that_are_written_during_the_task_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let [meta, data] = ["a.sigmf-meta", "a.sigmf-data"].map(|name| folder.path().join(name));
        fs::write(&meta, "{\"global\": {\"core:sha512\": \"12\"}}").unwrap();
        fs::write(&data, [0; 40]).unwrap();
        let batch = batch(folder.path(), "recordings = [\"*.sigmf-meta\"]\n").unwrap();
        let seen = batch.seen(&batch.tasks[0]).unwrap();
        batch.still(&batch.tasks[0], &seen).unwrap();
        let later = fs::metadata(&data).unwrap().modified().unwrap();
        let later = later + std::time::Duration::from_secs(1);
        fs::File::options().write(true).open(&data).unwrap().set_modified(later).unwrap();
        let error = batch.still(&batch.tasks[0], &seen).unwrap_err();
        assert!(matches!(error, BatchError::Changed(_)), "{error}");
        assert!(batch.seen(&batch.tasks[0]).is_ok(), "the identity is the same");
        fs::remove_file(&data).unwrap();
        let batch = Batch::of(&batch.path, "1").unwrap();
        let error = batch.seen(&batch.tasks[0]).unwrap_err().to_string();
        assert!(error.ends_with("a.sigmf-data: No such file or directory (os error 2)"), "{error}");
    }
}
