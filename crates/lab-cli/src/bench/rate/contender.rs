//! A measured host: ours or UHD's.

use super::Args;
use crate::interrupt;
use crate::live::Steps;
use crate::output::note;
use millstream_host::child::cpu_time_s;
use millstream_lab::Direction;
use millstream_lab::rate::{
    DuplexOutcome, RxOutcome, RxPlan, TxOutcome, TxPlan, duplex, receive, transmit,
};
use millstream_lab::uhd::{BenchmarkRate, UhdResult};
use millstream_radio::{Device, DeviceArgs};
use serde::Serialize;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// Our host.
pub struct Ours {
    pub args: DeviceArgs,
    pub channels: Vec<usize>,
    /// The process of an emulated radio.
    pub radio_pid: Option<u32>,
    /// The radio's master clock becomes the sample rate.
    pub own_clock: bool,
}

/// UHD's host.
pub struct Uhd {
    pub program: PathBuf,
    pub addr: Ipv4Addr,
    pub channels: Vec<usize>,
    pub cpu: Option<usize>,
    pub radio_pid: Option<u32>,
}

/// The direction of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flow {
    Duplex,
    #[serde(untagged)]
    One(Direction),
}

impl Flow {
    /// Its name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::One(direction) => direction.name(),
            Self::Duplex => "both at once",
        }
    }
}

/// One measurement.
#[derive(Serialize)]
pub struct RateAttempt {
    pub rate_hz: f64,
    pub lossless: bool,
    /// CPU time of an emulated radio, opening and closing included.
    pub radio_cpu_s: Option<f64>,
    pub details: Details,
}

/// The host's report.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Details {
    Rx(RxOutcome),
    Tx(TxOutcome),
    Duplex(Box<DuplexOutcome>),
    Uhd(UhdResult),
}

impl Ours {
    /// Opens the radio, measures, and closes it: every measurement has a fresh start.
    pub fn attempt(
        &mut self,
        flow: Flow,
        rate_hz: f64,
        duration: Duration,
        until_loss: bool,
    ) -> anyhow::Result<RateAttempt> {
        let radio_cpu = RadioCpu::start(self.radio_pid);
        let mut args = self.args.clone();
        if self.own_clock {
            args.master_clock_hz = Some(rate_hz);
        }
        let mut device = Device::open(args)?;
        let (channels, ended) = (self.channels.clone(), interrupt::asked as fn() -> bool);
        let rx_plan = RxPlan {
            channels: channels.clone(),
            rate_hz,
            duration,
            until_loss,
            ended,
            recv_queue_bytes: None,
        };
        let tx_plan = TxPlan { channels, rate_hz, duration, until_loss, ended };
        let details = match flow {
            Flow::One(Direction::Rx) => Details::Rx(receive(&mut device, &rx_plan)?),
            Flow::One(Direction::Tx) => Details::Tx(transmit(&mut device, &tx_plan)?),
            Flow::Duplex => Details::Duplex(Box::new(duplex(&mut device, &rx_plan, &tx_plan)?)),
        };
        Ok(RateAttempt::new(rate_hz, details, &radio_cpu))
    }
}

impl Uhd {
    /// Runs UHD's program once.
    pub fn attempt(
        &self,
        direction: Direction,
        rate_hz: f64,
        duration: Duration,
    ) -> anyhow::Result<RateAttempt> {
        let run = BenchmarkRate {
            program: self.program.clone(),
            addr: self.addr,
            direction,
            rate_hz,
            channels: self.channels.clone(),
            duration,
            cpu: self.cpu,
        };
        let radio_cpu = RadioCpu::start(self.radio_pid);
        Ok(RateAttempt::new(rate_hz, Details::Uhd(run.run()?), &radio_cpu))
    }
}

