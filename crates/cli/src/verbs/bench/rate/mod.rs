//! `millstream bench rate`: what a host sustains with a radio, and the highest rate without a loss.

mod against;
mod contender;
mod place;
mod text;

use crate::interrupt;
use crate::numbers::positive;
use crate::output::{Report, note};
use anyhow::Context;
use contender::{Attempt, Ours, Uhd};
use millstream_lab::Grid;
use millstream_lab::uhd::Direction;
use millstream_radio::DeviceArgs;
use place::{Place, RadioUnderTest};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Measures what this host sustains with a radio: rate, CPU time, losses, credit window.
///
/// Received samples are converted to 32-bit floats and forgotten. Without --args an emulated radio
/// serves them, in a process of its own.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream bench rate --rate 100e6 --channels 0,1
  millstream bench rate --search --channels 0,1 --max 250e6
  millstream bench rate --against-uhd --channels 0,1 --repetitions 3")]
pub struct Args {
    #[arg(
        long,
        value_name = "ARGS",
        help = "The device: addr=IPV4[,rpc_port=N][,link=LINK]; \
          without it, an emulated radio in a process of its own"
    )]
    args: Option<DeviceArgs>,

    /// Samples per second of each channel.
    #[arg(long, value_name = "HZ", value_parser = positive, allow_negative_numbers = true,
          required_unless_present_any = ["search", "against_uhd"])]
    rate: Option<f64>,

    /// Channels of the radio.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "0")]
    channels: Vec<usize>,

    /// How long each measurement lasts, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = positive,
          allow_negative_numbers = true)]
    duration: f64,

    /// Find the highest rate without a loss, by bisection on a grid.
    #[arg(long, conflicts_with_all = ["rate", "against_uhd"])]
    search: bool,

    /// Step of the grid, and its lowest rate, Hz.
    #[arg(long, value_name = "HZ", default_value_t = 5e6, value_parser = positive,
          allow_negative_numbers = true)]
    step: f64,

    /// Highest rate of the grid, Hz.
    #[arg(long, value_name = "HZ", default_value_t = 250e6, value_parser = positive,
          allow_negative_numbers = true)]
    max: f64,

    /// A rate holds when so many measurements, all of them, lose nothing.
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    tries: u32,

    /// Search with UHD's benchmark_rate too, in turns, against the same radio.
    #[arg(long, conflicts_with = "rate")]
    against_uhd: bool,

    /// Searches of each host, in turns.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "against_uhd",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    repetitions: u32,

    /// UHD's program, when it is not where distributions keep it.
    #[arg(long, value_name = "PATH", requires = "against_uhd")]
    uhd_program: Option<PathBuf>,

    /// CPU of the host, ours or UHD's; by default the last that is allowed.
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    host_cpu: Option<usize>,

    /// CPU of the emulated radio; by default the first that is allowed.
    #[arg(long, value_name = "CPU", value_parser = cpu, conflicts_with = "args")]
    radio_cpu: Option<usize>,

    /// Leave it to the kernel which CPU runs what.
    #[arg(long, conflicts_with_all = ["host_cpu", "radio_cpu"])]
    no_pin: bool,

    /// Samples that wait in the emulated radio while the host grants no credit.
    #[arg(long, value_name = "N", default_value_t = 1 << 24, conflicts_with = "args")]
    rx_buffer_samples: u64,
}

/// A CPU that fits the kernel's masks.
fn cpu(text: &str) -> Result<usize, String> {
    let cpu = text.parse().ok().filter(|cpu| *cpu < 1024);
    cpu.ok_or_else(|| "give the number of a CPU, from 0".to_owned())
}

/// Succeeds when every measurement is sound; with --search, when a rate without a loss was found.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let in_range = (0.1..=86_400.0).contains(&args.duration);
    anyhow::ensure!(in_range, "--duration {}: give 0.1 to 86400 seconds", args.duration);
    anyhow::ensure!(args.max >= args.step, "--max {} is below --step {}", args.max, args.step);
    interrupt::install();
    let place = Place::choose(&args)?;
    let mut radio = RadioUnderTest::start(&args, &place)?;
    note(format_args!("{}\n{}", radio.describe(), place.describe()));
    let mut ours = Ours { args: radio.device_args(), channels: args.channels.clone() };
    if args.against_uhd {
        let program = args.uhd_program.clone().map_or_else(millstream_lab::uhd::find, Ok)?;
        let uhd = Uhd {
            program,
            addr: ours.args.addr,
            channels: args.channels.clone(),
            cpu: place.host_cpu,
        };
        return against::run(&args, ours, uhd, radio, &place);
    }
    if args.search {
        return search(&args, &mut ours, radio, &place);
    }
    let rate_hz = args.rate.context("clap has asked for it")?;
    let attempt = ours.attempt(Direction::Rx, rate_hz, args.duration(), false);
    let attempt = attempt.map_err(|error| radio.explain(error))?;
    let counters = radio.stop()?;
    let unsound = attempt.unsound();
    let results = json!({
        "place": place, "radio": counters, "direction": Direction::Rx, "measured": attempt.details,
    });
    Ok(Report { text: text::of_attempt(&attempt), results, failure: unsound })
}

impl Args {
    fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.duration)
    }

    fn grid(&self) -> Grid {
        Grid { step_hz: self.step, max_hz: self.max }
    }

    /// The criterion of a search in words.
    fn criterion(&self) -> String {
        format!(
            "the highest of {} to {} MS/s in steps of {} at which {} of {} measurements of {} s \
             lose nothing",
            self.step / 1e6,
            self.max / 1e6,
            self.step / 1e6,
            self.tries,
            self.tries,
            self.duration
        )
    }
}

fn search(
    args: &Args,
    ours: &mut Ours,
    mut radio: RadioUnderTest,
    place: &Place,
) -> anyhow::Result<Report> {
    note(format_args!("searching {}", args.criterion()));
    let found = contender::highest(args, |rate_hz| {
        ours.attempt(Direction::Rx, rate_hz, args.duration(), true)
    });
    let found = found.map_err(|error| radio.explain(error))?;
    let counters = radio.stop()?;
    let best: Option<&Attempt> = found.best.as_ref();
    let results = json!({
        "place": place, "radio": counters, "direction": Direction::Rx, "grid": args.grid(),
        "criterion": args.criterion(), "rate_hz": found.rate_hz,
        "measured": best.map(|attempt| &attempt.details), "tried": found.tried,
    });
    let failure = best
        .is_none()
        .then(|| format!("no rate without a loss was found down to {} MS/s", args.step / 1e6));
    Ok(Report { text: best.map(text::of_attempt).unwrap_or_default(), results, failure })
}
