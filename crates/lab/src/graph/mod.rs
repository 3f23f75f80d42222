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
pub use gnuradio::GnuRadioGraph;
pub use kernel::{BlockKernel, TAPS};
pub use ours::{PlanRun, PlanSpread};

use crate::gnuradio::PeerError;
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

/// The measurements and their length.
#[derive(Clone, Debug)]
pub struct GraphSpec {
    /// The graphs.
    pub cases: Vec<GraphCase>,
    /// The CPUs: each graph is measured on the first, and on the first two if there are two.
    pub cpus: Vec<usize>,
    /// Repetitions.
    pub repeats: usize,
    /// Time from the start of a graph to its measurement.
    pub warm_up: Duration,
    /// Length of a measurement.
    pub time: Duration,
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

/// Measures every graph on one and on two CPUs; calls `progress` before each.
///
/// # Errors
/// [`GraphBenchError`] when a graph or the peer breaks off.
pub fn measure(
    plan: &GraphSpec,
    mut peer: Option<&mut GnuRadioGraph>,
    mut progress: impl FnMut(GraphCase, usize),
) -> Result<Vec<GraphRow>, GraphBenchError> {
    let mut rows = Vec::new();
    for &case in &plan.cases {
        for count in 1..=plan.cpus.len().min(2) {
            progress(case, count);
            let cpus = &plan.cpus[..count];
            rows.push(measure_row(plan, case, cpus, peer.as_deref_mut())?);
        }
    }
    Ok(rows)
}

fn measure_row(
    plan: &GraphSpec,
    case: GraphCase,
    cpus: &[usize],
    mut peer: Option<&mut GnuRadioGraph>,
) -> Result<GraphRow, GraphBenchError> {
    let contenders = GraphSubject::on(cpus.len(), peer.is_some());
    let by_plan = match cpus.len() {
        1 => PlanSpread::Single,
        _ => confined(cpus, || PlanSpread::planned(case, cpus, plan.time))?,
    };
    let mut rates: Vec<Vec<GraphRate>> = vec![Vec::new(); contenders.len()];
    for _ in 0..plan.repeats {
        for (contender, rates) in contenders.iter().zip(&mut rates) {
            rates.push(match (contender, peer.as_deref_mut()) {
                (GraphSubject::GnuRadio, Some(peer)) => {
                    peer.measure(case, cpus, plan.warm_up, plan.time)?
                }
                _ => confined(cpus, || attempt(plan, case, *contender, &by_plan, cpus))?,
            });
        }
    }
    let find = |wanted: &[GraphSubject]| contenders.iter().position(|one| wanted.contains(one));
    let planned = find(&[GraphSubject::Single, GraphSubject::Planned]);
    let over = |other: GraphSubject| {
        let (ours, theirs) = (&rates[planned?], &rates[find(&[other])?]);
        let ratios = ours.iter().zip(theirs).map(|(a, b)| a.items_per_s / b.items_per_s.max(1.0));
        Summary::of(&ratios.collect::<Vec<_>>())
    };
    let [of_fused, of_gnuradio, of_per_block] =
        [GraphSubject::Fused, GraphSubject::GnuRadio, GraphSubject::PerBlock].map(over);
    let entries = contenders.iter().zip(&rates).map(|(contender, rates)| entry(*contender, rates));
    let (entries, cpus) = (entries.collect(), cpus.len());
    let partitions = match by_plan {
        PlanSpread::By(plan) => plan.partitions.len(),
        _ => 1,
    };
    Ok(GraphRow { case, cpus, partitions, entries, of_fused, of_gnuradio, of_per_block })
}

/// One measurement of a subject in this process.
fn attempt(
    plan: &GraphSpec,
    case: GraphCase,
    contender: GraphSubject,
    by_plan: &PlanSpread,
    cpus: &[usize],
) -> Result<GraphRate, RunError> {
    let spread = match contender {
        GraphSubject::Single => PlanSpread::Single,
        GraphSubject::Planned => by_plan.clone(),
        GraphSubject::Halves => PlanSpread::Halves,
        GraphSubject::PerBlock => PlanSpread::PerBlock,
        GraphSubject::Fused | GraphSubject::GnuRadio => {
            let run = match case.item {
                ItemKind::Float => fused::run::<f32>,
                ItemKind::Complex => fused::run::<Sample>,
            };
            let batch_bytes = millstream_flow::plan::default_batch_bytes();
            return Ok(run(case, batch_bytes, plan.warm_up, plan.time));
        }
    };
    let run = PlanRun::start(case, spread, cpus, true)?;
    std::thread::sleep(plan.warm_up);
    let rate = run.rate(plan.time);
    run.stop()?;
    Ok(rate)
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

fn entry(contender: GraphSubject, rates: &[GraphRate]) -> GraphFigures {
    let summary = |figure: fn(&GraphRate) -> f64| {
        let figures: Vec<f64> = rates.iter().map(figure).collect();
        Summary::of(&figures).unwrap_or_default()
    };
    GraphFigures {
        contender,
        items_per_s: summary(|rate| rate.items_per_s),
        cpu_s_per_gigaitem: summary(|rate| rate.cpu_s_per_gigaitem),
        switches_per_million: summary(|rate| rate.switches_per_million),
        migrations: rates.iter().map(|rate| rate.migrations).sum(),
    }
}

/// Measures the cost of the cost model's clock reads: a run with them over one without, in
/// interleaved rounds.
///
/// # Errors
/// [`GraphBenchError`] when a graph breaks off.
pub fn cost_of_timing(plan: &GraphSpec, case: GraphCase) -> Result<Summary, GraphBenchError> {
    let cpus = &plan.cpus[..1];
    let rate = |timed| {
        confined(cpus, || {
            let run = PlanRun::start(case, PlanSpread::Single, cpus, timed)?;
            std::thread::sleep(plan.warm_up);
            let rate = run.rate(plan.time).cpu_s_per_gigaitem;
            run.stop()?;
            Ok(rate)
        })
    };
    let mut shares = Vec::new();
    // In both orders, so that a drift cancels.
    for turn in 0..2 * plan.repeats {
        let (first, second) = (rate(turn % 2 == 0)?, rate(turn % 2 == 1)?);
        let (with, without) = if turn % 2 == 0 { (first, second) } else { (second, first) };
        shares.push(with / without - 1.0);
    }
    Ok(Summary::of(&shares).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contender_moves_items_and_ratios_are_taken_in_turns() {
        let case = GraphCase {
            kernel: BlockKernel::Multiply,
            item: ItemKind::Complex,
            shape: ChainShape::chain(4),
        };
        let cpus: Vec<usize> = millstream_cpu::thread::allowed_cpus().unwrap().iter().collect();
        let plan = GraphSpec {
            cases: vec![case],
            cpus,
            repeats: 2,
            warm_up: Duration::from_millis(5),
            time: Duration::from_millis(20),
        };
        let rows = measure(&plan, None, |_, _| {}).unwrap();
        assert_eq!(rows.len(), plan.cpus.len().min(2));
        for row in &rows {
            assert!(row.entries.iter().all(|entry| entry.items_per_s.max > 0.0), "{row:?}");
            assert_eq!(row.of_fused.is_some(), row.cpus == 1);
            assert!(row.of_per_block.is_some() && row.of_gnuradio.is_none());
        }
        assert!(cost_of_timing(&plan, case).unwrap().count == 4);
    }
}
