//! The cost of the receiver, in interleaved rounds with GNU Radio's, and the extra cost of echoes.

use super::gnuradio::{GnuRadioReceiver, Took};
use super::ours::{ReceiverGraph, ReceiverRun};
use super::{AtscError, Ensemble, PacketScore, Point, Recording, SETTLE_S, SPARE_S};
use millstream_cpu::CpuSet;
use millstream_flow::{Plan, Profile};
use millstream_stats::Summary;
use serde::Serialize;
use std::path::Path;

/// The equaliser's name in the graph.
const EQUALIZER: &str = "equalizer";

/// The measurements and their repetitions.
#[derive(Clone, Debug)]
pub struct AtscBench {
    /// The recording; it is written into the folder.
    pub recording: Recording,
    /// Rounds.
    pub repeats: usize,
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

impl AtscBench {
    /// The measured subjects, our single thread first.
    fn contenders(&self, with_peer: bool) -> Vec<AtscSubject> {
        let mut contenders = vec![AtscSubject::Single, AtscSubject::Placed];
        contenders.extend(self.tuned.is_some().then_some(AtscSubject::Tuned));
        let settings = self.samples_per_symbol.iter().filter(|_| with_peer);
        contenders.extend(
            settings.map(|&samples_per_symbol| AtscSubject::GnuRadio { samples_per_symbol }),
        );
        contenders
    }

