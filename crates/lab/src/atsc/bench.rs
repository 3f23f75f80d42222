//! The cost of the receiver, in interleaved rounds with GNU Radio's, and the extra cost of echoes.

use super::gnuradio::{Decode, Took};
use super::ours::ReceiverGraph;
use super::{AtscError, Ensemble, PacketScore, Point, Recording, SETTLE_S, SPARE_S};
use crate::CaseRuns;
use crate::gnuradio::GnuRadio;
use millstream_cpu::CpuSet;
use millstream_flow::{Plan, Profile};
use millstream_stats::Summary;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The equaliser's name in the graph.
const EQUALIZER: &str = "equalizer";

/// The measurements.
#[derive(Clone, Debug)]
pub struct AtscBench {
    /// The good signal.
    pub recording: Recording,
    /// CPUs that may be used; the plan with one thread uses the first.
    pub cpus: CpuSet,
    /// A plan that an earlier tuning chose.
    pub tuned: Option<Plan>,
    /// Settings of GNU Radio's receiver.
    pub samples_per_symbol: Vec<f64>,
    /// Signals with echoes that our single-thread plan decodes, too.
    pub echoes: Vec<Point>,
}

/// Echoes from harmless to the hardest that the receiver tolerates; their cost depends on the work
/// that they give the equaliser.
pub const ECHOES: [Point; 7] = [
    Point::Echo { delay_us: 1.0, level_db: -15.0 },
    Point::Echo { delay_us: 5.6, level_db: -20.0 },
    Point::Echo { delay_us: 5.6, level_db: -10.0 },
    Point::Echo { delay_us: 30.0, level_db: -1.0 },
    Point::Echo { delay_us: -11.5, level_db: -1.0 },
    Point::Ensemble { name: Ensemble::BrazilD },
    Point::Ensemble { name: Ensemble::BrazilE },
];

/// The cost of a signal with echoes on our single thread.
#[derive(Clone, Debug, Serialize)]
pub struct Echoed {
    /// The signal.
    pub signal: Point,
    /// Signal time over time by the clock.
    pub real_time: Summary,
    /// CPU seconds for a second of signal.
    pub cpu_s_per_signal_s: Summary,
    /// Its CPU time over that of the same thread without echoes, in the same round.
    pub of_clean: Summary,
    /// The equaliser's share of all blocks' time.
    pub equalizer_share: f64,
    /// Packets of the last round.
    pub score: PacketScore,
}

/// A compared receiver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AtscSubject {
    /// Ours, all blocks on one thread of one CPU.
    Single,
    /// Ours, by the placement for all CPUs.
    Placed,
    /// Ours, by the stored plan of `millstream graph tune`.
    Tuned,
    /// GNU Radio's, a thread for each block, on all CPUs.
    GnuRadio {
        /// Its internal rate.
        samples_per_symbol: f64,
    },
}

impl std::fmt::Display for AtscSubject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Single => f.pad("one thread, one CPU"),
            Self::Placed => f.pad("partitioner's plan"),
            Self::Tuned => f.pad("tuned plan"),
            Self::GnuRadio { samples_per_symbol } => {
                f.pad(&format!("GNU Radio, {samples_per_symbol}/symbol"))
            }
        }
    }
}

/// One subject's figures.
#[derive(Clone, Debug, Serialize)]
pub struct AtscFigures {
    /// The subject.
    pub contender: AtscSubject,
    /// Million samples a second, by the clock.
    pub megasamples_per_s: Summary,
    /// Signal time over time by the clock.
    pub real_time: Summary,
    /// CPU seconds for a second of signal.
    pub cpu_s_per_signal_s: Summary,
    /// Its CPU time over that of our single thread in the same round.
    pub of_single: Summary,
    /// Packets of the last round.
    pub score: PacketScore,
}

/// A block's share of the CPU time of one thread.
#[derive(Clone, Debug, Serialize)]
pub struct BlockShare {
    /// The block.
    pub block: String,
    /// CPU seconds for a second of signal.
    pub cpu_s_per_signal_s: f64,
    /// Share of all blocks.
    pub share: f64,
}

/// All figures.
#[derive(Clone, Debug, Serialize)]
pub struct ReceiverFigures {
    /// The subjects, our single thread first.
    pub entries: Vec<AtscFigures>,
    /// The blocks of our single thread, in the order of the graph.
    pub stages: Vec<BlockShare>,
    /// Signals with echoes.
    pub echoes: Vec<Echoed>,
    /// The placed plan.
    pub placed: Plan,
}

/// What is measured once in each round.
#[derive(Clone, Copy, Debug)]
pub enum AtscCase {
    /// A receiver on the good signal.
    Clean(AtscSubject),
    /// Our single thread on a signal with echoes, by its place among them.
    Echoed(usize),
}

/// One run of a receiver.
#[derive(Clone, Debug)]
pub struct AtscRun {
    took: Took,
    /// The costs of our blocks.
    profile: Option<Profile>,
    score: PacketScore,
}

