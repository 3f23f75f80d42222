//! `millstream-lab bench offload`: kernels on the CPU and on a device.

use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::interrupt;
use crate::numbers::{rate, seconds, whole, within};
use crate::output::{Report, note, percent};
use crate::table::Table;
use millstream_accel::choose::{self, SampleCost, Side};
use millstream_accel::{Accelerator, Kernel, OffloadSettings, StandIn};
use millstream_dsp::Sample;
use std::sync::Arc;
use std::time::Duration;

/// Measures kernels on the CPU and on a device, and how often `domain = "auto"` picks the better
/// side.
///
/// The kernels are filters by their taps, a bank of 64 channels, and spectra. Each is measured on
/// both sides in turns, for each size of batches. A device's figures contain the copies there and
/// back; the copies alone stand beside them. The choice of `auto` is made anew, from its own short
/// measurement, for each sample rate; it is right if its side costs at most 5 % more than the
/// better one. At a rate that both sides hold, the cost is CPU time; otherwise it is time. At a low
/// rate a batch goes before it is full, after 5 ms, and is measured so.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream-lab bench offload
  millstream-lab bench offload --taps 16,715 --batch 65536 --repeat 5
  millstream-lab bench offload --accelerator stand-in")]
pub struct Args {
    /// Numbers of taps of the filters.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "16,64,256,715,2048",
          value_parser = whole::<usize>(1..=100_000))]
    taps: Vec<usize>,

    /// Samples in a batch.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "4096,16384,65536",
          value_parser = whole::<usize>(1..=16_777_216))]
    batch: Vec<usize>,

    /// Sample rates for the choice; beside them, as fast as possible.
    #[arg(long, value_name = "HZ,…", value_delimiter = ',', default_value = "1M,10M,50M",
          value_parser = rate)]
    rate: Vec<f64>,

    /// Device: gpu, or stand-in (a thread of this program that calculates like the CPU).
    #[arg(long, value_name = "NAME", default_value = "gpu", value_parser = ["gpu", "stand-in"])]
    accelerator: String,

    /// Length of each measurement.
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = seconds)]
    measure: f64,

    /// Number of times that each row is measured.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u32>(1..=1000))]
    repeat: u32,
}

crate::results! {
    /// The costs of kernels on both sides, and the choices between them.
    struct OffloadResults<'a> {
        /// The device.
        device: String,
        /// Length of each measurement, seconds.
        measure_s: f64,
        /// Measurements of each row.
        repetitions: u32,
        /// Each kernel with each size of batches.
        rows: &'a [OffloadRow],
        /// Why rows could not be measured.
        refused: Vec<&'a str>,
        /// Right choices, and all.
        right: (usize, usize),
    }

    /// A kernel with its figures: nanoseconds for a sample.
    struct OffloadRow {
        /// The kernel.
        kernel: String,
        /// Samples of a batch.
        batch: usize,
        /// Time on the CPU.
        host_ns: f64,
        /// Time on the device.
        device_ns: f64,
        /// CPU time on the CPU.
        host_cpu_ns: f64,
        /// CPU time beside the device.
        device_cpu_ns: f64,
        /// The copies alone: a batch there and, at the same time, results back.
        copies_ns: Option<f64>,
        /// The choice at each rate.
        choices: Vec<OffloadChoice>,
    }

    /// A choice and its price.
    struct OffloadChoice {
        /// Samples a second; none: as fast as possible.
        rate_hz: Option<f64>,
        /// Whether it is the device.
        device: bool,
        /// What the chosen side costs more than the better one.
        regret: f64,
    }
}

/// What `auto` may cost more than the better side.
const REGRET_MAX: f64 = 0.05;

