//! The transmitter.

use super::cost::three;
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::numbers::{rate, seconds, whole};
use crate::output::Report;
use crate::table::Table;
use millstream_lab::atsc::Emission;

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

crate::results! {
    /// With `tx`: the cost of the transmitter, and the quality of its signal.
    struct EmissionResults<'a> {
        /// Length of the signal, seconds.
        signal_s: f64,
        /// Each sample rate.
        rates: &'a [Emission],
    }
}

/// Measures; prints a table.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let rates = args.rate.clone();
    let (signal_s, mut transmitter) = (args.duration, args);
    let found: Vec<_> = in_rounds(&mut transmitter, &rates, 1).whole()?.outcomes().collect();
    let text = Table::of(&found)
        .right("rate\nMS/s", |emission| format!("{:.2}", emission.rate_hz / 1e6))
        .right("× real time\nmin/median/max", |emission| three(emission.real_time, 2))
        .right("CPU s/signal s\nmin/median/max", |emission| three(emission.cpu_s_per_signal_s, 3))
        .right("own MER\ndB", |emission| format!("{:.1}", emission.mer_db))
        .right("below mask\ndB, least", |emission| {
            emission.mask_room_db.map_or("-".to_owned(), |room| format!("{room:.1}"))
        })
        .text();
    Ok(Report::of(text, &EmissionResults { signal_s, rates: &found }))
}

/// The measurement of the transmitter, all rounds of a rate in one step.
impl Experiment for Args {
    type Case = f64;
    type Outcome = Emission;

    fn name(&self, rate_hz: &f64) -> String {
        format!("making signal at {} MS/s", rate_hz / 1e6)
    }

    fn step(&mut self, rate_hz: &f64, _: usize) -> Result<Emission, Unmeasured> {
        Ok(Emission::of(*rate_hz, self.duration, self.repeat as usize)?)
    }
}
