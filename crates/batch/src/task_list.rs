//! The tasks of a batch as a file, so that a worker need not expand the manifest again: matching
//! patterns and looking at every recording takes longer than many a task.
//!
//! `list/tasks.jsonl` has one JSON document a line: first the key of the batch (its texts and the
//! version of the program), then each task with the names of its parts. A worker whose batch has
//! another key, or whose task is not there or has another recording now, expands the manifest.

use crate::batch::Texts;
use crate::results::{line_of, make_parent};
use crate::{Batch, BatchError, Manifest, ResultFolder, Task, TaskPart};
use millstream_output::store_whole;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// A line of the file: a task that is no part.
#[derive(Deserialize, Serialize)]
struct ListedTask {
    task: Task,
    /// The names of its parts.
    parts: Vec<String>,
}

impl Batch {
    /// Writes the list of its tasks into the folder of results, unless it is there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_list(&self) -> Result<(), BatchError> {
        let path = self.results().list();
        let mut text = line_of(&self.key);
        for (at, task) in self.tasks[..self.wholes].iter().enumerate() {
            let parts = self.tasks[self.parts_of(at)].iter().map(|part| part.name.clone());
            text += &line_of(&ListedTask { task: task.clone(), parts: parts.collect() });
        }
        if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            return Ok(());
        }
        make_parent(&path)?;
        store_whole(&path, text.as_bytes()).map_err(BatchError::write(path))
    }

    /// Reads a manifest with only the task whose name begins with `name`, and with its parts or its
    /// whole: from the list, or else by expanding the manifest.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn for_task(path: &Path, version: &str, name: &str) -> Result<Self, BatchError> {
        let texts = Texts::read(path, version)?;
        let manifest = Manifest::read(&texts.path, &texts.manifest)?;
        let mut batch = texts.batch(manifest)?;
        let found = find(&batch.results(), &batch.key, name);
        match found.filter(|listed| batch.seen(&listed.task).is_ok()) {
            Some(ListedTask { task, parts }) => {
                let of = parts.len();
                let part = |(at, name): (usize, String)| {
                    let part = Some(TaskPart { number: at + 1, of });
                    Task { name, part, ..task.clone() }
                };
                let parts: Vec<_> = parts.into_iter().enumerate().map(part).collect();
                batch.tasks = std::iter::once(task).chain(parts).collect();
                batch.wholes = 1;
                Ok(batch)
            }
            None => Self::of(path, version),
        }
    }
}

/// Returns the only task of the list whose name, or that of one of its parts, begins with `name`.
fn find(results: &ResultFolder, key: &str, name: &str) -> Option<ListedTask> {
    let text = fs::read_to_string(results.list()).ok()?;
    let (head, tasks) = text.split_once('\n')?;
    if name.is_empty() || serde_json::from_str::<String>(head).ok()? != key {
        return None;
    }
    let word = format!("\"{name}");
    let names = |listed: &ListedTask| {
        let names = listed.parts.iter().chain([&listed.task.name]);
        names.filter(|one| one.starts_with(name)).count()
    };
    let lines = tasks.lines().filter(|line| line.contains(&word));
    let mut found = lines
        .filter_map(|line| serde_json::from_str::<ListedTask>(line).ok())
        .filter(|listed| names(listed) > 0);
    match (found.next(), found.next()) {
        (Some(listed), None) if names(&listed) == 1 => Some(listed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::of_recordings;

    #[test]
    fn a_worker_reads_its_task_and_looks_at_no_other_recording() {
        for split in ["", "[outputs]\nout = \"x\"\n[split]\nparts = 3\n"] {
            let (folder, batch) = of_recordings(3, split);
            let batch = batch.unwrap();
            batch.write_list().unwrap();
            for (at, task) in batch.tasks.iter().enumerate() {
                let read = Batch::for_task(&batch.path, "1", &task.name[..9]).unwrap();
                assert_eq!(read.task(&task.name).unwrap(), task);
                let whole = batch.whole_of(at).unwrap_or(at);
                assert_eq!(read.tasks[0], batch.tasks[whole]);
                assert_eq!(read.tasks[1..], batch.tasks[batch.parts_of(whole)]);
            }
            // The recording is another one now, and so its task has another name.
            fs::write(folder.path().join("1.cf32"), "longer").unwrap();
            let read = Batch::for_task(&batch.path, "1", &batch.tasks[1].name).unwrap();
            assert_eq!((read.wholes, read.tasks.len()), (3, batch.tasks.len()));
            assert!(read.task(&batch.tasks[1].name).is_err());
        }
    }

    #[test]
    fn an_old_list_is_not_used() {
        let (_folder, batch) = of_recordings(2, "");
        let batch = batch.unwrap();
        batch.write_list().unwrap();
        let name = &batch.tasks[1].name;
        assert_eq!(Batch::for_task(&batch.path, "1", name).unwrap().tasks.len(), 1);
        assert_eq!(Batch::for_task(&batch.path, "2", name).unwrap().tasks.len(), 2, "a version");
        assert_eq!(Batch::for_task(&batch.path, "1", "").unwrap().tasks.len(), 2, "no name");
        assert_eq!(Batch::for_task(&batch.path, "1", "none").unwrap().tasks.len(), 2);
        let text = fs::read_to_string(&batch.path).unwrap() + "# changed\n";
        fs::write(&batch.path, text).unwrap();
        assert_eq!(Batch::for_task(&batch.path, "1", name).unwrap().tasks.len(), 2);
        fs::write(batch.results().list(), "no list").unwrap();
        assert_eq!(Batch::for_task(&batch.path, "1", name).unwrap().tasks.len(), 2);
    }
}
