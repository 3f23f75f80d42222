//! Looks on while two processes play round trips, and explains the first late one of each job.

use super::recorder::{LEAD, Recorder};
use millstream_host::trace::TraceError;
use millstream_measure::explained::Explained;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What the process that asks is told: which file stops the ring, and when.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Stop {
    /// The file of which `0` stops the ring.
    pub switch: PathBuf,
    /// A round trip longer than this stops it, nanoseconds.
    pub threshold_ns: u64,
}

/// The round trip that stopped the ring, on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct LateTrip {
    /// When the first one was due, nanoseconds.
    pub begun_ns: u64,
    /// When it was due, nanoseconds.
    pub due_ns: u64,
    /// When it was back, nanoseconds.
    pub back_ns: u64,
}

/// A ring of trace events beside round trips.
#[derive(Debug)]
pub struct RoundTripMonitor {
    recorder: Recorder,
    threshold_ns: u64,
    /// How many are still to be explained.
    left: usize,
}

impl RoundTripMonitor {
    /// Explains up to `most` round trips longer than `threshold_ns`.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn open(threshold_ns: u64, most: usize) -> Result<Self, TraceError> {
        // Both sides are this program, under whatever name it was started.
        Ok(Self { recorder: Recorder::open("*")?, threshold_ns, left: most })
    }

    /// Before a job: what its asking side is to be told; none once all are explained.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn begin(&mut self) -> Result<Option<Stop>, TraceError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.recorder.start()?;
        std::thread::sleep(LEAD);
        let (switch, threshold_ns) = (self.recorder.switch(), self.threshold_ns);
        Ok(Some(Stop { switch, threshold_ns }))
    }

    /// After it: why its first late round trip was late, by the threads of both sides.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn end(
        &mut self,
        late: Option<LateTrip>,
        threads: [i32; 2],
    ) -> Result<Option<Explained>, TraceError> {
        self.recorder.stop()?;
        let Some(late) = late else { return Ok(None) };
        self.left = self.left.saturating_sub(1);
        let why = self.recorder.explain_trip(&late, threads)?;
        Ok(Some(Explained { at_ns: late.back_ns.saturating_sub(late.begun_ns), why }))
    }
}
