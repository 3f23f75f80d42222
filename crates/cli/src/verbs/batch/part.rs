//! Parts of recordings: the graph of a task, and what it takes to run a part of it.

use super::ran::{Ran, run_graph};
use anyhow::Context;
use millstream_batch::{Batch, BatchError, Cuts, Mark, PartRange, Task};
use millstream_blocks::sigmf::SigmfRecording;
use millstream_flow::blocks::SampleFormat;
use millstream_flow::registry::Registry;
use millstream_flow::{
    Graph, GraphFile, OutputTap, ParameterValue, PathMemory, Tag, TagValue, keys,
};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Marks for which there is room at once: two hours of fields.
const MARKS: usize = 300_000;

/// The graph of a task whose recording is split.
pub struct SplitGraph {
    file: GraphFile,
    /// The block that reads the recording.
    source: String,
    /// What each stage of the graph needs.
    pub memory: PathMemory,
    /// Where the recording is cut.
    pub cuts: Cuts,
    recording: SigmfRecording,
}

/// What a part has made, beside its file.
#[derive(Deserialize, Serialize)]
pub struct PartDocument {
    /// The samples that it read; `None` if the recording is too short for it.
    pub range: Option<PartRange>,
    /// The first byte of each group of results, and the sample at which it began, missing ones
    /// included.
    pub marks: Vec<(u64, u64)>,
    /// The names of numbers that are no counts.
    pub gauges: Vec<String>,
}

impl SplitGraph {
    /// Finds the source and the file of a task's graph, and cuts its recording.
    pub fn of(batch: &Batch, task: &Task, registry: &Registry) -> anyhow::Result<Self> {
        let refuse = |reason: String| BatchError::Split { manifest: batch.path.clone(), reason };
        let file = batch.graph();
        let has_part = |block: &str| {
            let kind = file.type_of(block).and_then(|kind| registry.get(kind));
            let has = |name: &str| {
                kind.is_some_and(|kind| kind.parameters().iter().any(|one| one.name == name))
            };
            has("first") && has("count")
        };
        let parameter = &batch.manifest.recording_parameter;
        let sources: Vec<_> = file.users_of(parameter).into_iter().collect();
        let source = match &sources[..] {
            [(block, "path")] if has_part(block) => (*block).to_owned(),
            _ => {
                return Err(refuse(format!(
                    "the parameter `{parameter}` must be the `path` of one file_source or \
                     sigmf_source, and nothing else"
                ))
                .into());
            }
        };
        let output = batch.manifest.outputs.keys().next().map_or("", String::as_str);
        let sinks = file.users_of(output);
        let [(sink, "path")] = sinks[..] else {
            let reason = format!("the parameter `{output}` must be the `path` of one file_sink");
            return Err(refuse(reason).into());
        };
        let set = batch.set(task, Path::new("/"));
        for name in ["first", "count"] {
            match file.value(registry, &set, (&source, name))? {
                None | Some(ParameterValue::Integer(0)) => {}
                _ => {
                    return Err(refuse(format!(
                        "the block `{source}` reads a part of its recording already: remove \
                         `{name}` from the graph"
                    ))
                    .into());
                }
            }
        }
        let memory = file.build(registry, &set)?.memory(&source, sink);
        let memory = memory.map_err(|error| refuse(error.to_string()))?;
        let path = batch.folder().join(task.recording.as_deref().unwrap_or_default());
        let extension = path.extension().and_then(|extension| extension.to_str());
        // As the source does: what is no format, as `auto`, leaves it to the name of the file.
        let format = match file.value(registry, &set, (&source, "format"))? {
            Some(ParameterValue::Text(name)) => SampleFormat::of_source(&name)
                .or_else(|| extension.and_then(SampleFormat::of_source)),
            _ => None,
        };
        let recording = SigmfRecording::open(&path, format)?;
        let parts = batch.manifest.split.map_or(1, |split| split.parts);
        let cuts = Cuts::new(recording.samples, parts, &memory);
        Ok(Self { file: file.clone(), source, memory, cuts, recording })
    }

    /// Returns the position of a sample of the file in the whole signal, missing ones included.
    pub fn in_signal(&self, sample: u64) -> u64 {
        let captures = &self.recording.captures;
        let pairs = captures.windows(2).take_while(|pair| pair[1].first_sample <= sample);
        sample + pairs.filter_map(|pair| pair[1].missing_since(&pair[0])).sum::<u64>()
    }

    /// Runs the graph over a part, with its file in `folder`; `None` if the user ended it early.
    pub fn run(
        &self,
        batch: &Batch,
        task: &Task,
        folder: &Path,
        range: PartRange,
        threads: Option<usize>,
    ) -> anyhow::Result<Option<(Ran, Vec<Mark>)>> {
        let number = |samples: u64| {
            i64::try_from(samples).context("the recording has more samples than a graph can count")
        };
        let file = self.file.with_value(&self.source, "first", number(range.first)?).with_value(
            &self.source,
            "count",
            number(range.end - range.first)?,
        );
        let (marks, seen) = channel();
        let tap = |graph: &mut Graph| {
            let noted = Vec::with_capacity(MARKS);
            Ok(graph.tap(&self.memory.output, MarkTap { noted, marks })?)
        };
        let Some(ran) = run_graph(batch, &file, (task, folder), threads, tap)? else {
            return Ok(None);
        };
        Ok(Some((ran, self.marks(range, &seen))))
    }

    /// The marks that the tap has noted, with their places in the signal.
    fn marks(&self, range: PartRange, seen: &Receiver<Vec<(u64, u64)>>) -> Vec<Mark> {
        let before = self.in_signal(range.first);
        let noted = seen.try_iter().flatten();
        let place = |number: u64| before + (number as f64 * self.memory.unit) as u64;
        noted.map(|(byte, number)| Mark { byte, sample: place(number) }).collect()
    }
}

/// Notes the numbers on the bytes of an output, and sends them at its end.
struct MarkTap {
    noted: Vec<(u64, u64)>,
    marks: Sender<Vec<(u64, u64)>>,
}

impl OutputTap<u8> for MarkTap {
    fn tagged(&mut self, tag: &Tag) {
        if let (keys::SOURCE_ITEM, TagValue::Count(number)) = (tag.key, tag.value) {
            self.noted.push((tag.offset, number));
        }
    }

    fn produced(&mut self, _: u64, _: &[u8]) {}
}

impl Drop for MarkTap {
    fn drop(&mut self) {
        // Nobody waits for them after a failure.
        let _ = self.marks.send(std::mem::take(&mut self.noted));
    }
}

impl PartDocument {
    /// The document of a part, from a result's `results.split`.
    pub fn of(results: &serde_json::Value) -> anyhow::Result<Self> {
        serde_json::from_value(results["split"].clone())
            .context("the result of a part does not say what it contains")
    }

    /// Its marks.
    pub fn marks(&self) -> Vec<Mark> {
        self.marks.iter().map(|(byte, sample)| Mark { byte: *byte, sample: *sample }).collect()
    }
}