impl RateAttempt {
    fn new(rate_hz: f64, details: Details, radio_cpu: &RadioCpu) -> Self {
        let lossless = match &details {
            Details::Rx(outcome) => outcome.lossless,
            Details::Tx(outcome) => outcome.lossless,
            Details::Uhd(outcome) => outcome.lossless,
            Details::Duplex(both) => both.rx.lossless && both.tx.lossless,
        };
        Self { rate_hz, lossless, radio_cpu_s: radio_cpu.spent_s(), details }
    }

    /// CPU seconds of 10⁹ samples.
    pub fn cpu_s_per_gigasample(&self) -> f64 {
        match &self.details {
            Details::Rx(outcome) => outcome.cpu_s_per_gigasample,
            Details::Tx(outcome) => outcome.cpu_s_per_gigasample,
            Details::Uhd(outcome) => outcome.cpu_s_per_gigasample,
            Details::Duplex(both) => {
                both.rx.cpu_s / (both.rx.samples + both.tx.samples).max(1) as f64 * 1e9
            }
        }
    }

    /// The reason why its figures are unreliable, if so.
    pub fn unsound(&self) -> Option<String> {
        let (rx, tx) = match &self.details {
            Details::Rx(rx) => (Some(rx), None),
            Details::Tx(tx) => (None, Some(tx)),
            Details::Duplex(both) => (Some(&both.rx), Some(&both.tx)),
            Details::Uhd(_) => (None, None),
        };
        let rx = rx.iter().flat_map(|rx| &rx.channels).map(|one| (one.channel, one.balances));
        let tx = tx.iter().flat_map(|tx| &tx.channels).map(|one| (one.channel, one.balances));
        let (bad, _) = rx.chain(tx).find(|(_, balances)| !balances)?;
        Some(format!("the ledger of channel {bad} does not balance"))
    }
}

/// The CPU time of an emulated radio from here on.
struct RadioCpu {
    pid: Option<u32>,
    before_s: Option<f64>,
}

impl RadioCpu {
    fn start(pid: Option<u32>) -> Self {
        Self { pid, before_s: pid.and_then(cpu_time_s) }
    }

    fn spent_s(&self) -> Option<f64> {
        Some(self.pid.and_then(cpu_time_s)? - self.before_s?)
    }
}

/// The result of a search.
pub struct HighestRate {
    pub rate_hz: Option<f64>,
    /// The last measurement at that rate.
    pub best: Option<RateAttempt>,
    pub tried: Vec<RateAttempt>,
}

/// Searches the highest rate of the grid at which all tries are lossless.
pub fn highest(
    args: &Args,
    mut attempt: impl FnMut(f64) -> anyhow::Result<RateAttempt>,
) -> anyhow::Result<HighestRate> {
    let (mut tried, grid) = (Vec::new(), args.grid());
    // Bisection halves the rates that are left; a loss ends the tries of one.
    let rates = (grid.max_hz / grid.step_hz).floor() + 1.0;
    let mut steps = Steps::new(Some(rates.log2().ceil() as usize * args.tries as usize));
    let rate_hz = grid.highest(|rate_hz| -> anyhow::Result<bool> {
        for number in 1..=args.tries {
            steps.next(|| format!("{} MS/s, try {number}", rate_hz / 1e6));
            let outcome = attempt(rate_hz)?;
            // An interrupted measurement says nothing about the rate.
            interrupt::check("the search had a result")?;
            let verdict = if outcome.lossless { "nothing lost" } else { "lost samples" };
            steps.end();
            note(format_args!("  {:>6} MS/s  try {number}  {verdict}", rate_hz / 1e6));
            let lossless = outcome.lossless;
            tried.push(outcome);
            if !lossless {
                (number..args.tries).for_each(|_| steps.skip());
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    let at = |attempt: &RateAttempt| Some(attempt.rate_hz) == rate_hz;
    let best = tried.iter().rposition(at).map(|index| tried.remove(index));
    Ok(HighestRate { rate_hz, best, tried })
}
