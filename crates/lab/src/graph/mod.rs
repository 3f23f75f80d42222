//! Flowgraphs: chains of simple blocks in the runtime, by several plans, beside the same kernels in
//! a hand-written loop and beside GNU Radio.
//!
//! Interleaved rounds make a disturbance hit all subjects of a graph alike; ratios are of one
//! round, and their median counts.

mod case;
mod fused;
mod gnuradio;
mod kernel;
mod meter;
mod ours;

pub use case::{ChainShape, GraphCase, ItemKind};
pub use gnuradio::GRAPHS;
pub use kernel::BlockKernel;
use ours::{PlanRun, PlanSpread};

use crate::CaseRuns;
use crate::gnuradio::{GnuRadio, PeerError};
use crate::named::named;
use millstream_cpu::CpuSet;
use millstream_dsp::Sample;
use millstream_flow::RunError;
use millstream_stats::Summary;
use serde::Serialize;
use std::time::Duration;

/// The rate of a graph and its costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GraphRate {
    /// Items per second through the graph, all chains together.
    pub items_per_s: f64,
    /// CPU time, seconds for 10⁹ items.
    pub cpu_s_per_gigaitem: f64,
    /// Context switches for 10⁶ items.
    pub switches_per_million: f64,
    /// Migrations of threads to another CPU, where the kernel counts them.
    pub migrations: Option<u64>,
}

/// A compared subject.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GraphSubject {
    /// A hand-written loop, on one CPU.
    Fused,
    /// Our runtime, all blocks on one thread.
    Single,
    /// Our runtime, by the placement that follows from the blocks' costs on one thread.
    Planned,
    /// Our runtime, half of the blocks on each of two threads.
    Halves,
    /// Our runtime, a thread for each block.
    PerBlock,
    /// GNU Radio.
    GnuRadio,
}

named!(
    GraphSubject,
    6,
    [
        (Fused, "fused loop"),
        (Single, "single thread"),
        (Planned, "planned"),
        (Halves, "two halves"),
        (PerBlock, "thread per block"),
        (GnuRadio, "GNU Radio"),
    ]
);

impl GraphSubject {
    /// The subjects for this many CPUs: one or two.
    fn on(cpus: usize, has_peer: bool) -> Vec<Self> {
        let ours = if cpus == 1 {
            vec![Self::Fused, Self::Single, Self::PerBlock]
        } else {
            vec![Self::Planned, Self::Halves, Self::PerBlock]
        };
        ours.into_iter().chain(has_peer.then_some(Self::GnuRadio)).collect()
    }
}

/// The CPUs and times of measurements.
#[derive(Clone, Debug)]
pub struct GraphSpec {
    /// The CPUs: each graph is measured on the first, and on the first two if there are two.
    pub cpus: Vec<usize>,
    /// Time from the start of a graph to its measurement.
    pub warm_up: Duration,
    /// Length of a measurement.
    pub time: Duration,
}

/// A graph on a number of CPUs, by one of the compared subjects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GraphAttempt {
    /// The graph.
    pub case: GraphCase,
    /// CPUs.
    pub cpus: usize,
    /// The subject.
    pub subject: GraphSubject,
}

/// One subject's figures.
#[derive(Clone, Debug, Serialize)]
pub struct GraphFigures {
    /// The subject.
    pub contender: GraphSubject,
    /// Items per second.
    pub items_per_s: Summary,
    /// CPU seconds for 10⁹ items.
    pub cpu_s_per_gigaitem: Summary,
    /// Context switches for 10⁶ items.
    pub switches_per_million: Summary,
    /// Migrations of threads in all repetitions, where the kernel counts them.
    pub migrations: Option<u64>,
}

/// One graph on one number of CPUs.
#[derive(Clone, Debug, Serialize)]
pub struct GraphRow {
    /// The graph.
    pub case: GraphCase,
    /// CPUs.
    pub cpus: usize,
    /// Threads of the placed run.
    pub partitions: usize,
    /// All subjects.
    pub entries: Vec<GraphFigures>,
    /// Our placed run (on one CPU: a single thread) over the hand-written loop, in one round.
    pub of_fused: Option<Summary>,
    /// Our placed run over GNU Radio, in one round.
    pub of_gnuradio: Option<Summary>,
    /// Our placed run over our thread per block, in one round.
    pub of_per_block: Option<Summary>,
}

