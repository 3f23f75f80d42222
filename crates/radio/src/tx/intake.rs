//! The packets from the device: credit at the stream's port, events through control.

use std::time::{Duration, Instant};

use millstream_wire::chdr::{Packet, PacketType};
use millstream_wire::regs::radio::async_msg::Event;
use millstream_wire::stream::{StatusRepr, StreamCondition};

use super::accounting::StatusEffect;
use super::meta::{TxError, TxEvent};
use super::streamer::TxStreamer;
use crate::error::io_error;

/// The longest sleep between checks of the stream's state.
const SLICE: Duration = Duration::from_millis(5);

impl TxStreamer {
    /// Returns the next event, if there is one.
    ///
    /// # Errors
    /// [`TxError::Radio`] when the system refuses.
    pub fn poll_event(&mut self) -> Result<Option<TxEvent>, TxError> {
        if self.events.is_empty() {
            self.poll()?;
        }
        Ok(self.events.pop_front())
    }

    /// Returns the next event, waiting for one up to `timeout`.
    ///
    /// # Errors
    /// [`TxError::DeviceSilent`], [`TxError::Radio`].
    pub fn next_event(&mut self, timeout: Duration) -> Result<Option<TxEvent>, TxError> {
        self.wait(timeout, |stream| !stream.events.is_empty())?;
        Ok(self.events.pop_front())
    }

    /// Takes received packets, without waiting.
    pub(super) fn poll(&mut self) -> Result<(), TxError> {
        self.receive(Duration::ZERO)
    }

    /// Waits until `done`, no longer than `timeout`. It also reopens a closed window, even with a
    /// zero `timeout`, so that a caller that never waits does not stall.
    pub(super) fn wait(
        &mut self,
        timeout: Duration,
        done: impl Fn(&Self) -> bool,
    ) -> Result<bool, TxError> {
        self.poll()?;
        let until = self.path.clock.deadline(timeout);
        loop {
            if done(self) {
                return Ok(true);
            }
            let now = self.path.clock.now();
            self.recover(now)?;
            if now >= until {
                return Ok(false);
            }
            self.receive(self.sleep(now, until))?;
        }
    }

    /// Returns how long to sleep at `now` in a wait that ends at `until`.
    pub(super) fn sleep(&self, now: Instant, until: Instant) -> Duration {
        let next = self.stall.map_or(until, |stall| stall.next().min(until));
        SLICE.min(next.saturating_duration_since(now))
    }

    pub(super) fn receive(&mut self, timeout: Duration) -> Result<(), TxError> {
        let received = self.port.rx.recv_batch(timeout);
        let count = received.map_err(io_error("receive from", self.path.device))?;
        for index in 0..count {
            if let Some(status) = self.parse(index) {
                self.take(&status);
            }
        }
        self.take_async();
        Ok(())
    }

    /// Returns the stream status in datagram `index`; other packets are counted.
    fn parse(&mut self, index: usize) -> Option<StatusRepr> {
        let datagram = self.port.rx.datagram(index);
        if datagram.source != self.path.device {
            self.counters.foreign += 1;
            return None;
        }
        let Ok(packet) = Packet::parse(datagram.payload, self.path.width) else {
            self.counters.malformed += 1;
            return None;
        };
        let ours = packet.header().dst_epid == self.path.epid;
        if !ours || packet.kind() != PacketType::StreamStatus {
            self.counters.unexpected += 1;
            return None;
        }
        let status = StatusRepr::parse(&packet).ok();
        self.counters.malformed += u64::from(status.is_none());
        status
    }

    fn take(&mut self, status: &StatusRepr) {
        if status.src_epid != self.path.endpoint.epid {
            self.counters.unexpected += 1;
            return;
        }
        let taken = self.account.take(status);
        if taken == StatusEffect::Stale {
            self.counters.stale_reports += 1;
            return;
        }
        self.counters.reports += 1;
        if status.status == StreamCondition::SequenceError {
            self.counters.sequence_errors += 1;
            self.report(TxEvent::SequenceError);
        }
        let news = match taken {
            StatusEffect::Stale => false,
            StatusEffect::Credit { news } => news,
            StatusEffect::Audit { news, packets, samples, certain } => {
                self.counters.audits_uncertain += u64::from(!certain);
                if packets > 0 {
                    self.report(TxEvent::Lost { packets, samples });
                }
                news
            }
        };
        if news {
            self.stall = None;
        }
    }

    /// Takes over the messages that the control thread stored.
    fn take_async(&mut self) {
        self.counters.reports_missed = self.channel.missed().saturating_sub(self.missed_before);
        let reported = self.channel.events().tx_reported();
        if reported == self.async_seen {
            return;
        }
        self.async_seen = reported;
        while let Some((event, time_ticks)) = self.channel.events().take_tx() {
            let event = match event {
                Event::TxUnderrun => {
                    self.counters.underflows += 1;
                    self.account.lates.run_dry();
                    TxEvent::Underflow { time_ticks }
                }
                Event::TxLate => {
                    self.counters.lates += 1;
                    self.account.late();
                    TxEvent::Late { time_ticks }
                }
                Event::TxBurstAck => {
                    self.counters.burst_acks += 1;
                    self.account.acknowledge(time_ticks);
                    TxEvent::BurstAck { time_ticks }
                }
                Event::RxLateCommand | Event::RxOverrun => continue,
            };
            self.report(event);
        }
    }
}
