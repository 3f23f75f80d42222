//! One transmit stream, or several that get the same samples at the same moments.

use millstream_radio::Complex32;
use millstream_radio::tx::{
    TxCounters, TxError, TxEvent, TxGroup, TxLedger, TxMetadata, TxSent, TxStreamer,
};
use std::time::Duration;

/// Largest number of channels at once.
pub const CHANNELS_MAX: usize = 16;

/// Interval of a group's polls for events.
const POLL: Duration = Duration::from_millis(5);

/// The destination of samples.
pub enum Outlet {
    /// One channel.
    One(Box<TxStreamer>),
    /// Several, at most [`CHANNELS_MAX`].
    Group(TxGroup),
}

impl Outlet {
    /// Its streams.
    fn members(&self) -> &[TxStreamer] {
        match self {
            Self::One(stream) => std::slice::from_ref(&**stream),
            Self::Group(group) => group.members(),
        }
    }

    /// See [`TxStreamer::send`]; the same samples to every channel.
    pub fn send(
        &mut self,
        samples: &[Complex32],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        let all = [samples; CHANNELS_MAX];
        match self {
            Self::One(stream) => stream.send(samples, meta, timeout),
            Self::Group(group) => group.send(&all[..group.members().len()], meta, timeout),
        }
    }

    /// See [`TxStreamer::send_sc16`]; the same samples to every channel.
    pub fn send_sc16(
        &mut self,
        samples: &[[i16; 2]],
        meta: TxMetadata,
        timeout: Duration,
    ) -> Result<TxSent, TxError> {
        let all = [samples; CHANNELS_MAX];
        match self {
            Self::One(stream) => stream.send_sc16(samples, meta, timeout),
            Self::Group(group) => group.send_sc16(&all[..group.members().len()], meta, timeout),
        }
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.members().len()
    }

    /// Whether a burst has begun and not ended.
    pub fn is_in_burst(&self) -> bool {
        self.members().iter().any(TxStreamer::is_in_burst)
    }

    /// The sum over all channels.
    pub fn ledger(&self) -> TxLedger {
        sum(self.members().iter().map(TxStreamer::ledger))
    }

    /// The sums of the counters over all channels.
    pub fn counters(&self) -> TxCounters {
        let mut sum = TxCounters::default();
        for counters in self.members().iter().map(TxStreamer::counters) {
            sum.packets += counters.packets;
            sum.bursts += counters.bursts;
            sum.burst_acks += counters.burst_acks;
            sum.stalls += counters.stalls;
        }
        sum
    }

    /// The first channel.
    pub fn first(&self) -> &TxStreamer {
        &self.members()[0]
    }

    /// Returns an event, if there is one.
    pub fn poll_event(&mut self) -> Result<Option<TxEvent>, TxError> {
        match self {
            Self::One(stream) => stream.poll_event(),
            Self::Group(group) => Ok(group.poll_event()?.map(|(_, event)| event)),
        }
    }

    /// Waits for the next event; `None` after `timeout`.
    pub fn next_event(&mut self, timeout: Duration) -> Result<Option<TxEvent>, TxError> {
        if let Self::One(stream) = self {
            return stream.next_event(timeout);
        }
        let event = self.poll_event()?;
        if event.is_none() {
            std::thread::sleep(POLL);
        }
        Ok(event)
    }

    /// See [`TxStreamer::finish`]; the sum over all channels.
    pub fn finish(self) -> TxLedger {
        match self {
            Self::One(stream) => stream.finish(),
            Self::Group(group) => sum(group.finish().iter()),
        }
    }

    /// See [`TxStreamer::finish_within`]; the sum over all channels.
    pub fn finish_within(self, timeout: Duration) -> TxLedger {
        match self {
            Self::One(stream) => stream.finish_within(timeout),
            Self::Group(group) => sum(group.finish_within(timeout).iter()),
        }
    }
}

fn sum<'a>(ledgers: impl Iterator<Item = &'a TxLedger>) -> TxLedger {
    let mut sum = TxLedger::default();
    ledgers.for_each(|ledger| sum.merge(ledger));
    sum
}
