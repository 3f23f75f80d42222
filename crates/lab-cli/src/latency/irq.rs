//! `millstream-lab latency irq`: from a converter's edge to the user's read of its samples.

mod advice;

use super::class;
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::interrupt;
use crate::lab::adc;
use crate::numbers::{allowed_cpus, cpu, name_of, one_of, positive, rate, seconds, whole, within};
use crate::output::{Report, count, note};
use crate::samples;
use millstream_cpu::sched::Class;
use millstream_lab::irq::{DevicePlace, IioChoice, Interrupts, IrqSamples, IrqSpec, measure};
use millstream_lab::timer::LowLatencyGuard;
use millstream_measure::Measured;
use millstream_measure::picture::short_time;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Measures the time from an interrupt of a converter until a program reads the samples, in parts.
///
/// A process imitates an analog-to-digital converter with direct memory access. At each edge of its
/// clock it records its own time, writes samples to shared memory and raises an interrupt (an
/// eventfd). A thread in the role of the driver wakes the thread that reads the samples. The
/// command compares one interrupt for each block of samples with two, where the driver must start
/// the transfer in between.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream-lab latency irq
  sudo millstream-lab latency irq --rate 1M                  advises a block size
  sudo millstream-lab latency irq --interrupts 1 --interval 200us --count 50000 --histograms
  sudo millstream-lab latency irq --via iio --iio-device ads1015 --interval 2ms
  millstream-lab lab guest --kernel linux-image-6.1.0-56-rt-amd64 --adc -- latency irq --via vfio
  millstream-lab lab guest --kernel linux-image-6.12-rt-amd64 --iio -- latency irq --via iio")]
pub struct Args {
    /// Number of interrupts for each block. By default 1 and 2 are measured in turn.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1u8, 2],
          value_parser = whole::<u8>(1..=2))]
    interrupts: Vec<u8>,

    /// Time between two conversions.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = seconds)]
    interval: f64,

    /// Number of blocks of samples to measure.
    #[arg(long, value_name = "N", default_value_t = 2000,
          value_parser = whole::<u64>(10..=10_000_000))]
    count: u64,

    /// Number of times to make the measurement.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole::<u32>(1..=100_000))]
    repeat: u32,

    /// CPU of the driver's thread and the reading thread. The default is the last CPU that this
    /// process may use.
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    cpu: Option<usize>,

    /// CPU of the imitated converter. The default is the last other CPU.
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    device_cpu: Option<usize>,

    /// Scheduling class of the reading thread; the driver's thread gets a priority one higher. The
    /// default is fifo:80, or other if this user may not use fifo.
    #[arg(long, value_name = "CLASS")]
    class: Option<Class>,

    /// How the interrupt reaches the driver.
    #[arg(long, value_name = "VIA", default_value = "eventfd", value_parser = one_of(&VIAS))]
    via: Via,

    /// Name of the Industrial I/O device. The default is the first device that has a buffer.
    #[arg(long, value_name = "NAME")]
    iio_device: Option<String>,

    /// Name of the trigger of that device. The default is its present trigger. If it has none, a
    /// timer that fires every --interval becomes its trigger.
    #[arg(long, value_name = "NAME")]
    iio_trigger: Option<String>,

    /// Sample rate of a converter: advise how many samples its blocks should have.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,

    /// With --rate: the largest share of a CPU that the blocks may take.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = positive,
          requires = "rate")]
    cpu_share: f64,

    /// Draw the distributions.
    #[arg(long)]
    histograms: bool,
}

/// The path of an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Via {
    Eventfd,
    Vfio,
    Iio,
}

const VIAS: [(&str, &str, Via); 3] = [
    ("eventfd", "From the imitating process, as an eventfd", Via::Eventfd),
    (
        "vfio",
        "As MSI-X interrupt of a PCI device of vfio-pci, in a virtual machine of \
         `millstream-lab lab guest --adc`",
        Via::Vfio,
    ),
    ("iio", "From a real converter, through the kernel's Industrial I/O", Via::Iio),
];

crate::results! {
    also [samples::results, advice::results],
    /// The time from an interrupt until a program reads the samples.
    struct IrqResults {
        /// Each number of interrupts, all rounds together.
        series: Vec<samples::SeriesFigures>,
        /// A record for each round, with the parts of the way.
        records: Vec<Measured>,
        /// With `--rate`: the advised sizes of blocks.
        block_sizes: Option<Vec<advice::BlockAdvice>>,
    }
}