/// The reason why a measurement broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphBenchError {
    /// Our graph broke off.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The peer broke off.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The CPUs are not available.
    #[error("cannot run on CPUs {cpus}: {source}")]
    Cpus {
        /// The CPUs.
        cpus: CpuSet,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

/// The measurement of graphs, one attempt after the other.
#[derive(Debug)]
pub struct GraphBench {
    spec: GraphSpec,
    peer: Option<GnuRadio>,
    /// The placement of each graph on two CPUs, once it is known.
    placed: Vec<(GraphCase, PlanSpread)>,
}

impl GraphBench {
    /// Creates it, with GNU Radio as another subject if it is there.
    #[must_use]
    pub fn new(spec: GraphSpec, peer: Option<GnuRadio>) -> Self {
        Self { spec, peer, placed: Vec::new() }
    }

    /// GNU Radio's version, if it is measured.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.peer.as_ref().map(|peer| &*peer.version)
    }

    /// Returns each graph on each number of CPUs by each subject.
    #[must_use]
    pub fn attempts(&self, cases: &[GraphCase]) -> Vec<GraphAttempt> {
        let mut all = Vec::new();
        for &case in cases {
            for cpus in 1..=self.spec.cpus.len().min(2) {
                let subjects = GraphSubject::on(cpus, self.peer.is_some());
                all.extend(subjects.into_iter().map(|subject| GraphAttempt {
                    case,
                    cpus,
                    subject,
                }));
            }
        }
        all
    }

    /// Measures once.
    ///
    /// # Errors
    /// [`GraphBenchError`] when the graph or the peer breaks off.
    pub fn measure(&mut self, attempt: &GraphAttempt) -> Result<GraphRate, GraphBenchError> {
        let GraphAttempt { case, cpus, subject } = *attempt;
        let GraphSpec { warm_up, time, .. } = self.spec;
        let on = self.spec.cpus[..cpus].to_vec();
        let spread = match (subject, &mut self.peer) {
            (GraphSubject::GnuRadio, Some(peer)) => {
                return Ok(gnuradio::measure(peer, case, &on, warm_up, time)?);
            }
            (GraphSubject::Fused | GraphSubject::GnuRadio, _) => {
                let run = match case.item {
                    ItemKind::Float => fused::run::<f32>,
                    ItemKind::Complex => fused::run::<Sample>,
                };
                let batch_bytes = millstream_flow::plan::default_batch_bytes();
                return confined(&on, || Ok(run(case, batch_bytes, warm_up, time)));
            }
            (GraphSubject::Single, _) => PlanSpread::Single,
            (GraphSubject::Planned, _) => self.spread(case, &on)?,
            (GraphSubject::Halves, _) => PlanSpread::Halves,
            (GraphSubject::PerBlock, _) => PlanSpread::PerBlock,
        };
        self.run(case, spread, &on, true)
    }

    /// Measures a graph on one thread, `timed` with the clock reads of the cost model.
    ///
    /// # Errors
    /// [`GraphBenchError`] when the graph breaks off.
    pub fn measure_timed(
        &self,
        case: GraphCase,
        timed: bool,
    ) -> Result<GraphRate, GraphBenchError> {
        self.run(case, PlanSpread::Single, &self.spec.cpus[..1], timed)
    }

    fn run(
        &self,
        case: GraphCase,
        spread: PlanSpread,
        cpus: &[usize],
        timed: bool,
    ) -> Result<GraphRate, GraphBenchError> {
        let GraphSpec { warm_up, time, .. } = self.spec;
        confined(cpus, || {
            let run = PlanRun::start(case, spread, cpus, timed)?;
            std::thread::sleep(warm_up);
            let rate = run.rate(time);
            run.stop()?;
            Ok(rate)
        })
    }

    /// The placement of a graph on two CPUs, which is calculated once.
    fn spread(&mut self, case: GraphCase, cpus: &[usize]) -> Result<PlanSpread, GraphBenchError> {
        if let Some((_, spread)) = self.placed.iter().find(|(known, _)| *known == case) {
            return Ok(spread.clone());
        }
        let time = self.spec.time;
        let spread = confined(cpus, || PlanSpread::planned(case, cpus, time))?;
        self.placed.push((case, spread.clone()));
        Ok(spread)
    }

    /// Sums up what the rounds gave for these attempts: a row for each graph on each number of
    /// CPUs.
    #[must_use]
    pub fn rows(&self, attempts: &[GraphAttempt], rates: &[CaseRuns<GraphRate>]) -> Vec<GraphRow> {
        let all: Vec<_> = attempts.iter().zip(rates).collect();
        let rows = all.chunk_by(|(a, _), (b, _)| (a.case, a.cpus) == (b.case, b.cpus));
        rows.map(|row| self.row(row)).collect()
    }

    fn row(&self, all: &[(&GraphAttempt, &CaseRuns<GraphRate>)]) -> GraphRow {
        let GraphAttempt { case, cpus, .. } = *all[0].0;
        let find = |wanted: &[GraphSubject]| {
            all.iter().find(|(one, _)| wanted.contains(&one.subject)).map(|(_, rates)| *rates)
        };
        let planned = find(&[GraphSubject::Single, GraphSubject::Planned]);
        let over = |other: GraphSubject| {
            planned?.ratios(find(&[other])?, |own| own.items_per_s, |other| other.items_per_s)
        };
        let placed = self.placed.iter().find(|(known, _)| *known == case && cpus > 1);
        GraphRow {
            case,
            cpus,
            partitions: match placed {
                Some((_, PlanSpread::By(plan))) => plan.partitions.len(),
                _ => 1,
            },
            entries: all.iter().map(|(one, rates)| entry(one.subject, rates)).collect(),
            of_fused: over(GraphSubject::Fused),
            of_gnuradio: over(GraphSubject::GnuRadio),
            of_per_block: over(GraphSubject::PerBlock),
        }
    }
}

