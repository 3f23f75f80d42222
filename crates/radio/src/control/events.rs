//! What a radio says by itself about one of its channels.

use std::sync::atomic::{AtomicU64, Ordering};

use millstream_wire::regs::radio::async_msg::Event;

/// Counts of the asynchronous messages about one channel.
///
/// A stream looks at them from its own thread; one relaxed load tells whether anything is new.
#[derive(Debug, Default)]
pub struct ChannelEvents {
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

    pub(super) fn note(&self, event: Event, ticks: u64) {
        match event {
            Event::RxOverrun => {
                self.overrun_ticks.store(ticks, Ordering::Relaxed);
                self.overruns.fetch_add(1, Ordering::Release);
            }
            Event::RxLateCommand => {
                self.late_commands.fetch_add(1, Ordering::Release);
            }
            // Transmit streams come with an issue of their own.
            Event::TxUnderrun | Event::TxLate | Event::TxBurstAck => {}
        }
    }
}
