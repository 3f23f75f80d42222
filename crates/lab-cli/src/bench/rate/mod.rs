//! `millstream-lab bench rate`: the rate that a host sustains with a radio, and the highest rate
//! without a loss.

mod against;
mod contender;
mod links;
mod place;
mod text;

use super::way::DIRECTIONS;
use crate::child_radio::{ChildRadioOptions, Prepare, RadioUnderTest};
use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::interrupt;
use crate::numbers::{cpu, one_of, rate, seconds, whole, within};
use crate::output::{Report, note};
use contender::{Details, Flow, Ours, RateAttempt, Uhd};
use links::Links;
use millstream_cli::device;
use millstream_emulator::DeviceKind;
use millstream_lab::{Direction, Grid};
use millstream_radio::DeviceArgs;
use place::SideCpus;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Measures which sample rate this host sustains with a radio: CPU time, losses, credit window.
///
/// Received samples are converted to 32-bit floats and dropped. Transmitted samples are a tone in
/// 32-bit floats, which is converted for the radio. Without --args the command starts an emulated
/// radio in a separate process.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("how").required(true).args(["rate", "search", "against_uhd"])),
          after_help = "Examples:
  millstream-lab bench rate --rate 100e6 --channel 0,1
  millstream-lab bench rate --search --channel 0,1 --max-rate 250M
  millstream-lab bench rate --against-uhd --channel 0,1 --repeat 3
  millstream-lab bench rate --device n320 --veth 2 --rate 250M")]
pub struct Args {
    #[arg(
        long,
        value_name = "ARGS",
        help = "Device arguments: addr=IPV4[,rpc_port=N][,link=LINK]. \
          By default the command starts an emulated radio"
    )]
    args: Option<DeviceArgs>,

    /// Sample rate of each channel, in Hz.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,

    /// Direction of the samples: from the radio (rx), to the radio (tx), or first one and then the
    /// other (both).
    #[arg(long, value_name = "DIRECTION", default_value = "rx", value_parser = one_of(&DIRECTIONS))]
    direction: &'static [Direction],

    /// Receive and transmit at the same time in one thread. The CPU time is that of both directions
    /// together.
    #[arg(long, conflicts_with_all = ["direction", "against_uhd"])]
    duplex: bool,

    /// Channels of the radio to use. The default is 0; with --veth it is every channel of the
    /// device.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = whole::<usize>(..))]
    channel: Vec<usize>,

    /// Kind of the emulated radio: e320-radio, e310, e320, n310, n320, x410 or x410-400. Its master
    /// clock is the sample rate.
    #[arg(long, value_name = "DEVICE", default_value = DeviceKind::default().name(),
          value_parser = device, conflicts_with_all = ["args", "against_uhd"])]
    device: DeviceKind,

    /// Connect the emulated radio by this number of veth pairs between two network namespaces: 1,
    /// or 2 for the two links of an n310, n320 or x410. They vanish at the end. Needs root. By
    /// default the radio is at a loopback address.
    #[arg(long, value_name = "N", value_parser = whole::<u8>(1..=2),
          conflicts_with_all = ["args", "against_uhd"])]
    veth: Option<u8>,

    /// Length of each measurement.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = seconds)]
    duration: f64,

    /// Find the highest rate without a loss by bisection, in steps of --step.
    #[arg(long)]
    search: bool,

    /// Step of --search, and its lowest rate, in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 5e6, value_parser = rate)]
    step: f64,

    /// Highest rate that --search tries, in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 250e6, value_parser = rate)]
    max_rate: f64,

    /// Number of measurements at each rate. A rate holds if none of them lost a sample.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole::<u32>(1..=100))]
    tries: u32,

    /// Also search with UHD's benchmark_rate on the same radio, in turn with Millstream.
    #[arg(long)]
    against_uhd: bool,

    /// Number of searches with each of Millstream and UHD.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "against_uhd",
          value_parser = whole::<u32>(1..=100))]
    repeat: u32,

    /// Path of UHD's benchmark_rate, if it is not at a usual path.
    #[arg(long, value_name = "PROGRAM", requires = "against_uhd")]
    uhd_program: Option<PathBuf>,

    /// CPU of Millstream or UHD. The default is the last CPU that this process may use.
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    cpu: Option<usize>,

    /// CPU of the emulated radio. The default is the first CPU that this process may use.
    #[arg(long, value_name = "CPU", value_parser = cpu, conflicts_with = "args")]
    radio_cpu: Option<usize>,

    /// Let the kernel choose the CPUs.
    #[arg(long, conflicts_with_all = ["cpu", "radio_cpu"])]
    no_pin: bool,

    /// Samples that the emulated radio can keep while the host grants no credit.
    #[arg(long, value_name = "N", default_value_t = 1 << 24, conflicts_with = "args",
          value_parser = whole::<u64>(..))]
    rx_buffer_samples: u64,

    /// Size of each transmit buffer of the emulated radio, in samples.
    #[arg(long, value_name = "N", default_value_t = 1 << 22, conflicts_with = "args",
          value_parser = whole::<u64>(..))]
    tx_buffer_samples: u64,

    /// Size of the largest IP packet of the emulated radio's network, in bytes: usually 1500 or
    /// 9000.
    #[arg(long, value_name = "BYTES", default_value_t = 9000, conflicts_with = "args",
          value_parser = whole::<usize>(..))]
    mtu: usize,
}

