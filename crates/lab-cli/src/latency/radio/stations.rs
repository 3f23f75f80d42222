//! `millstream-lab latency radio --stations`: where the time of a turnaround passes.

use crate::child_radio::ChildRadio;
use crate::interrupt;
use crate::output::Report;
use crate::table::Table;
use anyhow::ensure;
use millstream_lab::stations::{STATIONS, StationTrace};
use millstream_lab::turnaround::Answer;
use millstream_stats::Summary;
use serde::Serialize;

/// Tries that are recorded; the kernel's ring holds them.
const TRIES: usize = 400;
/// The fewest that have to be found in the trace.
const TRIES_MIN: usize = 50;

/// Makes tries of its own with the trace on, and adds their stations to the report. The trace makes
/// each station some microseconds longer.
pub fn add(
    report: &mut Report,
    radio: &ChildRadio,
    mut attempt: impl FnMut() -> anyhow::Result<Answer>,
) -> anyhow::Result<()> {
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
    let of = |at: usize| {
        let times: Vec<f64> = tries.iter().map(|one| one[at]).collect();
        Summary::of(&times).map_or(0.0, |times| times.median)
    };
    let rows: Vec<(&'static str, f64)> =
        STATIONS.iter().enumerate().map(|(at, name)| (*name, of(at))).collect();
    let sum_us: f64 = rows.iter().map(|row| row.1).sum();
    let table = Table::of(&rows)
        .left("station", |row| row.0.to_owned())
        .right("median", |row| format!("{:.1} µs", row.1));
    report.text += &format!(
        "\n{}sum of the medians: {sum_us:.1} µs. The rest is before the first wake-up (the radio's \
         timer) and\nafter the last one (the radio reads the packet). {} tries, with the kernel's \
         trace on\n",
        table.text(),
        tries.len()
    );
    let station = |&(station, median_us): &(&'static str, f64)| Station { station, median_us };
    let stations = rows.iter().map(station).collect();
    let results = Stations { tries: tries.len(), stations };
    report.results["stations"] = serde_json::to_value(results)?;
    Ok(())
}

#[derive(Serialize)]
struct Stations {
    tries: usize,
    stations: Vec<Station>,
}

#[derive(Serialize)]
struct Station {
    station: &'static str,
    median_us: f64,
}