    /// Returns the number of progress calls of [`bench()`].
    pub fn steps(&self, with_peer: bool) -> usize {
        let signals = 1 + self.echoes.len();
        let turn = self.contenders(with_peer).len() + self.echoes.len();
        signals + 1 + self.repeats * turn
    }
}

/// Measures all subjects in interleaved rounds, after a warm-up run whose profile the placement
/// uses. Calls `progress` before each run.
///
/// # Errors
/// [`AtscError`] when a file or a receiver breaks off.
pub fn bench(
    bench: &AtscBench,
    folder: &Path,
    mut peer: Option<&mut GnuRadioReceiver>,
    mut progress: impl FnMut(String),
) -> Result<ReceiverFigures, AtscError> {
    let (input, output) = (folder.join("signal.sc16"), folder.join("out.ts"));
    let recording = &bench.recording;
    progress(format!("writing {} s of signal", recording.seconds));
    recording.write(&input)?;
    let mut echoes = Vec::new();
    for (n, point) in bench.echoes.iter().enumerate() {
        progress(format!("writing {} s of signal: {point}", recording.seconds));
        let recording = Recording { impairments: point.impairments(), ..recording.clone() };
        let input = folder.join(format!("echoes-{n}.sc16"));
        recording.write(&input)?;
        let receiver = ReceiverGraph::new(&input, recording.rate_hz, &output)?;
        echoes.push((*point, recording, receiver, Vec::new()));
    }
    let ours = ReceiverGraph::new(&input, recording.rate_hz, &output)?;
    let cpus: Vec<usize> = bench.cpus.iter().collect();
    let single = ours.single(cpus.first().copied().unwrap_or(0))?;
    progress("warming up".to_owned());
    let placed = ours.placed(&ours.run(&single)?.profile, &bench.cpus)?;
    let contenders = bench.contenders(peer.is_some());
    let mut runs: Vec<Vec<(Took, PacketScore)>> = vec![Vec::new(); contenders.len()];
    let mut profiles = Vec::new();
    for turn in 1..=bench.repeats {
        for (contender, runs) in contenders.iter().zip(&mut runs) {
            progress(format!("turn {turn} of {}: {contender}", bench.repeats));
            let plan = match contender {
                AtscSubject::Single => Some(&single),
                AtscSubject::Placed => Some(&placed),
                AtscSubject::Tuned => bench.tuned.as_ref(),
                AtscSubject::GnuRadio { .. } => None,
            };
            // The output of an earlier run must not count.
            let _ = std::fs::remove_file(&output);
            let took = match (contender, plan, peer.as_deref_mut()) {
                (AtscSubject::GnuRadio { samples_per_symbol }, _, Some(peer)) => {
                    peer.receive(&input, recording.rate_hz, &output, *samples_per_symbol, &cpus)?
                }
                (contender, Some(plan), _) => {
                    let run = ours.run(plan)?;
                    if *contender == AtscSubject::Single {
                        profiles.push(run.profile);
                    }
                    Took { wall_s: run.wall_s, cpu_s: run.cpu_s }
                }
                _ => continue,
            };
            runs.push((took, PacketScore::of_file(&output, recording, SETTLE_S, SPARE_S)?));
        }
        for (point, recording, receiver, runs) in &mut echoes {
            progress(format!("turn {turn} of {}: {point}", bench.repeats));
            let _ = std::fs::remove_file(&output);
            let run = receiver.run(&single)?;
            runs.push((run, PacketScore::of_file(&output, recording, SETTLE_S, SPARE_S)?));
        }
    }
    let echoes = echoes.iter();
    let echoes = echoes
        .filter_map(|(point, recording, _, own)| echoed(*point, own, &runs[0], recording.seconds));
    let echoes = echoes.collect();
    let all = contenders.iter().zip(&runs);
    let entries = all.filter_map(|(contender, own)| entry(*contender, own, &runs[0], recording));
    let stages = stages(&profiles, recording.seconds);
    Ok(ReceiverFigures { entries: entries.collect(), stages, echoes, placed })
}

fn entry(
    contender: AtscSubject,
    runs: &[(Took, PacketScore)],
    single: &[(Took, PacketScore)],
    recording: &Recording,
) -> Option<AtscFigures> {
    let seconds = recording.seconds;
    let of = |figure: &dyn Fn(&Took) -> f64| {
        Summary::of(&runs.iter().map(|(took, _)| figure(took)).collect::<Vec<_>>())
    };
    let ratios = runs.iter().zip(single).map(|(own, single)| own.0.cpu_s / single.0.cpu_s);
    Some(AtscFigures {
        contender,
        megasamples_per_s: of(&|took| recording.samples() as f64 / took.wall_s / 1e6)?,
        real_time: of(&|took| seconds / took.wall_s)?,
        cpu_s_per_signal_s: of(&|took| took.cpu_s / seconds)?,
        of_single: Summary::of(&ratios.collect::<Vec<_>>())?,
        score: runs.last()?.1,
    })
}

fn echoed(
    signal: Point,
    runs: &[(ReceiverRun, PacketScore)],
    clean: &[(Took, PacketScore)],
    seconds: f64,
) -> Option<Echoed> {
    let of = |figure: &dyn Fn(&ReceiverRun) -> f64| {
        Summary::of(&runs.iter().map(|(run, _)| figure(run)).collect::<Vec<_>>())
    };
    let ratios = runs.iter().zip(clean).map(|(own, clean)| own.0.cpu_s / clean.0.cpu_s);
    let profiles: Vec<Profile> = runs.iter().map(|(run, _)| run.profile.clone()).collect();
    let stages = stages(&profiles, seconds);
    Some(Echoed {
        signal,
        real_time: of(&|run| seconds / run.wall_s)?,
        cpu_s_per_signal_s: of(&|run| run.cpu_s / seconds)?,
        of_clean: Summary::of(&ratios.collect::<Vec<_>>())?,
        equalizer_share: stages.iter().find(|stage| stage.block == EQUALIZER)?.share,
        score: runs.last()?.1,
    })
}

/// The time of each block, all runs together.
fn stages(profiles: &[Profile], seconds: f64) -> Vec<BlockShare> {
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
        let plan =
            AtscBench { recording, repeats: 2, cpus, tuned: None, samples_per_symbol, echoes };
        let folder = tempfile::tempdir().unwrap();
        let mut told = 0;
        let outcome = bench(&plan, folder.path(), None, |_| told += 1).unwrap();
        assert_eq!(told, plan.steps(false));
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
