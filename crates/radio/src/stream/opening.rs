//! The opening of a device-to-host stream: its path, and the handshake without a port or a clock.
//!
//! ```text
//! Routing ─▶ Resetting ─▶ Configuring ─▶ AwaitingInit ─▶ Answering ─▶ AskingState ─▶ Open
//!                ▲                             │             ▲             │ not yet
//!                └────────── no INIT ──────────┘             └── Pausing ◀─┘
//! ```
//! The reset ends what was under way: an endpoint whose credit ended within a packet waits there,
//! and begins no other stream.

use std::net::SocketAddrV4;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use millstream_link::port::Port;
use millstream_wire::chdr::{DataRepr, Header, Packet};
use millstream_wire::mgmt::{MgmtRepr, Op};
use millstream_wire::regs::sep::{
    ItemSize, OSTRM_CTRL_STATUS, OSTRM_DST_EPID, OSTRM_FC_FREQ_BYTES_HI, OSTRM_FC_FREQ_BYTES_LO,
    OSTRM_FC_FREQ_PKTS, OSTRM_FC_HEADROOM, RESET_AND_FLUSH, RESET_OSTRM, STATUS_FC_ENABLED,
    STATUS_SETUP_ERROR, STATUS_SETUP_PENDING, StreamCtrl,
};
use millstream_wire::stream::{CommandOp, CommandRepr, PACKETS_UNLIMITED};
use millstream_wire::{Epid, Width};

use super::credit::Credit;
use super::rate::StreamRate;
use crate::opening::{self, Opening, OpeningStep, answers, silent};
use crate::topology::{Asker, Endpoint, Question, Routes};
use crate::{Clock, RadioError};

/// The time limit for the device to open the stream.
const INIT_TIMEOUT: Duration = Duration::from_millis(100);

/// The number of polls of the endpoint's readiness, and the pause between two.
const STATUS_POLLS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(1);

/// The number of polls after which the host's answer is sent again, because it may be lost.
const ANSWER_AGAIN: u32 = 10;

/// The attempts of the handshake: one fails when the device's packet of it is lost.
const TRIES: u32 = 8;

/// The source and destination of a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamPath {
    /// The device's CHDR address.
    pub device: SocketAddrV4,
    /// Its CHDR width.
    pub width: Width,
    /// The largest packet on the path, bytes.
    pub frame_bytes: usize,
    /// The crossbar port towards this host.
    pub entry_port: u16,
    /// The device's endpoint that sends the samples.
    pub endpoint: Endpoint,
    /// The endpoint of this stream's port.
    pub epid: Epid,
    /// The rates of its samples and of the radio's time.
    pub rate: StreamRate,
    /// The clock of the stream.
    pub clock: Clock,
}

/// Routes the stream to `port` and opens it. Afterwards both sides count from zero.
pub(crate) fn open(
    port: &mut Port,
    path: &StreamPath,
    credit: &mut Credit,
) -> Result<(), RadioError> {
    let (_, opened) = opening::run(port, path, RxOpening::new(*path, credit.clone()))?;
    *credit = opened;
    Ok(())
}

/// The latest data packets that are searched for a second copy.
const REMEMBERED: usize = 64;

/// The packets that came during an opening, and are lost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SkippedPackets {
    /// Data packets, and those of which only the header could be decoded.
    pub whole: u64,
    pub damaged: u64,
    /// All packets, and their length in flow control, bytes.
    packets: u64,
    flow_bytes: u64,
    /// The numbers of the latest whole data packets, and their count.
    recent: [Option<u16>; REMEMBERED],
    count: usize,
}

impl SkippedPackets {
    /// Returns that of an opening during which nothing came.
    pub(super) fn new() -> Self {
        let (whole, damaged, packets, flow_bytes, count) = (0, 0, 0, 0, 0);
        Self { whole, damaged, packets, flow_bytes, recent: [None; REMEMBERED], count }
    }

    /// Counts a packet.
    fn note(&mut self, packet: &Packet<'_>) {
        if let Ok(data) = DataRepr::parse(packet) {
            if self.recent.contains(&Some(data.seq)) {
                // The device does not count copies.
                return;
            }
            self.recent[self.count % REMEMBERED] = Some(data.seq);
            self.count += 1;
            self.whole += 1;
        }
        self.packets += 1;
        self.flow_bytes += packet.flow_len() as u64;
    }
}

