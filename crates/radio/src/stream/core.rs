//! The core of a receive stream: what follows from the packets that come, and from time.
//!
//! It has no port, no clock and no access to the device, and never waits:
//! ```text
//! datagrams ────────▶ ┌────────┐ ─▶ samples to convert (`UnreadSamples`)
//! radio's reports ──▶ │ RxCore │ ─▶ events and gaps (`pending`), the ledger
//! time, answers ────▶ └────────┘ ─▶ a report to send (`report_due`), a request (`need`)
//! ```
//! The member of a stream ([`super::member`]) owns the port and carries out what the core asks for.
//! The core has one part for each question, and the parts know nothing of each other: which packet
//! is next ([`Numbers`]), what the radio was told ([`Run`]), what is asked of the radio
//! ([`Recovery`]), what became of the samples ([`Books`]), for how long nothing came ([`Silence`]).

mod ends;

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use millstream_wire::chdr::{DataRepr, Header, Packet, SC16_LEN};
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr};

use super::arrival::{
    Arrival, Content, LentDatagram, PacketSource, PendingReport, SideReports, UnreadSamples,
    content,
};
use super::books::{Around, Books};
use super::credit::Credit;
use super::meta::{RxArgs, RxError, RxEvent};
use super::numbers::{Numbers, PacketClass, PacketGap};
use super::opening::{RxOpening, SkippedPackets, StreamPath};
use super::recovery::{
    Halt, Recovery, RecoveryNeed, Step, Turn, check_attempts, restart_lead, silence_of,
};
use super::reorder::{ReorderBuffer, ReorderWindow};
use super::run::{Mode, QueuedCapture, Restart, Run};
use super::silence::{SLEEP_MAX, Silence};
use crate::channel::TimeRead;
use crate::{Cause, RadioError};

/// The longest sleep while the link has no space for a report that the device waits for.
const OWED: Duration = Duration::from_millis(1);

/// The time limit for the end of a stopped burst.
const STOP_TIMEOUT: Duration = Duration::from_millis(300);

/// The cycles that the radio takes between two captures, at most.
const PAUSE_CYCLES: u64 = 3;

/// The state of a receive stream.
pub(super) struct RxCore {
    path: StreamPath,
    samples_per_packet: u32,
    /// The samples that the radio makes in one cycle.
    cycle: NonZeroU32,
    /// A member of a group restarts only together with the others.
    in_group: bool,

    numbers: Numbers,
    run: Run,
    recovery: Recovery,
    books: Books,
    silence: Silence,
    credit: Credit,
    /// Packets that came early.
    aside: ReorderBuffer,

    /// The packet whose samples are being delivered.
    held: Option<UnreadSamples>,
    /// The report to return before any further samples.
    pending: Option<PendingReport>,
    /// The number of times that the device's clock was set.
    epoch: u64,
    /// What the radio and the port reported besides packets, and what of it was considered.
    reports: SideReports,
    late_commands_seen: u64,
    overruns_seen: u64,
    /// A credit report is to be sent.
    report_due: bool,
    /// What is to be done next.
    step: Option<Step>,
}

/// The outcome of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intake {
    Done,
    /// Others come first: it is to be given again behind them.
    Again,
}

impl RxCore {
    /// Returns the state of an idle stream of a radio that makes `cycle` samples in a cycle.
    pub fn new(
        path: StreamPath,
        (samples_per_packet, cycle): (u32, NonZeroU32),
        packets_per_drop: u64,
        credit: Credit,
        args: &RxArgs,
        silence_max: Duration,
        now: Instant,
    ) -> Self {
        let (rate, samples) = (path.rate, u64::from(samples_per_packet));
        // A second.
        let believed = rate.ticks_hz as u64;
        let window = ReorderWindow::new(args.reorder_window, rate, samples);
        Self {
            path,
            samples_per_packet,
            cycle,
            in_group: false,
            numbers: Numbers::new(samples, rate.ticks(1), believed),
            run: Run::new(),
            recovery: Recovery::Running,
            books: Books::new(samples, packets_per_drop),
            silence: Silence::new(silence_max, rate, samples, now),
            credit,
            aside: ReorderBuffer::new(window, path.frame_bytes),
            held: None,
            pending: None,
            epoch: 0,
            reports: SideReports::default(),
            late_commands_seen: 0,
            overruns_seen: 0,
            report_due: false,
            step: None,
        }
    }

    pub fn samples_per_packet(&self) -> u32 {
        self.samples_per_packet
    }

    pub fn books(&self) -> &Books {
        &self.books
    }

