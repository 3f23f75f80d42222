//! `millstream-lab bench convert`: the rate of sample conversion.

use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::numbers::{seconds, whole};
use crate::output::{Report, percent};
use crate::table::Table;
use millstream_lab::convert::{ConvertRow, ConvertSpec, FormatPair, measure, uhd};
use millstream_radio::convert::ConvertForm;
use millstream_stats::Summary;
use std::path::PathBuf;
use std::time::Duration;

/// Measures the speed of sample format conversions, in million samples per second.
///
/// For comparison it measures a plain copy of as many bytes as the conversion reads and writes. If
/// UHD's `converter_benchmark` is installed, it runs that, too. Results are medians of several
/// rounds. All conversions take about a minute and a half, the last example takes some seconds.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream-lab bench convert
  millstream-lab bench convert --pair 'wire:sc16>fc32,fc32>wire:sc16' --repeat 15
  millstream-lab bench convert --nsamps 362 --no-uhd")]
pub struct Args {
    /// Conversions to measure, for example wire:sc16>fc32 or fc32>wire:sc16. The default is all.
    #[arg(long, value_name = "PAIR,…", value_delimiter = ',')]
    pair: Vec<FormatPair>,

    /// Samples in one call. The default sizes are a packet, a level-2 cache, and more than any
    /// cache.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "362,10000,4000000",
          value_parser = whole::<u64>(1..=1 << 26))]
    nsamps: Vec<u64>,

    /// How often to repeat all measurements.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = whole::<u64>(1..=10_000))]
    repeat: u64,

    /// Length of each measurement.
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = seconds)]
    duration: f64,

    /// Path of UHD's converter_benchmark. By default the command looks at the usual paths.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "no_uhd")]
    uhd_program: Option<PathBuf>,

    /// Do not measure UHD.
    #[arg(long)]
    no_uhd: bool,
}

crate::results! {
    /// The rates of conversions.
    struct ConvertResults<'a> {
        /// Rounds of each measurement.
        repeats: usize,
        /// Each pair of formats at each size.
        rows: &'a [ConvertRow],
        /// The form that streams use on this processor.
        chosen: &'a str,
    }
}

/// Measures; prints a table for each size.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let given = args.uhd_program.as_deref().map(uhd::Tool::at);
    let mut spec = ConvertSpec {
        repeats: args.repeat as usize,
        time: Duration::from_secs_f64(args.duration.min(1e3)),
        uhd: if args.no_uhd { None } else { given.or_else(uhd::Tool::find) },
    };
    let pairs = if args.pair.is_empty() { FormatPair::all() } else { args.pair };
    let sizes: Vec<_> = args.nsamps.iter().map(|samples| *samples as usize).collect();
    let cases = sizes.iter().flat_map(|samples| pairs.iter().map(|pair| (*samples, *pair)));
    let cases: Vec<_> = cases.collect();
    let rows: Vec<_> = in_rounds(&mut spec, &cases, 1).whole()?.outcomes().collect();
    let mut text: String = sizes.iter().map(|samples| table(*samples, &rows)).collect();
    if spec.uhd.is_none() && !args.no_uhd {
        text += "UHD's converter_benchmark is not installed (Debian package uhd-host)\n";
    }
    let chosen = ConvertForm::best().name();
    text += &format!("streams on this processor use the form {chosen}\n");
    Ok(Report::of(text, &ConvertResults { repeats: spec.repeats, rows: &rows, chosen }))
}

/// A step has all rounds of a row: the buffers of all rows would not fit into memory.
impl Experiment for ConvertSpec {
    type Case = (usize, FormatPair);
    type Outcome = ConvertRow;

    fn name(&self, (samples, pair): &Self::Case) -> String {
        format!("{samples} samples, {pair}")
    }

    fn step(&mut self, (samples, pair): &Self::Case, _: usize) -> Result<ConvertRow, Unmeasured> {
        Ok(measure(self, *pair, *samples)?)
    }
}

/// Million samples per second at one size.
fn table(samples: usize, rows: &[ConvertRow]) -> String {
    let rows: Vec<_> = rows.iter().filter(|row| row.samples == samples).collect();
    let whole = |rate: Summary| format!("{:.0}", rate.median);
    let fastest = |row: &ConvertRow| row.uhd.iter().map(|rate| rate.msps.median).reduce(f64::max);
    let first = format!("{samples} samples, MS/s");
    let mut table = Table::of(rows.iter().copied()).left(&first, |row| format!("  {}", row.pair));
    for (at, form) in rows.first().map_or(&[][..], |row| &row.forms).iter().enumerate() {
        table = table.right(form.form, |row| {
            row.forms.get(at).map_or(String::new(), |form| whole(form.msps))
        });
    }
    table
        .right("copy", |row| whole(row.copy_msps))
        .right("of copy", |row| percent(row.share_of_copy))
        .right("UHD", |row| fastest(row).map_or(String::new(), |msps| format!("{msps:.0}")))
        .right("of UHD", |row| {
            row.ratio_to_uhd.map_or(String::new(), |ratio| format!("{ratio:.2}x"))
        })
        .text()
}
