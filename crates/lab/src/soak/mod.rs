//! The soak: hours of streams, retunes, faults and reboots, in rounds whose seed is known.
//!
//! A round opens the radio, runs streams on it one after the other, with a fault in one of them or
//! none, and closes it. After each stream the host's ledgers are compared with what the radio
//! counted and with the packets that the fault hit ([`SoakAccount`]): every lost sample has to be
//! injected. After each round the processes are looked at ([`Holdings`]), and over the rounds their
//! memory must not grow ([`Growth`]).

mod books;
mod control;
mod growth;
mod record;
mod round;
mod starved;
mod state;
mod stream;
mod watch;

pub use books::{Books, SoakAccount, StreamEnd};
pub use control::{ActiveFault, RadioCounts, SoakRadio};
pub use growth::{CONFIDENCE_PERCENT, Growth};
pub use record::{Complaint, FaultTally, ProcessRecord, ProcessVerdict, SoakPart, SoakRecord};
pub use round::{RX_BUFFER_SAMPLES, RoundFault, RoundPlan, RoundWay, TX_BUFFER_SAMPLES};
pub use starved::CpuWait;
pub use state::{SoakFile, SoakFileError};
pub use watch::{Holdings, Series};

use control::Strike;
use millstream_radio::device::Device;
use millstream_radio::graph::StreamDirection;
use millstream_radio::{RadioError, TuneRequest};
use starved::CpuWatch;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use stream::{StreamError, Streams};

/// Samples before the fault, and of a stream without one, as a time of the stream.
const BEFORE_S: f64 = 0.1;
/// The rate of the faults' `samples_after`.
const CASES_RATE_HZ: f64 = crate::faults::RATE_HZ;
/// The stall that overflows the radio's buffer, and some time behind it.
const OVERRUN_S: f64 = 0.6;
/// Interval of the questions whether a fault is over.
const ASK_PAUSE: Duration = Duration::from_millis(100);
/// Time limit of a fault, with the samples after it.
const STRIKE_MAX: Duration = Duration::from_secs(60);
/// Time limit for a radio that was gone, and for one that has to end its work.
const RETURN_MAX: Duration = Duration::from_secs(30);
/// Frequencies of the retunes, Hz.
const FREQUENCIES_HZ: [f64; 3] = [473e6, 915e6, 2.4e9];

/// Why a round cannot be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SoakError {
    /// The radio's control channel does not answer, or refuses.
    #[error("the control channel of the emulated radio failed: {0}")]
    Radio(String),
}

/// The result of a round.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RoundOutcome {
    /// The books of its streams, in order.
    pub accounts: Vec<SoakAccount>,
    /// What did not agree, or went wrong: nothing in a sound round.
    pub complaints: Vec<String>,
    /// The user asked to end before it was over.
    pub is_cut: bool,
}

impl RoundOutcome {
    /// A round that could not be carried out.
    #[must_use]
    pub fn of_error(reason: String) -> Self {
        Self { complaints: vec![reason], ..Self::default() }
    }
}

/// Carries out a round; `ended` says whether the user asked to end.
///
/// # Errors
/// [`SoakError`] when the radio's process does not answer.
pub fn run(
    plan: &RoundPlan,
    radio: &mut dyn SoakRadio,
    ended: fn() -> bool,
) -> Result<RoundOutcome, SoakError> {
    let mut outcome = RoundOutcome::default();
    // A fault of the only stream begins before the radio is opened.
    let whole = plan.fault.filter(|fault| fault.case.throughout && plan.streams == 1);
    let mut early = whole.map(|fault| strike(fault, radio)).transpose()?;
    let opened = open(plan, radio, ended);
    if opened.is_err()
        && let Some(strike) = early.take()
    {
        strike.end(radio)?;
    }
    let mut device = match opened {
        Ok(device) => device,
        Err(_) if ended() => {
            outcome.is_cut = true;
            return Ok(outcome);
        }
        Err(error) => {
            outcome.complaints.push(format!("the radio could not be opened: {error}"));
            return Ok(outcome);
        }
    };
    for number in 0..plan.streams {
        let fault = plan.fault.filter(|fault| fault.stream == number);
        if plan.retunes
            && let Err(error) = tune(&mut device, plan, number)
        {
            outcome.complaints.push(format!("a channel could not be tuned: {error}"));
        }
        let account = Job { plan, fault, ended }.run(&mut device, radio, early.take())?;
        let complaints = account.complaints(fault, plan.packet_samples).into_iter();
        outcome.complaints.extend(complaints.map(|text| match plan.streams {
            1 => text,
            _ => format!("stream {}: {text}", number + 1),
        }));
        outcome.is_cut = account.is_cut;
        let is_over = account.end != StreamEnd::InOrder || account.is_cut;
        outcome.accounts.push(account);
        if is_over {
            break;
        }
    }
    Ok(outcome)
}

/// Opens the radio, which may have been gone in the round before.
fn open(
    plan: &RoundPlan,
    radio: &dyn SoakRadio,
    ended: fn() -> bool,
) -> Result<Device, RadioError> {
    let until = Instant::now() + RETURN_MAX;
    loop {
        let opened = Device::open(radio.args()).and_then(|mut device| {
            device.set_rate(plan.rate_hz)?;
            Ok(device)
        });
        match opened {
            Err(_) if Instant::now() < until && !ended() => std::thread::sleep(ASK_PAUSE),
            outcome => return outcome,
        }
    }
}