    /// Returns the books, to enter what became of samples that were taken.
    pub fn books_mut(&mut self) -> &mut Books {
        &mut self.books
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    pub fn credit(&self) -> &Credit {
        &self.credit
    }

    pub fn held(&self) -> Option<UnreadSamples> {
        self.held
    }

    /// Returns a packet in the reorder buffer.
    pub fn packet_aside(&self, place: usize) -> &[u8] {
        self.aside.packet(place)
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Makes the stream a member of a group: it restarts with the others, and a wrong time would
    /// take it away from them.
    pub fn join_group(&mut self) {
        self.in_group = true;
        self.numbers.confirm_all_jumps();
    }

    // Starting and stopping

    /// Begins a burst of `samples` samples, or without an end, at the device's time `at`.
    pub fn begin(&mut self, samples: Option<u64>, at: Option<u64>, with_transmitter: bool) {
        self.aside.clear();
        self.numbers.forget();
        self.numbers.begin(at);
        self.books.begin(at);
        self.silence.begin();
        self.recovery = Recovery::Running;
        self.run.begin(samples, at, with_transmitter);
    }

    /// Notes that the radio has queued a capture.
    pub fn queue_capture(&mut self, capture: QueuedCapture) {
        self.run.queue_capture(capture);
    }

    /// Removes what had not begun at the device's time `now`, when the radio was stopped.
    pub fn forget_what_has_not_begun(&mut self, now: u64) {
        self.run.forget_what_has_not_begun(now, self.numbers.next_ticks(), self.path.rate);
    }

    /// Forgets the captures that the radio had queued, which will not come any more.
    pub fn forget_queued_captures(&mut self) {
        self.run.forget_queued_captures();
    }

    /// Notes that the radio was stopped.
    pub fn stop(&mut self, now: Instant) {
        self.run.stop(now);
    }

    /// Forgets what runs, and the results.
    pub fn abandon(&mut self) {
        self.run.end();
        self.recovery = Recovery::Running;
    }

    /// Drops the report that the caller has not got.
    pub fn drop_pending(&mut self) {
        self.pending = None;
    }

    /// Takes the reports so far as those before the next start.
    pub fn see_reports(&mut self) {
        self.late_commands_seen = self.reports.late_commands;
        self.overruns_seen = self.reports.overruns;
    }

    // What the caller gets

    /// Returns whether there is a result for the caller.
    pub fn has_result(&self) -> bool {
        self.held.is_some() || self.pending.is_some()
    }

    /// Returns whether a report waits for the caller.
    pub fn has_report(&self) -> bool {
        self.pending.is_some()
    }

    /// Advances by `samples` in the current packet and releases it at its end. Returns whether the
    /// burst ended with it, and whether a report of that follows.
    pub fn pass(&mut self, mut held: UnreadSamples, samples: usize) -> (bool, bool) {
        held.at += samples * SC16_LEN;
        held.ticks = held.ticks.map(|t| t.wrapping_add(self.path.rate.ticks(samples as u64)));
        if held.at < held.end {
            self.held = Some(held);
            return (false, false);
        }
        self.held = None;
        let (event, ends_burst) = (held.then, held.ends_burst);
        if event != RxEvent::None {
            let ticks = held.ticks;
            self.pending = Some(PendingReport { event, ticks, ends_burst, then: RxEvent::None });
        }
        if ends_burst {
            self.burst_over();
        }
        self.consumed(held.place, held.flow_bytes);
        (ends_burst, event != RxEvent::None)
    }

    /// Takes the next report.
    pub fn take_pending(&mut self) -> Option<PendingReport> {
        let pending = self.pending.take()?;
        if pending.then != RxEvent::None {
            let ticks = match pending.then {
                RxEvent::ClockJump { ticks: length, .. } => {
                    pending.ticks.map(|ticks| ticks.wrapping_add(length as u64))
                }
                _ => pending.ticks,
            };
            let event = pending.then;
            self.pending = Some(PendingReport { event, ticks, then: RxEvent::None, ..pending });
        }
        Some(pending)
    }

    /// Returns whether a credit report is to be sent, once.
    pub fn take_report_due(&mut self) -> bool {
        std::mem::take(&mut self.report_due)
    }

    /// Returns the credit report, which then counts as sent.
    pub fn report(&mut self) -> StatusRepr {
        self.credit.report(self.path.endpoint.epid, self.path.epid)
    }

    /// Notes whether the link took the report.
    pub fn note_reported(&mut self, sent: bool) {
        if sent {
            self.books.count().reports += 1;
        } else {
            self.books.count().reports_put_off += 1;
            self.credit.owe();
        }
    }

    /// Makes a report due that the link had no space for.
    pub fn report_if_owed(&mut self) {
        if self.credit.is_owed() {
            self.report_unless_over();
        }
    }

    /// Takes what is to be done next.
    pub fn take_step(&mut self) -> Option<Step> {
        self.step.take()
    }

    // Time

    /// Returns how long to wait for datagrams from `now` on, no longer than `until`.
    pub fn wait(&mut self, now: Instant, until: Instant) -> Duration {
        self.silence.wait(now);
        let left = until.saturating_duration_since(now);
        let longest = if self.credit.is_owed() { OWED } else { SLEEP_MAX };
        left.min(self.aside.left(now).map_or(longest, |wait| wait.min(longest)))
    }

    /// Takes the time at which datagrams were received.
    pub fn look(&mut self, now: Instant) {
        self.silence.look(now);
    }

    /// Returns whether a packet of the device came since then.
    pub fn has_heard(&self) -> bool {
        self.silence.has_heard()
    }

    /// Lets packets that have waited long enough for an earlier one continue without it. Returns
    /// true when there are some.
    pub fn give_up_waiting(&mut self) -> bool {
        self.aside.left(self.silence.last_look()) == Some(Duration::ZERO) && self.aside.give_up()
    }

    /// Concludes from the datagrams since the last look; `found`: they gave a result. Returns true
    /// when the device is silent.
    pub fn listen(&mut self, found: bool) -> bool {
        // Other packets may come to the port, but none of the device.
        !self.silence.listen() && !found
    }

    /// Notes that the device answered at `now`.
    pub fn answered(&mut self, now: Instant) {
        self.silence.answered(now);
    }

    /// Notes what the radio and the port have reported besides packets.
    pub fn note_reports(&mut self, reports: SideReports) {
        self.reports = reports;
        self.books.note_too_long(reports.too_long);
    }

    /// Checks the stream at `now`, after a wait without packets. Returns what is to be done.
    pub fn idle(&mut self, now: Instant) -> Option<Step> {
        if self.run.is_idle() {
            return None;
        }
        // A capture further down the queue is not yet awaited.
        let concerned = self.run.awaited().is_some() || !self.run.has_queued_captures();
        if concerned && self.reports.late_commands != self.late_commands_seen {
            return self.late_command();
        }
        if let Some(is_quiet) = self.silence.is_report_due(now) {
            self.report_unless_over();
            // An overrun was reported, but the packet that ended its burst has not come.
            let is_lost = |at| self.run.is_continuous() && self.run.is_new_overrun(at);
            if is_quiet && self.new_overrun().is_some_and(is_lost) {
                self.overran();
                return self.step.take();
            }
        }
        let lasts = |since| now.duration_since(since) >= STOP_TIMEOUT;
        if matches!(self.run.mode(), Mode::Stopping { since } if lasts(since))
            && self.silence.lasts(now) >= STOP_TIMEOUT
        {
            // The end of the burst is lost, or the device had stopped by itself.
            self.run.forget_queued_captures();
            self.end_burst(RxEvent::None);
            return None;
        }
        let silent = self.silence.lasts(now);
        self.silence.is_long(now).then_some(Step::Ask { silent })
    }

    /// Checks at `now` that samples come: otherwise counts as lost what was due.
    ///
    /// # Errors
    /// [`RxError::SamplesStopped`].
    pub fn check_samples(&mut self, now: Instant) -> Result<(), RxError> {
        let packets = self.books.counters().packets;
        let silent = self.silence.check_samples(packets, self.run.is_idle(), now);
        let Some(silent) = silent else { return Ok(()) };
        let samples = match self.run.mode() {
            Mode::Finite { left } => left,
            Mode::Continuous => (silent.as_secs_f64() * self.path.rate.samples_hz()) as u64,
            Mode::Stopping { .. } | Mode::Idle => 0,
        };
        self.lose_due(samples);
        if self.run.left().is_some() {
            self.burst_over();
        }
        let (address, silent_ms) = (self.path.device, silent.as_millis() as u64);
        Err(RxError::SamplesStopped { address, silent_ms, samples })
    }

    /// Returns whether the last check found that the samples have stopped.
    pub fn has_stopped(&self) -> bool {
        self.silence.has_stopped()
    }

    /// Counts samples as lost that were due and did not come.
    pub fn lose_due(&mut self, samples: u64) {
        self.books.lose(Cause::Unknown, samples);
        self.numbers.lose_end(samples.div_ceil(self.samples_per_packet.into()), samples);
    }

    /// Returns whether no packet was due yet at the device's time `ticks`. The wait for a restart
    /// is not intended: a radio whose message about the overrun was not acknowledged takes every
    /// start, and executes none.
    fn is_waiting(&mut self, ticks: u64, now: Instant) -> bool {
        let restart = self.run.restart();
        let is_first = restart.is_none() && !self.numbers.has_begun();
        let is_early = is_first && self.run.is_with_transmitter() || {
            let lead = restart.map(|restart| self.restart_lead(u64::MAX, restart.attempts));
            self.silence.is_early(ticks, self.run.awaited(), lead, self.numbers.next_ticks())
        };
        self.silence.note_waiting(ticks, is_early && restart.is_none(), now);
        is_early
    }

    // Packets

    /// Accepts a datagram that the port lends.
    pub fn accept(&mut self, datagram: &LentDatagram<'_>) -> Intake {
        if datagram.source != self.path.device {
            self.books.count().foreign += 1;
            return Intake::Done;
        }
        self.silence.hear();
        self.inspect(PacketSource::Lent(datagram.index), Some(datagram.payload))
    }

    /// Accepts the next packet of the reorder buffer, if its turn has come; returns false without
    /// one.
    pub fn accept_waiting(&mut self) -> bool {
        let Some(place) = self.aside.due_index(self.numbers.next_seq()) else { return false };
        self.inspect(PacketSource::Aside(place), None);
        true
    }

    /// Takes a packet: the bytes that the port lends, or those in the reorder buffer.
    fn inspect(&mut self, place: PacketSource, lent: Option<&[u8]>) -> Intake {
        let bytes = match place {
            PacketSource::Lent(_) => lent.unwrap_or_default(),
            PacketSource::Aside(place) => self.aside.packet(place),
        };
        let parsed = Packet::parse(bytes, self.path.width).and_then(|packet| {
            let is_mine = packet.header().dst_epid == self.path.epid;
            Ok(if is_mine { Some(content(&packet)?) } else { None })
        });
        match parsed {
            Ok(Some(Content::Data { repr, at, flow_bytes })) => {
                return self.data(place, lent, &repr, at, flow_bytes);
            }
            Ok(Some(Content::Command { repr, flow_bytes })) => {
                self.stream_command(&repr, flow_bytes);
            }
            Ok(Some(Content::Other)) => self.books.count().unexpected += 1,
            Ok(None) => self.books.count().misaddressed += 1,
            Err(_) => {
                let header = Header::peek(bytes).ok();
                let of_this =
                    |header: &Header| header.kind.is_data() && header.dst_epid == self.path.epid;
                let number = header.filter(of_this).map(|header| header.seq);
                self.malformed(number);
            }
        }
        Intake::Done
    }

    /// Counts a packet that cannot be decoded, except perhaps its number.
    fn malformed(&mut self, seq: Option<u16>) {
        self.books.count().malformed += 1;
        if !seq.is_some_and(|seq| self.numbers.damage(seq)) {
            self.books.note_malformed(1);
        }
    }

    fn stream_command(&mut self, repr: &CommandRepr, flow_bytes: usize) {
        match repr.op {
            CommandOp::Resync => {
                if self.credit.resync(repr.packets, repr.bytes) {
                    self.release(flow_bytes);
                } else {
                    self.books.count().unexpected += 1;
                }
            }
            // The device did not receive the answer to the handshake, or this is a second copy. In
            // either case the count since the handshake is correct.
            CommandOp::Init => self.report_due = true,
            CommandOp::Ping => {
                self.credit.release(flow_bytes);
                self.report_due = true;
            }
        }
    }

    fn data(
        &mut self,
        place: PacketSource,
        lent: Option<&[u8]>,
        repr: &DataRepr,
        at: usize,
        flow_bytes: usize,
    ) -> Intake {
        let mut arrival = Arrival::of(repr);
        if self.run.is_idle() {
            self.stray(&arrival);
            self.consumed(place, flow_bytes);
            return Intake::Done;
        }
        let waits = lent.and_then(|packet| self.waits(packet, &arrival, repr.eob, flow_bytes));
        if let Some(waits) = waits {
            return waits;
        }
        if self.is_of_a_later_capture(&arrival) {
            self.give_up_capture(&arrival);
            // Process it again after that report.
            return Intake::Again;
        }
        let due = self.numbers.next_seq();
        let mut gap = match self.judge(&arrival) {
            PacketClass::Next => None,
            PacketClass::After(gap) => Some(gap),
            other => {
                self.pass_by(place, &arrival, flow_bytes, other);
                return Intake::Done;
            }
        };
        let fresh = lent.is_some();
        if fresh && self.numbers.next_seq() == due.wrapping_add(1) {
            self.drop_doubted(due);
        }
        self.books.count().packets += 1;
        self.credit.pass_gap(gap.map_or(0, |gap| gap.packets), flow_bytes, fresh);
        if let Some(left) = self.run.left() {
            // No more counts than was asked for.
            arrival.samples = arrival.samples.min(left);
            gap = gap.map(|gap| self.within_capture(gap, left - arrival.samples));
        }
        self.book(&arrival, gap);
        self.run.note_end(repr.eob);
        let (ends_burst, then) = self.burst_after(&arrival, gap, repr.eob);
        let (end, ticks) = (at + arrival.samples as usize * SC16_LEN, repr.timestamp);
        self.held = Some(UnreadSamples { place, at, end, ticks, flow_bytes, ends_burst, then });
        // While a restart is awaited, this is the end of the previous run.
        if repr.eob && self.run.is_continuous() && self.run.restart().is_none() {
            self.overran();
        }
        Intake::Done
    }

    /// Counts a packet while nothing runs. It is tracked all the same, so that the next burst
    /// begins with the right number; it may be one that the burst before it gave up.
    fn stray(&mut self, arrival: &Arrival) {
        self.numbers.begin(None);
        self.aside.clear();
        match self.numbers.judge(arrival) {
            PacketClass::Late => {
                self.books.count().late += 1;
                return;
            }
            // The packets missing before it are not in the ledger.
            PacketClass::Next | PacketClass::After(_) => self.numbers.forget(),
            PacketClass::Duplicate | PacketClass::Doubtful => {}
        }
        self.books.count().stray += 1;
    }

    /// Puts a packet into the reorder buffer, or lets it wait for those in it, where one before it
    /// may still come; returns `None` for one that need not wait. The end of an overrun burst does
    /// not wait: the restart is more urgent.
    ///
    /// The wait is measured by the device's clock, or by silence at the port, so delays of this
    /// machine lose nothing.
    fn waits(
        &mut self,
        packet: &[u8],
        arrival: &Arrival,
        eob: bool,
        flow_bytes: usize,
    ) -> Option<Intake> {
        if self.aside.is_empty() && !eob && self.numbers.is_doubtful(arrival) {
            // Its samples are good if the next packet confirms its time.
            let may = self.aside.takes(arrival.seq, packet, 1);
            return may.then(|| {
                self.aside.doubt(arrival.seq, packet, self.silence.last_look());
                self.release(flow_bytes);
                Intake::Done
            });
        }
        let missing = self.numbers.missing_before(arrival);
        if missing == 0 || self.numbers.may_be_from_before(arrival) {
            return None;
        }
        let begun = self.run.awaited().is_none();
        let urgent = eob && self.run.is_continuous();
        // It may be what confirms the packet before it, which then goes first.
        let confirms = self.aside.is_in_doubt();
        let may = begun && (!urgent || confirms) && self.aside.takes(arrival.seq, packet, missing);
        if may {
            let due = self.numbers.next_ticks();
            let ahead = arrival.ticks.zip(due).map_or(0, |(at, due)| at.wrapping_sub(due));
            if !self.aside.put(arrival.seq, packet, ahead, self.silence.last_look()) {
                self.books.count().duplicates += 1;
                return Some(Intake::Done);
            }
            self.books.count().reordered += u64::from(!confirms);
            if urgent {
                self.aside.give_up();
            }
            // The copy takes no space in the queue.
            self.release(flow_bytes);
            return Some(Intake::Done);
        }
        // Waiting packets are processed first, and this one again after them.
        self.aside.give_up().then_some(Intake::Again)
    }

    /// Classifies a packet, together with those in the reorder buffer.
    fn judge(&mut self, arrival: &Arrival) -> PacketClass {
        let class = self.numbers.judge(arrival);
        if class != PacketClass::Doubtful || self.numbers.may_be_from_before(arrival) {
            return class;
        }
        let mut waiting =
            self.aside.packets().filter_map(|p| Arrival::in_packet(p, self.path.width));
        let other = waiting.find(|other| self.numbers.confirms(other));
        let Some(other) = other else { return class };
        self.numbers.doubt(&other);
        self.numbers.judge(arrival)
    }

    /// Drops a waiting packet of a doubtful time whose place another one with its number has taken.
    fn drop_doubted(&mut self, seq: u16) {
        let Some(place) = self.aside.place_of(seq) else { return };
        let packet = Packet::parse(self.aside.packet(place), self.path.width);
        self.credit.take_back(packet.map_or(0, |packet| packet.flow_len()));
        self.aside.free(place);
        self.malformed(Some(seq));
    }

    /// Counts a packet of no use.
    fn pass_by(
        &mut self,
        place: PacketSource,
        arrival: &Arrival,
        flow_bytes: usize,
        class: PacketClass,
    ) {
        if let PacketSource::Aside(place) = place {
            self.aside.free(place);
            if class == PacketClass::Doubtful {
                // The gap at its number will count it.
                self.credit.take_back(flow_bytes);
            }
        }
        match class {
            PacketClass::Duplicate => self.books.count().duplicates += 1,
            PacketClass::Doubtful if !self.numbers.may_be_from_before(arrival) => {
                self.malformed(Some(arrival.seq));
            }
            _ => self.books.count().late += 1,
        }
    }

    /// Returns the gap before a packet of a capture that has all its samples, whatever its times
    /// say: those that no missing packets explain are a jump of the clock. At most `most` are
    /// missing.
    fn within_capture(&self, gap: PacketGap, most: u64) -> PacketGap {
        let in_packets = gap.in_packets.min(most);
        let more = gap.unsent.saturating_add(gap.in_packets - in_packets);
        let jump = gap.jump.wrapping_add(self.path.rate.ticks(more) as i64);
        PacketGap { in_packets, unsent: 0, jump, ..gap }
    }

    /// Enters a packet and the gap before it into the ledger, and reports the gap.
    fn book(&mut self, arrival: &Arrival, gap: Option<PacketGap>) {
        let (rate, ended) = (self.path.rate, self.run.has_ended());
        let spp = u64::from(self.samples_per_packet);
        let may_have_ended = gap.is_some_and(|gap| gap.may_have_an_end(spp));
        let jumped = gap.is_some_and(|gap| gap.jump != 0);
        if jumped {
            self.run.note_clock_set();
            self.epoch += 1;
        }
        let restart = self.run.restart();
        let is_over = |restart: &Restart| restart.is_over(arrival.ticks, ended, may_have_ended);
        let recovered = restart.as_ref().is_some_and(is_over);
        if recovered || restart.is_none() {
            self.run.await_nothing();
            self.numbers.set_next_start(None);
        }
        self.books.arrive(arrival, gap.as_ref(), rate);
        let Some(gap) = gap else {
            if recovered {
                // Without time the number of missing samples is unknown.
                self.books.count().unmeasured_gaps += u64::from(arrival.ticks.is_none());
                self.report_gap(RxEvent::Overrun { samples: 0 }, RxEvent::None, arrival.ticks, 0);
            }
            return;
        };
        let around = Around {
            ended: ended || recovered,
            recovered,
            restart: restart.map(|restart| restart.cause),
            queue_drops: self.reports.queue_drops,
        };
        let (event, jump) = self.books.explain(&gap, &around, rate);
        if jump != RxEvent::None {
            self.run.note_clock_set();
        }
        let (event, then) = if event == RxEvent::None { (jump, event) } else { (event, jump) };
        let length = if then == RxEvent::None { 0 } else { gap.jump };
        self.report_gap(event, then, arrival.ticks, length);
    }

    /// Reports a gap, and then a jump of time if `then` is one; the time behind it is `ticks`.
    fn report_gap(&mut self, event: RxEvent, then: RxEvent, ticks: Option<u64>, length: i64) {
        let ticks = ticks.map(|ticks| ticks.wrapping_sub(length as u64));
        self.pending = Some(PendingReport { event, ticks, ends_burst: false, then });
    }

    /// Returns whether the burst is over with this packet, and the event to report behind it.
    fn burst_after(
        &mut self,
        arrival: &Arrival,
        gap: Option<PacketGap>,
        eob: bool,
    ) -> (bool, RxEvent) {
        self.run.take(gap.map_or(0, |gap| gap.in_packets) + arrival.samples);
        match self.run.mode() {
            Mode::Finite { left } if eob && left > 0 => {
                self.books.lose(Cause::DeviceOverrun, left);
                (true, RxEvent::Overrun { samples: left })
            }
            Mode::Finite { left } => (left == 0, RxEvent::None),
            // A run that was started before the stop has a separate end.
            Mode::Stopping { .. } => (eob && self.run.restart().is_none(), RxEvent::None),
            Mode::Continuous | Mode::Idle => (false, RxEvent::None),
        }
    }

    /// Releases the packet at `place`.
    fn consumed(&mut self, place: PacketSource, flow_bytes: usize) {
        match place {
            PacketSource::Lent(_) => self.release(flow_bytes),
            // It was counted when it entered the reorder buffer.
            PacketSource::Aside(place) => self.aside.free(place),
        }
    }

    /// Counts a packet whose buffer is free again; once per period a report is due.
    fn release(&mut self, flow_bytes: usize) {
        self.credit.release(flow_bytes);
        if self.credit.is_due() {
            self.report_unless_over();
        }
    }

    /// Makes a report due, except to a stopped device without time: it does not send the end of the
    /// burst, and UHD's simulator exits on a report after the stop.
    fn report_unless_over(&mut self) {
        self.report_due |= !self.run.is_stopping() || self.numbers.next_ticks().is_some();
    }

    // Ends

    /// Ends the burst: the next one in the queue begins, if there is one.
    fn burst_over(&mut self) {
        match self.run.next() {
            None => {}
            // A capture without a time begins behind the end of the one before it.
            Some(QueuedCapture { at: None, .. }) => {
                self.numbers.join(PAUSE_CYCLES * u64::from(self.cycle.get()));
                self.books.begin(None);
            }
            Some(QueuedCapture { at, .. }) => {
                self.numbers.begin(at);
                self.books.begin(at);
            }
        }
    }

    fn end_burst(&mut self, event: RxEvent) {
        self.burst_over();
        let (ticks, then) = (None, RxEvent::None);
        self.pending = Some(PendingReport { event, ticks, ends_burst: true, then });
    }

    // Recovery

    /// Returns the time at which the current run overran, ticks, if the device reported it.
    fn new_overrun(&self) -> Option<u64> {
        let reports = &self.reports;
        (reports.overruns != self.overruns_seen).then_some(reports.overrun_ticks)
    }

    /// Restarts after the device ended the burst because it could not send. The gap shows, exactly,
    /// in the time of the first packet that comes.
    fn overran(&mut self) {
        self.count_overrun();
        self.step = Some(Step::Restart { attempts: 0 });
    }

    fn count_overrun(&mut self) {
        self.books.count().overruns += u64::from(self.run.count_overrun());
    }

    /// Returns what a recovery needs, if one is under way.
    pub fn need(&self) -> Option<RecoveryNeed> {
        self.recovery.need()
    }

    /// Returns whether a recovery is under way.
    pub fn is_recovering(&self) -> bool {
        self.recovery.is_under_way()
    }

    /// Returns the recovery.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Returns the new set-up that is under way.
    pub fn opening(&mut self) -> Option<(&mut RxOpening, &mut Instant)> {
        if let Recovery::SetUp(opening, looked) = &mut self.recovery {
            Some((opening, looked))
        } else {
            None
        }
    }

    /// Begins what `step` asks for; a member of a group waits for the others to restart.
    ///
    /// # Errors
    /// [`RxError::NotRestarted`].
    pub fn begin_step(&mut self, step: Step, now: Instant) -> Result<(), RxError> {
        self.recovery = match step {
            Step::Restart { attempts } if self.in_group => Recovery::Wanted { attempts },
            Step::Restart { attempts } => {
                check_attempts(attempts).inspect_err(|_| self.run.end())?;
                Recovery::halt(attempts, true)
            }
            Step::Ask { silent } => Recovery::SignOfLife { silent, asked: now },
            Step::SetUp => {
                self.books.count().stalls += 1;
                Recovery::StopBefore
            }
        };
        Ok(())
    }

    /// Stops a member of a group for a restart of all.
    pub fn halt(&mut self, attempts: u32) {
        let own = self.recovery.wanted().is_some();
        self.recovery = Recovery::halt(attempts, own);
    }

    /// Begins the restart of a stream that was stopped, at `start` and behind so many attempts.
    pub fn begin_start(&mut self, halt: Halt, start: u64, attempts: u32) {
        let (told, clock_set, discarded) = (halt.behind, false, false);
        let cause = self.cause_of_restart(halt);
        if self.in_group && self.new_overrun().is_some_and(|ticks| self.run.is_since_start(ticks)) {
            // It is restarted for another member, before it takes the end of its run.
            self.count_overrun();
        }
        let restart = Restart { attempts, told, start, cause, clock_set, discarded };
        self.recovery = Recovery::start(restart);
    }

    /// Returns the cause of the samples that are missing until a restart. Where a run of an earlier
    /// one is in between, there may be two.
    fn cause_of_restart(&self, halt: Halt) -> Cause {
        let overran = self.new_overrun().is_some();
        let own = halt.own || overran;
        let cause = if own { Cause::DeviceOverrun } else { Cause::Alignment };
        let Some(before) = self.run.restart() else { return cause };
        let is_late = before.discarded || self.reports.late_commands != self.late_commands_seen;
        let began = overran || !is_late && halt.behind.wrapping_sub(before.start) < 1 << 63;
        if began && before.cause != cause { Cause::Unknown } else { before.cause }
    }

    /// Takes the outcome of the request that the recovery needs, at `now`. An error ends the
    /// recovery.
    ///
    /// # Errors
    /// [`RxError::DeviceSilent`], [`RxError::NotRestarted`], [`RxError::Radio`].
    pub fn note_outcome(
        &mut self,
        outcome: Result<u32, RadioError>,
        now: Instant,
    ) -> Result<(), RxError> {
        let asked = match &self.recovery {
            Recovery::SignOfLife { silent, asked } => Some(*silent + (now - *asked)),
            _ => None,
        };
        match self.recovery.take(outcome, *self.path.device.ip()) {
            Turn::GoOn => {}
            Turn::Alive => self.silence.answered(now),
            Turn::Due(ticks) if self.is_waiting(ticks, now) => {}
            Turn::Due(_) => match self.run.mode() {
                Mode::Continuous => self.begin_step(Step::SetUp, now)?,
                Mode::Finite { left } => self.lose_tail(left),
                Mode::Idle | Mode::Stopping { .. } => {}
            },
            Turn::Stopped => {
                let opening = RxOpening::new(self.path, self.credit.clone());
                self.recovery = Recovery::SetUp(Box::new(opening), now);
            }
            Turn::Halted(halt) if self.in_group => self.recovery = Recovery::Halted(halt),
            Turn::Halted(halt) => {
                let took = halt.behind.wrapping_sub(halt.before);
                let start = self.restart_at(took, halt.behind, halt.behind, halt.attempts);
                self.begin_start(halt, start, halt.attempts + 1);
            }
            Turn::Sending { again: false } => self.see_reports(),
            // An overrun since the first attempt is one of the run that it began.
            Turn::Sending { again: true } => self.late_commands_seen = self.reports.late_commands,
            Turn::Started(restart) => {
                self.silence.answered(now);
                self.await_restart(restart);
            }
            Turn::Failed { error, begun } => {
                if let Some(restart) = begun {
                    self.await_restart(restart);
                }
                return Err(match asked {
                    Some(silent) => silence_of(error, silent, self.path.device),
                    None => error,
                });
            }
        }
        Ok(())
    }

    /// Notes whether packets came that the device had sent before its sign of life.
    pub fn note_arrivals(&mut self, some: bool) {
        if !some && !self.is_recovering() {
            self.recovery = Recovery::DueTime(TimeRead::default());
        }
    }

    /// Begins anew with the numbers, because the stream was set up again. The packets that came
    /// meanwhile are lost.
    ///
    /// # Errors
    /// [`RxError::NotRestarted`].
    pub fn note_set_up(&mut self, skipped: &SkippedPackets, credit: Credit) -> Result<(), RxError> {
        self.credit = credit;
        self.recovery = Recovery::Running;
        self.books.count().late += skipped.whole;
        self.books.count().malformed += skipped.damaged;
        self.aside.clear();
        self.numbers.renumber();
        self.begin_step(Step::Restart { attempts: 0 }, self.silence.last_look())
    }

    /// Waits for the first samples of a restart, which was commanded.
    fn await_restart(&mut self, restart: Restart) {
        self.run.await_restart(restart);
        self.numbers.set_next_start(Some(restart.start));
    }

    /// Ends the recovery: it failed, or goes on otherwise.
    pub fn end_recovery(&mut self) {
        self.recovery = Recovery::Running;
    }

    /// Gives up the recovery, because the stream is stopped. A run that may have been started is
    /// awaited.
    pub fn give_up_recovery(&mut self) {
        if let Some(restart) = self.recovery.give_up() {
            self.await_restart(restart);
        }
    }

    /// Returns the time of a restart behind a stop that took so many ticks and was over at the
    /// device's time `now`. The radio began a cycle at its time `cycle`.
    pub fn restart_at(&self, took: u64, now: u64, cycle: u64, attempts: u32) -> u64 {
        self.aligned(now.wrapping_add(self.restart_lead(took, attempts)), cycle)
    }

    fn restart_lead(&self, stop_ticks: u64, attempts: u32) -> u64 {
        restart_lead(self.path.rate, stop_ticks, attempts)
    }

    fn aligned(&self, start: u64, now: u64) -> u64 {
        self.path.rate.align_cycle(start, self.numbers.next_ticks(), now, self.cycle)
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