/// Succeeds when every sample was taken without a contradiction.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    let [cpu, device_cpu] = args.places()?;
    let quiet = LowLatencyGuard::begin();
    quiet.missing().iter().for_each(|missing| note(format_args!("millstream: {missing}")));
    let class = class::chosen(args.class);
    let period_ns = (args.interval * 1e9).round();
    let of_iio = args.iio_device.is_some() || args.iio_trigger.is_some();
    let fits = args.via == Via::Iio || !of_iio;
    anyhow::ensure!(
        fits,
        "--iio-device and --iio-trigger need --via iio: add it, or leave them out"
    );
    anyhow::ensure!(
        args.rate.is_none() || args.via != Via::Iio,
        "--via iio measures single scans, so it cannot advise a size of blocks for --rate: leave \
         out --rate, or use --via eventfd or --via vfio"
    );
    within("--interval", (args.interval, " s"), 20e-6..=10.0, "20us to 10s")?;
    let source = match args.via {
        Via::Eventfd => DevicePlace::Process(&adc::command),
        Via::Vfio => DevicePlace::Vfio,
        Via::Iio => {
            let (device, trigger) = (args.iio_device.as_deref(), args.iio_trigger.as_deref());
            DevicePlace::Iio(IioChoice { device, trigger })
        }
    };
    // A real device's number of interrupts is fixed.
    let numbers = if args.via == Via::Iio { &[1][..] } else { &args.interrupts };
    let interrupts = |number: &u8| if *number == 1 { Interrupts::One } else { Interrupts::Two };
    let plan = |number| IrqSpec {
        cpu,
        device_cpu,
        class,
        period_ns: period_ns as u64,
        count: args.count,
        interrupts: interrupts(number),
    };
    let plans: Vec<_> = numbers.iter().map(plan).collect();
    let mut edges = Edges { via: args.via, source };
    let all = in_rounds(&mut edges, &plans, args.repeat as usize);
    let (broken, records) = (all.broken(), all.records);
    anyhow::ensure!(
        !records.is_empty(),
        "{}",
        broken.as_deref().unwrap_or("interrupted before there was a result: run the command again")
    );
    let title = format!("blocks every {} µs, {class}, from edge to read", args.interval * 1e6);
    let advice = args.rate.map(|rate_hz| advice::of(&records, rate_hz, args.cpu_share));
    let text = samples::text(&title, &records, args.histograms)
        + &stages(&records)
        + &advice.iter().flatten().map(advice::BlockAdvice::words).collect::<String>();
    let failure = contradiction(&records).or(broken);
    let series = samples::summary(&records);
    let results = IrqResults { series, records, block_sizes: advice };
    Ok(Report::of(text, &results).failing(failure))
}

/// The measurement of a converter, by the interrupts of a block.
struct Edges<'s> {
    via: Via,
    source: DevicePlace<'s>,
}

impl Experiment for Edges<'_> {
    type Case = IrqSpec;
    type Outcome = IrqSamples;

    fn name(&self, plan: &IrqSpec) -> String {
        format!("measuring {} a block", count(plan.interrupts.number(), "interrupt"))
    }

    fn expected(&self, plan: &IrqSpec) -> Option<Duration> {
        let all_s = plan.count as f64 * plan.period_ns as f64 / 1e9;
        Some(Duration::try_from_secs_f64(all_s).unwrap_or(Duration::MAX))
    }

    fn step(&mut self, plan: &IrqSpec, _: usize) -> Result<IrqSamples, Unmeasured> {
        Ok(measure(plan, &self.source, interrupt::asked)?)
    }

    fn records(&self, plan: &IrqSpec, taken: &IrqSamples) -> Vec<Measured> {
        vec![measured(plan, self.via, taken)]
    }
}

#[derive(Serialize)]
struct Parameters {
    cpu: usize,
    device_cpu: usize,
    class: String,
    period_ns: u64,
    interrupts: u64,
    via: &'static str,
}

#[derive(Serialize)]
struct Details<'a> {
    total_ns: u64,
    cpu_ns_per_block: f64,
    clock_bound_ns: f64,
    clock_error_ns: Option<u64>,
    first_values: &'a [(String, i64)],
}