crate::results! {
    also [against::results],
    /// The rates of our host.
    struct RateResults<'a> {
        /// The CPUs of both sides.
        place: SideCpus,
        /// The emulated radio's own report.
        radio: Option<Value>,
        /// The channels.
        channels: &'a [usize],
        /// Each direction: measured at a rate (`outcome`), or searched (`rate_hz`, `tried`).
        measured: Vec<FlowRate>,
    }
}

/// Succeeds when every measurement is sound; with --search, when a rate without a loss was found.
pub fn run(args: Args) -> anyhow::Result<Report> {
    within("--duration", (args.duration, " s"), 0.1..=86_400.0, "0.1 to 86400 seconds")?;
    anyhow::ensure!(
        args.max_rate >= args.step,
        "--max-rate is {}, which is below --step {}: give a higher --max-rate or a smaller --step",
        args.max_rate,
        args.step
    );
    // Before the search, which takes minutes.
    let uhd_program = args.against_uhd.then(|| args.uhd_program()).transpose()?;
    interrupt::install();
    let args = args.with_channels()?;
    let place = SideCpus::choose(&args)?;
    let links = args.veth.map(|count| Links::make(count, args.mtu, &place)).transpose()?;
    let options = ChildRadioOptions::new(&format!(
        "--rx-antenna ramp --rx-buffer-samples {} --tx-buffer-samples {} --mtu {}",
        args.rx_buffer_samples, args.tx_buffer_samples, args.mtu
    ));
    let enter = links.as_ref().map(|links| |command: &mut Command| links.start_in(command));
    let options = ChildRadioOptions {
        cpu: place.radio_cpu,
        device: args.device,
        addr: links.as_ref().map(|links| links.addr),
        second_addr: links.as_ref().and_then(|links| links.second_addr),
        prepare: enter.as_ref().map(|enter| enter as &Prepare<'_>),
        ..options
    };
    let radio = RadioUnderTest::start(args.args.as_ref(), options)?;
    note(format_args!("{}\n{}", radio.describe(), place.describe(args.args.is_none())));
    let (channels, radio_pid) = (args.channel.clone(), radio.pid());
    let own_clock = args.args.is_none() && args.device != DeviceKind::default();
    let ours = Ours { args: radio.device_args(), channels, radio_pid, own_clock };
    if let Some(program) = uhd_program {
        let uhd = Uhd {
            program,
            addr: ours.args.addr,
            channels: args.channel.clone(),
            cpu: place.host_cpu,
            radio_pid,
        };
        return against::run(&args, ours, uhd, radio, &place);
    }
    let flows = args.flows();
    let mut rates = Rates { args: &args, ours, radio };
    let all = in_rounds(&mut rates, &flows, 1);
    // What the user ended was measured until then.
    let (error, broken) = (all.error(), all.broken());
    let reports: Vec<_> = all.outcomes().collect();
    anyhow::ensure!(!reports.is_empty(), "{}", error.unwrap_or_default());
    let radio = rates.radio.stop()?;
    let text = reports.iter().map(|one| &*one.text).collect();
    let failure = reports.iter().find_map(|one| one.failure.clone()).or(broken);
    let measured = reports.into_iter().map(|one| one.results).collect();
    let results = RateResults { place, radio, channels: &args.channel, measured };
    Ok(Report::of(text, &results).failing(failure))
}

/// The measurement of our host.
struct Rates<'a> {
    args: &'a Args,
    ours: Ours,
    radio: RadioUnderTest,
}

