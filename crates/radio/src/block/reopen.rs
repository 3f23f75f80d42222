//! Opening the device of a source again, after it has stopped answering.
//!
//! A device that has rebooted has forgotten the stream and its time. The worker ends the old
//! stream, opens the device until that succeeds, and sets its time on: to that of the last sample
//! and the time since then by this machine's clock. So the gap has a length, as exact as that
//! clock and the network's delay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use millstream_flow::BlockError;

use crate::stream::RxError;
use crate::{Device, Ledger, RadioError, RxStreamer};

/// Opens the device of a source with a stream of the same channel, with all settings.
pub type OpenAgain = Box<dyn FnMut() -> Result<(Device, RxStreamer), BlockError> + Send>;

/// The interval between two attempts.
const AGAIN: Duration = Duration::from_millis(300);

/// A device that did not come back.
#[derive(Debug, thiserror::Error)]
#[error("the radio did not come back within {waited_s:.1} s: {last}")]
#[non_exhaustive]
pub struct NotBack {
    /// The wait, seconds.
    pub waited_s: f64,
    /// The error of the last attempt.
    pub last: BlockError,
}

/// The time of the end of a stream: by the device, ticks, and by this machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamEnd {
    pub ticks: u64,
    pub at: Instant,
}

/// The result of the worker: the ledger of the old stream, and the new one.
pub(super) struct Reopened {
    pub ledger: Ledger,
    pub opened: Result<(Device, RxStreamer), BlockError>,
    pub open_again: OpenAgain,
}

/// The worker that ends a stream and opens its device again.
pub(super) struct Reopening {
    stop: Arc<AtomicBool>,
    worker: JoinHandle<Reopened>,
}

impl Reopening {
    /// Starts it. It gives up after `patience`.
    pub fn start(
        old: (Device, RxStreamer),
        mut open_again: OpenAgain,
        end: Option<StreamEnd>,
        patience: Duration,
    ) -> Result<Self, BlockError> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let work = move || {
            let (device, stream) = old;
            let began = Instant::now();
            let ledger = stream.finish();
            drop(device);
            let opened = loop {
                match open_again().and_then(|opened| set_on(opened, end)) {
                    Ok(opened) => break Ok(opened),
                    Err(last) => {
                        let waited = began.elapsed();
                        if waited >= patience || asked.load(Ordering::Relaxed) {
                            let waited_s = waited.as_secs_f64();
                            break Err(NotBack { waited_s, last }.into());
                        }
                    }
                }
                thread::sleep(AGAIN);
            };
            Reopened { ledger, opened, open_again }
        };
        let worker = thread::Builder::new().name("radio-reopen".into()).spawn(work)?;
        Ok(Self { stop, worker })
    }

    /// Returns whether the result is there.
    pub fn is_over(&self) -> bool {
        self.worker.is_finished()
    }

    /// Asks the worker to end after its present attempt, and returns the result.
    pub fn end(self) -> Result<Reopened, BlockError> {
        self.stop.store(true, Ordering::Relaxed);
        self.worker.join().map_err(|_| "the thread that opens the radio again panicked".into())
    }
}

/// Sets the time of a device as if it had gone on since the end of the stream.
fn set_on(
    (device, stream): (Device, RxStreamer),
    end: Option<StreamEnd>,
) -> Result<(Device, RxStreamer), BlockError> {
    if let Some(end) = end {
        let ticks = end.at.elapsed().as_secs_f64() * stream.rate().ticks_hz;
        device.set_time_now(end.ticks.wrapping_add(ticks.round() as u64))?;
    }
    Ok((device, stream))
}

/// Returns whether an error says that the device is gone, or has forgotten this host.
pub(super) fn is_gone(error: &RxError) -> bool {
    matches!(
        error,
        RxError::DeviceSilent { .. }
            | RxError::Radio(RadioError::Silent { .. } | RadioError::Rpc(_))
    )
}
