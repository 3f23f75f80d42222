//! Receivers on every signal of a grid.

use super::gnuradio::Peer;
use super::ours::Receiver;
use super::{AtscError, Line, Point, Recording, Score, Store};
use millstream_sys::CpuSet;
use std::path::Path;

/// Our receiver's name in results.
pub const OURS: &str = "millstream";

/// Packets that count are those sent from here on, seconds after the start, and not within the last
/// part, which receivers may hold back.
pub const SETTLE_S: f64 = 0.5;
/// See [`SETTLE_S`].
pub const SPARE_S: f64 = 0.1;

/// What to try.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The signals.
    pub points: Vec<Point>,
    /// Complex samples per second.
    pub rate_hz: f64,
    /// Length of each.
    pub seconds: f64,
    /// Of packets and noise.
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

/// Tries what is not in the store yet. `progress` is told before each signal: how many are done,
/// and what comes; it says whether to go on.
///
/// # Errors
/// [`AtscError`] when a file or a receiver breaks off.
pub fn sweep(
    sweep: &Sweep,
    store: &mut Store,
    folder: &Path,
    mut peer: Option<&mut Peer>,
    mut progress: impl FnMut(usize, &Point) -> bool,
) -> Result<(), AtscError> {
    let mut receivers = vec![(OURS.to_owned(), None)];
    if peer.is_some() {
        let settings = sweep.samples_per_symbol.iter();
        receivers.extend(settings.map(|setting| (peer_name(*setting), Some(*setting))));
    }
    let (input, output) = (folder.join("signal.sc16"), folder.join("out.ts"));
    let cpus: Vec<usize> = sweep.cpus.iter().collect();
    for (done, point) in sweep.points.iter().enumerate() {
        let Sweep { rate_hz, seconds, seed, .. } = *sweep;
        let missing = |name: &str| store.find(point, name, seconds, seed).is_none();
        let open: Vec<_> = receivers.iter().filter(|(name, _)| missing(name)).collect();
        if open.is_empty() {
            continue;
        }
        if !progress(done, point) {
            return Ok(());
        }
        let recording = Recording { rate_hz, seconds, seed, impairments: point.impairments() };
        recording.write(&input)?;
        for (name, setting) in open {
            // What another run wrote is not this one's.
            let _ = std::fs::remove_file(&output);
            match (setting, peer.as_deref_mut()) {
                (Some(setting), Some(peer)) => {
                    peer.receive(&input, rate_hz, &output, *setting, &cpus)?;
                }
                _ => {
                    let ours = Receiver::new(&input, rate_hz, &output)?;
                    ours.run(&ours.single(cpus.first().copied().unwrap_or(0))?)?;
                }
            }
            let score = Score::of_file(&output, &recording, SETTLE_S, SPARE_S)?;
            store.add(Line { point: *point, receiver: name.clone(), seconds, seed, score })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_not_tried_again_and_noise_makes_errors() {
        let plan = Sweep {
            points: vec![Point::noise(25.0), Point::noise(8.0)],
            rate_hz: 6.25e6,
            seconds: 0.7,
            seed: 4,
            samples_per_symbol: Vec::new(),
            cpus: millstream_sys::thread::allowed_cpus().unwrap(),
        };
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(None, |_| false).unwrap();
        let mut told = Vec::new();
        for stop_after in [1, 9, 9] {
            sweep(&plan, &mut store, folder.path(), None, |done, _| {
                told.push(done);
                told.len() <= stop_after
            })
            .unwrap();
        }
        assert_eq!(told, [0, 1, 1], "stopped before the second, which is tried then, once");
        let rate = |n: usize| store.lines[n].score.error_rate();
        assert_eq!((store.lines.len(), rate(0), rate(1)), (2, 0.0, 1.0));
    }
}
