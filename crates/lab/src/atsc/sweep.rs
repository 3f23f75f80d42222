//! Receivers on every signal of a grid.

use super::gnuradio::{Decode, Took};
use super::ours::ReceiverGraph;
use super::{AtscError, PacketScore, Point, Recording, ResultStore, StoredResult};
use crate::gnuradio::GnuRadio;
use millstream_cpu::CpuSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Our receiver's name in results.
pub const OURS: &str = "millstream";

/// Counted packets are sent from this time on, seconds after the start, and not within the last
/// part, which receivers may delay.
pub const SETTLE_S: f64 = 0.5;
/// See [`SETTLE_S`].
pub const SPARE_S: f64 = 0.1;

/// The tested signals and receivers.
#[derive(Clone, Debug)]
pub struct ParameterGrid {
    /// The signals.
    pub points: Vec<Point>,
    /// Complex samples per second.
    pub rate_hz: f64,
    /// Length of each.
    pub seconds: f64,
    /// Seed of packets and noise.
    pub seed: u64,
    /// Settings of GNU Radio's receiver.
    pub samples_per_symbol: Vec<f64>,
    /// CPUs that may be used.
    pub cpus: CpuSet,
}

/// GNU Radio's name in results, with its setting.
#[must_use]
pub fn peer_name(samples_per_symbol: f64) -> String {
    format!("gnuradio-{samples_per_symbol}")
}

/// A signal, and the receivers that have not decoded it yet: a name, and a setting of GNU Radio's.
#[derive(Clone, Debug)]
struct Task {
    point: Point,
    open: Vec<(String, Option<f64>)>,
}

impl ParameterGrid {
    fn recording(&self, point: &Point) -> Recording {
        let Self { rate_hz, seconds, seed, .. } = *self;
        Recording { rate_hz, seconds, seed, impairments: point.impairments() }
    }

    /// Tasks that are not in the store.
    fn tasks(&self, store: &ResultStore, has_peer: bool) -> Vec<Task> {
        let mut receivers = vec![(OURS.to_owned(), None)];
        let settings = self.samples_per_symbol.iter().filter(|_| has_peer);
        receivers.extend(settings.map(|setting| (peer_name(*setting), Some(*setting))));
        let task = |point: &Point| {
            let missing = |name: &str| store.find(point, name, self.seconds, self.seed).is_none();
            let open = receivers.iter().filter(|(name, _)| missing(name)).cloned().collect();
            Task { point: *point, open }
        };
        self.points.iter().map(task).filter(|task| !task.open.is_empty()).collect()
    }
}

/// Runs all tasks that are not in the store, as many at once as there are `peers`; a peer of `None`
/// runs our receiver only. Before each signal, calls `progress` with the number begun and the
/// signal; it returns whether to continue.
///
/// # Errors
/// [`AtscError`] when a file or a receiver breaks off.
pub fn sweep(
    sweep: &ParameterGrid,
    store: &mut ResultStore,
    folder: &Path,
    peers: &mut [Option<GnuRadio>],
    progress: impl FnMut(usize, &Point) -> bool + Send,
) -> Result<(), AtscError> {
    let tasks = sweep.tasks(store, peers.iter().all(Option::is_some));
    let begun = sweep.points.len() - tasks.len();
    let tasks = tasks.into_iter();
    let shared = Mutex::new(Shared { tasks, begun, store, progress, outcome: Ok(()) });
    std::thread::scope(|scope| {
        for (n, peer) in peers.iter_mut().enumerate() {
            let shared = &shared;
            scope.spawn(move || {
                let mut worker = Worker { sweep, folder, peer: peer.as_mut(), n };
                let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
                loop {
                    let Some(task) = lock().next() else { return };
                    let done = worker.lines(&task, &mut |line| lock().store.add(line));
                    if let Err(error) = done {
                        lock().outcome = Err(error);
                    }
                }
            });
        }
    });
    shared.into_inner().unwrap_or_else(PoisonError::into_inner).outcome
}

/// What the workers share.
struct Shared<'s, P> {
    tasks: std::vec::IntoIter<Task>,
    /// Signals begun.
    begun: usize,
    store: &'s mut ResultStore,
    progress: P,
    outcome: Result<(), AtscError>,
}

