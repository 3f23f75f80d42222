//! The fault matrix: the faults of a radio, and the outcome of its streams.
//!
//! Each case runs one stream of an emulated radio in this process, lets its faults occur in the
//! middle (or from the start), and checks four things: the ledger balances, it agrees with the
//! device's own counts, the received samples are those of their time, and the stream continues or
//! ends with one error.

mod cases;
mod receive;
mod rig;
mod transmit;

pub use cases::{CASES, FaultCase};

use crate::Direction;
use millstream_emulator::{Error, FaultError};
use millstream_radio::{Device, RadioError, RxStreamer, TxStreamer};
use rig::{FaultSetup, PACKET};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Samples per second of every case: slow, so that only its faults cause trouble.
pub const RATE_HZ: f64 = 1e6;

/// Samples of a packet.
pub const PACKET_SAMPLES: u32 = 100;

/// What the errors of streams that end say.
const CAUSES: [&str; 2] = ["stopped answering", "no sample came"];

/// A stream without progress for this long hangs.
const HANG: Duration = Duration::from_secs(15);

/// The end of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Samples flowed after the fault as before.
    GoesOn,
    /// It ended with this error.
    Failed(String),
    /// No sample for 15 s, and no error: a defect.
    Hangs,
}

/// The result of one case.
#[derive(Debug, Clone, Serialize)]
pub struct FaultRow {
    /// The case.
    pub fault: &'static str,
    /// The direction of the samples.
    pub direction: Direction,
    /// The faults, as the radio parses them.
    pub specs: Vec<String>,
    /// Hits of the faults.
    pub hits: u64,
    /// Samples that should have come, or that the stream accepted.
    pub expected: u64,
    /// Samples that came, or were transmitted.
    pub delivered: u64,
    /// Samples lost, by cause.
    pub lost: BTreeMap<&'static str, u64>,
    /// Events of the stream, by kind.
    pub events: BTreeMap<&'static str, u64>,
    /// Whether expected = delivered + lost.
    pub balances: bool,
    /// Samples that the device sent, or transmitted, by its own count.
    pub device_samples: u64,
    /// The range of `device_samples` by the ledger. Its width: the ledger's unaccounted samples,
    /// and those of a start that was repeated.
    pub ledger_samples: (u64, u64),
    /// Samples whose value was not that of their time.
    pub wrong_samples: u64,
    /// Longest time without progress since the fault was switched on, milliseconds.
    pub recovery_ms: f64,
    /// Its end.
    pub ending: Ending,
    /// Violated conditions; empty when all hold.
    pub complaints: Vec<String>,
}

