//! The task that joins the parts of a recording.
//!
//! Where two parts do not agree, the later one is processed again with a longer overlap, twice as
//! long each time. One that begins with the recording is a single pass, which needs no seam.

use super::part::{PartDocument, SplitGraph};
use super::task::result_of;
use crate::graph_run;
use crate::output::{count, note};
use anyhow::{Context, anyhow};
use millstream_batch::{
    Batch, Cuts, Joiner, Mark, PartRange, PartStream, Refusal, Seam, Task, TaskClaim, TaskResult,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The task under way.
struct Join<'a> {
    batch: &'a Batch,
    task: &'a Task,
    claim: &'a TaskClaim,
    threads: Option<usize>,
    split: SplitGraph,
    /// The file of the output.
    file: &'a str,
    notes: Vec<String>,
}

/// Joins the results of all parts of `task`; `None` if the user ended it early.
pub fn run(
    batch: &Batch,
    task: &Task,
    claim: &TaskClaim,
    threads: Option<usize>,
) -> anyhow::Result<Option<TaskResult>> {
    let began = Instant::now();
    let seen = batch.seen(task)?;
    let split = SplitGraph::of(batch, task, &graph_run::registry().0)?;
    let file = batch.manifest.outputs.values().next().map_or("", String::as_str);
    let mut join = Join { batch, task, claim, threads, split, file, notes: Vec::new() };
    let (results, parts) = join.parts()?;
    let Some((joiner, seams)) = join.streams(&parts)? else { return Ok(None) };
    let path = claim.folder().join(file);
    let joined =
        write(&joiner, &path).with_context(|| format!("cannot write {}", path.display()))?;
    drop(joiner);
    for part in 0..parts.len() {
        remove(&join.again(part))?;
    }
    batch.still(task, &seen)?;
    let mut numbers = mean_numbers(&results, &parts);
    for name in ["elapsed_s", "cpu_s"] {
        let sum = results.iter().filter_map(|result| result.numbers.get(name)).sum();
        numbers.insert(name.to_owned(), sum);
    }
    *numbers.entry("elapsed_s".to_owned()).or_default() += began.elapsed().as_secs_f64();
    numbers.insert("join.packets".to_owned(), joined.packets as f64);
    numbers.insert("join.uncorrected_packets".to_owned(), joined.uncorrected as f64);
    let seams: Vec<_> = seams.iter().map(|seam| shown(seam, join.split.memory.rate_hz)).collect();
    let remark = (joined.packets == 0).then(|| {
        let remark = results.iter().find_map(|result| result.remark.clone());
        remark.unwrap_or_else(|| format!("the graph wrote nothing to its file {file}"))
    });
    let results = json!({
        "split": {
            "parts": join.split.cuts.parts,
            "packets": joined.packets,
            "uncorrected_packets": joined.uncorrected,
            "seams": seams,
        },
    });
    let result = result_of(batch, task, claim, numbers, results)?;
    Ok(Some(TaskResult { remark, notes: join.notes, ..result }))
}

fn shown(seam: &Seam, rate_hz: f64) -> Value {
    let at_s = seam.sample as f64 / rate_hz;
    json!({ "at_s": at_s, "agreed": seam.agreed, "uncorrected": seam.uncorrected })
}

