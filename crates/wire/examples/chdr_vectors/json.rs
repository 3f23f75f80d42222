//! The meaning of a packet as JSON: the schema of both programs.

use millstream_wire::chdr::{Header, Packet, PacketType};
use millstream_wire::ctrl::CtrlRepr;
use millstream_wire::mgmt::{MgmtRepr, Op};
use millstream_wire::stream::{CommandRepr, StatusRepr};
use millstream_wire::{Epid, Width};
use serde_json::{Map, Value, json};

/// Returns the line of a packet: its bytes, its header as in the bytes, and the meaning of its
/// body.
pub fn line(bytes: &[u8], width: Width, header: &Header, body: Value) -> Value {
    let mut line = json!({
        "hex": hex(bytes),
        "width": width.bits(),
        "type": header.kind.code(),
        "vc": header.vc,
        "eob": header.eob,
        "eov": header.eov,
        "num_mdata": header.num_mdata,
        "seq": header.seq,
        "length": header.length,
        "dst_epid": header.dst_epid.0,
    });
    let fields: &mut Map<String, Value> = line.as_object_mut().expect("an object");
    fields.extend(body.as_object().expect("an object").clone());
    line
}

/// Parses the bytes of a line and returns their meaning. Non-data packets are emitted once more.
pub fn describe(claimed: &Value) -> Result<Value, String> {
    let width = claimed["width"].as_u64().and_then(Width::from_bits).ok_or("no width")?;
    let bytes = unhex(claimed["hex"].as_str().ok_or("no hex")?)?;
    let packet = Packet::parse(&bytes, width).map_err(|e| e.to_string())?;
    let mut again = vec![0xAA; bytes.len()];
    let error = |e: millstream_wire::Error| e.to_string();
    let (written, body) = match packet.kind() {
        PacketType::Data | PacketType::TimedData => {
            let at = packet.header().payload_offset(width);
            let ticks = packet.timestamp().unwrap_or(0);
            let written = packet.header().emit(ticks, width, &mut again).map_err(error)?;
            again[written..at].copy_from_slice(packet.metadata());
            again[at..].copy_from_slice(packet.payload());
            (bytes.len(), data(packet.timestamp(), packet.metadata(), packet.payload()))
        }
        PacketType::StreamStatus => {
            let repr = StatusRepr::parse(&packet).map_err(error)?;
            (repr.emit(width, &mut again).map_err(error)?, status(&repr))
        }
        PacketType::StreamCommand => {
            let repr = CommandRepr::parse(&packet).map_err(error)?;
            (repr.emit(width, &mut again).map_err(error)?, command(&repr))
        }
        PacketType::Control => {
            let repr = CtrlRepr::parse(&packet).map_err(error)?;
            (repr.emit(width, &mut again).map_err(error)?, control(&repr))
        }
        PacketType::Management => {
            let repr = MgmtRepr::parse(&packet).map_err(error)?;
            (repr.emit(width, &mut again).map_err(error)?, management(&repr))
        }
    };
    if written != bytes.len() || again != bytes {
        return Err(format!("emitted again as {}", hex(&again[..written])));
    }
    Ok(line(&bytes, width, packet.header(), body))
}

pub fn data(timestamp: Option<u64>, metadata: &[u8], payload: &[u8]) -> Value {
    json!({ "timestamp": timestamp, "metadata": hex(metadata), "payload": hex(payload) })
}

pub fn status(repr: &StatusRepr) -> Value {
    json!({
        "src_epid": repr.src_epid.0,
        "status": repr.status.code(),
        "capacity_bytes": repr.capacity_bytes,
        "capacity_packets": repr.capacity_packets,
        "count_packets": repr.count_packets,
        "count_bytes": repr.count_bytes,
        "buffer_info": repr.buffer_info,
        "error_info": repr.error_info,
    })
}

pub fn command(repr: &CommandRepr) -> Value {
    json!({
        "src_epid": repr.src_epid.0,
        "op": repr.op.code(),
        "op_data": repr.op_data,
        "packets": repr.packets,
        "bytes": repr.bytes,
    })
}

pub fn control(repr: &CtrlRepr) -> Value {
    json!({
        "src_epid": repr.src_epid.0,
        "dst_port": repr.dst_port,
        "src_port": repr.src_port,
        "ctrl_seq": repr.ctrl_seq,
        "is_ack": repr.is_ack,
        "timestamp": repr.timestamp,
        "address": repr.address,
        "byte_enables": repr.byte_enables,
        "op": repr.op.code(),
        "status": repr.status.code(),
        "data": repr.data.as_slice(),
    })
}

pub fn management(repr: &MgmtRepr) -> Value {
    let hops: Vec<Vec<Value>> =
        repr.hops().map(|hop| hop.iter().map(operation).collect()).collect();
    let Epid(src_epid) = repr.src_epid;
    json!({ "src_epid": src_epid, "version": repr.version, "hops": hops })
}

fn operation(op: &Op) -> Value {
    let code = op.code();
    match *op {
        Op::Nop | Op::Advertise | Op::Return | Op::InfoReq => json!({ "code": code }),
        Op::SelDest(port) => json!({ "code": code, "port": port }),
        Op::CfgWrite { address, value } | Op::CfgReadResp { address, value } => {
            json!({ "code": code, "address": address, "value": value })
        }
        Op::CfgRead { address } => json!({ "code": code, "address": address, "value": 0 }),
        Op::InfoResp(info) => json!({
            "code": code,
            "device_id": info.device_id,
            "node_type": info.node.code(),
            "instance": info.instance,
            "extended": info.to_operand().expect("read or made valid") >> 30,
        }),
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or("?"));
    digits.map(|pair| u8::from_str_radix(pair, 16).map_err(|e| e.to_string())).collect()
}