/// The reason why a case could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// The emulated radio did not start.
    #[error("the emulated radio failed: {0}")]
    Emulator(#[from] Error),
    /// A case has a fault that the emulated radio does not know.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The radio could not be opened.
    #[error(transparent)]
    Radio(#[from] RadioError),
}

/// Runs one case in one direction.
///
/// # Errors
/// [`MatrixError`] when it could not run at all; trouble of the stream is in the row.
pub fn run(case: &FaultCase, direction: Direction) -> Result<FaultRow, MatrixError> {
    let mut row = match direction {
        Direction::Rx => Run::<RxStreamer>::of(case)?,
        Direction::Tx => Run::<TxStreamer>::of(case)?,
    };
    row.complaints = row.judge(case);
    Ok(row)
}

/// A stream of one direction.
trait Stream: Sized {
    const DIRECTION: Direction;
    /// The initial samples of a call, and the packets of a call.
    const FILL: [i16; 2];
    const BLOCK_PACKETS: usize;
    type Error: std::fmt::Display;

    fn open(device: &Device) -> Result<Self, RadioError>;

    /// Streams without trouble, before the faults.
    fn before(run: &mut Run<Self>) -> Result<(), Self::Error>;

    /// Streams during the faults and after, and ends the stream.
    fn after(run: &mut Run<Self>, case: &FaultCase) -> Result<(), Self::Error>;

    /// Closes the stream and the radio, and records the counts of both.
    fn book(self, rig: FaultSetup, row: &mut FaultRow);
}

/// A stream through a fault.
struct Run<S> {
    rig: FaultSetup,
    stream: S,
    row: FaultRow,
    progress: Progress,
    block: Vec<[i16; 2]>,
}

impl<S: Stream> Run<S> {
    /// Runs the case; returns the row without its verdict.
    fn of(case: &FaultCase) -> Result<FaultRow, MatrixError> {
        let rig = FaultSetup::start(case, S::DIRECTION)?;
        let stream = S::open(&rig.device)?;
        let (row, progress) = (FaultRow::new(case, S::DIRECTION), Progress::new());
        let block = vec![S::FILL; S::BLOCK_PACKETS * PACKET];
        let mut run = Self { rig, stream, row, progress, block };
        if let Err(error) = run.through(case)? {
            run.row.ending = Ending::Failed(error.to_string());
        }
        if run.row.hits == 0 {
            // It ended early.
            run.strikes_end();
        }
        let Self { rig, stream, mut row, .. } = run;
        stream.book(rig, &mut row);
        Ok(row)
    }

    fn through(&mut self, case: &FaultCase) -> Result<Result<(), S::Error>, MatrixError> {
        if let Err(error) = S::before(self) {
            return Ok(Err(error));
        }
        self.rig.strike()?;
        self.progress.restart();
        Ok(S::after(self, case))
    }

    /// Records the end of the faults: the stream's longest time without progress, and the hits.
    fn strikes_end(&mut self) {
        self.row.recovery_ms = self.progress.longest_ms();
        self.row.hits = self.rig.end_faults();
    }
}

impl FaultRow {
    fn new(case: &FaultCase, direction: Direction) -> Self {
        Self {
            fault: case.name,
            direction,
            specs: case.specs(direction),
            hits: 0,
            expected: 0,
            delivered: 0,
            lost: BTreeMap::new(),
            events: BTreeMap::new(),
            balances: false,
            device_samples: 0,
            ledger_samples: (0, 0),
            wrong_samples: 0,
            recovery_ms: 0.0,
            ending: Ending::GoesOn,
            complaints: Vec::new(),
        }
    }

    /// Samples lost by any cause.
    pub fn lost_total(&self) -> u64 {
        self.lost.values().sum()
    }

    fn count(&mut self, event: &'static str) {
        *self.events.entry(event).or_default() += 1;
    }

    fn judge(&self, case: &FaultCase) -> Vec<String> {
        let mut complaints = Vec::new();
        let mut complain = |wrong: bool, text: String| {
            if wrong {
                complaints.push(text);
            }
        };
        complain(!self.balances, "the ledger does not balance".to_owned());
        let (device, (least, most)) = (self.device_samples, self.ledger_samples);
        let packets = self.hits * u64::from(PACKET_SAMPLES);
        let misleads = case.misleads || (case.passes_audits && self.direction == Direction::Tx);
        let slack = if misleads { packets } else { 0 };
        let agrees = (least.saturating_sub(slack)..=most.saturating_add(slack)).contains(&device);
        complain(
            !agrees,
            format!("the device counts {device} samples, but the ledger {least} to {most}"),
        );
        complain(self.hits == 0, "the fault hit no packet, so nothing was tested".to_owned());
        let wrong = self.wrong_samples > 0 && !(case.damages_samples || case.misleads);
        complain(wrong, format!("{} samples have a wrong time", self.wrong_samples));
        complain(self.ending == Ending::Hangs, "the stream neither goes on nor ends".to_owned());
        let lost = self.lost_total();
        complain(
            case.loses_hits && lost != packets,
            format!("the fault hit {packets} samples, but {lost} were lost"),
        );
        // A fault that hits no sample packet costs no sample.
        let hits_samples =
            self.specs.iter().any(|spec| spec.contains(" data") || spec.contains(" any"));
        let in_network = ["network_loss", "malformed"];
        let cost: u64 = in_network.iter().filter_map(|cause| self.lost.get(cause)).sum();
        complain(
            !hits_samples && cost > 0,
            format!("the fault hit no packet of samples, but {cost} samples were lost"),
        );
        let ends = case.ends.contains(&self.direction);
        complain(ends != matches!(self.ending, Ending::Failed(_)), {
            let should = if ends { "end with an error" } else { "go on" };
            format!("the stream should {should}, but it did not")
        });
        if let Ending::Failed(error) = &self.ending
            && !CAUSES.iter().any(|cause| error.contains(cause))
        {
            complaints.push(format!("the error does not name the cause: {error}"));
        }
        complaints
    }
}

/// Watches the progress of a count.
struct Progress {
    last: Instant,
    count: u64,
    longest: Duration,
}

impl Progress {
    fn new() -> Self {
        Self { last: Instant::now(), count: 0, longest: Duration::ZERO }
    }

    /// Restarts when the fault is switched on.
    fn restart(&mut self) {
        (self.last, self.longest) = (Instant::now(), Duration::ZERO);
    }

    /// Notes `count`, which should grow.
    fn note(&mut self, count: u64) {
        let now = Instant::now();
        self.longest = self.longest.max(now - self.last);
        if count != self.count {
            (self.last, self.count) = (now, count);
        }
    }

    fn hangs(&self) -> bool {
        self.last.elapsed() > HANG
    }

    fn longest_ms(&self) -> f64 {
        self.longest.as_secs_f64() * 1e3
    }
}
