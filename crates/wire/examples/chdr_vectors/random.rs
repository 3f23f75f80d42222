//! Pseudo-random packets of every type at every width, some with fields at their limits.

use millstream_wire::chdr::{Header, Packet, PacketType};
use millstream_wire::ctrl::{self, CtrlRepr, DataWords};
use millstream_wire::mgmt::{MgmtRepr, Node, NodeInfo, Op};
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr, StreamCondition};
use millstream_wire::{Epid, Result, Width};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::Value;

use crate::json;

/// Random fields, the same for a seed on every machine.
pub struct Draw(SplitMix64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(SplitMix64::seed_from_u64(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a value of `count` bits; one in eight times all zeros or all ones.
    fn bits(&mut self, count: u32) -> u64 {
        let all = u64::MAX >> (64 - count);
        match self.below(16) {
            0 => 0,
            1 => all,
            _ => self.next() & all,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    fn epid(&mut self) -> Epid {
        Epid(self.bits(16) as u16)
    }

    fn maybe_time(&mut self) -> Option<u64> {
        self.flag().then(|| self.bits(64))
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// Returns one packet, as the line with its meaning.
pub fn packet(rng: &mut Draw) -> Result<Value> {
    let width = Width::ALL[rng.below(4) as usize];
    let mut buf = vec![0xAA; 16384];
    let (len, body) = match rng.below(5) {
        0 => return data(rng, width, &mut buf),
        1 => {
            let repr = status(rng);
            (repr.emit(width, &mut buf)?, json::status(&repr))
        }
        2 => {
            let repr = command(rng);
            (repr.emit(width, &mut buf)?, json::command(&repr))
        }
        3 => {
            let repr = control(rng)?;
            (repr.emit(width, &mut buf)?, json::control(&repr))
        }
        _ => {
            let repr = management(rng)?;
            (repr.emit(width, &mut buf)?, json::management(&repr))
        }
    };
    let packet = Packet::parse(&buf[..len], width)?;
    Ok(json::line(&buf[..len], width, packet.header(), body))
}

fn data(rng: &mut Draw, width: Width, buf: &mut [u8]) -> Result<Value> {
    let timestamp = rng.maybe_time();
    let num_mdata = if rng.flag() { 0 } else { rng.bits(5) as u8 };
    let metadata = rng.bytes(usize::from(num_mdata) * width.bytes());
    // At least one sample: UHD refuses a data packet without payload.
    let payload_len = 4 * (1 + rng.below(200)) as usize;
    let payload = rng.bytes(payload_len);
    let kind = if timestamp.is_some() { PacketType::TimedData } else { PacketType::Data };
    let mut header = Header {
        vc: rng.bits(6) as u8,
        eob: rng.flag(),
        eov: rng.flag(),
        kind,
        num_mdata,
        seq: rng.bits(16) as u16,
        length: 0,
        dst_epid: rng.epid(),
    };
    let payload_at = header.payload_offset(width);
    let len = payload_at + payload.len();
    header.length = len as u16;
    let at = header.emit(timestamp.unwrap_or(0), width, buf)?;
    buf[at..payload_at].copy_from_slice(&metadata);
    buf[payload_at..len].copy_from_slice(&payload);
    Ok(json::line(&buf[..len], width, &header, json::data(timestamp, &metadata, &payload)))
}

fn status(rng: &mut Draw) -> StatusRepr {
    let all = [
        StreamCondition::Ok,
        StreamCondition::CommandError,
        StreamCondition::SequenceError,
        StreamCondition::DataError,
        StreamCondition::RoutingError,
    ];
    StatusRepr {
        dst_epid: rng.epid(),
        seq: rng.bits(16) as u16,
        src_epid: rng.epid(),
        status: all[rng.below(5) as usize],
        capacity_bytes: rng.bits(40),
        capacity_packets: rng.bits(24) as u32,
        count_packets: rng.bits(40),
        count_bytes: rng.bits(64),
        buffer_info: rng.bits(16) as u16,
        error_info: rng.bits(48),
    }
}

fn command(rng: &mut Draw) -> CommandRepr {
    CommandRepr {
        dst_epid: rng.epid(),
        seq: rng.bits(16) as u16,
        src_epid: rng.epid(),
        op: [CommandOp::Init, CommandOp::Ping, CommandOp::Resync][rng.below(3) as usize],
        op_data: rng.bits(4) as u8,
        packets: rng.bits(40),
        bytes: rng.bits(64),
    }
}

fn control(rng: &mut Draw) -> Result<CtrlRepr> {
    let words: Vec<u32> = (0..=rng.below(15)).map(|_| rng.bits(32) as u32).collect();
    Ok(CtrlRepr {
        dst_epid: rng.epid(),
        seq: rng.bits(16) as u16,
        src_epid: rng.epid(),
        dst_port: rng.bits(10) as u16,
        src_port: rng.bits(10) as u16,
        ctrl_seq: rng.bits(6) as u8,
        is_ack: rng.flag(),
        timestamp: rng.maybe_time(),
        address: rng.bits(20) as u32,
        byte_enables: rng.bits(4) as u8,
        op: ctrl::Op::from_code(rng.below(16) as u8),
        status: ctrl::ControlStatus::from_code(rng.below(4) as u8),
        data: DataWords::new(&words)?,
        ..CtrlRepr::default()
    })
}

fn management(rng: &mut Draw) -> Result<MgmtRepr> {
    let mut repr = MgmtRepr::request(rng.epid(), rng.bits(16) as u16);
    repr.dst_epid = rng.epid();
    repr.version = rng.bits(16) as u16;
    for _ in 0..=rng.below(5) {
        let hop: Vec<Op> = (0..=rng.below(6)).map(|_| operation(rng)).collect();
        repr.push_hop(&hop)?;
    }
    Ok(repr)
}

fn operation(rng: &mut Draw) -> Op {
    let address = rng.bits(16) as u16;
    let value = rng.bits(32) as u32;
    match rng.below(9) {
        0 => Op::Nop,
        1 => Op::Advertise,
        2 => Op::SelDest(address),
        3 => Op::Return,
        4 => Op::InfoReq,
        5 => Op::InfoResp(NodeInfo {
            device_id: address,
            instance: rng.bits(10) as u16,
            node: node(rng),
        }),
        6 => Op::CfgWrite { address, value },
        7 => Op::CfgRead { address },
        _ => Op::CfgReadResp { address, value },
    }
}

fn node(rng: &mut Draw) -> Node {
    match rng.below(4) {
        0 => Node::Crossbar { ports: rng.bits(8) as u8, transports: rng.bits(8) as u8 },
        1 => Node::StreamEndpoint {
            control: rng.flag(),
            data: rng.flag(),
            inputs: rng.bits(6) as u8,
            outputs: rng.bits(6) as u8,
            reports_errors: rng.flag(),
        },
        2 => Node::Transport { subtype: rng.bits(8) as u8 },
        _ => Node::Other { code: 4 + rng.below(12) as u8, extended: rng.bits(18) as u32 },
    }
}