impl Experiment for Rates<'_> {
    type Case = Flow;
    type Outcome = FlowReport;

    fn name(&self, flow: &Flow) -> String {
        flow.name().to_owned()
    }

    fn expected(&self, _: &Flow) -> Option<Duration> {
        self.args.rate.map(|_| self.args.duration())
    }

    fn step(&mut self, flow: &Flow, _: usize) -> Result<FlowReport, Unmeasured> {
        let outcome = match self.args.rate {
            Some(rate_hz) => measure(self.args, &mut self.ours, *flow, rate_hz),
            None => search(self.args, &mut self.ours, *flow),
        };
        Ok(outcome.map_err(|error| self.radio.explain(error))?)
    }
}

/// One direction: measured at a rate, or searched.
#[derive(Serialize)]
#[serde(untagged)]
enum FlowRate {
    Measured {
        direction: Flow,
        outcome: Details,
        radio_cpu_s: Option<f64>,
    },
    Searched {
        direction: Flow,
        grid: Grid,
        criterion: String,
        rate_hz: Option<f64>,
        outcome: Option<Details>,
        tried: Vec<RateAttempt>,
    },
}

/// The report of one direction.
struct FlowReport {
    text: String,
    results: FlowRate,
    failure: Option<String>,
}

/// Measures once at the given rate.
fn measure(args: &Args, ours: &mut Ours, flow: Flow, rate_hz: f64) -> anyhow::Result<FlowReport> {
    let span = args.duration();
    let attempt = ours.attempt(flow, rate_hz, span, false)?;
    let cut =
        || interrupt::asked().then(|| "interrupted before the measurement was done".to_owned());
    let failure = attempt.unsound().or_else(cut);
    let text = text::of_attempt(&attempt);
    let RateAttempt { details, radio_cpu_s, .. } = attempt;
    let results = FlowRate::Measured { direction: flow, outcome: details, radio_cpu_s };
    Ok(FlowReport { text, results, failure })
}

/// Searches the highest rate of the grid.
fn search(args: &Args, ours: &mut Ours, flow: Flow) -> anyhow::Result<FlowReport> {
    note(format_args!("{}: searching {}", flow.name(), args.criterion()));
    let found =
        contender::highest(args, |rate_hz| ours.attempt(flow, rate_hz, args.duration(), true))?;
    let failure = found.best.is_none().then(|| {
        let (way, lowest) = (flow.name(), args.step / 1e6);
        format!("{way}: every rate down to {lowest} MS/s lost samples")
    });
    let text = found.best.as_ref().map(text::of_attempt).unwrap_or_default();
    let results = FlowRate::Searched {
        direction: flow,
        grid: args.grid(),
        criterion: args.criterion(),
        rate_hz: found.rate_hz,
        outcome: found.best.map(|attempt| attempt.details),
        tried: found.tried,
    };
    Ok(FlowReport { text, results, failure })
}

impl Args {
    /// Fills in the default channels, and checks the links.
    fn with_channels(mut self) -> anyhow::Result<Self> {
        let (name, most) = (self.device.name(), self.device.links_max());
        let pairs = self.veth.unwrap_or(1);
        anyhow::ensure!(
            usize::from(pairs) <= most,
            "--veth is {pairs}, and an {name} has one link: give --veth 1, or --device n310, \
             n320 or x410"
        );
        if self.channel.is_empty() {
            let count = if self.veth.is_some() { self.device.channels() } else { 1 };
            self.channel = (0..count).collect();
        }
        Ok(self)
    }

    fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.duration)
    }

    fn flows(&self) -> Vec<Flow> {
        match self.duplex {
            true => vec![Flow::Duplex],
            false => self.direction.iter().copied().map(Flow::One).collect(),
        }
    }

    /// UHD's host: the given program, or the one at the usual paths.
    fn uhd_program(&self) -> anyhow::Result<PathBuf> {
        let Some(given) = &self.uhd_program else { return Ok(millstream_lab::uhd::find()?) };
        let there = given.is_file();
        anyhow::ensure!(
            there,
            "--uhd-program {}: there is no such file; give the path of UHD's benchmark_rate",
            given.display()
        );
        Ok(given.clone())
    }

    fn grid(&self) -> Grid {
        Grid { step_hz: self.step, max_hz: self.max_rate }
    }

    /// The criterion of a search in words.
    fn criterion(&self) -> String {
        format!(
            "the highest of {} to {} MS/s in steps of {} at which {} of {} measurements of {} s \
             lose nothing",
            self.step / 1e6,
            self.max_rate / 1e6,
            self.step / 1e6,
            self.tries,
            self.tries,
            self.duration
        )
    }
}
