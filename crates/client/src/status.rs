//! The events of a stream, for a thread that asks for nothing else.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::rx::StreamGap;
use crate::time::DeviceTime;
use crate::turns::YEAR;

/// The most events that wait; of more, the oldest are dropped.
const EVENTS_MAX: usize = 4096;

/// An event of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamStatus {
    /// The position of the channel among those of the stream.
    pub channel: usize,
    /// The time of the event, if it has one. Of a gap: the time at which samples resume.
    pub time: Option<DeviceTime>,
    /// The event.
    pub kind: StatusKind,
}

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatusKind {
    /// Received samples are missing.
    Gap(StreamGap),
    /// The start came after its own time: nothing was received.
    LateStart,
    /// Samples to transmit were not there in time.
    Underflow,
    /// Samples to transmit came after their time and were dropped.
    Late,
    /// The last sample of a burst has been transmitted.
    BurstEnd,
    /// The device saw a packet out of sequence.
    Sequence,
    /// Samples to transmit were lost on their way.
    Lost {
        /// Their number.
        samples: u64,
    },
    /// The transmit stream had been lost, and was set up again.
    Reestablished {
        /// Samples that may have been transmitted or lost.
        samples: u64,
    },
}

/// A queue of events.
#[derive(Debug, Default)]
pub(crate) struct StatusQueue {
    events: Mutex<VecDeque<StreamStatus>>,
    come: Condvar,
}

impl StatusQueue {
    pub fn push(&self, status: StreamStatus) {
        let mut events = self.lock();
        if events.len() == EVENTS_MAX {
            events.pop_front();
        }
        events.push_back(status);
        self.come.notify_all();
    }

    pub fn take(&self) -> Option<StreamStatus> {
        self.lock().pop_front()
    }

    /// Returns the oldest event, waiting for one up to `timeout`, unless `over` says that no event
    /// will come.
    pub fn wait(&self, timeout: Duration, over: impl Fn() -> bool) -> Option<StreamStatus> {
        let until = Instant::now() + timeout.min(YEAR);
        let mut events = self.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if let Some(event) = events.pop_front() {
                return Some(event);
            }
            if left.is_zero() || over() {
                return None;
            }
            let woken = self.come.wait_timeout(events, left);
            events = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Wakes those who wait.
    pub fn wake(&self) {
        let _events = self.lock();
        self.come.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<StreamStatus>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