/// The opening of a stream to this host. Afterwards both sides count from zero.
#[derive(Debug)]
pub(crate) struct RxOpening {
    path: StreamPath,
    credit: Credit,
    /// The device sends as much as this host grants; otherwise as much as it can.
    has_credit: bool,
    asker: Asker,
    stage: Stage,
    /// The newest stream command.
    command: Option<CommandRepr>,
    /// The packets that came meanwhile.
    skipped: SkippedPackets,
}

/// The stage of an opening.
#[derive(Debug)]
enum Stage {
    /// The paths between both endpoints are made.
    Routing(Routes),
    /// The output of the endpoint is being reset.
    Resetting {
        attempt: u32,
    },
    /// The endpoint is being told where to send, and to begin.
    Configuring {
        attempt: u32,
    },
    /// The device's INIT has to come.
    AwaitingInit {
        attempt: u32,
        until: Instant,
    },
    /// The window is to be sent to the device, or its state to be asked for once more.
    Answering {
        attempt: u32,
        poll: u32,
    },
    AskingState {
        attempt: u32,
        poll: u32,
    },
    /// The device has not opened the stream yet.
    Pausing {
        attempt: u32,
        poll: u32,
        until: Instant,
    },
    /// Samples flow.
    Open,
}

impl RxOpening {
    /// Begins to open a stream with the window of `credit`.
    pub fn new(path: StreamPath, credit: Credit) -> Self {
        let mut asker = Asker::new(path.epid, path.width);
        let routes = Routes::begin(&mut asker, path.epid, path.entry_port, path.endpoint);
        Self {
            path,
            credit,
            has_credit: true,
            asker,
            stage: Stage::Routing(routes),
            command: None,
            skipped: SkippedPackets::new(),
        }
    }

    /// The same for a stream that the device sends without asking for credit.
    pub fn without_credit(self) -> Self {
        Self { has_credit: false, ..self }
    }

    /// Begins the attempt with this number, from 0.
    fn attempt(&mut self, attempt: u32) -> Result<(), RadioError> {
        if attempt == TRIES {
            return Err(silent(self.path.device, "the opening of a stream", TRIES, INIT_TIMEOUT));
        }
        self.asker.ask(self.reset());
        self.stage = Stage::Resetting { attempt };
        Ok(())
    }

    fn reset(&self) -> Question {
        let select = [Op::SelDest(self.path.endpoint.port)];
        let write = Op::CfgWrite { address: RESET_AND_FLUSH, value: RESET_OSTRM };
        Question::new("the reset of an endpoint", &[&[Op::Nop], &select, &[write, Op::Return]])
    }

    fn configuration(&self) -> Question {
        let control = StreamCtrl {
            start: true,
            lossy: true,
            payload: ItemSize::Bits16,
            ..StreamCtrl::default()
        };
        let [period_bytes, packets] = match self.has_credit {
            true => [self.credit.period_bytes(), PACKETS_UNLIMITED.into()],
            false => [0, 0],
        };
        let write = |address, value| Op::CfgWrite { address, value };
        let writes = [
            write(OSTRM_DST_EPID, self.path.epid.0.into()),
            write(OSTRM_FC_FREQ_BYTES_LO, period_bytes as u32),
            write(OSTRM_FC_FREQ_BYTES_HI, (period_bytes >> 32) as u32),
            write(OSTRM_FC_FREQ_PKTS, packets as u32),
            write(OSTRM_FC_HEADROOM, 0),
            write(OSTRM_CTRL_STATUS, control.to_word()),
            Op::Return,
        ];
        let select = [Op::SelDest(self.path.endpoint.port)];
        Question::new("the configuration of a stream", &[&[Op::Nop], &select, &writes])
    }

    fn state(&self) -> Question {
        let select = [Op::SelDest(self.path.endpoint.port)];
        let read = [Op::CfgRead { address: OSTRM_CTRL_STATUS }, Op::Return];
        Question::new("the state of a stream", &[&[Op::Nop], &select, &read])
    }

    /// Writes the credit window; nothing has been consumed.
    fn answer(&mut self, out: &mut [u8]) -> usize {
        let report = self.credit.report(self.path.endpoint.epid, self.path.epid);
        report.emit(self.path.width, out).expect("the buffer is long enough")
    }

    /// Notes the device's INIT, or another command, which shows that the INIT was lost.
    fn note_init(&mut self, attempt: u32, command: CommandRepr) -> Result<(), RadioError> {
        if command.op != CommandOp::Init {
            return self.attempt(attempt + 1);
        }
        // The device counts from here on.
        (self.skipped.packets, self.skipped.flow_bytes) = (0, 0);
        self.stage = Stage::Answering { attempt, poll: 0 };
        Ok(())
    }

