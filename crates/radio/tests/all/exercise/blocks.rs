//! Streams of blocks without time, with a device that sends anything once they are open.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use millstream_radio::noc::{BlockReceiver, BlockSender};
use millstream_radio::stream::{StreamPath, StreamRate};
use millstream_radio::topology::Endpoint;
use millstream_radio::{Clock, Complex32};
use millstream_wire::chdr::{DataRepr, Packet};
use millstream_wire::mgmt::{MgmtRepr, Node, NodeInfo, Op};
use millstream_wire::regs::sep::{OSTRM_CTRL_STATUS, STATUS_FC_ENABLED};
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr};
use millstream_wire::{Epid, Width};

use super::ports::{Air, DEVICE, Device, now, pass, port};

const SEP: Epid = Epid(2);
const STREAM: Epid = Epid(9);
const WIDTH: Width = Width::W64;

/// Answers management packets and commands as a device does.
struct Endpoints {
    air: Air,
    status: StatusRepr,
}

impl Endpoints {
    fn put(&self, emit: impl Fn(&mut [u8]) -> Option<usize>) {
        let mut bytes = vec![0; 4096];
        let Some(length) = emit(&mut bytes) else { return };
        bytes.truncate(length);
        self.air.put(bytes);
    }

    fn command(&self, op: CommandOp, packets: u64, bytes: u64) {
        let packets = packets % (1 << 40);
        let (dst_epid, src_epid) = (STREAM, SEP);
        let repr = CommandRepr { dst_epid, seq: 0, src_epid, op, op_data: 0, packets, bytes };
        self.put(|buffer| repr.emit(WIDTH, buffer).ok());
    }
}

impl Device for Endpoints {
    fn hear(&mut self, datagram: &[u8]) {
        let packet = Packet::parse(datagram, WIDTH).expect("the host writes packets");
        if let Ok(command) = CommandRepr::parse(&packet) {
            let status = self.status;
            if command.op == CommandOp::Init {
                self.put(|buffer| status.emit(WIDTH, buffer).ok());
            }
            return;
        }
        let Ok(mut request) = MgmtRepr::parse(&packet) else { return };
        let mut started = false;
        while request.hops().count() > 1 {
            let answer = |op| match op {
                Op::InfoReq => Some(Op::InfoResp(NodeInfo {
                    device_id: 1,
                    instance: 0,
                    node: Node::StreamEndpoint {
                        control: true,
                        data: true,
                        inputs: 1,
                        outputs: 1,
                        reports_errors: false,
                    },
                })),
                Op::CfgRead { address } => {
                    Some(Op::CfgReadResp { address, value: STATUS_FC_ENABLED })
                }
                Op::CfgWrite { address: OSTRM_CTRL_STATUS, .. } => {
                    started = true;
                    None
                }
                _ => None,
            };
            request.execute(answer).expect("the host asks what can be answered");
        }
        self.put(|buffer| request.emit(WIDTH, buffer).ok());
        if started {
            self.command(CommandOp::Init, 0, 0);
        }
    }
}

/// Runs a whole history from `bytes`: a byte for the action and one for its size.
pub fn blocks(bytes: &[u8]) {
    let air = Air::default();
    let status = StatusRepr {
        dst_epid: STREAM,
        src_epid: SEP,
        capacity_bytes: 4096,
        capacity_packets: 64,
        ..StatusRepr::default()
    };
    let device = Arc::new(Mutex::new(Endpoints { air: air.clone(), status }));
    let path = StreamPath {
        device: DEVICE,
        width: WIDTH,
        frame_bytes: 216,
        entry_port: 0,
        endpoint: Endpoint { port: 1, instance: 0, epid: SEP, control: true, data: true },
        epid: STREAM,
        rate: StreamRate::of_radio(1e6),
        clock: Clock::simulated(now, pass),
    };
    let receiver = BlockReceiver::open(port(&device, &air), path);
    let mut receiver = receiver.expect("the device does as it should");
    let mut seq = 0u16;
    for step in bytes.chunks_exact(2) {
        let (what, amount) = (step[0] % 8, step[1]);
        let endpoints = device.lock().unwrap();
        match what {
            0..=2 => {
                let repr = DataRepr {
                    dst_epid: STREAM,
                    seq,
                    timestamp: (amount & 1 == 1).then_some(7),
                    eob: what == 2,
                    eov: false,
                    payload_len: usize::from(amount) % 200,
                };
                let length = repr.packet_len(WIDTH);
                endpoints.put(|buffer| repr.emit(WIDTH, buffer).ok().map(|_| length));
                seq = seq.wrapping_add(1);
            }
            3 => seq = seq.wrapping_add_signed(i16::from(amount as i8) << 6),
            4 => {
                let op = [CommandOp::Resync, CommandOp::Ping][usize::from(amount & 1)];
                endpoints.command(op, u64::from(amount) << 33, u64::from(amount) << 50);
            }
            5 => air.put(bytes[..usize::from(amount).min(bytes.len())].to_vec()),
            _ => {
                drop(endpoints);
                let mut room = vec![Complex32::default(); 1 + usize::from(amount)];
                let received = receiver.recv(&mut room, Duration::ZERO);
                let received = received.expect("only the system can refuse");
                assert!(received.samples <= room.len());
            }
        }
    }
    let mut sender = BlockSender::open(port(&device, &air), path).expect("the device answers");
    for step in bytes.chunks_exact(2) {
        let (what, amount) = (step[0], u64::from(step[1]));
        if what & 1 == 0 {
            let samples = vec![[0i16; 2]; 1 + step[1] as usize];
            let sent = sender.send(&samples, what & 2 == 0, Duration::ZERO);
            assert!(sent.expect("only the system can refuse") <= samples.len());
            continue;
        }
        let status = StatusRepr {
            capacity_bytes: amount << (what >> 4),
            count_packets: amount >> (what & 7),
            count_bytes: amount << (what & 15),
            ..status
        };
        device.lock().unwrap().put(|buffer| status.emit(WIDTH, buffer).ok());
    }
    let _ = sender.finish(Duration::ZERO).expect("only the system can refuse");
}
