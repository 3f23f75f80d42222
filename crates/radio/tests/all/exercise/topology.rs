//! A walk through a device with arbitrary management answers.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use millstream_radio::topology::{Management, discover, route_to, survey};
use millstream_wire::chdr::Packet;
use millstream_wire::mgmt::{MgmtRepr, Node, NodeInfo, Op};
use millstream_wire::{Epid, Width};

use super::ports::{Air, DEVICE, Device, port};

/// Takes its answers from a list of bytes, until the list ends.
struct Liar {
    bytes: Vec<u8>,
    at: usize,
    air: Air,
}

impl Liar {
    fn byte(&mut self) -> Option<u8> {
        self.at += 1;
        self.bytes.get(self.at - 1).copied()
    }

    fn node(&mut self) -> Option<NodeInfo> {
        let [what, instance, more] = [self.byte()?, self.byte()?, self.byte()?];
        let node = match what % 8 {
            0 => Node::Crossbar { ports: more, transports: 1 },
            1 => Node::Crossbar { ports: more % 16, transports: more % 4 },
            2..=4 => Node::StreamEndpoint {
                control: more & 1 == 0,
                data: more & 2 == 0,
                inputs: 1,
                outputs: 1,
                reports_errors: false,
            },
            5 | 6 => Node::Transport { subtype: 0 },
            _ => Node::Other { code: 4, extended: more.into() },
        };
        let device_id = u16::from(what & 0xF0 != 0xF0);
        Some(NodeInfo { device_id, instance: u16::from(instance) % 1024, node })
    }
}

impl Device for Liar {
    fn hear(&mut self, datagram: &[u8]) {
        let Some(how) = self.byte() else { return };
        let packet = Packet::parse(datagram, Width::W64).expect("the host writes packets");
        let mut request = MgmtRepr::parse(&packet).expect("the host writes requests");
        // The nodes on the path, and the one that answers.
        while request.hops().count() > 1 {
            let executed = request.execute(|op| match op {
                Op::InfoReq => self.node().map(Op::InfoResp),
                Op::CfgRead { address } => {
                    Some(Op::CfgReadResp { address, value: self.byte()?.into() })
                }
                _ => None,
            });
            if executed.is_err() {
                return;
            }
        }
        let mut bytes = vec![0; 4096];
        let Ok(length) = request.emit(Width::W64, &mut bytes) else { return };
        bytes.truncate(length);
        match how % 8 {
            // Lost, cut off, damaged, twice.
            0 => return,
            1 => bytes.truncate(usize::from(how)),
            2 => bytes[usize::from(how) % length] ^= 1 << (how >> 5),
            3 => self.air.put(bytes.clone()),
            _ => {}
        }
        self.air.put(bytes);
    }
}

/// Walks through a device whose answers are `bytes`.
pub fn topology(bytes: &[u8]) {
    let air = Air::default();
    let liar = Arc::new(Mutex::new(Liar { bytes: bytes.to_vec(), at: 0, air: air.clone() }));
    let mut port = port(&liar, &air);
    let mut management = Management::new(&mut port, DEVICE, Width::W64, Epid(1));
    let Ok(topology) = discover(&mut management, Ipv4Addr::LOCALHOST, 1, 2) else { return };
    let control = *topology.control().expect("a walk without one is an error");
    assert!(control.control && control.instance == 0);
    for (endpoint, epid) in topology.endpoints.iter().zip(2..) {
        assert_eq!(endpoint.epid, Epid(epid));
    }
    let _ = route_to(&mut management, &control);
    if let Ok((_, reached)) = survey(&mut management, 1, &topology) {
        assert!(reached.iter().all(|instance| topology.instance(*instance).is_some()));
    }
}