/// The measurement, with its signals written and a plan for all CPUs.
pub struct ReceiverBench<'p> {
    bench: &'p AtscBench,
    peer: Option<&'p mut GnuRadio>,
    input: PathBuf,
    output: PathBuf,
    ours: ReceiverGraph,
    single: Plan,
    placed: Plan,
    echoes: Vec<(Recording, ReceiverGraph)>,
}

impl<'p> ReceiverBench<'p> {
    /// Writes the signals into a folder, and makes a first run, whose profile the placement uses.
    ///
    /// # Errors
    /// [`AtscError`] when a file or our receiver breaks off.
    pub fn prepare(
        bench: &'p AtscBench,
        folder: &Path,
        peer: Option<&'p mut GnuRadio>,
    ) -> Result<Self, AtscError> {
        let (input, output) = (folder.join("signal.sc16"), folder.join("out.ts"));
        let recording = &bench.recording;
        recording.write(&input)?;
        let mut echoes = Vec::new();
        for (n, point) in bench.echoes.iter().enumerate() {
            let recording = Recording { impairments: point.impairments(), ..recording.clone() };
            let input = folder.join(format!("echoes-{n}.sc16"));
            recording.write(&input)?;
            let receiver = ReceiverGraph::new(&input, recording.rate_hz, &output)?;
            echoes.push((recording, receiver));
        }
        let ours = ReceiverGraph::new(&input, recording.rate_hz, &output)?;
        let single = ours.single(bench.cpus.iter().next().unwrap_or(0))?;
        let placed = ours.placed(&ours.run(&single)?.profile, &bench.cpus)?;
        Ok(Self { bench, peer, input, output, ours, single, placed, echoes })
    }

    /// Returns all cases, our single thread first.
    #[must_use]
    pub fn cases(&self) -> Vec<AtscCase> {
        let mut subjects = vec![AtscSubject::Single, AtscSubject::Placed];
        subjects.extend(self.bench.tuned.is_some().then_some(AtscSubject::Tuned));
        let settings = self.bench.samples_per_symbol.iter().filter(|_| self.peer.is_some());
        subjects.extend(
            settings.map(|&samples_per_symbol| AtscSubject::GnuRadio { samples_per_symbol }),
        );
        let echoes = (0..self.echoes.len()).map(AtscCase::Echoed);
        subjects.into_iter().map(AtscCase::Clean).chain(echoes).collect()
    }

    /// Returns the name of a case.
    #[must_use]
    pub fn name(&self, case: AtscCase) -> String {
        match case {
            AtscCase::Clean(subject) => subject.to_string(),
            AtscCase::Echoed(n) => self.bench.echoes[n].to_string(),
        }
    }

    /// Measures a case once.
    ///
    /// # Errors
    /// [`AtscError`] when a file or a receiver breaks off.
    pub fn measure(&mut self, case: AtscCase) -> Result<AtscRun, AtscError> {
        // The output of an earlier run must not count.
        let _ = std::fs::remove_file(&self.output);
        let (recording, receiver) = match case {
            AtscCase::Clean(_) => (&self.bench.recording, &self.ours),
            AtscCase::Echoed(n) => (&self.echoes[n].0, &self.echoes[n].1),
        };
        let (took, profile) = match (case, self.peer.as_deref_mut()) {
            (AtscCase::Clean(AtscSubject::GnuRadio { samples_per_symbol }), Some(peer)) => {
                let cpus: Vec<usize> = self.bench.cpus.iter().collect();
                let took = peer.ask(&Decode {
                    r#in: &self.input,
                    rate_hz: recording.rate_hz,
                    out: &self.output,
                    samples_per_symbol,
                    cpus: &cpus,
                })?;
                (took, None)
            }
            (case, _) => {
                let plan = match (case, &self.bench.tuned) {
                    (AtscCase::Clean(AtscSubject::Placed), _) => &self.placed,
                    (AtscCase::Clean(AtscSubject::Tuned), Some(tuned)) => tuned,
                    _ => &self.single,
                };
                let run = receiver.run(plan)?;
                (Took { wall_s: run.wall_s, cpu_s: run.cpu_s }, Some(run.profile))
            }
        };
        let score = PacketScore::of_file(&self.output, recording, SETTLE_S, SPARE_S)?;
        Ok(AtscRun { took, profile, score })
    }

    /// Sums up what the rounds gave for these cases.
    #[must_use]
    pub fn figures(&self, cases: &[AtscCase], runs: &[CaseRuns<AtscRun>]) -> ReceiverFigures {
        let all: Vec<_> = cases.iter().zip(runs).collect();
        let Recording { seconds, .. } = self.bench.recording;
        let entries = all.iter().filter_map(|(case, runs)| match case {
            AtscCase::Clean(subject) => self.entry(*subject, runs, all[0].1),
            AtscCase::Echoed(_) => None,
        });
        let echoes = all.iter().filter_map(|(case, runs)| match case {
            AtscCase::Echoed(n) => echoed(self.bench.echoes[*n], runs, all[0].1, seconds),
            AtscCase::Clean(_) => None,
        });
        ReceiverFigures {
            entries: entries.collect(),
            stages: stages(&profiles(all[0].1), seconds),
            echoes: echoes.collect(),
            placed: self.placed.clone(),
        }
    }

