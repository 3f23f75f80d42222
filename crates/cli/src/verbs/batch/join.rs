//! The task that joins the parts of a recording.
//!
//! Where two parts do not agree, the later one is processed again with a longer overlap, twice as
//! long each time. One that begins with the recording is a single pass, which needs no seam.

use super::part::{PartDocument, SplitGraph};
use super::ran::{TaskDocument, result_of};
use crate::block_types;
use crate::output::{count, document, note};
use anyhow::{Context, anyhow, ensure};
use millstream_batch::{
    Batch, Joiner, Mark, PartRange, PartStream, Refusal, Seam, Task, TaskClaim, TaskResult,
};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The task under way.
struct Join<'a> {
    batch: &'a Batch,
    task: &'a Task,
    /// The tasks of its parts.
    parts: &'a [Task],
    claim: &'a TaskClaim,
    threads: Option<usize>,
    split: SplitGraph,
    /// The file of the output.
    file: &'a str,
    notes: Vec<String>,
    /// CPU time of what was processed again.
    cpu_s: f64,
}

/// What the joined stream consists of.
struct Streams {
    joiner: Joiner,
    /// The numbers of each part that is in it, and the names of those that are no counts.
    numbers: Vec<(BTreeMap<String, f64>, Vec<String>)>,
}

crate::results! {
    /// The joined parts of a recording, in the file of results.
    struct JoinedParts {
        /// Number of parts.
        parts: usize,
        /// Packets of the joined stream.
        packets: u64,
        /// Packets that could not be corrected.
        uncorrected_packets: u64,
        /// Where the parts meet.
        seams: Vec<JoinedSeam>,
    }

    /// A place where two parts meet.
    struct JoinedSeam {
        /// Time in the recording, seconds.
        at_s: f64,
        /// Packets that agreed.
        agreed: u64,
        /// Packets there that could not be corrected.
        uncorrected: u64,
    }
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
    let split = SplitGraph::of(batch, task, &block_types::registry().0)?;
    let file = batch.manifest.outputs.values().next().map_or("", String::as_str);
    let at = batch.tasks.iter().position(|other| other.name == task.name);
    let parts = &batch.tasks[at.map_or(0..0, |at| batch.parts_of(at))];
    let (notes, cpu_s) = (Vec::new(), 0.0);
    let mut join = Join { batch, task, parts, claim, threads, split, file, notes, cpu_s };
    let (results, parts) = join.parts()?;
    let streams = join.streams(&results, &parts)?;
    let Some(Streams { joiner, numbers }) = streams else { return Ok(None) };
    let path = claim.folder().join(file);
    let joined =
        write(&joiner, &path).with_context(|| format!("cannot write {}", path.display()))?;
    let rate_hz = join.split.memory.rate_hz;
    let seams: Vec<_> = joiner.seams().iter().map(|seam| shown(seam, rate_hz)).collect();
    drop(joiner);
    for part in 0..parts.len() {
        remove(&join.again(part))?;
    }
    batch.still(task, &seen)?;
    let mut numbers = mean_numbers(&numbers);
    for name in ["elapsed_s", "cpu_s"] {
        let sum = results.iter().filter_map(|result| result.numbers.get(name)).sum();
        numbers.insert(name.to_owned(), sum);
    }
    *numbers.entry("elapsed_s".to_owned()).or_default() += began.elapsed().as_secs_f64();
    *numbers.entry("cpu_s".to_owned()).or_default() += join.cpu_s;
    numbers.insert("join.packets".to_owned(), joined.packets as f64);
    numbers.insert("join.uncorrected_packets".to_owned(), joined.uncorrected as f64);
    let remark = (joined.packets == joined.uncorrected).then(|| {
        let remark = results.iter().find_map(|result| result.remark.clone());
        remark.unwrap_or_else(|| match joined.packets {
            0 => format!("the graph wrote nothing to its file {file}"),
            _ => format!("no packet of the file {file} could be corrected"),
        })
    });
    let split = document(&JoinedParts {
        parts: join.split.cuts.parts,
        packets: joined.packets,
        uncorrected_packets: joined.uncorrected,
        seams,
    });
    let result = result_of(batch, task, claim, numbers, &TaskDocument::of_split(split))?;
    Ok(Some(TaskResult { remark, notes: join.notes, ..result }))
}

fn shown(seam: &Seam, rate_hz: f64) -> JoinedSeam {
    let at_s = seam.sample as f64 / rate_hz;
    JoinedSeam { at_s, agreed: seam.agreed, uncorrected: seam.uncorrected }
}

