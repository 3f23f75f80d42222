//! `millstream-lab bench convert`: the rate of sample conversion.

use crate::experiment::report;
use crate::live::Steps;
use crate::numbers::{seconds, whole};
use crate::output::{Report, percent};
use crate::table::Table;
use millstream_lab::convert::{ConvertRow, ConvertSpec, FormatPair, measure, uhd};
use millstream_radio::convert::ConvertForm;
use millstream_stats::Summary;
use serde::Serialize;
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

/// Measures; prints a table for each size.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let given = args.uhd_program.as_deref().map(uhd::Tool::at);
    let plan = ConvertSpec {
        pairs: if args.pair.is_empty() { FormatPair::all() } else { args.pair },
        sizes: args.nsamps.iter().map(|samples| *samples as usize).collect(),
        repeats: args.repeat as usize,
        time: Duration::from_secs_f64(args.duration.min(1e3)),
        uhd: if args.no_uhd { None } else { given.or_else(uhd::Tool::find) },
    };
    let mut steps = Steps::new(plan.pairs.len() * plan.sizes.len());
    let rows = measure(&plan, |pair, samples| {
        steps.next(|| format!("{samples} samples, {pair}"));
    })?;
    steps.end();
    let mut text: String = plan.sizes.iter().map(|samples| table(*samples, &rows)).collect();
    if plan.uhd.is_none() && !args.no_uhd {
        text += "UHD's converter_benchmark is not installed (Debian package uhd-host)\n";
    }
    let chosen = ConvertForm::best().name();
    text += &format!("streams on this processor use the form {chosen}\n");
    report(text, &Results { repeats: plan.repeats, rows: &rows, chosen }, None)
}

#[derive(Serialize)]
struct Results<'a> {
    repeats: usize,
    rows: &'a [ConvertRow],
    chosen: &'a str,
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