/// Runs `job` on a thread that is confined to these CPUs, as are the threads that it starts.
fn confined<R: Send>(
    cpus: &[usize],
    job: impl FnOnce() -> Result<R, RunError> + Send,
) -> Result<R, GraphBenchError> {
    let cpus: CpuSet = cpus.iter().copied().collect();
    let run = || {
        millstream_cpu::thread::confine_current_thread(&cpus)
            .map_err(|source| GraphBenchError::Cpus { cpus: cpus.clone(), source })?;
        Ok(job()?)
    };
    std::thread::scope(|scope| scope.spawn(run).join()).expect("a measurement does not panic")
}

fn entry(contender: GraphSubject, rates: &CaseRuns<GraphRate>) -> GraphFigures {
    let summary = |figure: fn(&GraphRate) -> f64| {
        rates.summary(|rate| Some(figure(rate))).unwrap_or_default()
    };
    GraphFigures {
        contender,
        items_per_s: summary(|rate| rate.items_per_s),
        cpu_s_per_gigaitem: summary(|rate| rate.cpu_s_per_gigaitem),
        switches_per_million: summary(|rate| rate.switches_per_million),
        migrations: rates.outcomes().map(|rate| rate.migrations).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_moves_items_and_has_its_ratios() {
        let case = GraphCase {
            kernel: BlockKernel::Multiply,
            item: ItemKind::Complex,
            shape: ChainShape::chain(4),
        };
        let cpus: Vec<usize> = millstream_cpu::thread::allowed_cpus().unwrap().iter().collect();
        let spec = GraphSpec {
            cpus: cpus.clone(),
            warm_up: Duration::from_millis(5),
            time: Duration::from_millis(20),
        };
        let mut bench = GraphBench::new(spec, None);
        let attempts = bench.attempts(&[case]);
        let runs = attempts.iter().map(|attempt| CaseRuns {
            runs: (0..2).map(|round| (round, bench.measure(attempt).unwrap())).collect(),
            refused: None,
        });
        let runs: Vec<_> = runs.collect();
        let rows = bench.rows(&attempts, &runs);
        assert_eq!(rows.len(), cpus.len().min(2));
        for row in &rows {
            assert!(row.entries.iter().all(|entry| entry.items_per_s.max > 0.0), "{row:?}");
            assert_eq!(row.of_fused.is_some(), row.cpus == 1);
            assert!(row.of_per_block.is_some() && row.of_gnuradio.is_none());
        }
        assert!(bench.measure_timed(case, false).unwrap().cpu_s_per_gigaitem > 0.0);
    }
}