/// Succeeds when every row was measured.
pub fn run(args: Args) -> anyhow::Result<Report> {
    within("--measure", (args.measure, " s"), 0.01..=60.0, "10ms to 60s")?;
    let device: Arc<dyn Accelerator> = match &*args.accelerator {
        "stand-in" => Arc::new(StandIn::default()),
        _ => {
            crate::block_types::register_devices();
            millstream_accel::devices()?[0].clone()
        }
    };
    interrupt::install();
    note(format_args!("device: {}", device.name()));
    let kernels = args.kernels()?;
    let cases: Vec<_> =
        kernels.iter().flat_map(|kernel| args.batch.iter().map(move |n| (kernel, *n))).collect();
    let mut sides = Sides { args: &args, device: &*device };
    let all = in_rounds(&mut sides, &cases, 1).whole()?;
    let refused: Vec<_> = all.cases.iter().filter_map(|case| case.refused.clone()).collect();
    let rows: Vec<_> = all.outcomes().collect();
    let refused: Vec<_> = refused.iter().map(String::as_str).collect();
    let failure = rows.is_empty().then(|| refused.join("; "));
    let text = if rows.is_empty() { String::new() } else { text(&device.name(), &rows, &refused) };
    let results = OffloadResults {
        device: device.name(),
        measure_s: args.measure,
        repetitions: args.repeat,
        rows: &rows,
        right: right(&rows),
        refused,
    };
    Ok(Report::of(text, &results).failing(failure))
}

/// The measurement of both sides, for each kernel and size of batches.
struct Sides<'a> {
    args: &'a Args,
    device: &'a dyn Accelerator,
}

impl<'a> Experiment for Sides<'a> {
    type Case = (&'a Kernel, usize);
    type Outcome = OffloadRow;

    fn name(&self, (kernel, batch): &Self::Case) -> String {
        format!("{kernel}, batches of {batch}")
    }

    fn step(&mut self, case: &Self::Case, _: usize) -> Result<OffloadRow, Unmeasured> {
        let row = self.args.row(case.0, case.1, self.device);
        row.map_err(|error| Unmeasured::Refused(error.to_string()))
    }
}

impl Args {
    fn kernels(&self) -> anyhow::Result<Vec<Kernel>> {
        let tap = |n: usize, taps: usize| (n as f32 * 0.37).sin() / taps as f32;
        let mut kernels: Vec<_> = self
            .taps
            .iter()
            .map(|taps| Kernel::Fir {
                taps: (0..*taps).map(|n| Sample::new(tap(n, *taps), 0.0)).collect(),
                decimation: 1,
            })
            .collect();
        let taps = millstream_blocks::channelizer::channel_filter(64, 0.2)
            .map_err(|error| anyhow::anyhow!("{error}"))?;
        kernels.push(Kernel::Channelizer { channels: 64, hop: 64, taps });
        kernels.push(Kernel::PowerSpectrum { window: vec![1.0; 1024], average: 4 });
        Ok(kernels)
    }