    /// Notes the state of the endpoint.
    fn note_state(
        &mut self,
        [attempt, poll]: [u32; 2],
        answers: &[Op],
        now: Instant,
    ) -> Result<(), RadioError> {
        let value = answers.iter().find_map(|op| match op {
            Op::CfgReadResp { address: OSTRM_CTRL_STATUS, value } => Some(*value),
            _ => None,
        });
        let status = value.unwrap_or(0);
        if status & STATUS_SETUP_ERROR != 0 {
            let reason = "its endpoint reports an error in the stream set-up".to_owned();
            return Err(RadioError::Unusable { address: *self.path.device.ip(), reason });
        }
        let is_open = match self.has_credit {
            true => status & STATUS_FC_ENABLED != 0,
            false => value.is_some() && status & STATUS_SETUP_PENDING == 0,
        };
        if !is_open {
            self.stage = Stage::Pausing { attempt, poll, until: now + PAUSE };
            return Ok(());
        }
        // Packets in the device's buffer may have come meanwhile. They are lost, but must not take
        // the window with them: they may fill it.
        self.credit.release_many(self.skipped.packets, self.skipped.flow_bytes);
        self.stage = Stage::Open;
        Ok(())
    }
}

impl Opening for RxOpening {
    /// The packets that came meanwhile, and were passed over; the credit from now on.
    type Opened = (SkippedPackets, Credit);

    fn note_packet(&mut self, packet: &Packet<'_>) {
        if let Ok(reply) = MgmtRepr::parse(packet) {
            return self.asker.take(&reply);
        }
        let command = CommandRepr::parse(packet).ok();
        // An INIT precedes all counting.
        if command.is_none_or(|command| command.op != CommandOp::Init) {
            self.skipped.note(packet);
        }
        self.command = command.or(self.command);
    }

    fn note_damaged(&mut self, payload: &[u8]) {
        let is_of_this =
            |header: Header| header.kind.is_data() && header.dst_epid == self.path.epid;
        self.skipped.damaged += u64::from(Header::peek(payload).is_ok_and(is_of_this));
    }

    fn step(
        &mut self,
        now: Instant,
        out: &mut [u8],
    ) -> Result<OpeningStep<Self::Opened>, RadioError> {
        loop {
            let answers = match answers(&mut self.asker, &self.path, now, out)? {
                ControlFlow::Break(step) => return Ok(step),
                ControlFlow::Continue(answers) => answers,
            };
            match &mut self.stage {
                Stage::Routing(routes) => {
                    if routes.advance(&mut self.asker, &answers, self.path.device)? {
                        self.attempt(0)?;
                    }
                }
                &mut Stage::Resetting { attempt } => {
                    self.credit.reset();
                    self.command = None;
                    self.asker.ask(self.configuration());
                    self.stage = Stage::Configuring { attempt };
                }
                &mut Stage::Configuring { attempt } => {
                    let until = now + INIT_TIMEOUT;
                    self.stage = Stage::AwaitingInit { attempt, until };
                }
                &mut Stage::AwaitingInit { attempt, until } => match self.command.take() {
                    Some(command) => self.note_init(attempt, command)?,
                    None if now < until => return Ok(OpeningStep::Wait(until)),
                    None => self.attempt(attempt + 1)?,
                },
                &mut Stage::Answering { attempt, poll: STATUS_POLLS } => {
                    self.attempt(attempt + 1)?;
                }
                &mut Stage::Answering { attempt, poll } => {
                    self.asker.ask(self.state());
                    self.stage = Stage::AskingState { attempt, poll };
                    if poll % ANSWER_AGAIN == 0 {
                        return Ok(OpeningStep::Send(self.answer(out)));
                    }
                }
                &mut Stage::AskingState { attempt, poll } => {
                    self.note_state([attempt, poll], &answers, now)?;
                }
                &mut Stage::Pausing { until, .. } if now < until => {
                    return Ok(OpeningStep::Wait(until));
                }
                &mut Stage::Pausing { attempt, poll, .. } => {
                    self.stage = Stage::Answering { attempt, poll: poll + 1 };
                }
                Stage::Open => {
                    return Ok(OpeningStep::Open((self.skipped, self.credit.clone())));
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
