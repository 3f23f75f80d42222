//! The opening of a host-to-device stream, without a port or a clock.
//!
//! ```text
//! Routing ─▶ Formatting ─▶ Starting ─▶ Starting, with the period ─▶ Open
//! ```
//! The first INIT tells the window, and the second one sets the period of its reports.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use millstream_link::port::Port;
use millstream_wire::Width;
use millstream_wire::chdr::{Packet, round_to_word};
use millstream_wire::mgmt::{MgmtRepr, Op};
use millstream_wire::regs::sep::{ISTRM_CTRL_STATUS, ItemSize, StreamCtrl};
use millstream_wire::stream::{CommandOp, CommandRepr, PACKETS_UNLIMITED, StatusRepr, StreamPlace};

use super::accounting::Opened;
use super::progress::Totals;
use super::window::CreditWindow;
use crate::RadioError;
use crate::opening::{Opening, OpeningStep, answers, run, silent};
use crate::stream::StreamPath;
use crate::topology::{Asker, Question, Routes};

/// The time limit for the device's answer to a command.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);

/// The INITs of each kind before giving up: each fails when one packet of it is lost.
const TRIES: u32 = 8;

/// Routes the stream to `port` and opens it with the device's advertised window. Afterwards both
/// sides count from zero.
pub(super) fn open(port: &mut Port, path: &StreamPath) -> Result<Opened, RadioError> {
    run(port, path, TxOpening::new(path))
}

/// Returns the length of a stream command in flow control, bytes.
fn command_bytes(width: Width) -> u64 {
    round_to_word(CommandRepr::packet_len(width), width) as u64
}

/// The opening of a stream to the device, with the window that it grants. Afterwards both sides
/// count from zero.
#[derive(Debug)]
pub(super) struct TxOpening<'a> {
    path: &'a StreamPath,
    asker: Asker,
    stage: Stage,
}

/// The stage of an opening.
#[derive(Debug)]
enum Stage {
    /// The paths between both endpoints are made.
    Routing(Routes),
    /// The endpoint is being told the format of the samples.
    Formatting,
    /// An INIT has to be answered.
    Starting { init: Init, attempt: u32, wait: AnswerWait },
    /// Samples may flow.
    Open(Opened),
}

/// The period of a device that reports by itself only what it cannot count; never 0.
const NEVER: Totals = Totals { packets: PACKETS_UNLIMITED as u64, bytes: u32::MAX as u64 };

/// The number of the INIT that sets the period: not 0, so that its answer shows it, and none of the
/// first queries. Until one of these comes, the device's reports have this number.
pub(super) const PERIOD_SEQ: u16 = u16::MAX;

/// An INIT: what it asks for.
#[derive(Debug, Clone, Copy)]
enum Init {
    /// The window.
    Window,
    /// Reports with this period.
    Period(Totals),
}

/// The wait for an answer.
#[derive(Debug, Clone, Copy)]
enum AnswerWait {
    /// Answers to the command before must not be taken for one: what has come is to be dropped.
    Stale,
    /// The command is to be sent.
    Unsent,
    Until(Instant),
    Answered(StatusRepr),
}

impl<'a> TxOpening<'a> {
    /// Begins to open a stream.
    pub fn new(path: &'a StreamPath) -> Self {
        let mut asker = Asker::new(path.epid, path.width);
        let routes = Routes::begin(&mut asker, path.epid, path.entry_port, path.endpoint);
        Self { path, asker, stage: Stage::Routing(routes) }
    }

    fn format(&self) -> Question {
        let format = StreamCtrl { payload: ItemSize::Bits16, ..StreamCtrl::default() };
        let write = Op::CfgWrite { address: ISTRM_CTRL_STATUS, value: format.to_word() };
        let select = [Op::SelDest(self.path.endpoint.port)];
        Question::new("the format of a stream", &[&[Op::Nop], &select, &[write, Op::Return]])
    }

