//! `millstream batch split`: where the recordings of a manifest are cut, and why there.

use super::ManifestArg;
use super::part::SplitGraph;
use crate::block_types;
use crate::output::{Report, count, describe};
use crate::table::Table;
use anyhow::bail;
use millstream_batch::{Batch, BatchError, PartRange};
use millstream_flow::observe::PathStage;

/// Shows where [split] of the manifest cuts the recordings.
///
/// Parts overlap by what the graph needs to know of the samples before (its memory), and by some
/// fields of packets. Where parts are joined, these packets must agree. Otherwise the part is
/// processed again with a longer overlap.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream batch split long.toml
  millstream batch split long.toml --explain")]
pub struct Args {
    #[command(flatten)]
    manifest: ManifestArg,

    /// Also show the memory of each stage of the graph, and their sum.
    #[arg(long)]
    explain: bool,
}

/// Checks that the graph of a batch can be split. What is wrong with a recording is its task's
/// failure.
pub fn check(batch: &Batch) -> anyhow::Result<()> {
    let registry = block_types::registry().0;
    for task in &batch.tasks[..batch.wholes] {
        match SplitGraph::of(batch, task, &registry) {
            Err(error) if error.is::<BatchError>() => return Err(error),
            // Try the next recording.
            Err(_) => {}
            Ok(_) => break,
        }
    }
    Ok(())
}

crate::results! {
    /// Where recordings are cut.
    struct SplitRecordings {
        /// Each recording.
        recordings: Vec<SplitRecording>,
    }

    /// A recording.
    struct SplitRecording {
        /// Its file.
        recording: String,
        /// Why it cannot be cut.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Its cuts; all their fields are here.
        #[serde(flatten)]
        cuts: Option<RecordingCuts>,
    }

    /// The cuts of a recording.
    struct RecordingCuts {
        /// Its samples.
        samples: u64,
        /// Samples per second.
        rate_hz: f64,
        /// What each stage of the graph needs of the samples before.
        memory: Vec<StageMemory>,
        /// The sum of that.
        memory_samples: u64,
        /// Samples that two parts have in common.
        overlap_samples: u64,
        /// The parts.
        parts: Vec<PartRange>,
    }

    /// What a stage needs.
    struct StageMemory {
        /// The block.
        block: String,
        /// What of it.
        what: &'static str,
        /// Samples.
        samples: u64,
        /// The same in seconds.
        s: f64,
    }
}

/// Shows the cuts of every recording, with the graph of the first setting.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let batch = args.manifest.read()?;
    if batch.manifest.split.is_none() {
        bail!(
            "the manifest {} does not split its recordings: write `[split]` and `parts = 2` into \
             it",
            batch.path.display()
        );
    }
    let registry = block_types::registry().0;
    let (mut text, mut recordings) = (String::new(), Vec::new());
    for task in batch.tasks[..batch.wholes].iter().filter(|task| task.setting == 0) {
        let name = task.recording.clone().unwrap_or_default();
        let split = match SplitGraph::of(&batch, task, &registry) {
            Err(error) if !error.is::<BatchError>() => {
                text += &format!("{name}: {}\n", describe(&error));
                let error = Some(describe(&error));
                recordings.push(SplitRecording { recording: name, error, cuts: None });
                continue;
            }
            split => split?,
        };
        let (memory, cuts) = (&split.memory, split.cuts);
        let seconds = |samples: u64| samples as f64 / memory.rate_hz;
        if args.explain {
            text += &explain(&split);
        }
        let parts: Vec<PartRange> = (0..cuts.parts).filter_map(|at| cuts.part(at, 1)).collect();
        let (samples, rate) = (count(cuts.samples, "sample"), memory.rate_hz);
        text += &format!("{name}: {samples} at {rate} Hz, {:.2} s\n", seconds(cuts.samples));
        let asked = batch.manifest.split.map_or(0, |split| split.parts);
        if cuts.parts < asked {
            let least = 2 * (cuts.before() + cuts.behind());
            text += &format!(
                "it is too short for {asked} parts, as each is at least two overlaps long ({:.2} \
                 s)\n",
                seconds(least)
            );
        }
        let rows: Vec<_> = parts.iter().enumerate().collect();
        let at = |samples: u64| format!("{:.3}", seconds(samples));
        let table = Table::of(&rows)
            .right("part", |(number, _)| number + 1)
            .right("reads from s", |(_, part)| at(part.first))
            .right("cut s", |(_, part)| at(part.cut))
            .right("reads to s", |(_, part)| at(part.end))
            .right("first sample", |(_, part)| part.first)
            .right("cut sample", |(_, part)| part.cut)
            .right("end sample", |(_, part)| part.end);
        text += &table.text();
        let stage = |stage: &PathStage| {
            let PathStage { block, what, items } = stage;
            let (block, samples, s) = (block.clone(), *items, seconds(*items));
            StageMemory { block, what, samples, s }
        };
        let cuts = Some(RecordingCuts {
            samples: cuts.samples,
            rate_hz: memory.rate_hz,
            memory: memory.stages.iter().map(stage).collect(),
            memory_samples: cuts.memory,
            overlap_samples: cuts.before() + cuts.behind(),
            parts,
        });
        recordings.push(SplitRecording { recording: name, error: None, cuts });
    }
    Ok(Report::of(text, &SplitRecordings { recordings }))
}

/// The memory of each stage, the sum, and the overlap.
fn explain(split: &SplitGraph) -> String {
    let (memory, cuts) = (&split.memory, split.cuts);
    let rows: Vec<(&str, &str, u64)> = memory
        .stages
        .iter()
        .map(|stage| (stage.block.as_str(), stage.what, stage.items))
        .chain([
            ("all", "memory: the sum", cuts.memory),
            ("all", "fields compared before a cut", cuts.before() - cuts.memory),
            ("all", "fields compared behind a cut", cuts.behind()),
            ("all", "overlap of two parts", cuts.before() + cuts.behind()),
        ])
        .collect();
    let table = Table::of(&rows)
        .left("block", |row| row.0)
        .left("needs", |row| row.1)
        .right("samples", |row| row.2)
        .right("s", |row| format!("{:.4}", row.2 as f64 / memory.rate_hz));
    format!(
        "{}A loop or an average never forgets all: it is given the time in which it settles, and \
         the packets of both parts are compared.\n\n",
        table.text()
    )
}
