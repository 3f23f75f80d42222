//! The classes of packets for faults.

use millstream_wire::chdr::{Packet, PacketType, Width};
use millstream_wire::ctrl::Protocol;
use millstream_wire::stream::{CommandOp, CommandRepr};

/// The direction of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketDirection {
    ToHost,
    ToDevice,
}

impl PacketDirection {
    pub const NAMES: [(&str, Self); 2] = [("to_host", Self::ToHost), ("to_device", Self::ToDevice)];
}

/// A class of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Everything on the CHDR port, including datagrams that are not CHDR packets.
    Any,
    /// Samples.
    Data,
    /// Credit reports.
    Status,
    /// Stream commands of all kinds.
    Command,
    /// Stream commands that begin a stream.
    Init,
    /// Stream commands that repair the credit.
    Resync,
    /// Register accesses, their answers, and asynchronous messages.
    Control,
    /// Register accesses, and asynchronous messages of the device.
    Request,
    /// Answers to register accesses.
    Ack,
    /// Topology and stream endpoint registers.
    Management,
    /// Everything on the discovery port: searches and echoes.
    Discovery,
}

impl Class {
    pub const NAMES: [(&str, Self); 11] = [
        ("any", Self::Any),
        ("data", Self::Data),
        ("status", Self::Status),
        ("command", Self::Command),
        ("init", Self::Init),
        ("resync", Self::Resync),
        ("control", Self::Control),
        ("request", Self::Request),
        ("ack", Self::Ack),
        ("management", Self::Management),
        ("discovery", Self::Discovery),
    ];

    /// Returns whether a datagram belongs to the class, and to this destination endpoint if one is
    /// given. The protocol is that of control packets.
    pub fn has(self, datagram: &[u8], epid: Option<u16>, width: Width, protocol: Protocol) -> bool {
        if epid.is_none() && matches!(self, Self::Any | Self::Discovery) {
            return true;
        }
        let Ok(packet) = Packet::parse(datagram, width) else { return false };
        if epid.is_some_and(|epid| packet.header().dst_epid.0 != epid) {
            return false;
        }
        let kind = packet.kind();
        let command = |op| CommandRepr::parse(&packet).is_ok_and(|command| command.op == op);
        let answer = |is_ack| protocol.parse(&packet).is_ok_and(|control| control.is_ack == is_ack);
        match self {
            Self::Any => true,
            Self::Discovery => false,
            Self::Data => matches!(kind, PacketType::Data | PacketType::TimedData),
            Self::Status => kind == PacketType::StreamStatus,
            Self::Command => kind == PacketType::StreamCommand,
            Self::Init => command(CommandOp::Init),
            Self::Resync => command(CommandOp::Resync),
            Self::Control => kind == PacketType::Control,
            Self::Request => answer(false),
            Self::Ack => answer(true),
            Self::Management => kind == PacketType::Management,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_wire::Epid;
    use millstream_wire::chdr::DataRepr;
    use millstream_wire::ctrl::CtrlRepr;
    use millstream_wire::mgmt::{MgmtRepr, Op};
    use millstream_wire::stream::StatusRepr;

    /// Returns a packet of each kind, to endpoint 7 if it has a destination.
    fn packets(protocol: Protocol) -> Vec<(&'static str, Vec<u8>)> {
        let (dst_epid, w) = (Epid(7), Width::W64);
        let mut request = MgmtRepr::request(Epid(1), 0);
        request.push_hop(&[Op::Nop]).unwrap();
        let data = |timestamp| DataRepr { dst_epid, timestamp, ..DataRepr::default() };
        let command = |op| CommandRepr { dst_epid, op, ..CommandRepr::default() };
        let control = |is_ack| CtrlRepr { dst_epid, is_ack, ..CtrlRepr::default() };
        let mut all = Vec::new();
        let mut put = |name, emit: &dyn Fn(&mut [u8]) -> millstream_wire::Result<usize>| {
            let mut bytes = vec![0; 128];
            let length = emit(&mut bytes).unwrap();
            bytes.truncate(length);
            all.push((name, bytes));
        };
        put("data", &|b| data(None).emit(w, b));
        put("timed", &|b| data(Some(5)).emit(w, b));
        put("status", &|b| StatusRepr { dst_epid, ..StatusRepr::default() }.emit(w, b));
        put("init", &|b| command(CommandOp::Init).emit(w, b));
        put("resync", &|b| command(CommandOp::Resync).emit(w, b));
        put("request", &|b| protocol.emit(&control(false), w, b));
        put("ack", &|b| protocol.emit(&control(true), w, b));
        put("management", &|b| request.emit(w, b));
        all.push(("noise", vec![0xff; 3]));
        all
    }

    #[test]
    fn every_class_has_its_packets_and_no_others() {
        for (class, want) in [
            (Class::Data, &["data", "timed"][..]),
            (Class::Status, &["status"]),
            (Class::Command, &["init", "resync"]),
            (Class::Init, &["init"]),
            (Class::Resync, &["resync"]),
            (Class::Control, &["request", "ack"]),
            (Class::Request, &["request"]),
            (Class::Ack, &["ack"]),
            (Class::Management, &["management"]),
        ] {
            for protocol in [Protocol::V1, Protocol::V2] {
                let packets = packets(protocol);
                let has = |bytes: &[u8]| class.has(bytes, None, Width::W64, protocol);
                let has = packets.iter().filter(|(_, bytes)| has(bytes));
                assert_eq!(has.map(|(name, _)| *name).collect::<Vec<_>>(), want, "{class:?}");
            }
        }
        let any = |bytes: &[u8]| Class::Any.has(bytes, None, Width::W64, Protocol::V1);
        assert!(packets(Protocol::V1).iter().all(|(_, bytes)| any(bytes)));
    }

    #[test]
    fn an_endpoint_narrows_a_class() {
        let to_seven = |epid| {
            let has = |bytes: &[u8]| Class::Any.has(bytes, epid, Width::W64, Protocol::V1);
            packets(Protocol::V1).iter().filter(|(_, bytes)| has(bytes)).count()
        };
        assert_eq!((to_seven(Some(7)), to_seven(Some(8))), (7, 0));
    }
}
