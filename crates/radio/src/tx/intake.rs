//! What comes from the device: credit at the stream's port, events through control.

use std::time::{Duration, Instant};

use millstream_wire::chdr::{Packet, PacketType};
use millstream_wire::regs::radio::async_msg::Event;
use millstream_wire::stream::{Status, StatusRepr};

use super::ledger::TxCause;
use super::meta::{TxError, TxEvent};
use super::streamer::TxStreamer;
use super::window::Totals;
use crate::error::io_error;

/// Longest sleep between looks at the state of the stream.
const SLICE: Duration = Duration::from_millis(5);

impl TxStreamer {
    /// The next event, if there is one.
    ///
    /// # Errors
    /// [`TxError::Radio`] when the system refuses.
    pub fn poll_event(&mut self) -> Result<Option<TxEvent>, TxError> {
        if self.events.is_empty() {
            self.poll()?;
        }
        Ok(self.events.pop_front())
    }

    /// The next event, waiting for one up to `timeout`.
    ///
    /// # Errors
    /// [`TxError::DeviceSilent`], [`TxError::Radio`].
    pub fn next_event(&mut self, timeout: Duration) -> Result<Option<TxEvent>, TxError> {
        self.wait(timeout, |stream| !stream.events.is_empty())?;
        Ok(self.events.pop_front())
    }

    /// Takes what has come, without waiting.
    pub(super) fn poll(&mut self) -> Result<(), TxError> {
        self.receive(Duration::ZERO)
    }

    /// Waits until `done`, no longer than `timeout`; brings a closed window to open again.
    pub(super) fn wait(
        &mut self,
        timeout: Duration,
        done: impl Fn(&Self) -> bool,
    ) -> Result<bool, TxError> {
        self.poll()?;
        let until = Instant::now() + timeout.min(super::send::YEAR);
        loop {
            if done(self) {
                return Ok(true);
            }
            let now = Instant::now();
            if now >= until {
                return Ok(false);
            }
            self.recover(now)?;
            self.receive(SLICE.min(until - now))?;
        }
    }

    fn receive(&mut self, timeout: Duration) -> Result<(), TxError> {
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

    /// The stream status in datagram `index`; anything else is counted.
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
        self.last_heard = Instant::now();
        if self.audits.is_stale(status.seq) {
            self.counters.stale_reports += 1;
            return;
        }
        self.counters.reports += 1;
        if status.status == Status::SequenceError {
            self.counters.sequence_errors += 1;
            self.report(TxEvent::SequenceError);
        }
        let counted = self.counted(status);
        let (news, lost) = match self.audits.take(status.seq, counted) {
            None => (self.window.consume(counted), 0),
            Some(finding) => {
                self.counters.audits_uncertain += u64::from(!finding.certain);
                let news = self.window.resynchronised(counted);
                let samples = finding.lost.samples_max;
                if finding.packets > 0 {
                    self.report(TxEvent::Lost { packets: finding.packets, samples });
                }
                (news, samples)
            }
        };
        if news {
            self.stall = None;
            let consumed = self.window.consumed();
            let samples = self.flight.pass(consumed.bytes);
            self.ledger.pass(samples, 0);
        }
        let lost = lost.min(self.ledger.transmitted);
        self.ledger.revoke(TxCause::NetworkLoss, lost);
        self.book_lates();
    }

    /// Books late samples, as soon as the device has also let go of their packets.
    fn book_lates(&mut self) {
        let samples = self.late_samples.min(self.ledger.transmitted);
        self.late_samples -= samples;
        self.ledger.revoke(TxCause::Late, samples);
    }

    /// Late samples had been booked too many.
    pub(super) fn restore_lates(&mut self, samples: u64) {
        let owed = samples.min(self.late_samples);
        self.late_samples -= owed;
        let booked = (samples - owed).min(self.ledger.lost(TxCause::Late));
        self.ledger.restore(TxCause::Late, booked);
    }

    /// The device's totals. Packets come in 40 bits: those nearest to what was sent.
    fn counted(&self, status: &StatusRepr) -> Totals {
        let sent = self.window.sent().packets;
        let behind = sent.wrapping_sub(status.count_packets) & ((1 << 40) - 1);
        let ahead = behind >> 39 != 0;
        let behind = if ahead { behind | !((1 << 40) - 1) } else { behind };
        Totals { packets: sent.wrapping_sub(behind), bytes: status.count_bytes }
    }

    /// Takes over what the control thread noted.
    fn take_async(&mut self) {
        let reported = self.channel.events().tx_reported();
        if reported == self.async_seen {
            return;
        }
        self.async_seen = reported;
        while let Some((event, time_ticks)) = self.channel.events().take_tx() {
            let event = match event {
                Event::TxUnderrun => {
                    self.counters.underflows += 1;
                    TxEvent::Underflow { time_ticks }
                }
                Event::TxLate => {
                    self.counters.lates += 1;
                    self.late_samples += self.lates.late();
                    TxEvent::Late { time_ticks }
                }
                Event::TxBurstAck => {
                    self.counters.burst_acks += 1;
                    let restored = self.lates.acknowledge(time_ticks);
                    self.restore_lates(restored);
                    TxEvent::BurstAck { time_ticks }
                }
                Event::RxLateCommand | Event::RxOverrun => continue,
            };
            self.report(event);
        }
        self.book_lates();
    }
}