impl Join<'_> {
    /// The results of the parts.
    fn parts(&self) -> anyhow::Result<(Vec<TaskResult>, Vec<PartDocument>)> {
        let results = self.batch.results();
        let mut all = (Vec::new(), Vec::new());
        for part in self.parts {
            let result = results.result(&part.name)?.ok_or_else(|| {
                let words = self.batch.recording_words(part);
                anyhow!("the {words} has no result yet (task {}): run the batch again", part.name)
            })?;
            all.1.push(PartDocument::of(&result.results)?);
            all.0.push(result);
        }
        Ok(all)
    }

    /// Joins the streams of the parts, and processes again what does not agree; from the beginning
    /// of the recording at most once, then to its end.
    fn streams(
        &mut self,
        results: &[TaskResult],
        parts: &[PartDocument],
    ) -> anyhow::Result<Option<Streams>> {
        let cuts = self.split.cuts;
        let mut joiner = Joiner::new(cuts.group);
        let mut all_numbers = Vec::new();
        for (number, (result, part)) in results.iter().zip(parts).enumerate() {
            let folder = self.batch.results().result_of(&self.parts[number].name);
            let path = folder.join(self.file);
            let bytes = fs::metadata(&path).map_or(0, |file| file.len());
            let is_whole = bytes == result.files.get(self.file).copied().unwrap_or(0)
                && part.range == cuts.part(number, 1);
            let damaged = || {
                let folder = folder.display();
                format!(
                    "the result of part {} is damaged: remove {folder} and run the batch again",
                    number + 1
                )
            };
            ensure!(is_whole, damaged());
            let Some(range) = part.range else { continue };
            let stream = self.open(path, part.marks(), range).with_context(damaged)?;
            let mut numbers = (result.numbers.clone(), part.gauges.clone());
            let mut outcome = joiner.push(stream, self.split.in_signal(range.cut))?;
            let mut times = 1u64;
            while let Err(refusal) = &outcome {
                times = if refusal.is_dead { u64::MAX } else { times.saturating_mul(2) };
                let longer = cuts.part(number, times).context("a part is not there any more")?;
                let is_single = longer.first == 0;
                let end = if is_single { cuts.samples } else { longer.end };
                let longer = PartRange { end, ..longer };
                self.tell(number, &longer, refusal);
                let folder = self.again(number);
                remove(&folder)?;
                fs::create_dir(&folder)
                    .with_context(|| format!("cannot make the folder {}", folder.display()))?;
                let ran = self.split.run(self.batch, self.task, &folder, longer, self.threads)?;
                let Some((ran, marks)) = ran else { return Ok(None) };
                numbers = ran.numbers()?;
                self.cpu_s += numbers.0.get("cpu_s").copied().unwrap_or_default();
                let stream = self.open(folder.join(self.file), marks, longer)?;
                outcome = joiner.push(stream, self.split.in_signal(longer.cut))?;
                if is_single {
                    return Ok(Some(Streams { joiner, numbers: vec![numbers] }));
                }
            }
            all_numbers.push(numbers);
        }
        Ok(Some(Streams { joiner, numbers: all_numbers }))
    }

    fn open(
        &self,
        path: PathBuf,
        marks: Vec<Mark>,
        range: PartRange,
    ) -> anyhow::Result<PartStream> {
        PartStream::open(&path, marks, self.split.in_signal(range.settled))
            .with_context(|| format!("cannot read {}", path.display()))
    }

    /// Says that a part is processed again.
    fn tell(&mut self, number: usize, longer: &PartRange, refusal: &Refusal) {
        let rate_hz = self.split.memory.rate_hz;
        let seconds = |samples: u64| samples as f64 / rate_hz;
        let how = match longer.first {
            0 => "from the beginning of the recording to its end".to_owned(),
            first => format!("from {:.2} s before the cut", seconds(longer.cut - first)),
        };
        let line = format!(
            "part {} of {}, at {:.2} s: {}; it is processed again {how}",
            number + 1,
            count(self.split.cuts.parts as u64, "part"),
            seconds(longer.cut),
            refusal.reason,
        );
        note(format_args!("join    {} ({line})", self.task.name));
        self.notes.push(line);
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

/// The means of the numbers that are no counts and that all parts have; what two parts have counted
/// in their overlap cannot be told apart.
fn mean_numbers(parts: &[(BTreeMap<String, f64>, Vec<String>)]) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<&String, (f64, usize)> = BTreeMap::new();
    for (numbers, gauges) in parts {
        for name in gauges {
            if let Some(value) = numbers.get(name) {
                let (sum, count) = sums.entry(name).or_default();
                (*sum, *count) = (*sum + value, *count + 1);
            }
        }
    }
    let of_all = sums.into_iter().filter(|(_, (_, count))| *count == parts.len());
    of_all.map(|(name, (sum, count))| (name.clone(), sum / count as f64)).collect()
}
