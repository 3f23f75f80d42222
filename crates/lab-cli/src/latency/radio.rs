//! `millstream-lab latency radio`: the turnaround from received samples to the earliest answer that
//! a radio still transmits at its time.

mod compare;
mod found;
mod page;
mod stations;
mod text;

pub use found::results;

use crate::child_radio::{ChildRadioOptions, RadioUnderTest};
use crate::dashboard::WebArgs;
use crate::interrupt;
use crate::numbers::{rate, seconds, whole};
use crate::output::{Report, note};
use found::Found;
use millstream_emulator::DeviceKind;
use millstream_lab::turnaround::{Turnaround, TurnaroundSpec};
use millstream_radio::{Device, DeviceArgs};
use page::TurnaroundPage;

/// What an interrupt comes before.
const UNTIL: &str = "the measurement had a result";

/// Measures the turnaround of a radio and this host: the time from the newest received sample to
/// the earliest answer that is not late.
///
/// In the first part every answer is late on purpose, and the radio reports by how much. In the
/// second part the command tries several lead times, and finds the shortest one at which no answer
/// is late. All of it takes half a minute at most. Without --args the command starts an emulated
/// radio with DDC and DUC in a separate process.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream-lab latency radio                        this machine's kernel sockets
  sudo millstream-lab latency radio --stations        and where the time passes
  sudo millstream-lab latency radio --compare udp,udp-spin,xdp")]
pub struct Args {
    #[arg(
        long,
        value_name = "ARGS",
        help = "Device arguments: addr=IPV4[,rpc_port=N][,link=LINK]"
    )]
    args: Option<DeviceArgs>,

    /// Sample rate, in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 10e6, value_parser = rate)]
    rate: f64,

    /// Longest time of both parts together. A slow host makes fewer tries in it.
    #[arg(short = 'D', long, value_name = "TIME", default_value = "24s", value_parser = seconds)]
    duration: f64,

    /// Number of turnarounds to measure.
    #[arg(long, value_name = "N", default_value_t = 2000,
          value_parser = whole::<u64>(10..=10_000_000))]
    count: u64,

    /// Number of times to make the measurement: 1 by default, 6 with --compare.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=100_000))]
    repeat: Option<u32>,

    /// Number of lead times (from sending an answer to its time) to try; 0: none.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = whole::<u64>(0..=1000))]
    leads: u64,

    /// Number of answers at each lead time.
    #[arg(long, value_name = "N", default_value_t = 200,
          value_parser = whole::<u64>(1..=1_000_000))]
    count_per_lead: u64,

    /// Length of each received burst in samples, at most one packet.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = whole::<u32>(1..=1000))]
    rx_samples: u32,

    /// Length of each answer in samples, at most one packet.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = whole::<u32>(1..=1000))]
    tx_samples: u32,

    /// Time between two answers. A host that is too slow for it takes longer.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = seconds)]
    interval: f64,

    /// Channel to receive and transmit on.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<usize>(..))]
    channel: usize,

    /// Never sleep while waiting for samples. The thread then needs a whole core and answers
    /// sooner.
    #[arg(long)]
    spin: bool,

    /// Show where the time passes: record the wake-ups of both threads in the kernel's trace, in
    /// tries of their own. Needs root and an emulated radio, and no --spin.
    #[arg(long, conflicts_with_all = ["args", "spin"])]
    stations: bool,

    /// Compare links in turns, between two network namespaces joined by a veth pair. Needs root.
    /// Both sides poll, except with udp, where both sleep.
    #[arg(long, value_name = "WAY,…", value_delimiter = ',', conflicts_with_all = [
              "args", "spin", "stations", "leads", "count_per_lead", "web"], value_enum)]
    compare: Vec<compare::ComparedLink>,

    #[command(flatten)]
    web: WebArgs,
}

impl Args {
    /// How often a measurement is made.
    fn repeats(&self) -> u32 {
        self.repeat.unwrap_or(if self.compare.is_empty() { 1 } else { 6 })
    }
}

/// Succeeds when every try was answered; with a sweep, when a lead was never late.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    if !args.compare.is_empty() {
        return compare::run(&args);
    }
    let options = radio_options();
    let mut radio = RadioUnderTest::start(args.args.as_ref(), options)?;
    note(radio.describe());
    measure(&args, &radio).map_err(|error| radio.explain(error))
}

/// Returns the options of the emulated radio.
fn radio_options() -> ChildRadioOptions<'static> {
    let options = ChildRadioOptions::new("--serial 1A7E --rx-antenna ramp");
    ChildRadioOptions { device: DeviceKind::E320, ..options }
}

fn measure(args: &Args, radio: &RadioUnderTest) -> anyhow::Result<Report> {
    let plan = TurnaroundSpec {
        channels: (args.channel, args.channel),
        rate_hz: args.rate,
        rx_samples: args.rx_samples,
        tx_samples: args.tx_samples,
        interval_s: args.interval,
        spin: args.spin,
    };
    let mut device = Device::open(radio.device_args())?;
    let title = format!("{} at {}", device.info().product(), device.address());
    let mut turnaround = Turnaround::open(&mut device, plan)?;
    let mut found = Found::new(plan, turnaround.ticks_hz());
    let mut page = TurnaroundPage::start(args, title, turnaround.ticks_hz())?;
    let mut attempt = |lead| Ok(turnaround.attempt(lead)?);
    let mut look = |lead, answer, found: &Found| page.note(lead, answer, found);
    let ended = found.take(args, &mut attempt, &mut look);
    page.end(&found, ended.is_ok());
    let stations = || match radio {
        RadioUnderTest::Emulated(radio) if args.stations => {
            stations::measure(radio, || Ok(turnaround.attempt(0)?)).map(Some)
        }
        _ => Ok(None),
    };
    found.report(args, ended, stations)
}