    fn entry(
        &self,
        contender: AtscSubject,
        runs: &CaseRuns<AtscRun>,
        single: &CaseRuns<AtscRun>,
    ) -> Option<AtscFigures> {
        let (seconds, samples) = (self.bench.recording.seconds, self.bench.recording.samples());
        Some(AtscFigures {
            contender,
            megasamples_per_s: runs.summary(|run| Some(samples as f64 / run.took.wall_s / 1e6))?,
            real_time: runs.summary(|run| Some(seconds / run.took.wall_s))?,
            cpu_s_per_signal_s: runs.summary(|run| Some(run.took.cpu_s / seconds))?,
            of_single: runs.ratios(single, AtscRun::cpu_s, AtscRun::cpu_s)?,
            score: runs.outcomes().last()?.score,
        })
    }
}

impl AtscRun {
    fn cpu_s(&self) -> f64 {
        self.took.cpu_s
    }
}

fn echoed(
    signal: Point,
    runs: &CaseRuns<AtscRun>,
    clean: &CaseRuns<AtscRun>,
    seconds: f64,
) -> Option<Echoed> {
    let stages = stages(&profiles(runs), seconds);
    Some(Echoed {
        signal,
        real_time: runs.summary(|run| Some(seconds / run.took.wall_s))?,
        cpu_s_per_signal_s: runs.summary(|run| Some(run.took.cpu_s / seconds))?,
        of_clean: runs.ratios(clean, AtscRun::cpu_s, AtscRun::cpu_s)?,
        equalizer_share: stages.iter().find(|stage| stage.block == EQUALIZER)?.share,
        score: runs.outcomes().last()?.score,
    })
}

fn profiles(runs: &CaseRuns<AtscRun>) -> Vec<&Profile> {
    runs.outcomes().filter_map(|run| run.profile.as_ref()).collect()
}

/// The time of each block, all runs together.
fn stages(profiles: &[&Profile], seconds: f64) -> Vec<BlockShare> {
    let Some(first) = profiles.first() else { return Vec::new() };
    let busy = |name: &str| -> f64 {
        let blocks = profiles.iter().filter_map(|profile| profile.block(name));
        blocks.map(|block| block.busy_ns as f64 * 1e-9).sum()
    };
    let all: f64 = first.blocks.iter().map(|block| busy(&block.name)).sum();
    let signal_s = seconds * profiles.len() as f64;
    let stage = |name: &str| BlockShare {
        block: name.to_owned(),
        cpu_s_per_signal_s: busy(name) / signal_s,
        share: busy(name) / all.max(f64::MIN_POSITIVE),
    };
    first.blocks.iter().map(|block| stage(&block.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_atsc::tx::Impairments;

    #[test]
    fn our_plans_decode_the_same_and_the_shares_are_of_the_whole() {
        let recording = Recording {
            rate_hz: 6.25e6,
            seconds: 0.75,
            seed: 1,
            impairments: Impairments::default(),
        };
        let cpus = millstream_cpu::thread::allowed_cpus().unwrap();
        let samples_per_symbol = vec![1.5];
        let echoes = vec![Point::Echo { delay_us: 5.6, level_db: -10.0 }];
        let plan = AtscBench { recording, cpus, tuned: None, samples_per_symbol, echoes };
        let folder = tempfile::tempdir().unwrap();
        let mut bench = ReceiverBench::prepare(&plan, folder.path(), None).unwrap();
        let cases = bench.cases();
        let runs = cases.iter().map(|case| CaseRuns {
            runs: (0..2).map(|round| (round, bench.measure(*case).unwrap())).collect(),
            refused: None,
        });
        let runs: Vec<_> = runs.collect();
        let outcome = bench.figures(&cases, &runs);
        assert_eq!(outcome.entries.len(), 2);
        for entry in &outcome.entries {
            assert_eq!(entry.score.error_rate(), 0.0, "{entry:?}");
            assert_eq!(entry.cpu_s_per_signal_s.count, 2);
        }
        assert_eq!(outcome.entries[0].of_single.median, 1.0);
        let shares: f64 = outcome.stages.iter().map(|stage| stage.share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{:?}", outcome.stages);
        let [echoed] = &outcome.echoes[..] else { panic!("{:?}", outcome.echoes) };
        assert_eq!((echoed.score.error_rate(), echoed.of_clean.count), (0.0, 2), "{echoed:?}");
        // An echo can only cost: the equaliser has more work, and the other blocks as much.
        let equalizer = outcome.stages.iter().find(|stage| stage.block == EQUALIZER).unwrap();
        assert!(echoed.equalizer_share > equalizer.share, "{echoed:?} {equalizer:?}");
    }
}
