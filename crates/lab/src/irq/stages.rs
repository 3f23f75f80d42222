//! The latency of a block, split into parts.

use super::Interrupts;
use super::clock::Calibration;
use millstream_measure::Observed;
use millstream_measure::record::Stage;
use millstream_stats::Histogram;

/// The times of a block: the device's in ticks, the host's in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stamps {
    pub edge_ticks: u64,
    pub converted_ticks: u64,
    /// The driver's callback for the first of two interrupts.
    pub first_callback_ns: u64,
    pub raised_ticks: u64,
    pub callback_ns: u64,
    pub wake_ns: u64,
    pub read_ns: u64,
    pub truth_ns: u64,
}

/// Names of the parts with one interrupt.
const ONE: [&str; 4] =
    ["edge to interrupt", "interrupt to driver", "driver to user's wake-up", "wake-up to read"];
/// Names of the parts with two interrupts.
const TWO: [&str; 6] = [
    "edge to interrupt",
    "interrupt to driver",
    "driver to second interrupt",
    "second interrupt to driver",
    "driver to user's wake-up",
    "wake-up to read",
];

/// All blocks together.
#[derive(Debug, Clone)]
pub(super) struct Analysis {
    /// From the edge to the read.
    pub observed: Observed,
    pub stages: Vec<Stage>,
    /// Sum of all latencies, nanoseconds.
    pub total_ns: u64,
    /// Negative parts: the clocks are not related well enough.
    pub negative: u64,
    /// The largest difference between an edge's time by calibration and its true one, nanoseconds.
    pub clock_error_ns: u64,
}

/// Splits all blocks into parts.
pub(super) fn analyse(
    stamps: &[Stamps],
    interrupts: Interrupts,
    calibration: &Calibration,
) -> Analysis {
    let names: &[&str] = match interrupts {
        Interrupts::One => &ONE,
        Interrupts::Two => &TWO,
    };
    let all = || stamps.iter().map(|stamp| times(stamp, interrupts, calibration));
    let error = |(times, stamp): (Vec<i64>, &Stamps)| times[0].abs_diff(stamp.truth_ns as i64);
    let clock_error_ns = all().zip(stamps).map(error).max().unwrap_or(0);
    Analysis { clock_error_ns, ..sum_up(names, all()) }
}

/// Sums up the parts `names`: each block is the host's times at its stations, from the edge to the
/// read, nanoseconds.
pub(super) fn sum_up(names: &[&str], blocks: impl Iterator<Item = Vec<i64>>) -> Analysis {
    let mut parts = vec![(Histogram::default(), 0i64); names.len()];
    let mut observed = Observed::default();
    let (mut total, mut negative, mut begin) = (0i64, 0, None);
    for times in blocks {
        for (part, pair) in parts.iter_mut().zip(times.windows(2)) {
            let length = pair[1] - pair[0];
            negative += u64::from(length < 0);
            part.0.record(length.max(0) as u64);
            part.1 += length;
        }
        let read = times[names.len()];
        let whole = read - times[0];
        total += whole;
        let since = read - *begin.get_or_insert(read);
        observed.record(whole.max(0) as u64, since.max(0) as u64);
    }
    let stage = |(name, (histogram, total)): (&&str, (Histogram, i64))| Stage {
        name: (*name).to_owned(),
        histogram,
        total_ns: total.max(0) as u64,
    };
    Analysis {
        observed,
        stages: names.iter().zip(parts).map(stage).collect(),
        total_ns: total.max(0) as u64,
        negative,
        clock_error_ns: 0,
    }
}

/// The stations of a block in the host's time, nanoseconds.
fn times(stamps: &Stamps, interrupts: Interrupts, calibration: &Calibration) -> Vec<i64> {
    let device = |ticks| calibration.host_ns(ticks);
    let host = |ns: u64| ns as i64;
    let mut times = vec![device(stamps.edge_ticks)];
    if interrupts == Interrupts::Two {
        times.extend([device(stamps.converted_ticks), host(stamps.first_callback_ns)]);
    }
    times.push(device(stamps.raised_ticks));
    times.extend([stamps.callback_ns, stamps.wake_ns, stamps.read_ns].map(host));
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::irq::clock::Exchange;

    #[test]
    fn parts_sum_to_the_whole_and_a_bad_clock_shows() {
        // A tick is a nanosecond, and the device's clock is 1000 ahead.
        let at = |ns: u64| Exchange { asked_ns: ns, ticks: ns + 1000, answered_ns: ns };
        let calibration = Calibration::new(&[at(0)], &[at(1_000_000)]).unwrap();
        let stamps = Stamps {
            edge_ticks: 6000,
            converted_ticks: 6010,
            first_callback_ns: 5200,
            raised_ticks: 6300,
            callback_ns: 5500,
            wake_ns: 5700,
            read_ns: 5750,
            truth_ns: 5003,
        };
        for (interrupts, lengths) in [
            (Interrupts::One, &[300, 200, 200, 50][..]),
            (Interrupts::Two, &[10, 190, 100, 200, 200, 50]),
        ] {
            let found = analyse(&[stamps; 3], interrupts, &calibration);
            let sums: Vec<_> = found.stages.iter().map(|stage| stage.total_ns).collect();
            let expected: Vec<u64> = lengths.iter().map(|length| 3 * length).collect();
            assert_eq!(sums, expected);
            assert_eq!(sums.iter().sum::<u64>(), found.total_ns);
            assert_eq!((found.total_ns, found.negative, found.clock_error_ns), (2250, 0, 3));
            assert_eq!(found.observed.histogram.max_ns(), 750);
        }
        let early = Stamps { callback_ns: 5299, ..stamps };
        assert_eq!(analyse(&[early], Interrupts::One, &calibration).negative, 1);
    }
}
