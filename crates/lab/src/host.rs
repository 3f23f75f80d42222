//! This machine as the place where a plan runs: every start is a fresh process of this program
//! beside the load.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use millstream_cpu::CpuSet;
use serde_json::Value;

use crate::load::RunningLoad;
use millstream_measure::design::{
    ActivityCounters, MeasuringMachine, QuietCondition, StartFailure, StartResult, Unit,
};
use millstream_measure::record::{Document, Record};

/// Interval at which a wait checks whether to end.
const TICK: Duration = Duration::from_millis(20);

/// Stores the result of a start; an error is in words.
pub type Keep<'k> = Box<dyn FnMut(&Unit<'_>, &StartResult) -> Result<(), String> + 'k>;

/// This machine.
pub struct Host<'h> {
    /// Makes the command of this program with arguments.
    pub program: fn(&[String]) -> std::io::Result<Command>,
    /// Arguments of a worker of a load.
    pub worker: &'static [&'static str],
    /// CPUs that may be used.
    pub allowed: CpuSet,
    /// CPUs whose latency is measured.
    pub measured: CpuSet,
    /// Time from the start of a load to the measurement.
    pub settle: Duration,
    /// The condition for a start.
    pub quiet: QuietCondition,
    /// Stores the records.
    pub keep: Keep<'h>,
    /// Whether the user asked to end.
    pub ended: fn() -> bool,
    /// Called for each unit begun.
    pub progress: Box<dyn FnMut(&Unit<'_>) + 'h>,
}

impl Host<'_> {
    fn take(&self, unit: &Unit<'_>) -> Result<Vec<Record>, StartFailure> {
        let words = |error: crate::load::LoadError| error.to_string();
        let worker: Vec<String> = self.worker.iter().map(|&word| word.to_owned()).collect();
        let start = || (self.program)(&worker);
        self.quiet.wait(self.ended).map_err(StartFailure::Place)?;
        let profile = &unit.cell.load;
        let mut load =
            RunningLoad::begin(profile, &self.allowed, &self.measured, &start).map_err(words)?;
        self.settle();
        load.restart().map_err(words)?;
        let (watch, since) = (ActivityCounters::begin(&self.quiet.interfaces), Instant::now());
        let output = self.run(&unit.cell.args)?;
        let mut seen = load.seen().map_err(words)?;
        watch.end(seen.cpu_share * since.elapsed().as_secs_f64()).tell(&mut seen);
        let mut records = read(&output)?;
        for record in &mut records {
            record.load_seen = Some(seen.clone());
        }
        Ok(records)
    }

    fn settle(&self) {
        let until = Instant::now() + self.settle;
        while Instant::now() < until && !(self.ended)() {
            std::thread::sleep(TICK.min(self.settle));
        }
    }

    /// Runs this program to its end, in the same process group: Ctrl-C ends it in order.
    fn run(&self, args: &[String]) -> Result<Output, String> {
        let words = |error: std::io::Error| format!("cannot start the measurement: {error}");
        let mut command = (self.program)(args).map_err(words)?;
        command.arg("--json").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        millstream_host::child::tie(&mut command, None);
        command.spawn().and_then(std::process::Child::wait_with_output).map_err(words)
    }
}

/// The records that a program printed, or its error.
fn read(output: &Output) -> Result<Vec<Record>, String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let value: Value = serde_json::from_str(&text).map_err(|_| {
        let said = errors.trim();
        format!("it ended with {} and printed no document: {said}", output.status)
    })?;
    if let Some(error) = value["error"].as_str() {
        return Err(error.to_owned());
    }
    let document: Document = serde_json::from_value(value).map_err(|error| {
        format!(
            "it prints no records ({error}): only `latency`, `bench packets`, `bench graph` and \
                 `bench atsc` do"
        )
    })?;
    let records: Vec<_> = document.records().collect();
    if records.is_empty() { Err("it printed no record".to_owned()) } else { Ok(records) }
}

impl MeasuringMachine for Host<'_> {
    fn start(&mut self, unit: &Unit<'_>) -> Result<StartResult, StartFailure> {
        (self.progress)(unit);
        Ok(StartResult { records: self.take(unit)?, failures: Vec::new() })
    }

    fn keep(&mut self, unit: &Unit<'_>, given: &StartResult) -> Result<(), String> {
        (self.keep)(unit, given)
    }

    fn ended(&self) -> bool {
        (self.ended)()
    }
}