impl Join<'_> {
    /// The results of the parts.
    fn parts(&self) -> anyhow::Result<(Vec<TaskResult>, Vec<PartDocument>)> {
        let results = self.batch.results();
        let at = self.batch.tasks.iter().position(|task| task.name == self.task.name);
        let range = at.map_or(0..0, |at| self.batch.parts_of(at));
        let mut all = (Vec::new(), Vec::new());
        for part in &self.batch.tasks[range] {
            let result = results.result(&part.name)?.ok_or_else(|| {
                let words = self.batch.recording_words(part);
                anyhow!("the {words} has no result yet (task {}): run the batch again", part.name)
            })?;
            all.1.push(PartDocument::of(&result.results)?);
            all.0.push(result);
        }
        Ok(all)
    }

    /// Joins the streams of the parts, and processes again what does not agree.
    fn streams(&mut self, parts: &[PartDocument]) -> anyhow::Result<Option<(Joiner, Vec<Seam>)>> {
        let Cuts { group, .. } = self.split.cuts;
        let (mut joiner, mut seams) = (Joiner::new(group), Vec::new());
        let results = self.batch.results();
        for (number, part) in parts.iter().enumerate() {
            let Some(range) = part.range else { continue };
            let name = &self.batch.tasks[self.part_task(number)].name;
            let path = results.result_of(name).join(self.file);
            let mut outcome = self.push(&mut joiner, &path, part.marks(), range)?;
            let mut times = 2;
            while let Err(refusal) = &outcome {
                let Some(longer) = self.split.cuts.part(number, times) else { break };
                self.tell(number, &longer, &refusal.reason);
                let folder = self.again(number);
                remove(&folder)?;
                fs::create_dir(&folder)
                    .with_context(|| format!("cannot make the folder {}", folder.display()))?;
                let ran = self.split.run(self.batch, self.task, &folder, longer, self.threads)?;
                let Some((_, marks)) = ran else { return Ok(None) };
                outcome = self.push(&mut joiner, &folder.join(self.file), marks, longer)?;
                times *= 2;
            }
            match outcome {
                Ok(Some(seam)) => seams.push(seam),
                // A single pass.
                _ => seams.clear(),
            }
        }
        Ok(Some((joiner, seams)))
    }

    fn push(
        &self,
        joiner: &mut Joiner,
        path: &Path,
        marks: Vec<Mark>,
        range: PartRange,
    ) -> anyhow::Result<Result<Option<Seam>, Refusal>> {
        let [settled, cut] = [range.settled, range.cut].map(|at| self.split.in_signal(at));
        let pushed =
            PartStream::open(path, marks, settled).and_then(|stream| joiner.push(stream, cut));
        pushed.with_context(|| format!("cannot join {}", path.display()))
    }

    /// Says that a part is processed again.
    fn tell(&mut self, number: usize, longer: &PartRange, reason: &str) {
        let rate_hz = self.split.memory.rate_hz;
        let seconds = |samples: u64| samples as f64 / rate_hz;
        let how = match longer.first {
            0 => "from the beginning of the recording".to_owned(),
            first => format!("from {:.2} s before the cut", seconds(longer.cut - first)),
        };
        let line = format!(
            "part {} of {}, at {:.2} s: {reason}; it is processed again {how}",
            number + 1,
            count(self.split.cuts.parts as u64, "part"),
            seconds(longer.cut),
        );
        note(format_args!("join    {} ({line})", self.task.name));
        self.notes.push(line);
    }

    /// The position of a part's task.
    fn part_task(&self, number: usize) -> usize {
        let whole = self.batch.tasks.iter().position(|task| task.name == self.task.name);
        self.batch.parts_of(whole.unwrap_or(0)).start + number
    }

    /// The folder of a part that is processed again.
    fn again(&self, number: usize) -> PathBuf {
        self.claim.folder().join(format!("part-{}", number + 1))
    }
}

/// Writes the joined stream to the disk; without a packet there is no file.
fn write(joiner: &Joiner, path: &Path) -> io::Result<millstream_batch::Joined> {
    let mut out = BufWriter::new(File::create(path)?);
    let joined = joiner.write(&mut out)?;
    out.flush()?;
    match joined.packets {
        0 => fs::remove_file(path)?,
        _ => out.get_ref().sync_all()?,
    }
    Ok(joined)
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// The means of the numbers that are no counts; what two parts have counted in their overlap cannot
/// be told apart.
fn mean_numbers(results: &[TaskResult], parts: &[PartDocument]) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<&String, (f64, u32)> = BTreeMap::new();
    for (result, part) in results.iter().zip(parts) {
        for name in &part.gauges {
            if let Some(value) = result.numbers.get(name) {
                let (sum, count) = sums.entry(name).or_default();
                (*sum, *count) = (*sum + value, *count + 1);
            }
        }
    }
    sums.into_iter().map(|(name, (sum, count))| (name.clone(), sum / f64::from(count))).collect()
}