    fn row(
        &self,
        kernel: &Kernel,
        batch: usize,
        device: &dyn Accelerator,
    ) -> anyhow::Result<OffloadRow> {
        let settings = OffloadSettings::for_batches(batch, kernel);
        let span = Duration::from_secs_f64(self.measure);
        let rates: Vec<_> =
            std::iter::once(None).chain(self.rate.iter().copied().map(Some)).collect();
        // Each with a measurement of its own, as in a graph.
        let sides: Vec<_> = rates
            .iter()
            .map(|rate| Ok(choose::choose(kernel, device, settings, *rate)?.0.side))
            .collect::<anyhow::Result<_>>()?;
        let mut opened = device.open(kernel, settings.slots, settings.frames)?;
        let frames: Vec<_> = rates.iter().map(|rate| settings.frames_at(kernel, *rate)).collect();
        let mut lengths = frames.clone();
        lengths.sort_unstable();
        lengths.dedup();
        let (mut host, mut on_device) = (Vec::new(), vec![Vec::new(); lengths.len()]);
        for _ in 0..self.repeat {
            host.push(choose::on_host(kernel, span));
            for (costs, frames) in on_device.iter_mut().zip(&lengths) {
                costs.push(choose::on_device(&mut opened, kernel, *frames, span)?);
            }
        }
        let host = choose::median(&host);
        let device_at = |frames: usize| {
            let place = lengths.iter().position(|one| *one == frames).unwrap_or_default();
            choose::median(&on_device[place])
        };
        let choices: Vec<_> = sides
            .iter()
            .zip(rates)
            .zip(&frames)
            .map(|((side, rate), frames)| pick(*side, (host, device_at(*frames)), rate))
            .collect();
        let on_device = device_at(settings.frames);
        let shape = kernel.shape();
        let there = shape.window(settings.frames) * size_of::<Sample>();
        let back = shape.words * settings.frames * size_of::<f32>();
        let bytes = there.max(back);
        let copies_ns = device
            .copy_rate(bytes)
            .map(|rate| bytes as f64 / rate / (settings.frames * shape.samples) as f64 * 1e9);
        Ok(OffloadRow {
            kernel: kernel.to_string(),
            batch,
            host_ns: host.ns,
            device_ns: on_device.ns,
            host_cpu_ns: host.cpu_ns,
            device_cpu_ns: on_device.cpu_ns,
            copies_ns,
            choices,
        })
    }
}

/// Compares a choice with the better side.
fn pick(
    side: Side,
    (host, device): (SampleCost, SampleCost),
    rate_hz: Option<f64>,
) -> OffloadChoice {
    let best = choose::better(host, device, rate_hz);
    let (chosen, other) = match side {
        Side::Host => (host, device),
        Side::Device => (device, host),
    };
    let holds = |cost: SampleCost| rate_hz.is_some_and(|rate| cost.ns * rate <= 1e9);
    let regret = match (side == best, holds(chosen), holds(other)) {
        (true, ..) => 0.0,
        (false, true, true) => chosen.cpu_ns / other.cpu_ns - 1.0,
        _ => chosen.ns / other.ns - 1.0,
    };
    OffloadChoice { rate_hz, device: side == Side::Device, regret: regret.max(0.0) }
}

/// Counts the choices, and those that are right.
fn right(rows: &[OffloadRow]) -> (usize, usize) {
    let picks = || rows.iter().flat_map(|row| &row.choices);
    (picks().filter(|pick| pick.regret <= REGRET_MAX).count(), picks().count())
}

fn text(device: &str, rows: &[OffloadRow], refused: &[&str]) -> String {
    let mut text = format!("\nnanoseconds a sample, on the CPU and on {device}\n");
    let side = |device| if device { "device" } else { "CPU" };
    let sides = |row: &OffloadRow| {
        let names: Vec<_> = row.choices.iter().map(|pick| side(pick.device)).collect();
        names.join(" ")
    };
    let regret = |row: &OffloadRow| row.choices.iter().map(|pick| pick.regret).fold(0.0, f64::max);
    text += &Table::of(rows)
        .left("kernel", |row| &row.kernel)
        .right("batch", |row| row.batch)
        .right("CPU", |row| format!("{:.2}", row.host_ns))
        .right("device", |row| format!("{:.2}", row.device_ns))
        .right("its CPU time", |row| format!("{:.2}", row.device_cpu_ns))
        .right("copies", |row| row.copies_ns.map_or("?".into(), |ns| format!("{ns:.2}")))
        .left("auto", sides)
        .right("dearer by", |row| percent(regret(row)))
        .text();
    for reason in refused {
        text += &format!("not measured: {reason}\n");
    }
    let (right, all) = right(rows);
    text += &format!(
        "\nauto: {right} of {all} choices cost at most {} more than the better side. copies: a \
         batch there and\nresults back, without a kernel. auto: as fast as possible, then at each \
         rate.\n",
        percent(REGRET_MAX)
    );
    text
}
