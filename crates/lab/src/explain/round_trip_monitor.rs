//! A trace monitor of two processes that measure round trips: explains the first late one of each
//! job.

use super::recorder::{LEAD, Recorder};
use millstream_host::trace::TraceError;
use millstream_measure::explained::Explained;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The stop condition of the asking process: the file that stops the ring, and when.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Stop {
    /// The file that stops the ring when `0` is written.
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
    /// Round trips still to be explained.
    left: usize,
}

impl RoundTripMonitor {
    /// Explains up to `most` round trips longer than `threshold_ns`.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn open(threshold_ns: u64, most: usize) -> Result<Self, TraceError> {
        // Both sides are this program, whatever its name.
        Ok(Self { recorder: Recorder::open("*")?, threshold_ns, left: most })
    }

    /// Begins a job: returns the stop condition of its asking side; `None` once all are explained.
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

    /// Ends a job: explains its first late round trip by the threads of both sides.
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
