//! The core of a transmit stream: what follows from the device's reports, and from time.
//!
//! It has no clock and no access to the device, and never waits. It fills packets in memory that it
//! is lent (see [`super::filling`]). The streamer owns the port, and carries out the steps that the
//! core asks for.

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use millstream_wire::Width;
use millstream_wire::chdr::{Packet, PacketType, SC16_LEN};
use millstream_wire::regs::radio::async_msg::Event;
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr, StreamCondition};

use super::accounting::{Opened, StatusEffect, TxAccounting};
use super::filling::Filling;
use super::meta::{TxCounters, TxEvent};
use super::recover::{PATIENCE, RecoveryStep, SilentDevice, play_time};
use crate::stream::StreamPath;

/// The most events that wait for the caller; with more, the oldest are dropped.
const EVENTS_MAX: usize = 1024;

/// The longest sleep between checks of the stream's state.
const SLEEP_MAX: Duration = Duration::from_millis(5);

/// The bytes of the longest query.
pub(super) const QUERY_BYTES_MAX: usize = CommandRepr::packet_len(Width::W512);

/// The state of a transmit stream.
pub(super) struct TxCore {
    pub(super) path: StreamPath,
    pub(super) filling: Filling,
    pub(super) account: TxAccounting,
    pub(super) counters: TxCounters,
    pub(super) events: VecDeque<TxEvent>,
    /// The next command's sequence number.
    command_seq: u16,
    /// Bytes sent since the port was last polled for credit.
    pub(super) unpolled_bytes: u64,
    /// The time that the device plays between two reports.
    pub(super) period: Duration,
    pub(super) stall: Option<SilentDevice>,
}

/// What the core asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TxStep {
    /// Query the device's place.
    Query,
    /// Find the reason for a silence of this length.
    Examine { silent: Duration },
}

impl TxCore {
    /// Returns the state behind a handshake, of a stream that fills packets of `full_samples`.
    pub fn new(path: StreamPath, opened: Opened, full_samples: u64, filling: Filling) -> Self {
        let period_samples = opened.window.period().bytes / SC16_LEN as u64;
        Self {
            path,
            filling,
            account: TxAccounting::new(opened, full_samples, path.rate),
            counters: TxCounters::default(),
            events: VecDeque::with_capacity(EVENTS_MAX),
            command_seq: 0,
            unpolled_bytes: 0,
            period: play_time(period_samples, path.rate.samples_hz()),
            stall: None,
        }
    }

    /// Accepts a datagram.
    pub fn accept(&mut self, payload: &[u8], source: SocketAddrV4) {
        if let Some(status) = self.parse(payload, source) {
            self.note_status(&status);
        }
    }

    /// Returns the stream status in a datagram; other packets are counted.
    fn parse(&mut self, payload: &[u8], source: SocketAddrV4) -> Option<StatusRepr> {
        if source != self.path.device {
            self.counters.foreign += 1;
            return None;
        }
        let Ok(packet) = Packet::parse(payload, self.path.width) else {
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

    fn note_status(&mut self, status: &StatusRepr) {
        if status.src_epid != self.path.endpoint.epid {
            self.counters.unexpected += 1;
            return;
        }
        let StatusEffect::Taken { news, lost: (packets, samples) } = self.account.take(status)
        else {
            self.counters.stale_reports += 1;
            return;
        };
        self.counters.reports += 1;
        if status.status == StreamCondition::SequenceError {
            self.counters.sequence_errors += 1;
            self.report(TxEvent::SequenceError);
        }
        if packets > 0 {
            self.report(TxEvent::Lost { packets, samples });
        }
        if news {
            self.stall = None;
        }
    }

    /// Notes a message of the radio, of the device's time `time_ticks`.
    pub fn note_event(&mut self, event: Event, time_ticks: u64) {
        let event = match event {
            Event::TxUnderrun => {
                self.counters.underflows += 1;
                self.account.run_dry();
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
            Event::RxLateCommand | Event::RxOverrun => return,
        };
        self.report(event);
    }

    /// Notes the messages that never came, `missed` since the stream began.
    pub fn miss_messages(&mut self, missed: u64) {
        self.counters.reports_missed = missed;
        self.account.miss_messages(missed);
    }

    fn report(&mut self, event: TxEvent) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
            self.counters.events_dropped += 1;
        }
        self.events.push_back(event);
    }

    /// Returns the step that is due at `now` during a silence; `closed`: the window has no room.
    pub fn recover(&mut self, now: Instant, closed: bool) -> Option<TxStep> {
        if self.account.is_settled() {
            self.stall = None;
            return None;
        }
        let stall = self.stall.get_or_insert(SilentDevice::new(now, self.period));
        let (first, since) = (stall.is_first(), stall.since());
        match stall.due(now) {
            RecoveryStep::Nothing => None,
            RecoveryStep::Query => {
                self.counters.stalls += u64::from(first && closed);
                Some(TxStep::Query)
            }
            RecoveryStep::Examination => {
                Some(TxStep::Examine { silent: now.duration_since(since) })
            }
        }
    }

    /// Returns how long to sleep at `now` in a wait that ends at `until`.
    pub fn sleep(&self, now: Instant, until: Instant) -> Duration {
        let next = self.stall.map_or(until, |stall| stall.next().min(until));
        SLEEP_MAX.min(next.saturating_duration_since(now))
    }

    /// Returns how long a device has a valid reason to take no samples, silent for `silent` and
    /// with the time `ticks`; without samples with time in flight the time is not needed.
    pub fn still_holds(&self, silent: Duration, ticks: Option<u64>) -> Duration {
        let rate = self.path.rate;
        let silent_until = |now| Some((now, self.account.silent_until(now)?));
        if let Some((now, until)) = ticks.and_then(silent_until) {
            let ahead = until.wrapping_sub(now);
            return play_time(ahead, rate.ticks_hz) + 2 * self.period + PATIENCE;
        }
        let held = play_time(self.account.samples_in_flight(), rate.samples_hz()) + PATIENCE;
        held.saturating_sub(silent)
    }

    /// Begins anew behind another handshake.
    pub fn reopen(&mut self, opened: Opened) {
        let samples = self.account.reopen(opened);
        (self.command_seq, self.unpolled_bytes) = (0, 0);
        self.filling.restart();
        self.stall = None;
        self.counters.reestablished += 1;
        self.report(TxEvent::Reestablished { samples });
    }

    /// Writes a query of the device's place into `out`. Returns its length; `None` without credit.
    pub fn query(&mut self, out: &mut [u8]) -> Option<usize> {
        // A packet under construction has reserved its credit.
        if !self.account.has_room_for_query(self.begun_bytes()) {
            return None;
        }
        let command = CommandRepr {
            dst_epid: self.path.endpoint.epid,
            seq: self.command_seq,
            src_epid: self.path.epid,
            op: CommandOp::Ping,
            op_data: 0,
            packets: 0,
            bytes: 0,
        };
        let length = command.emit(self.path.width, out).expect("the buffer is that long");
        self.account.send_query(self.command_seq);
        self.command_seq = self.command_seq.wrapping_add(1);
        self.counters.queries += 1;
        Some(length)
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
