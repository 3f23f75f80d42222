//! The transmitter.

use crate::live::Steps;
use crate::numbers::{rate, seconds};
use crate::output::Report;
use millstream_lab::atsc::Emission;
use millstream_measure::Summary;
use serde_json::json;
use std::fmt::Write;

/// Measures the CPU time and the signal quality of the ATSC transmitter.
///
/// One thread makes the signal of random packets. To measure the quality of the symbols, the
/// command receives them with the standard's filter at four times the transmitter's length. It
/// compares the spectrum with the mask of 47 CFR 73.622(h), as far as the sample rate shows it (25
/// MS/s: to 9 MHz beyond the channel).
#[derive(clap::Args)]
pub struct Args {
    /// Sample rates to measure at, in Hz.
    #[arg(long, value_name = "HZ,…", value_delimiter = ',', default_value = "6.25e6,12.5e6,25e6",
          value_parser = rate)]
    rate: Vec<f64>,

    /// Length of the signal.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    duration: f64,

    /// Number of rounds. Each round measures every rate once.
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeat: u64,
}

/// Measures; prints a table.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let mut steps = Steps::new(args.rate.len());
    let of = |rate: &f64| {
        steps.next(|| format!("making signal at {} MS/s", rate / 1e6));
        Emission::of(*rate, args.duration, args.repeat as usize)
    };
    let found: Vec<Emission> = args.rate.iter().map(of).collect::<Result<_, _>>()?;
    steps.end();
    let mut text = format!(
        "{:>8}{:>22}{:>22}{:>12}{:>14}\n{:>8}{:>22}{:>22}{:>12}{:>14}\n",
        "rate",
        "× real time",
        "CPU s/signal s",
        "own MER",
        "below mask",
        "MS/s",
        "min/median/max",
        "min/median/max",
        "dB",
        "dB, least"
    );
    let three = |Summary { min, median, max, .. }: Summary, digits: usize| {
        format!("{min:.digits$}/{median:.digits$}/{max:.digits$}")
    };
    for emission in &found {
        let _ = writeln!(
            text,
            "{:>8.2}{:>22}{:>22}{:>12.1}{:>14}",
            emission.rate_hz / 1e6,
            three(emission.real_time, 2),
            three(emission.cpu_s_per_signal_s, 3),
            emission.mer_db,
            emission.mask_room_db.map_or("-".to_owned(), |room| format!("{room:.1}"))
        );
    }
    Ok(Report::done(text, json!({ "signal_s": args.duration, "rates": found })))
}