/// Tunes every channel of the round.
fn tune(device: &mut Device, plan: &RoundPlan, number: u64) -> Result<(), RadioError> {
    let freq_hz = FREQUENCIES_HZ[((plan.number + number) % FREQUENCIES_HZ.len() as u64) as usize];
    for channel in 0..plan.channels {
        for direction in [StreamDirection::Rx, StreamDirection::Tx] {
            device.tune(direction, channel, TuneRequest::new(freq_hz))?;
        }
    }
    Ok(())
}

fn strike(fault: RoundFault, radio: &mut dyn SoakRadio) -> Result<Strike, SoakError> {
    Strike::begin(radio, &fault.case.specs(fault.direction))
}

/// The streams of one moment, with their fault.
struct Job<'a> {
    plan: &'a RoundPlan,
    fault: Option<RoundFault>,
    ended: fn() -> bool,
}

impl Job<'_> {
    fn run(
        &self,
        device: &mut Device,
        radio: &mut dyn SoakRadio,
        mut struck: Option<Strike>,
    ) -> Result<SoakAccount, SoakError> {
        let before = RadioCounts::of(radio)?;
        let watch = CpuWatch::start(vec![radio.threads(), PathBuf::from("/proc/self/task")]);
        if let Some(fault) = self.fault.filter(|fault| fault.case.throughout)
            && struck.is_none()
        {
            struck = Some(strike(fault, radio)?);
        }
        let mut account = SoakAccount::default();
        match Streams::open(device, self.plan) {
            Ok(mut streams) => {
                account.end = match self.stream(device, &mut streams, radio, &mut struck)? {
                    Ok(end) => end,
                    Err(error) => StreamEnd::Failed(error.to_string()),
                };
                account.recovery_s = streams.longest_s();
                (account.rx, account.tx) = streams.close();
            }
            Err(error) => account.end = StreamEnd::Failed(error.to_string()),
        }
        account.radio = self.settled(radio)?.since(&before);
        account.cpu_wait = watch.end();
        if let Some(strike) = struck {
            account.hits = strike.end(radio)?;
        }
        account.is_cut = (self.ended)();
        Ok(account)
    }

    /// Streams before, during and after the fault, and ends the streams.
    fn stream(
        &self,
        device: &mut Device,
        streams: &mut Streams,
        radio: &mut dyn SoakRadio,
        struck: &mut Option<Strike>,
    ) -> Result<Result<StreamEnd, StreamError>, SoakError> {
        let before = (self.plan.rate_hz * BEFORE_S) as u64;
        match self.until(streams, |streams| streams.least() >= before) {
            Ok(true) => {}
            Ok(false) => return Ok(Ok(StreamEnd::Hangs)),
            Err(error) => return Ok(Err(error)),
        }
        if self.plan.retunes
            && let Err(error) = tune(device, self.plan, 1)
        {
            return Ok(Err(error.into()));
        }
        if let Some(fault) = self.fault
            && struck.is_none()
        {
            *struck = Some(strike(fault, radio)?);
        }
        streams.forget_pauses();
        if let Some(strike) = struck {
            let until = Instant::now() + STRIKE_MAX;
            let mut asked = Instant::now();
            loop {
                if let Err(error) = streams.step() {
                    return Ok(Err(error));
                }
                if asked.elapsed() >= ASK_PAUSE {
                    if strike.state(radio)?.is_over || (self.ended)() {
                        break;
                    }
                    asked = Instant::now();
                }
                if streams.hangs() || Instant::now() > until {
                    return Ok(Ok(StreamEnd::Hangs));
                }
            }
        }
        let after_s = match self.fault {
            None => BEFORE_S,
            // Behind the stall, whose samples come first.
            Some(fault) if round::overruns(fault.case) => OVERRUN_S,
            Some(fault) => fault.case.samples_after as f64 / CASES_RATE_HZ,
        };
        let goal = streams.least() + (after_s * self.plan.rate_hz) as u64;
        let ended = self.until(streams, |streams| streams.least() >= goal);
        Ok(ended.and_then(|went_on| {
            let in_order = went_on && streams.end()?;
            Ok(if in_order { StreamEnd::InOrder } else { StreamEnd::Hangs })
        }))
    }

    /// Streams until it is so, or the user asked to end; false when the streams hang.
    fn until(
        &self,
        streams: &mut Streams,
        is_so: impl Fn(&Streams) -> bool,
    ) -> Result<bool, StreamError> {
        while !is_so(streams) && !(self.ended)() {
            streams.step()?;
            if streams.hangs() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The radio's counts once it has ended its work.
    fn settled(&self, radio: &mut dyn SoakRadio) -> Result<RadioCounts, SoakError> {
        let until = Instant::now() + RETURN_MAX;
        let mut last = RadioCounts::of(radio)?;
        loop {
            std::thread::sleep(ASK_PAUSE / 4);
            let now = RadioCounts::of(radio)?;
            if now == last && now.tx_waiting == 0 || Instant::now() > until {
                return Ok(now);
            }
            last = now;
        }
    }
}
