//! A radio's asynchronous messages about one of its channels.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_wire::regs::radio::async_msg::Event;

use super::client::lock;

/// The most messages about transmission that wait for their stream, more than the packets of usual
/// size in a window. When there are more, the oldest are dropped and counted.
const TX_WAITING_MAX: usize = 1 << 14;

/// The asynchronous messages about one channel.
///
/// A stream polls them from its own thread; one relaxed load shows whether there are new ones.
#[derive(Debug)]
pub struct ChannelEvents {
    tx_reported: AtomicU64,
    tx_waiting: Mutex<VecDeque<(Event, u64)>>,
    tx_dropped: AtomicU64,
    missed: AtomicU64,
    overruns: AtomicU64,
    overrun_ticks: AtomicU64,
    late_commands: AtomicU64,
}

impl Default for ChannelEvents {
    fn default() -> Self {
        Self {
            tx_reported: AtomicU64::new(0),
            // All of it at once, so that nothing is allocated while a stream runs. Memory that no
            // message has used costs nothing.
            tx_waiting: Mutex::new(VecDeque::with_capacity(TX_WAITING_MAX)),
            tx_dropped: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            overruns: AtomicU64::new(0),
            overrun_ticks: AtomicU64::new(0),
            late_commands: AtomicU64::new(0),
        }
    }
}

impl ChannelEvents {
    /// Overruns reported so far.
    pub fn overruns(&self) -> u64 {
        self.overruns.load(Ordering::Acquire)
    }

    /// Returns the device's time of the last sample before the last overrun, ticks.
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

    /// Takes the oldest message about transmission and its time, ticks.
    pub fn take_tx(&self) -> Option<(Event, u64)> {
        lock(&self.tx_waiting).pop_front()
    }

    /// Messages about transmission that were dropped because the stream did not take them.
    pub fn tx_dropped(&self) -> u64 {
        self.tx_dropped.load(Ordering::Relaxed)
    }

    /// Messages of the channel's block that never came, by the device's sequence numbers. Each may
    /// have been about this channel or another one of the block.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Counts messages of the block that did not come.
    pub(super) fn miss(&self, messages: u64) {
        self.missed.fetch_add(messages, Ordering::Relaxed);
    }

    /// Subtracts a missed message that came after all.
    pub(super) fn found(&self) {
        let less = |missed: u64| missed.checked_sub(1);
        let _ = self.missed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
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
                    self.tx_dropped.fetch_add(1, Ordering::Relaxed);
                }
                waiting.push_back((event, ticks));
                self.tx_reported.fetch_add(1, Ordering::Release);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_nobody_takes_are_counted_when_they_go() {
        let events = ChannelEvents::default();
        let room = lock(&events.tx_waiting).capacity();
        for ticks in 0..TX_WAITING_MAX as u64 + 3 {
            events.note(Event::TxLate, ticks);
        }
        assert_eq!((events.tx_dropped(), events.take_tx()), (3, Some((Event::TxLate, 3))));
        assert_eq!(lock(&events.tx_waiting).capacity(), room, "it grew");
    }
}
