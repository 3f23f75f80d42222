//! The accounting of a stream: credit, packets in flight, and the outcome of every sample.
//!
//! All conclusions of a transmit stream from sent packets and received reports are drawn here,
//! without a port or a clock.

use std::collections::VecDeque;

use millstream_wire::chdr::PacketType;
use millstream_wire::stream::{SequenceGap, StatusRepr, StreamCondition, StreamPlace};

use super::ledger::TxLedger;
use super::order::{Report, ReportKind, ReportOrder};
use super::pending_bursts::PendingBursts;
use super::progress::{DeviceProgress, Totals};
use super::window::CreditWindow;
use crate::stream::StreamRate;

/// Packet counts have 40 bits in packets.
const PACKETS_MASK: u64 = (1 << 40) - 1;

/// The most stored queries without answer, more than are ever in flight.
const QUERIES_MAX: usize = 64;

/// The effect of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusEffect {
    /// It has come already, or was given up.
    Stale,
    /// It was taken.
    Taken {
        /// The device has come further.
        news: bool,
        /// Packets that the device passed over, and their samples.
        lost: (u64, u64),
    },
}

/// The results of a handshake.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub window: CreditWindow,
    /// The number of the last status.
    pub status_seq: u16,
    /// The device says its place in each report.
    pub tells_place: bool,
}

/// A query of the device's place, a PING: its answer says the number of the command, and that of
/// the data packet that the device expects next. So each packet before it was taken or skipped.
#[derive(Debug, Clone, Copy)]
struct Query {
    /// The number of its command.
    number: u16,
    /// Packets of samples sent before it.
    sent: u64,
}

/// The accounting of one stream, and its ledger.
#[derive(Debug)]
pub(super) struct TxAccounting {
    window: CreditWindow,
    progress: DeviceProgress,
    bursts: PendingBursts,
    order: ReportOrder,
    /// Queries without an answer, and the packets sent before the newest one.
    queries: VecDeque<Query>,
    queried: u64,
    /// Queries since the handshake.
    pings: u64,
    /// Whether the device's count of packets includes them, once it has answered the first.
    counts_queries: Option<bool>,
    accepted: u64,
    discarded: u64,
    ledger: TxLedger,
}

impl TxAccounting {
    /// Returns the accounting of a stream whose full packets have `full_samples` samples.
    pub fn new(opened: Opened, full_samples: u64, rate: StreamRate) -> Self {
        let Opened { window, status_seq, tells_place } = opened;
        Self {
            window,
            progress: DeviceProgress::new(rate.ticks(1)),
            bursts: PendingBursts::new(full_samples, rate.ticks(1)),
            order: ReportOrder::new(status_seq, tells_place),
            queries: VecDeque::with_capacity(QUERIES_MAX),
            queried: 0,
            pings: 0,
            counts_queries: None,
            accepted: 0,
            discarded: 0,
            ledger: TxLedger::default(),
        }
    }

    /// Returns the outcome of every sample so far.
    pub fn ledger(&self) -> &TxLedger {
        &self.ledger
    }

    /// Returns the device's window.
    pub fn window(&self) -> &CreditWindow {
        &self.window
    }

    /// Returns what may be in the device's buffer or on its way there.
    pub fn in_flight(&self) -> Totals {
        let (Totals { packets, bytes }, queries) =
            (self.progress.in_flight(), self.queries.len() as u64);
        Totals { packets: packets + queries, bytes: bytes + queries * self.window.command_bytes() }
    }

    /// Counts samples from the caller.
    pub fn accept(&mut self, samples: u64) {
        self.accepted += samples;
        self.ledger.accepted += samples;
        self.ledger.in_flight += samples;
    }

    /// Returns the samples in packets that the device may not have passed.
    pub fn samples_in_flight(&self) -> u64 {
        self.progress.samples_in_flight()
    }

    /// Returns whether packets in flight have times.
    pub fn has_times(&self) -> bool {
        self.progress.has_times()
    }

    /// Returns the time later than `now` until which the device may be silent because it holds
    /// packets: those before it have not the bytes of a report.
    pub fn silent_until(&self, now: u64) -> Option<u64> {
        self.progress.next_start(now, self.window.period().bytes)
    }

    /// Returns whether the outcome of every sent packet is known.
    pub fn is_known(&self) -> bool {
        self.progress.is_known()
    }

    /// Returns whether packets are counted as lost that may come late.
    pub fn may_come_late(&self) -> bool {
        self.progress.has_skipped()
    }

    /// Returns whether no report of the device is awaited.
    pub fn is_settled(&self) -> bool {
        self.is_known() && !self.is_asking()
    }

    /// Returns whether a query waits for its answer.
    pub fn is_asking(&self) -> bool {
        !self.queries.is_empty()
    }

    /// Returns whether a query would resolve samples in flight.
    pub fn is_query_worth(&self) -> bool {
        !self.is_known() && !self.is_asking() && self.progress.sent() > self.queried
    }

    /// Returns whether the end of a burst has neither been acknowledged nor reported late.
    pub fn is_unacknowledged(&self) -> bool {
        self.bursts.is_unacknowledged()
    }

    /// Returns whether the bursts that are not acknowledged may all be late.
    pub fn may_all_be_late(&self) -> bool {
        self.bursts.may_all_be_late()
    }

    /// Returns how many packets of `flow_bytes` each may be sent now.
    pub fn room_packets(&self, flow_bytes: u64) -> u64 {
        if self.bursts.is_full(&self.progress) {
            return 0;
        }
        self.credit_packets(flow_bytes).min(self.progress.room_packets())
    }

    /// Returns the packets of `flow_bytes` each for which there is credit.
    pub fn credit_packets(&self, flow_bytes: u64) -> u64 {
        self.window.room_packets(self.progress.in_flight(), flow_bytes)
    }

