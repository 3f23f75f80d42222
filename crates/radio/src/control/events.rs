//! What a radio says by itself about one of its channels.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_wire::regs::radio::async_msg::Event;

use super::client::lock;

/// Messages about transmission that wait for their stream; the oldest go when there are more.
const TX_WAITING_MAX: usize = 1024;

/// The asynchronous messages about one channel.
///
/// A stream looks at them from its own thread; one relaxed load tells whether anything is new.
#[derive(Debug, Default)]
pub struct ChannelEvents {
    tx_reported: AtomicU64,
    tx_waiting: Mutex<VecDeque<(Event, u64)>>,
    overruns: AtomicU64,
    overrun_ticks: AtomicU64,
    late_commands: AtomicU64,
}

impl ChannelEvents {
    /// Overruns reported so far.
    pub fn overruns(&self) -> u64 {
        self.overruns.load(Ordering::Acquire)
    }

    /// The device's time of the last overrun, ticks.
    pub fn overrun_ticks(&self) -> u64 {
        self.overrun_ticks.load(Ordering::Relaxed)
    }

    /// Late commands reported so far.
    pub fn late_commands(&self) -> u64 {
        self.late_commands.load(Ordering::Acquire)
    }

    /// Messages about transmission so far.
    pub fn tx_reported(&self) -> u64 {
        self.tx_reported.load(Ordering::Acquire)
    }

    /// The oldest message about transmission that nobody has taken, and its time, ticks.
    pub fn take_tx(&self) -> Option<(Event, u64)> {
        lock(&self.tx_waiting).pop_front()
    }

    pub(super) fn note(&self, event: Event, ticks: u64) {
        match event {
            Event::RxOverrun => {
                self.overrun_ticks.store(ticks, Ordering::Relaxed);
                self.overruns.fetch_add(1, Ordering::Release);
            }
            Event::RxLateCommand => {
                self.late_commands.fetch_add(1, Ordering::Release);
            }
            Event::TxUnderrun | Event::TxLate | Event::TxBurstAck => {
                let mut waiting = lock(&self.tx_waiting);
                if waiting.len() == TX_WAITING_MAX {
                    waiting.pop_front();
                }
                waiting.push_back((event, ticks));
                self.tx_reported.fetch_add(1, Ordering::Release);
            }
        }
    }
}
