//! One run of the graph of a task, and its result.

use crate::block_types;
use crate::graph_report::{self, GraphReport, LedgerReport};
use crate::graph_run;
use crate::output::document;
use crate::signal::{self, SignalReport};
use anyhow::{Context, ensure};
use millstream_batch::{Batch, CpuBudget, Task, TaskClaim, TaskResult};
use millstream_cpu::CpuSet;
use millstream_flow::{Graph, GraphFile, Plan, Preset, Shape, WaitMode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

crate::results! {
    also [graph_report::results, signal::results],

    /// The field `results` in the file of a task's result.
    pub struct TaskDocument {
        /// The run of the graph.
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<GraphReport>,
        /// The ledgers of its sources.
        #[serde(skip_serializing_if = "Option::is_none")]
        ledgers: Option<Vec<LedgerReport>>,
        /// Its receivers.
        #[serde(skip_serializing_if = "Option::is_none")]
        signals: Option<Vec<SignalReport>>,
        /// The part of a recording, or the joined parts.
        #[serde(skip_serializing_if = "Option::is_none")]
        split: Option<Value>,
    }
}

impl TaskDocument {
    /// The document of a task that is a part of a recording, or joins the parts.
    pub fn of_split(split: Value) -> Self {
        Self { run: None, ledgers: None, signals: None, split: Some(split) }
    }
}

/// A graph that has run to its end.
pub struct Ran {
    run: GraphReport,
    signals: Vec<SignalReport>,
}

/// Runs a task's graph `file`, with its files in a folder; `change` may change it before. `None` if
/// the user ended it early.
pub fn run_graph(
    batch: &Batch,
    file: &GraphFile,
    (task, folder): (&Task, &Path),
    threads: Option<usize>,
    change: impl FnOnce(&mut Graph) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Ran>> {
    let (registry, monitors) = block_types::registry();
    let mut graph = file.build(&registry, &batch.set(task, folder))?;
    change(&mut graph)?;
    let plan = plan_within(&graph, file.plan(), threads)?;
    let run = graph_run::attended(graph, &plan, |_, _, _| Ok(()))?;
    if run.interrupted {
        return Ok(None);
    }
    Ok(Some(Ran { run, signals: SignalReport::all(&monitors) }))
}

impl Ran {
    /// The result of a task that ran it, with the part of the recording where it is one.
    pub fn result(
        self,
        batch: &Batch,
        task: &Task,
        claim: &TaskClaim,
        split: Option<Value>,
    ) -> anyhow::Result<TaskResult> {
        let Self { run, signals } = self;
        let ledgers: Vec<_> = run.snapshot.blocks.iter().filter_map(LedgerReport::of).collect();
        let unbalanced = ledgers.iter().find(|ledger| !ledger.balances).map(LedgerReport::defect);
        ensure!(unbalanced.is_none(), unbalanced.unwrap_or_default());
        let (numbers, _) = numbers(&run, &signals)?;
        let (ledgers, signals) = (Some(ledgers), Some(signals));
        let results = TaskDocument { run: Some(run), ledgers, signals, split };
        let result = result_of(batch, task, claim, numbers, &results)?;
        let signals = results.signals.unwrap_or_default();
        let remark = remark(batch, &result.files, &signals);
        Ok(TaskResult { remark, ..result })
    }

    /// Its numbers, and the names of those that are no counts.
    pub fn numbers(&self) -> anyhow::Result<(BTreeMap<String, f64>, Vec<String>)> {
        numbers(&self.run, &self.signals)
    }
}

/// The result of a task with the files that are in its folder, all complete.
pub fn result_of(
    batch: &Batch,
    task: &Task,
    claim: &TaskClaim,
    numbers: BTreeMap<String, f64>,
    results: &TaskDocument,
) -> anyhow::Result<TaskResult> {
    let files = claim.files()?;
    for file in batch.manifest.outputs.values() {
        let part = files.keys().find(|name| **name == format!("{file}.part"));
        ensure!(part.is_none(), "the graph ended before it completed its file {file}");
    }
    Ok(TaskResult {
        task: serde_json::to_value(task)?,
        made_by: BTreeMap::from([
            ("graph".to_owned(), batch.graph_path().display().to_string()),
            ("version".to_owned(), crate::release().to_owned()),
        ]),
        numbers,
        remark: None,
        notes: Vec::new(),
        files,
        results: document(results),
    })
}

/// Why the result is of little use: the signal, or a file without an item.
fn remark(
    batch: &Batch,
    files: &BTreeMap<String, u64>,
    signals: &[SignalReport],
) -> Option<String> {
    let is_empty = |file: &&String| files.get(*file).is_none_or(|bytes| *bytes == 0);
    let empty = batch.manifest.outputs.values().find(is_empty);
    let empty = || empty.map(|file| format!("the graph wrote nothing to its file {file}"));
    signals.iter().find_map(SignalReport::failure).or_else(empty)
}

/// The plan of the graph file without its CPUs, which several workers would share, and with no more
/// partitions than the process has CPUs.
fn plan_within(graph: &Graph, own: &Plan, threads: Option<usize>) -> anyhow::Result<Plan> {
    let allowed = millstream_cpu::thread::allowed_cpus().ok();
    let variable = |name: &str| std::env::var(name).ok();
    let budget = CpuBudget::read(allowed.as_ref(), variable, Path::new("/"));
    let threads = threads.unwrap_or(budget.cpus).min(budget.cpus);
    let mut plan = own.clone();
    for partition in &mut plan.partitions {
        (partition.cpu, partition.wait) = (None, WaitMode::Park);
    }
    let some: CpuSet = allowed.iter().flat_map(CpuSet::iter).take(threads).collect();
    let complete = |plan: &Plan| {
        millstream_planner::place::complete(plan, &Shape::of(graph), Some(&some))
            .context("the plan does not fit the graph")
    };
    let whole = complete(&plan)?;
    if whole.partitions.len() <= threads {
        return Ok(whole);
    }
    if threads > 1 {
        let free = complete(&Plan { partitions: Vec::new(), ..plan.clone() })?;
        if free.partitions.len() <= threads {
            return Ok(free);
        }
    }
    let partitions = Preset::Single.plan(graph, WaitMode::Park, &plan.buffers).partitions;
    Ok(Plan { partitions, ..plan })
}

/// The numbers of a result: what the run took, items and metrics of its blocks, figures of its
/// receivers; and the names of those that are no counts.
fn numbers(
    run: &GraphReport,
    signals: &[SignalReport],
) -> anyhow::Result<(BTreeMap<String, f64>, Vec<String>)> {
    let mut numbers =
        BTreeMap::from([("elapsed_s".to_owned(), run.elapsed_s), ("cpu_s".to_owned(), run.cpu_s)]);
    let mut gauges = Vec::new();
    for block in &run.snapshot.blocks {
        numbers.insert(format!("{}.items_in", block.name), block.items_in as f64);
        numbers.insert(format!("{}.items_out", block.name), block.items_out as f64);
        for (name, metric) in &block.metrics {
            let value = block.metric(name).filter(|value| value.is_finite());
            let Some(value) = value else { continue };
            let name = format!("{}.{name}", block.name);
            if serde_json::to_value(metric)?.is_f64() {
                gauges.push(name.clone());
            }
            numbers.insert(name, value);
        }
    }
    for signal in signals {
        let Value::Object(figures) = serde_json::to_value(signal)? else { continue };
        for (name, figure) in figures {
            let Some(value) = figure.as_f64() else { continue };
            let name = format!("{}.{name}", signal.receiver);
            if figure.is_f64() {
                gauges.push(name.clone());
            }
            numbers.insert(name, value);
        }
    }
    Ok((numbers, gauges))
}