    /// Writes an INIT.
    fn init(&self, seq: u16, period: Totals, out: &mut [u8]) -> usize {
        let (op, Totals { packets, bytes }) = (CommandOp::Init, period);
        let (dst_epid, src_epid) = (self.path.endpoint.epid, self.path.epid);
        let command = CommandRepr { dst_epid, seq, src_epid, op, op_data: 0, packets, bytes };
        command.emit(self.path.width, out).expect("the buffer is long enough")
    }

    fn window(&self, status: &StatusRepr) -> CreditWindow {
        let command_bytes = command_bytes(self.path.width);
        CreditWindow::new(status.capacity_bytes, status.capacity_packets, command_bytes)
    }

    /// Goes on behind the answer to an INIT.
    fn started(&mut self, init: Init, status: &StatusRepr) {
        let window = self.window(status);
        self.stage = match init {
            Init::Window => {
                let init = Init::Period(window.period());
                Stage::Starting { init, attempt: 0, wait: AnswerWait::Stale }
            }
            // A device may grant more bytes to a host whose limit of packets it has received.
            Init::Period(_) => {
                // Behind an INIT no data packet has come, and the last command is that INIT.
                let place = StreamPlace { command: PERIOD_SEQ, ..StreamPlace::default() };
                Stage::Open(Opened {
                    window,
                    status_seq: status.seq,
                    tells_place: StreamPlace::from_info(status.error_info) == place,
                })
            }
        };
    }
}

impl Opening for TxOpening<'_> {
    type Opened = Opened;

    fn note_packet(&mut self, packet: &Packet<'_>) {
        if let Ok(reply) = MgmtRepr::parse(packet) {
            return self.asker.take(&reply);
        }
        let Ok(status) = StatusRepr::parse(packet) else { return };
        match &mut self.stage {
            // Other counts are late answers to commands before it.
            Stage::Starting { wait: wait @ AnswerWait::Until(_), .. }
                if status.count_packets == 0 =>
            {
                *wait = AnswerWait::Answered(status);
            }
            _ => {}
        }
    }

    fn step(&mut self, now: Instant, out: &mut [u8]) -> Result<OpeningStep<Opened>, RadioError> {
        loop {
            let answers = match answers(&mut self.asker, self.path, now, out)? {
                ControlFlow::Break(step) => return Ok(step),
                ControlFlow::Continue(answers) => answers,
            };
            match &mut self.stage {
                Stage::Routing(routes) => {
                    if routes.advance(&mut self.asker, &answers, self.path.device)? {
                        self.asker.ask(self.format());
                        self.stage = Stage::Formatting;
                    }
                }
                Stage::Formatting => {
                    let (init, wait) = (Init::Window, AnswerWait::Stale);
                    self.stage = Stage::Starting { init, attempt: 0, wait };
                }
                Stage::Starting { init, attempt, wait } => {
                    let init = *init;
                    match *wait {
                        AnswerWait::Stale => {
                            *wait = AnswerWait::Unsent;
                            return Ok(OpeningStep::Drop);
                        }
                        AnswerWait::Unsent => {
                            *wait = AnswerWait::Until(now + ANSWER_TIMEOUT);
                            let (seq, period) = match init {
                                Init::Window => (0, NEVER),
                                Init::Period(period) => (PERIOD_SEQ, period),
                            };
                            let length = self.init(seq, period, out);
                            return Ok(OpeningStep::Send(length));
                        }
                        AnswerWait::Until(until) if now < until => {
                            return Ok(OpeningStep::Wait(until));
                        }
                        AnswerWait::Until(_) => {
                            *attempt += 1;
                            *wait = AnswerWait::Stale;
                            if *attempt == TRIES {
                                let what = "the opening of a stream";
                                return Err(silent(self.path.device, what, TRIES, ANSWER_TIMEOUT));
                            }
                        }
                        AnswerWait::Answered(status) => self.started(init, &status),
                    }
                }
                Stage::Open(opened) => return Ok(OpeningStep::Open(opened.clone())),
            }
        }
    }
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
