//! A device's endpoint for tests of openings, and a network that loses chosen packets.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use millstream_wire::chdr::Packet;
use millstream_wire::mgmt::{ForwardHops, MgmtRepr, Node, NodeInfo, Op};
use millstream_wire::regs::sep::{OSTRM_CTRL_STATUS, STATUS_FC_ENABLED, STATUS_SETUP_PENDING};
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr};
use millstream_wire::{Epid, Width};

use super::{Opening, OpeningStep};
use crate::stream::{StreamPath, StreamRate};
use crate::topology::{Endpoint, REQUEST_BYTES_MAX};
use crate::{Clock, RadioError};

pub const DEVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 49153);
pub const HOST: Epid = Epid(7);
pub const OWN: Epid = Epid(2);
pub const WIDTH: Width = Width::W64;

/// The time of a packet on its way.
const FLIGHT: Duration = Duration::from_micros(20);

pub fn path() -> StreamPath {
    let endpoint = Endpoint { port: 3, instance: 1, epid: OWN, control: false, data: true };
    StreamPath {
        device: DEVICE,
        width: WIDTH,
        frame_bytes: 1000,
        entry_port: 0,
        endpoint,
        epid: HOST,
        rate: StreamRate::of_radio(1e6),
        clock: Clock::MACHINE,
    }
}

/// The endpoint: it opens a stream to the host when that has granted credit, and counts the
/// commands of a stream to it.
#[derive(Default)]
pub struct FakeEndpoint {
    /// The credit of the host.
    pub credit: Option<StatusRepr>,
    /// The state that it says, in place of its own.
    pub says: Option<u32>,
    /// Its place is taken by another node.
    pub is_transport: bool,
    pub counts: (u64, u64),
    /// The packets of the last INIT, and its number among all.
    pub period: (u64, u64),
    pub inits: u32,
    pub status_seq: u16,
    pub replies: VecDeque<Vec<u8>>,
}

impl FakeEndpoint {
    fn take(&mut self, bytes: &[u8]) {
        let packet = Packet::parse(bytes, WIDTH).unwrap();
        if let Ok(mut request) = MgmtRepr::parse(&packet) {
            let mut begins = false;
            while request.execute(|op| self.operate(op, &mut begins)).unwrap()
                != ForwardHops::Return
            {}
            self.reply(|out| request.emit(WIDTH, out));
            if begins {
                let (dst_epid, src_epid, op) = (HOST, OWN, CommandOp::Init);
                let init = CommandRepr {
                    dst_epid,
                    seq: 0,
                    src_epid,
                    op,
                    op_data: 0,
                    packets: 0,
                    bytes: 0,
                };
                self.reply(|out| init.emit(WIDTH, out));
            }
        } else if let Ok(status) = StatusRepr::parse(&packet) {
            self.credit = Some(status);
        } else if let Ok(command) = CommandRepr::parse(&packet) {
            self.obey(&command);
        }
    }

    fn operate(&mut self, op: Op, begins: &mut bool) -> Option<Op> {
        match op {
            Op::CfgWrite { address: OSTRM_CTRL_STATUS, .. } => {
                (*begins, self.credit) = (true, None);
                None
            }
            Op::CfgRead { address } => {
                let open = if self.credit.is_some() { STATUS_FC_ENABLED } else { 0 };
                let value =
                    self.says.unwrap_or(open.max(STATUS_SETUP_PENDING * u32::from(open == 0)));
                Some(Op::CfgReadResp { address, value })
            }
            Op::InfoReq => {
                let (control, data, reports_errors) = (false, true, true);
                let (inputs, outputs) = (1, 1);
                let endpoint =
                    Node::StreamEndpoint { control, data, inputs, outputs, reports_errors };
                let node =
                    if self.is_transport { Node::Transport { subtype: 0 } } else { endpoint };
                Some(Op::InfoResp(NodeInfo { device_id: 1, instance: 1, node }))
            }
            _ => None,
        }
    }

    fn obey(&mut self, command: &CommandRepr) {
        match command.op {
            CommandOp::Init => {
                (self.counts, self.period) = ((0, 0), (command.packets, command.bytes));
                self.inits += 1;
            }
            CommandOp::Ping => self.counts = (self.counts.0 + 1, self.counts.1 + 24),
            CommandOp::Resync => self.counts = (command.packets, command.bytes),
        }
        let status = StatusRepr {
            dst_epid: HOST,
            seq: self.status_seq,
            src_epid: OWN,
            capacity_bytes: 1 << 16,
            capacity_packets: 1 << 10,
            count_packets: self.counts.0,
            count_bytes: self.counts.1,
            ..StatusRepr::default()
        };
        self.status_seq = self.status_seq.wrapping_add(1);
        self.reply(|out| status.emit(WIDTH, out));
    }

    fn reply(&mut self, emit: impl FnOnce(&mut [u8]) -> millstream_wire::Result<usize>) {
        let mut bytes = vec![0; REQUEST_BYTES_MAX];
        let length = emit(&mut bytes).unwrap();
        bytes.truncate(length);
        self.replies.push_back(bytes);
    }
}

/// Opens a stream. `loses` is asked for each packet, in the order of their leaving. Returns the
/// outcome, the time that it took, and the number of packets.
pub fn drive<O: Opening>(
    mut opening: O,
    device: &mut FakeEndpoint,
    mut loses: impl FnMut(usize) -> bool,
) -> (Result<O::Opened, RadioError>, Duration, usize) {
    let (begin, path, mut out) = (Instant::now(), path(), [0; REQUEST_BYTES_MAX]);
    let (mut now, mut left) = (begin, 0);
    let mut lost = || {
        left += 1;
        loses(left - 1)
    };
    let outcome = loop {
        match opening.step(now, &mut out) {
            Err(error) => break Err(error),
            Ok(OpeningStep::Open(opened)) => break Ok(opened),
            Ok(OpeningStep::Send(length)) if lost() => now += FLIGHT * u32::from(length > 0),
            Ok(OpeningStep::Send(length)) => device.take(&out[..length]),
            Ok(OpeningStep::Drop) => device.replies.clear(),
            Ok(OpeningStep::Wait(until)) => {
                assert!(until > now, "a wait has an end that is still to come");
                match device.replies.pop_front() {
                    Some(reply) => {
                        now = (now + FLIGHT).min(until);
                        if !lost() {
                            opening.note_datagram(&reply, DEVICE, &path);
                        }
                    }
                    None => now = until,
                }
            }
        }
        assert!(now - begin < Duration::from_secs(60), "it comes to an end");
    };
    (outcome, now - begin, left)
}
