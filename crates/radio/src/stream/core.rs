//! The core of a receive stream: what follows from the packets that come, and from time.
//!
//! It has no port, no clock and no access to the device, and never waits:
//! ```text
//! datagrams ────────▶ ┌────────┐ ─▶ samples to convert (`held`)
//! radio's reports ──▶ │ RxCore │ ─▶ events and gaps (`pending`), the ledger
//! time, answers ────▶ └────────┘ ─▶ a report to send (`report_due`), a request (`need`)
//! ```
//! The streamer owns the port and carries out what the core asks for.

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use millstream_wire::chdr::SC16_LEN;
use millstream_wire::regs::radio::RX_CMD_SLOTS;

use super::chain::PendingCommand;
use super::credit::Credit;
use super::expectation::Expectation;
use super::handshake::StreamPath;
use super::losses::Losses;
use super::meta::{RxArgs, RxCounters, RxEvent};
use super::passed_over::SkippedPackets;
use super::reorder::{ReorderBuffer, ReorderWindow};
use super::stages::{Halt, RecoveryStage};
use super::state::{NewestPacket, StreamState};
use super::stopped::NewestSample;
use super::tracker::Tracker;
use crate::Ledger;

/// The longest sleep between checks of the stream's state.
const SLICE: Duration = Duration::from_millis(50);

/// The longest sleep while the link has no space for a report that the device waits for.
const OWED: Duration = Duration::from_millis(1);

/// The longest part of a pause between two polls of the port that counts as silence of the device:
/// packets during a longer absence of the caller are unknown.
const AWAY_MAX: Duration = SLICE;

/// The state of a receive stream.
pub(super) struct RxCore {
    pub(super) path: StreamPath,
    pub(super) samples_per_packet: u32,
    /// The samples that the radio makes in one cycle.
    pub(super) cycle: NonZeroU32,

    pub(super) credit: Credit,
    pub(super) tracker: Tracker,
    pub(super) expectation: Expectation,
    pub(super) losses: Losses,
    pub(super) ledger: Ledger,
    pub(super) counters: RxCounters,

    /// Packets that came early.
    pub(super) aside: ReorderBuffer,
    /// The packet whose samples are being delivered.
    pub(super) held: Option<UnreadSamples>,
    /// The report to return before any further samples.
    pub(super) pending: Option<Pending>,

    pub(super) run: StreamState,
    /// Captures that the radio has queued after the current one.
    pub(super) chain: VecDeque<PendingCommand>,
    pub(super) newest: NewestPacket,
    /// Runs that began, and were stopped before any of their packets came: each has a separate end,
    /// behind that of the run before them.
    pub(super) ends_due: u32,
    /// A run began and was stopped before any of its packets came: the time of an overrun does not
    /// show how much the device had sent before the newest start.
    pub(super) lost_run: bool,
    /// The run of the last start is accounted for: it was given up, it was stopped before it could
    /// begin, or the device discarded its start as late.
    pub(super) run_settled: bool,
    /// The packets that came during the last new set-up of the stream.
    pub(super) passed_over: SkippedPackets,
    /// The number of set-ups of the stream since the newest packet, and of RESYNCs.
    pub(super) setups: u64,
    pub(super) reopened: u64,
    /// A member of a group restarts only together with the others.
    pub(super) in_group: bool,
    /// It was stopped for that, and waits for the others.
    pub(super) halted: Option<Halt>,
    /// The number of times that the device's clock was set back.
    pub(super) epoch: u64,
    pub(super) late_commands_seen: u64,
    pub(super) overruns_seen: u64,
    /// The first command of the current run's start was not answered, so this host stopped it, in
    /// case it ran, and commanded it again.
    pub(super) stopped_again: bool,
    /// The overrun of the current run is in the counter.
    pub(super) overrun_counted: bool,
    /// The device's time since which overruns belong to the current run, ticks.
    pub(super) run_ticks: u64,

    /// The newest sample that was taken, which must not be long ago.
    pub(super) newest_sample: NewestSample,
    pub(super) silence_max: Duration,
    /// The time of the last packet, moved forward by the time in which the port was not polled.
    pub(super) last_heard: Instant,
    pub(super) last_look: Instant,
    /// The current batch contained a packet from the device.
    pub(super) heard: bool,
    pub(super) last_idle: Instant,
    /// The device's time at the last check of the silence, and at the first in this run, ticks.
    pub(super) silence_ticks: Option<u64>,
    /// The first packet comes when the transmitter runs, whenever that is.
    pub(super) with_transmitter: bool,
    pub(super) first_silence: Option<u64>,

    /// What the radio and the port reported besides packets.
    pub(super) reports: SideReports,
    /// A credit report is to be sent.
    pub(super) report_due: bool,
    /// What is to be done next.
    pub(super) step: Option<Step>,
    /// What the recovery that is under way waits for.
    pub(super) stage: Option<RecoveryStage>,
}

/// What the radio and the port have reported besides packets, so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SideReports {
    /// Datagrams that the receive queue dropped.
    pub queue_drops: u64,
    pub late_commands: u64,
    pub overruns: u64,
    /// The end of the last run that overran, ticks.
    pub overrun_ticks: u64,
}

/// A datagram that the port lends, and its index there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datagram<'a> {
    pub index: usize,
    pub payload: &'a [u8],
    pub source: SocketAddrV4,
}

/// The outcome of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intake {
    Done,
    /// Others come first: it is to be given again behind them.
    Again,
}

