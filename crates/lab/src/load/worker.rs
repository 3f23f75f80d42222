//! A worker's process: reads its job from standard input, prints `ready` when all its threads work,
//! answers each further line with the amount of work, and ends with its input.

use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;

use millstream_cpu::CpuSet;
use millstream_cpu::thread::{confine_current_thread, name_current_thread};
use serde::{Deserialize, Serialize};

use super::kinds;
use millstream_measure::load::{LoadKind, LoadWorker};

/// The line that a worker prints when it works.
pub(super) const READY: &str = "ready";

/// The job of a worker's process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LoadJob {
    pub worker: LoadWorker,
    pub cpus: CpuSet,
}

/// The work of all threads of a process, and whether they are to end.
#[derive(Debug, Default)]
pub(super) struct LoadProgress {
    work: AtomicU64,
    over: AtomicBool,
    /// The first failure of a thread after its start.
    failed: OnceLock<String>,
}

impl LoadProgress {
    /// Adds work; returns whether to continue.
    pub fn did(&self, work: u64) -> bool {
        self.work.fetch_add(work, Ordering::Relaxed);
        !self.over.load(Ordering::Relaxed)
    }

    /// The answer: the work, or the failure.
    fn answer(&self) -> String {
        let work = || self.work.load(Ordering::Relaxed).to_string();
        self.failed.get().cloned().unwrap_or_else(work)
    }
}

/// Serves one worker; ends with `input`.
///
/// # Errors
/// When the input is not a job, or the reader of the answers has gone.
pub fn serve(input: impl BufRead, output: &mut impl Write) -> io::Result<()> {
    let mut lines = input.lines();
    let Some(line) = lines.next() else { return Ok(()) };
    let order: LoadJob = serde_json::from_str(&line?)?;
    let tally = Arc::<LoadProgress>::default();
    match begin(&order, &tally) {
        Ok(()) => writeln!(output, "{READY}")?,
        Err(reason) => return writeln!(output, "{reason}"),
    }
    output.flush()?;
    for line in lines {
        line?;
        writeln!(output, "{}", tally.answer())?;
        output.flush()?;
    }
    // They end soon, or with the process.
    tally.over.store(true, Ordering::Relaxed);
    Ok(())
}

/// Starts the threads and waits until each has begun.
fn begin(order: &LoadJob, tally: &Arc<LoadProgress>) -> Result<(), String> {
    if let LoadKind::Flood { .. } = order.worker.kind {
        kinds::flood::enter_network()?;
    }
    let (tell, told) = mpsc::channel::<Result<(), String>>();
    let mut threads = 0;
    for (cpus, index) in shares(order) {
        let (kind, tally, tell) = (order.worker.kind.clone(), tally.clone(), tell.clone());
        let body = move || {
            let _ = name_current_thread(&format!("ms-load-{index}"));
            let confined = confine_current_thread(&cpus).map_err(|error| error.to_string());
            if let Err(reason) = confined.and_then(|()| kinds::run(&kind, &tally, &tell)) {
                // The thread that waits for the start, or for work, gets the error.
                let _ = tell.send(Err(reason.clone()));
                let _ = tally.failed.set(reason);
            }
        };
        thread::Builder::new().spawn(body).map_err(|error| error.to_string())?;
        threads += 1;
    }
    drop(tell);
    (0..threads).try_for_each(|_| told.recv().map_err(|_| "a thread ended".to_owned())?)
}

/// The CPUs and number of each thread. Timers have threads on each CPU.
fn shares(order: &LoadJob) -> Vec<(CpuSet, usize)> {
    let LoadJob { worker, cpus } = order;
    match worker.kind {
        LoadKind::Timer { .. } | LoadKind::Flood { .. } => {
            let each = cpus.iter().flat_map(|cpu| (0..worker.count).map(move |_| cpu));
            each.map(|cpu| CpuSet::from_iter([cpu])).zip(0..).collect()
        }
        _ => (0..worker.count).map(|index| (cpus.clone(), index)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_measure::load::Spot;
    use std::io::BufReader;

    fn serve_two_questions(kind: LoadKind) -> Vec<String> {
        let worker = LoadWorker { kind, on: Spot::All, count: 1 };
        let cpus = millstream_cpu::thread::allowed_cpus().unwrap();
        let order = serde_json::to_string(&LoadJob { worker, cpus }).unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        let (answers, mut output) = io::pipe().unwrap();
        let serving = thread::spawn(move || serve(BufReader::new(reader), &mut output));
        writeln!(writer, "{order}").unwrap();
        let mut lines = BufReader::new(answers).lines().map(Result::unwrap);
        let mut said = vec![lines.next().unwrap()];
        // Asks until there is some work, so that the machine's speed does not matter.
        while said.len() < 3 {
            if writeln!(writer, "?").is_err() {
                break;
            }
            let Some(answer) = lines.next() else { break };
            if answer != *said.last().unwrap() && answer != "0" {
                said.push(answer);
            }
        }
        drop(writer);
        serving.join().unwrap().unwrap();
        said
    }

    #[test]
    fn every_kind_works_and_its_work_is_counted() {
        for kind in [
            LoadKind::Cpu,
            LoadKind::Memory { bytes: 65_536 },
            LoadKind::Thrash { bytes: 65_536 },
            LoadKind::Io { bytes: 4096 },
            LoadKind::Chatter,
            LoadKind::Program { command: vec!["sleep".to_owned(), "100".to_owned()] },
        ] {
            let said = serve_two_questions(kind.clone());
            assert_eq!(said[0], READY, "{kind:?}");
            if !matches!(kind, LoadKind::Program { .. }) {
                let counts: Vec<u64> =
                    said[1..].iter().map(|count| count.parse().unwrap()).collect();
                assert!(counts.is_sorted() && counts[0] > 0, "{kind:?} {counts:?}");
            }
        }
    }

    #[test]
    fn one_that_ends_after_its_start_is_no_worker_any_more() {
        let tally = LoadProgress::default();
        assert!(tally.did(7) && tally.answer() == "7");
        let (kind, (tell, told)) =
            (LoadKind::Program { command: vec!["true".to_owned()] }, mpsc::channel());
        let reason = kinds::run(&kind, &tally, &tell).unwrap_err();
        assert_eq!(told.recv().unwrap(), Ok(()), "it had begun");
        tally.failed.set(reason).unwrap();
        assert!(tally.answer().starts_with("`true` ended"), "{}", tally.answer());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let command = vec!["no-such-program".to_owned()];
        let said = serve_two_questions(LoadKind::Program { command });
        assert!(said[0].contains("`no-such-program` cannot be started"), "{said:?}");
    }
}
