//! `millstream-lab latency radio --stations`: where the time of a turnaround passes.

use crate::child_radio::ChildRadio;
use crate::interrupt;
use crate::table::Table;
use anyhow::ensure;
use millstream_lab::stations::{STATIONS, StationTrace};
use millstream_lab::turnaround::Answer;
use millstream_stats::median;

/// Tries that are recorded; the kernel's ring holds them.
const TRIES: usize = 400;
/// The fewest that have to be found in the trace.
const TRIES_MIN: usize = 50;

crate::results! {
    /// Where the time of a turnaround passes.
    pub struct StationMedians {
        /// Tries that were found in the kernel's trace.
        tries: usize,
        /// Each station.
        stations: Vec<StationMedian>,
    }

    /// A station.
    pub struct StationMedian {
        /// What happens there.
        station: &'static str,
        /// The median of its time, microseconds.
        median_us: f64,
    }
}

/// Makes tries of its own with the trace on, and returns their stations in words and as figures.
/// The trace makes each station some microseconds longer.
pub fn measure(
    radio: &ChildRadio,
    mut attempt: impl FnMut() -> anyhow::Result<Answer>,
) -> anyhow::Result<(String, StationMedians)> {
    let host = rustix::thread::gettid().as_raw_nonzero().get();
    let trace = StationTrace::start(radio.device_thread()?, host)?;
    for _ in 0..TRIES {
        interrupt::check(super::UNTIL)?;
        attempt()?;
    }
    let tries = trace.stop()?;
    ensure!(
        tries.len() >= TRIES_MIN,
        "the kernel's trace shows the wake-ups of only {} of {TRIES} tries: other programs fill \
         its buffer; stop them, and measure again",
        tries.len()
    );
    let of = |(at, station): (usize, &&'static str)| {
        let times: Vec<f64> = tries.iter().map(|one| one[at]).collect();
        StationMedian { station, median_us: median(&times) }
    };
    let stations: Vec<_> = STATIONS.iter().enumerate().map(of).collect();
    let sum_us: f64 = stations.iter().map(|station| station.median_us).sum();
    let table = Table::of(&stations)
        .left("station", |station| station.station)
        .right("median", |station| format!("{:.1} µs", station.median_us));
    let text = format!(
        "\n{}sum of the medians: {sum_us:.1} µs. The rest is before the first wake-up (the radio's \
         timer) and\nafter the last one (the radio reads the packet). {} tries, with the kernel's \
         trace on\n",
        table.text(),
        tries.len()
    );
    Ok((text, StationMedians { tries: tries.len(), stations }))
}