impl Args {
    fn places(&self) -> anyhow::Result<[usize; 2]> {
        let allowed = allowed_cpus()?;
        let last = |but: Option<usize>| allowed.iter().filter(|cpu| Some(*cpu) != but).last();
        let cpu = self.cpu.or_else(|| last(self.device_cpu));
        let device_cpu = self.device_cpu.or_else(|| last(cpu));
        let (Some(cpu), Some(device_cpu)) = (cpu, device_cpu) else {
            anyhow::bail!(
                "the driver's thread and the imitated converter need a CPU each, but this process \
                 may use only CPUs {allowed}"
            );
        };
        anyhow::ensure!(
            cpu != device_cpu,
            "CPU {cpu} is given twice, but the driver's thread and the imitated converter need a \
             CPU each"
        );
        for cpu in [cpu, device_cpu] {
            anyhow::ensure!(
                allowed.contains(cpu),
                "this process may not use CPU {cpu}: give one of the CPUs {allowed}"
            );
        }
        Ok([cpu, device_cpu])
    }
}

fn measured(plan: &IrqSpec, via: Via, taken: &IrqSamples) -> Measured {
    let interrupts = plan.interrupts.number();
    let imitated = || format!("{} a block", count(interrupts, "interrupt"));
    let series = taken.device.clone().unwrap_or_else(imitated);
    let parameters = Parameters {
        cpu: plan.cpu,
        device_cpu: plan.device_cpu,
        class: plan.class.to_string(),
        period_ns: plan.period_ns,
        interrupts,
        via: name_of(&VIAS, &via),
    };
    let details = Details {
        total_ns: taken.total_ns,
        cpu_ns_per_block: taken.cpu_ns_per_block,
        clock_bound_ns: taken.clock_bound_ns,
        clock_error_ns: taken.clock_error_ns,
        first_values: &taken.values,
    };
    Measured {
        measurement: "irq".to_owned(),
        series,
        parameters: samples::entries(&parameters),
        seconds: taken.seconds,
        observed: taken.observed.clone(),
        counters: BTreeMap::from([
            ("blocks without room or driver".to_owned(), taken.overruns),
            ("blocks with wrong samples".to_owned(), taken.wrong_samples),
            ("parts shorter than nothing".to_owned(), taken.negative),
        ]),
        stages: taken.stages.clone(),
        details: samples::entries(&details),
        ..Measured::default()
    }
}

fn number(record: &Measured, name: &str) -> f64 {
    record.details[name].as_f64().unwrap_or(0.0)
}

/// Mean and quantiles of each part, its sum beside the whole, the clocks, and the cost.
fn stages(records: &[Measured]) -> String {
    samples::series(records).iter().map(|(name, all)| stages_of(name, all)).collect()
}

fn stages_of(series: &str, all: &[&Measured]) -> String {
    let blocks: u64 = all.iter().map(|one| one.observed.histogram.count()).sum();
    let total = |at: usize| all.iter().map(|one| one.stages[at].total_ns).sum::<u64>();
    let parts = 0..all[0].stages.len();
    let sum_of = |name| all.iter().map(|one| number(one, name)).sum::<f64>();
    let [sum, whole] =
        [parts.map(total).sum(), sum_of("total_ns") as u64].map(|ns| short_time(ns / blocks));
    let worst = |name| all.iter().map(|one| number(one, name)).fold(0.0, f64::max);
    let off = match all[0].details["clock_error_ns"].as_f64() {
        Some(_) => format!(", off by {:.0} ns at most", worst("clock_error_ns")),
        None => String::new(),
    };
    format!(
        "{}  sum {sum}, whole way {whole}; CPU of driver and user {} a block\n  clocks related \
         to ±{:.0} ns{off}\n",
        samples::parts(series, all),
        short_time((sum_of("cpu_ns_per_block") / all.len() as f64) as u64),
        worst("clock_bound_ns"),
    )
}

/// The contradiction that makes a result invalid, if any.
fn contradiction(records: &[Measured]) -> Option<String> {
    records.iter().find_map(|record| {
        let wrong = record.counters["blocks with wrong samples"];
        let negative = record.counters["parts shorter than nothing"];
        match (wrong, negative) {
            (0, 0) => None,
            (0, _) => Some(format!(
                "{}: {negative} parts have negative times, because the two clocks were not \
                 compared precisely enough: measure again",
                record.series
            )),
            _ => Some(format!("{}: {wrong} blocks held wrong samples", record.series)),
        }
    })
}
