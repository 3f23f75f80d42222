//! The transmitter.

use super::cost::three;
use crate::experiment::report;
use crate::live::Steps;
use crate::numbers::{rate, seconds, whole};
use crate::output::Report;
use crate::table::Table;
use millstream_lab::atsc::Emission;
use serde::Serialize;

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

    /// Number of times to make the measurement. Each round measures every rate once.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u64>(1..=1000))]
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
    let text = Table::of(&found)
        .right("rate\nMS/s", |emission| format!("{:.2}", emission.rate_hz / 1e6))
        .right("× real time\nmin/median/max", |emission| three(emission.real_time, 2))
        .right("CPU s/signal s\nmin/median/max", |emission| three(emission.cpu_s_per_signal_s, 3))
        .right("own MER\ndB", |emission| format!("{:.1}", emission.mer_db))
        .right("below mask\ndB, least", |emission| {
            emission.mask_room_db.map_or("-".to_owned(), |room| format!("{room:.1}"))
        })
        .text();
    report(text, &Results { signal_s: args.duration, rates: &found }, None)
}

#[derive(Serialize)]
struct Results<'a> {
    signal_s: f64,
    rates: &'a [Emission],
}
