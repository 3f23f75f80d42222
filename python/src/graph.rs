//! Flowgraphs from files.

use crate::errors::GraphError;
use crate::python_block;
use millstream_atsc::blocks::Monitors;
use millstream_flow::{GraphFile, Registry, RunningGraph, Shape, Snapshot};
use millstream_planner::place;
use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a waiting caller looks whether the graph has ended, and whether a signal has come.
const STEP: Duration = Duration::from_millis(10);

/// Time limit of an interrupted run's end; blocks that hang do not return.
const GIVE_UP_AFTER: Duration = Duration::from_secs(2);

/// Every type of block, and the monitors of television receivers.
fn registry() -> (Registry, Monitors) {
    let mut registry = Registry::builtin();
    millstream_blocks::register(&mut registry);
    millstream_radio::block::register(&mut registry);
    let monitors = millstream_atsc::blocks::register(&mut registry);
    (registry, monitors)
}

/// Runs the flowgraph of a file to its end, and returns its counters as JSON text.
///
/// `settings` are the NAME=VALUE of the graph's parameters. After `timeout` seconds the graph is
/// stopped as by Ctrl-C: its sources end, and files become complete.
#[pyfunction]
#[pyo3(signature = (path, settings, blocks = None, timeout = None))]
pub fn run_graph(
    py: Python<'_>,
    path: PathBuf,
    settings: Vec<String>,
    blocks: Option<&Bound<'_, PyDict>>,
    timeout: Option<f64>,
) -> PyResult<String> {
    let limit = timeout.map(Duration::try_from_secs_f64).transpose();
    let limit = limit.map_err(|_| GraphError::new_err("timeout: give seconds, or None"))?;
    let (mut registry, monitors) = registry();
    if let Some(blocks) = blocks {
        python_block::register(&mut registry, blocks)?;
    }
    let began = Instant::now();
    let running = py.detach(|| start(&path, &registry, &settings))?;
    let stopper = running.stopper();
    let mut stopped = None;
    while !running.is_finished() {
        py.detach(|| std::thread::sleep(STEP));
        if let Err(signal) = py.check_signals() {
            py.detach(|| end_early(running));
            return Err(signal);
        }
        if stopped.is_none() && limit.is_some_and(|limit| began.elapsed() >= limit) {
            stopper.stop();
            stopped = Some(Instant::now());
        }
        if stopped.is_some_and(|since| since.elapsed() > GIVE_UP_AFTER) {
            py.detach(|| running.abandon(Duration::ZERO));
            return Err(PyTimeoutError::new_err("the graph did not end after it was stopped"));
        }
    }
    let snapshot = py.detach(|| running.wait()).map_err(|e| GraphError::new_err(e.to_string()))?;
    Ok(report(&snapshot, &monitors, began.elapsed(), stopped.is_some()).to_string())
}

/// Reads and builds a graph, and starts it by its own plan.
fn start(path: &Path, registry: &Registry, settings: &[String]) -> PyResult<RunningGraph> {
    let error = |error: &dyn std::fmt::Display| GraphError::new_err(error.to_string());
    let file = GraphFile::read(path).map_err(|e| error(&e))?;
    let graph = file.build(registry, settings).map_err(|e| error(&e))?;
    let allowed = millstream_cpu::thread::allowed_cpus().ok();
    let plan = place::complete(file.plan(), &Shape::of(&graph), allowed.as_ref());
    graph.start(&plan.map_err(|e| error(&e))?).map_err(|e| error(&e))
}

/// Stops a graph, so that its files become complete, and leaves it after a while.
fn end_early(running: RunningGraph) {
    running.stopper().stop();
    let until = Instant::now() + GIVE_UP_AFTER;
    while !running.is_finished() && Instant::now() < until {
        std::thread::sleep(STEP);
    }
    match running.is_finished() {
        true => drop(running.wait()),
        false => running.abandon(Duration::ZERO),
    }
}

fn report(snapshot: &Snapshot, monitors: &Monitors, took: Duration, stopped: bool) -> Value {
    let signals = monitors.all().into_iter().map(|(receiver, monitor)| {
        let mut signal = json!(monitor.status());
        signal["receiver"] = json!(receiver);
        signal
    });
    json!({
        "elapsed_s": took.as_secs_f64(),
        "stopped": stopped,
        "signals": signals.collect::<Vec<_>>(),
        "blocks": snapshot.blocks,
        "partitions": snapshot.partitions,
    })
}
