//! A manifest with its tasks.

use crate::identity::{digest, of_recording};
use crate::manifest::Setting;
use crate::{BatchError, Manifest, ResultFolder};
use millstream_flow::{GraphFile, Registry};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Digits of a task's name: 80 bits of its hash.
const NAME_DIGITS: usize = 20;

/// A manifest that was read, with the tasks that it names.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The manifest's path, absolute.
    pub path: PathBuf,
    /// What the manifest says.
    pub manifest: Manifest,
    /// The tasks: setting by setting, each over all recordings.
    pub tasks: Vec<Task>,
    /// The number of settings.
    pub settings: usize,
    /// Recordings that were left out, as an earlier one has the same samples: both names.
    pub same: Vec<(String, String)>,
    graph: GraphFile,
    graph_path: PathBuf,
    folder: PathBuf,
}

/// One run of the graph.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Task {
    /// Its name: a hash of all that decides its result.
    pub name: String,
    /// The recording, as a path relative to the manifest.
    pub recording: Option<String>,
    /// What the recording is known by.
    pub identity: Option<String>,
    /// The parameters but those for recording and outputs.
    pub parameters: BTreeMap<String, String>,
    /// The number of its setting.
    #[serde(skip)]
    pub setting: usize,
}

/// What decides the result of a task; its JSON document is hashed.
#[derive(Serialize)]
struct TaskKey<'a> {
    format: u32,
    recording: Option<&'a str>,
    recording_parameter: &'a str,
    graph: &'a str,
    parameters: &'a Setting,
    outputs: &'a BTreeMap<String, String>,
    version: &'a str,
}

impl Batch {
    /// Reads a manifest and its graph, and expands it. `version` is that of the program that runs
    /// the tasks.
    ///
    /// # Errors
    /// [`BatchError`]: a file cannot be read or is wrong, a pattern matches no recording.
    pub fn of(path: &Path, version: &str) -> Result<Self, BatchError> {
        let path = path.canonicalize().map_err(BatchError::read(path))?;
        let text = millstream_flow::file::read_text(&path).map_err(BatchError::read(&path))?;
        let manifest = Manifest::parse(&path, &text)?;
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        let graph_path = folder.join(&manifest.graph);
        let graph_text =
            millstream_flow::file::read_text(&graph_path).map_err(BatchError::read(&graph_path))?;
        let graph = GraphFile::parse(&graph_path.display().to_string(), &graph_text)?;
        let wrong = |reason| BatchError::Manifest { path: path.clone(), reason };
        let settings = manifest.settings().map_err(wrong)?;
        let mut recordings = vec![None];
        if let Some(patterns) = &manifest.recordings {
            let found = matches(&folder, patterns).map_err(wrong)?;
            let known = found.into_iter().map(|shown| {
                let identity = of_recording(&folder.join(&shown), &shown)?;
                Ok(Some((shown, identity)))
            });
            recordings = known.collect::<Result<_, BatchError>>()?;
        }
        let same = merge(&mut recordings);
        let mut tasks = Vec::with_capacity(settings.len() * recordings.len());
        for (number, setting) in settings.iter().enumerate() {
            for recording in &recordings {
                let key = TaskKey {
                    format: 1,
                    recording: recording.as_ref().map(|(_, identity)| identity.as_str()),
                    recording_parameter: &manifest.recording_parameter,
                    graph: &graph_text,
                    parameters: setting,
                    outputs: &manifest.outputs,
                    version,
                };
                let key = serde_json::to_vec(&key).unwrap_or_default();
                let mut name = digest(&key);
                name.truncate(NAME_DIGITS);
                let (recording, identity) = recording.clone().unzip();
                let parameters = setting.clone();
                tasks.push(Task { name, recording, identity, parameters, setting: number });
            }
        }
        let settings = settings.len();
        Ok(Self { path, manifest, tasks, settings, same, graph, graph_path, folder })
    }

    /// Checks each setting against the parameters of the graph and of its blocks.
    ///
    /// # Errors
    /// As [`GraphFile::structure`].
    pub fn check(&self, registry: &Registry) -> Result<(), BatchError> {
        let mut checked = None;
        for task in &self.tasks {
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

    /// Checks that a task's recording is the one that its name stands for.
    ///
    /// # Errors
    /// [`BatchError::Changed`], or it cannot be read.
    pub fn still(&self, task: &Task) -> Result<(), BatchError> {
        let Some(recording) = &task.recording else { return Ok(()) };
        let path = self.folder.join(recording);
        match of_recording(&path, recording)? {
            identity if Some(&identity) == task.identity.as_ref() => Ok(()),
            _ => Err(BatchError::Changed(path)),
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

/// Leaves only the first of recordings with one identity.
fn merge(recordings: &mut Vec<Option<(String, String)>>) -> Vec<(String, String)> {
    let mut first: HashMap<String, String> = HashMap::new();
    let mut same = Vec::new();
    recordings.retain(|recording| {
        let Some((shown, identity)) = recording else { return true };
        match first.get(identity) {
            Some(earlier) => same.push((earlier.clone(), shown.clone())),
            None => drop(first.insert(identity.clone(), shown.clone())),
        }
        first.get(identity) == Some(shown)
    });
    same
}

/// The files that match the patterns, relative to `folder`, sorted within each pattern.
fn matches(folder: &Path, patterns: &[String]) -> Result<Vec<String>, String> {
    if patterns.is_empty() {
        return Err("recordings = []: name at least one recording or pattern".to_owned());
    }
    let mut found = Vec::new();
    for pattern in patterns {
        let place = format!("recordings: the pattern \"{pattern}\"");
        // A folder may have a name with `*` or `[`.
        let whole = match Path::new(pattern).is_absolute() {
            true => pattern.clone(),
            false => format!("{}/{pattern}", glob::Pattern::escape(&folder.to_string_lossy())),
        };
        let before = found.len();
        let paths = glob::glob(&whole).map_err(|error| format!("{place}: {error}"))?;
        for path in paths {
            let path = path.map_err(|error| format!("{place}: {error}"))?;
            let path = match path.extension().and_then(|extension| extension.to_str()) {
                Some("sigmf-data") => path.with_extension("sigmf-meta"),
                _ => path,
            };
            let is_dir = path.is_dir();
            let shown = path.strip_prefix(folder).unwrap_or(&path);
            let shown = shown.to_str().ok_or_else(|| {
                format!("{place}: the name of {} is not UTF-8: rename the file", path.display())
            })?;
            if !is_dir && !found.iter().any(|known| known == shown) {
                found.push(shown.to_owned());
            }
        }
        let named = |known: &String| glob::Pattern::new(pattern).is_ok_and(|p| p.matches(known));
        if found.len() == before && !found.iter().any(named) {
            let folder = folder.display();
            return Err(format!(
                "{place} matches no file below {folder}: correct it, or record one"
            ));
        }
    }
    Ok(found)
}