/// What follows from a packet or from time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Start again at a later time, after so many attempts.
    Restart { attempts: u32 },
    /// Ask the device for a sign of life.
    Ask { silent: Duration },
    /// Set the stream up again.
    SetUp,
}

/// Samples of a lent datagram that the caller has not yet received.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnreadSamples {
    /// The place of the packet.
    pub place: PacketSource,
    /// The offset of the next sample in it, and the end of the samples.
    pub at: usize,
    pub end: usize,
    /// Time of the next sample.
    pub ticks: Option<u64>,
    /// Its length in flow control, bytes.
    pub flow_bytes: usize,
    /// The burst is over with this packet.
    pub ends_burst: bool,
    /// The event to report behind it.
    pub then: RxEvent,
}

/// The place of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum PacketSource {
    /// In the batch that the port lends, by its index.
    Lent(usize),
    /// In the reorder buffer, by its place.
    Aside(usize),
}

/// A report without samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub event: RxEvent,
    pub ticks: Option<u64>,
    pub ends_burst: bool,
    /// The next event to report.
    pub then: RxEvent,
}

impl Pending {
    /// Returns a report without a following one.
    pub fn new(event: RxEvent, ticks: Option<u64>, ends_burst: bool) -> Self {
        Self { event, ticks, ends_burst, then: RxEvent::None }
    }
}

impl RxCore {
    /// Returns the state of an idle stream.
    pub fn new(
        path: StreamPath,
        samples_per_packet: u32,
        packets_per_drop: u64,
        credit: Credit,
        args: &RxArgs,
        silence_max: Duration,
        now: Instant,
    ) -> Self {
        let mut tracker = Tracker::new(samples_per_packet.into(), path.rate.ticks(1));
        // A second.
        tracker.confirm_jumps(path.rate.ticks_hz as u64);
        Self {
            path,
            samples_per_packet,
            cycle: NonZeroU32::MIN,
            credit,
            tracker,
            expectation: Expectation::default(),
            losses: Losses::new(samples_per_packet.into(), packets_per_drop),
            ledger: Ledger::default(),
            counters: RxCounters::default(),
            aside: ReorderBuffer::new(
                ReorderWindow::new(args.reorder_window, path.rate, samples_per_packet.into()),
                path.frame_bytes,
            ),
            held: None,
            pending: None,
            run: StreamState::Idle,
            chain: VecDeque::with_capacity(RX_CMD_SLOTS as usize + 1),
            newest: NewestPacket::Inside,
            ends_due: 0,
            lost_run: false,
            run_settled: false,
            passed_over: SkippedPackets::default(),
            setups: 0,
            reopened: 0,
            in_group: false,
            halted: None,
            epoch: 0,
            late_commands_seen: 0,
            overruns_seen: 0,
            stopped_again: false,
            overrun_counted: false,
            run_ticks: 0,
            newest_sample: NewestSample::default(),
            silence_max,
            last_heard: now,
            last_look: now,
            heard: false,
            last_idle: now,
            silence_ticks: None,
            with_transmitter: false,
            first_silence: None,
            reports: SideReports::default(),
            report_due: false,
            step: None,
            stage: None,
        }
    }

    /// Begins a burst of `samples` samples, or without an end, at the device's time `at`.
    pub(super) fn begin(&mut self, samples: Option<u64>, at: Option<u64>) {
        self.aside.clear();
        self.tracker.forget();
        self.tracker.begin(at);
        self.expectation.begin(at);
        (self.newest, self.ends_due, self.lost_run) = (NewestPacket::Inside, 0, false);
        (self.silence_ticks, self.first_silence) = (None, None);
        (self.passed_over, self.halted) = (SkippedPackets::default(), None);
        (self.stopped_again, self.overrun_counted) = (false, false);
        self.with_transmitter = false;
        self.run_ticks = at.unwrap_or(0);
        self.newest_sample = NewestSample::default();
        self.run = StreamState::started(samples, at);
    }

    /// Returns whether there is a result for the caller.
    pub fn has_result(&self) -> bool {
        self.held.is_some() || self.pending.is_some()
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
            self.pending = Some(Pending::new(event, held.ticks, ends_burst));
        }
        if ends_burst {
            self.burst_over();
        }
        self.consumed(held.place, held.flow_bytes);
        (ends_burst, event != RxEvent::None)
    }

    /// Returns how long to wait for datagrams from `now` on, no longer than `until`.
    pub fn wait(&mut self, now: Instant, until: Instant) -> Duration {
        let away = now.saturating_duration_since(self.last_look).saturating_sub(AWAY_MAX);
        self.last_heard = (self.last_heard + away).min(now);
        let left = until.saturating_duration_since(now);
        let longest = if self.credit.is_owed() { OWED } else { SLICE };
        left.min(self.aside.left(now).map_or(longest, |wait| wait.min(longest)))
    }

    /// Takes the time at which datagrams were received.
    pub fn look(&mut self, now: Instant) {
        (self.last_look, self.heard) = (now, false);
    }

    /// Lets packets that have waited long enough for an earlier one continue without it. Returns
    /// true when there are some.
    pub fn give_up_waiting(&mut self) -> bool {
        self.aside.left(self.last_look) == Some(Duration::ZERO) && self.aside.give_up()
    }

    /// Concludes from the datagrams since the last look; `found`: they gave a result. Returns true
    /// when the device is silent.
    pub fn listen(&mut self, found: bool) -> bool {
        if self.heard {
            self.last_heard = self.last_look;
        }
        // Other packets may come to the port, but none of the device.
        !self.heard && !found
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