    /// Counts a sent packet with samples of the caller.
    pub fn send(&mut self, flow_bytes: u64, samples: u64, ticks: Option<u64>, eob: bool) {
        self.bursts.send(self.progress.sent(), samples, ticks, eob);
        self.progress.send(flow_bytes, samples, ticks);
    }

    /// Returns whether there is credit for a query, and a packet of `flow_bytes` behind it; 0 for
    /// no packet.
    pub fn has_room_for_query(&self, flow_bytes: u64) -> bool {
        let commands = self.queries.len() as u64 + 1;
        self.window.fits_commands(self.progress.in_flight(), commands, flow_bytes)
    }

    /// Counts a sent query, a PING of this number.
    pub fn send_query(&mut self, number: u16) {
        if self.queries.len() == QUERIES_MAX {
            self.queries.pop_front();
        }
        let sent = self.progress.sent();
        self.queries.push_back(Query { number, sent });
        self.queried = sent;
        self.pings += 1;
    }

    /// Takes a status.
    pub fn take(&mut self, status: &StatusRepr) -> StatusEffect {
        let says = match status.status {
            StreamCondition::Ok => ReportKind::Ok(StreamPlace::from_info(status.error_info)),
            _ => SequenceGap::from_info(status.error_info)
                .map_or(ReportKind::Trouble, ReportKind::Gap),
        };
        let report = Report { seq: status.seq, counted_packets: status.count_packets, says };
        if !self.order.put(report) {
            return StatusEffect::Stale;
        }
        let (in_flight, skipped) = (self.in_flight(), self.progress.outcomes().skipped_packets);
        let lost = self.progress.outcomes().skipped;
        while let Some((missing, report)) = self.order.pop() {
            if missing > 0 {
                self.progress.miss();
            }
            match self.order.is_numbered() {
                true => self.examine(&report),
                false => self.believe(&report),
            }
            self.window.report(self.progress.take_loose_bytes());
        }
        self.update();
        let outcomes = self.progress.outcomes();
        StatusEffect::Taken {
            news: self.in_flight() != in_flight,
            lost: (
                outcomes.skipped_packets.saturating_sub(skipped),
                outcomes.skipped.saturating_sub(lost),
            ),
        }
    }

    /// Takes a report in its order.
    fn examine(&mut self, report: &Report) {
        match report.says {
            ReportKind::Ok(place) => {
                if self.progress.reach(place.expected).is_some() {
                    self.answer(place.command);
                }
            }
            ReportKind::Gap(gap) if gap.kind == PacketType::StreamCommand => {}
            ReportKind::Gap(gap) => self.progress.gap(gap.expected, gap.actual),
            ReportKind::Trouble => self.progress.miss(),
        }
    }

    /// Takes the number of the device's last command: of the queries up to it the newest says most.
    fn answer(&mut self, command: u16) {
        let Some(index) = self.queries.iter().rposition(|query| query.number == command) else {
            return;
        };
        if let Some(query) = self.queries.drain(..=index).next_back() {
            self.progress.settle(query.sent);
        }
    }

    /// Takes a report of a device that does not number them, or does not say its place: UHD's
    /// simulator, whose count of packets includes the queries, and others, whose count does not.
    /// The first query is sent before all samples, so its answer shows which.
    fn believe(&mut self, report: &Report) {
        if !matches!(report.says, ReportKind::Ok(_)) {
            return self.progress.miss();
        }
        let sent = self.progress.sent();
        let counts = *self.counts_queries.get_or_insert(report.counted_packets != 0);
        // All of them may have come.
        let queries = if counts { self.pings } else { 0 };
        let behind = (sent + queries).wrapping_sub(report.counted_packets) & PACKETS_MASK;
        let place = sent.checked_sub(behind);
        if let Some(place) = place.filter(|place| *place > self.progress.decided()) {
            self.progress.reach(place as u16);
        }
        if behind == 0 {
            self.queries.clear();
        }
    }

    /// Counts a message about a late packet.
    pub fn late(&mut self) {
        self.bursts.report_late();
        self.update();
    }

    /// Counts a message that a burst ran dry.
    pub fn run_dry(&mut self) {
        self.bursts.run_dry();
    }

    /// Takes the device's acknowledgement of a burst.
    pub fn acknowledge(&mut self, ticks: u64) {
        self.bursts.acknowledge(ticks, &self.progress);
        self.update();
    }

    /// Notes the messages that never came, `missed` since the stream began.
    pub fn miss_messages(&mut self, missed: u64) {
        self.bursts.miss(missed);
    }

    /// Brings the ledger up to date.
    fn update(&mut self) {
        self.bursts.settle(&self.progress);
        let outcomes = self.progress.outcomes();
        self.ledger = TxLedger::of(self.accepted, self.discarded, outcomes, &self.bursts);
    }

    /// Closes the accounting of the stream.
    pub fn close(&mut self) {
        self.progress.close();
        self.bursts.close(&self.progress);
        self.update();
        self.discarded += self.ledger.in_flight;
        self.update();
    }

    /// Restarts the accounting with a new handshake. Returns the samples whose outcome is unknown.
    pub fn reopen(&mut self, opened: Opened) -> u64 {
        let before = self.ledger.unknown.samples;
        self.progress.close();
        self.bursts.close(&self.progress);
        self.progress.restart();
        self.order = ReportOrder::new(opened.status_seq, opened.tells_place);
        self.queries.clear();
        (self.queried, self.pings, self.counts_queries) = (0, 0, None);
        self.window = opened.window;
        self.update();
        self.ledger.unknown.samples.saturating_sub(before)
    }
}