impl<P: FnMut(usize, &Point) -> bool> Shared<'_, P> {
    /// The next task, unless something failed or the user asked to end.
    fn next(&mut self) -> Option<Task> {
        let task = self.tasks.next().filter(|_| self.outcome.is_ok())?;
        if !(self.progress)(self.begun, &task.point) {
            self.tasks = Vec::new().into_iter();
            return None;
        }
        self.begun += 1;
        Some(task)
    }
}

/// Makes signals and runs the receivers on them, one after the other.
struct Worker<'a> {
    sweep: &'a ParameterGrid,
    folder: &'a Path,
    peer: Option<&'a mut GnuRadio>,
    n: usize,
}

impl Worker<'_> {
    fn lines(
        &mut self,
        task: &Task,
        has: &mut dyn FnMut(StoredResult) -> Result<(), AtscError>,
    ) -> Result<(), AtscError> {
        let recording = self.sweep.recording(&task.point);
        let input = self.folder.join(format!("signal-{}.sc16", self.n));
        recording.write(&input)?;
        for (name, setting) in &task.open {
            let score = self.decode(&input, &recording, *setting)?;
            let ParameterGrid { seconds, seed, .. } = *self.sweep;
            has(StoredResult { point: task.point, receiver: name.clone(), seconds, seed, score })?;
        }
        Ok(())
    }

    fn decode(
        &mut self,
        input: &Path,
        recording: &Recording,
        setting: Option<f64>,
    ) -> Result<PacketScore, AtscError> {
        let output = self.folder.join(format!("out-{}.ts", self.n));
        // The output of an earlier run must not count.
        let _ = std::fs::remove_file(&output);
        let cpus: Vec<usize> = self.sweep.cpus.iter().collect();
        match (setting, self.peer.as_deref_mut()) {
            (Some(setting), Some(peer)) => {
                let _: Took = peer.ask(&Decode {
                    r#in: input,
                    rate_hz: recording.rate_hz,
                    out: &output,
                    samples_per_symbol: setting,
                    cpus: &cpus,
                })?;
            }
            _ => {
                let ours = ReceiverGraph::new(input, recording.rate_hz, &output)?;
                let cpu = cpus.get(self.n % cpus.len().max(1)).copied().unwrap_or(0);
                ours.run(&ours.single(cpu)?)?;
            }
        }
        PacketScore::of_file(&output, recording, SETTLE_S, SPARE_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_not_tried_again_and_noise_makes_errors() {
        let plan = ParameterGrid {
            points: vec![Point::noise(25.0), Point::noise(8.0)],
            rate_hz: 6.25e6,
            seconds: 0.7,
            seed: 4,
            samples_per_symbol: vec![1.1],
            cpus: millstream_cpu::thread::allowed_cpus().unwrap(),
        };
        let folder = tempfile::tempdir().unwrap();
        let mut store = ResultStore::open(None, |_| false).unwrap();
        let mut told = Vec::new();
        for (stop_after, workers) in [(1, 1), (9, 2), (9, 1)] {
            let mut peers: Vec<_> = (0..workers).map(|_| None).collect();
            sweep(&plan, &mut store, folder.path(), &mut peers, |done, _| {
                told.push(done);
                told.len() <= stop_after
            })
            .unwrap();
        }
        assert_eq!(told, [0, 1, 1], "stopped before the second, which is tried then, once");
        let rate = |n: usize| store.lines[n].score.error_rate();
        assert_eq!((store.lines.len(), rate(0), rate(1)), (2, 0.0, 1.0));
    }

    #[test]
    fn what_fails_ends_it_with_the_reason() {
        let plan = ParameterGrid {
            points: vec![Point::noise(25.0), Point::noise(24.0)],
            rate_hz: 1e6,
            seconds: 0.7,
            seed: 4,
            samples_per_symbol: Vec::new(),
            cpus: millstream_cpu::thread::allowed_cpus().unwrap(),
        };
        let folder = tempfile::tempdir().unwrap();
        let mut store = ResultStore::open(None, |_| false).unwrap();
        let ended = sweep(&plan, &mut store, folder.path(), &mut [None, None], |_, _| true);
        assert!(ended.unwrap_err().to_string().contains("an ATSC channel cannot be transmitted"));
        assert!(store.lines.is_empty());
    }
}
