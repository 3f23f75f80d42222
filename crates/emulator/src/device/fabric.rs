//! Transport, crossbar and endpoints for management packets.

use super::endpoint::Endpoint;
use millstream_wire::mgmt::{ForwardHops, MgmtRepr, Node, NodeInfo, Op};
use millstream_wire::stream::CommandRepr;
use millstream_wire::{Epid, Result};
use std::collections::HashMap;
use std::net::SocketAddrV4;

const NO_ROUTE: u8 = 0xff;

/// The nodes in front of the endpoints, and their configuration.
///
/// The first ports of the crossbar are those of the transport adapters, one for each link; the
/// endpoints follow.
pub(crate) struct Fabric {
    links: u8,
    endpoints: u8,
    /// The id in information responses; RPC sets it.
    pub device_id: u16,
    /// Crossbar output port by endpoint id.
    routes: Box<[u8]>,
    /// UDP address by link and host endpoint id, from ADVERTISE. Bounded by the number of ids.
    hosts: HashMap<(usize, Epid), SocketAddrV4>,
}

/// The address of a host's endpoint, and the link that leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostAddress {
    pub link: usize,
    pub socket: SocketAddrV4,
}

/// The effect of a management packet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ManagementEffect {
    /// The answer to the sender.
    pub reply: Option<MgmtRepr>,
    /// An endpoint started a stream: the command for its host, and the endpoint's index.
    pub command: Option<(usize, CommandRepr)>,
}

impl Fabric {
    /// Returns nodes without configuration, between this number of links and of endpoints.
    pub fn new(links: usize, endpoints: u16) -> Self {
        let routes = vec![NO_ROUTE; 1 << 16].into_boxed_slice();
        let (links, endpoints) = (links as u8, endpoints as u8);
        Self { links, endpoints, device_id: 0, routes, hosts: HashMap::new() }
    }

    /// Restores the state after power-on.
    pub fn reset(&mut self) {
        self.device_id = 0;
        self.routes.fill(NO_ROUTE);
        self.hosts.clear();
    }

    /// Returns the index of the endpoint to which the crossbar routes `epid`.
    pub fn endpoint_of(&self, epid: Epid) -> Option<usize> {
        self.endpoint_at(self.routes[usize::from(epid.0)].into())
    }

    /// Returns the address of a host endpoint, which must have advertised itself and set a route.
    pub fn host(&self, epid: Epid) -> Option<HostAddress> {
        let link = self.routes[usize::from(epid.0)].into();
        // Routes to endpoints have no entry.
        self.hosts.get(&(link, epid)).map(|&socket| HostAddress { link, socket })
    }

    /// Forwards a packet from `source` through the nodes of its hops.
    ///
    /// There is no reply when it ends at a port without a node.
    ///
    /// # Errors
    /// When the hops cannot be executed; the packet must then be dropped.
    pub fn execute(
        &mut self,
        mut packet: MgmtRepr,
        source: HostAddress,
        endpoints: &mut [Endpoint],
    ) -> Result<ManagementEffect> {
        let src_epid = packet.src_epid;
        let device_id = self.device_id;
        let forward = packet.execute(|op| self.transport(op, src_epid, source))?;
        if forward == ForwardHops::Return {
            return Ok(ManagementEffect { reply: Some(packet), command: None });
        }
        let port = match packet.execute(|op| self.crossbar(op, source.link))? {
            ForwardHops::Return => {
                return Ok(ManagementEffect { reply: Some(packet), command: None });
            }
            ForwardHops::Port(port) => port,
            ForwardHops::Default => self.routes[usize::from(packet.dst_epid.0)].into(),
        };
        let Some(index) = self.endpoint_at(port) else { return Ok(ManagementEffect::default()) };
        let endpoint = &mut endpoints[index];
        let mut command = None;
        let forward = packet.execute(|op| match op {
            Op::InfoReq => Some(Op::InfoResp(endpoint.info(device_id))),
            Op::CfgWrite { address, value } => {
                command = endpoint.write(address, value).map(|init| (index, init)).or(command);
                None
            }
            Op::CfgRead { address } => {
                Some(Op::CfgReadResp { address, value: endpoint.read(address) })
            }
            _ => None,
        })?;
        Ok(ManagementEffect { reply: (forward == ForwardHops::Return).then_some(packet), command })
    }

    fn transport(&mut self, op: Op, src_epid: Epid, source: HostAddress) -> Option<Op> {
        match op {
            Op::Advertise => {
                self.hosts.insert((source.link, src_epid), source.socket);
                None
            }
            Op::InfoReq => Some(self.info(Node::Transport { subtype: 1 }, source.link)),
            Op::CfgRead { address } => Some(Op::CfgReadResp { address, value: 0 }),
            _ => None,
        }
    }

    fn crossbar(&mut self, op: Op, link: usize) -> Option<Op> {
        match op {
            Op::InfoReq => {
                let node = Node::Crossbar { ports: self.ports(), transports: self.links };
                Some(self.info(node, link))
            }
            Op::CfgWrite { address, value } => {
                let port = u8::try_from(value).ok().filter(|&port| port < self.ports());
                self.routes[usize::from(address)] = port.unwrap_or(NO_ROUTE);
                None
            }
            Op::CfgRead { address } => {
                let value = self.routes[usize::from(address)].into();
                Some(Op::CfgReadResp { address, value })
            }
            _ => None,
        }
    }

    /// The instance of a transport is its number, and that of the crossbar the port of entry, which
    /// is the same.
    fn info(&self, node: Node, link: usize) -> Op {
        Op::InfoResp(NodeInfo { device_id: self.device_id, instance: link as u16, node })
    }

    fn ports(&self) -> u8 {
        self.links + self.endpoints
    }

    fn endpoint_at(&self, port: u16) -> Option<usize> {
        let index = port.checked_sub(self.links.into())?;
        (index < self.endpoints.into()).then_some(index.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::endpoint::CreditWindow;
    use crate::device::tx_fifo::{FifoSize, TxFifo};
    use millstream_wire::chdr::Width;
    use millstream_wire::regs::sep;
    use std::net::Ipv4Addr;

    const SOCKET: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 5000);
    const HOST: HostAddress = HostAddress { link: 0, socket: SOCKET };

    fn endpoint(instance: u16) -> Endpoint {
        let fifo = TxFifo::new(FifoSize { bytes: 1008, packets: 10 }, false);
        Endpoint::new(
            instance,
            Width::W64,
            CreditWindow { bytes: 1000, cautious_bytes: 1000, packets: 10 },
            fifo,
        )
    }

    fn parts() -> (Fabric, Vec<Endpoint>) {
        parts_with(1)
    }

    fn parts_with(links: usize) -> (Fabric, Vec<Endpoint>) {
        let mut fabric = Fabric::new(links, 2);
        fabric.device_id = 77;
        (fabric, (0..2).map(endpoint).collect())
    }

    fn ask(parts: &mut (Fabric, Vec<Endpoint>), epid: u16, hops: &[&[Op]]) -> Option<Vec<Op>> {
        ask_from(parts, HOST, epid, hops)
    }

    fn ask_from(
        parts: &mut (Fabric, Vec<Endpoint>),
        from: HostAddress,
        epid: u16,
        hops: &[&[Op]],
    ) -> Option<Vec<Op>> {
        let mut packet = MgmtRepr::request(Epid(epid), 5);
        for hop in hops.iter().copied().chain([&[Op::Nop][..]]) {
            packet.push_hop(hop).unwrap();
        }
        let reply = parts.0.execute(packet, from, &mut parts.1).unwrap().reply?;
        assert_eq!((reply.dst_epid, reply.seq), (Epid(epid), 5));
        assert_eq!(reply.hops().count(), 1, "a reply holds one hop");
        Some(reply.hops().next().unwrap()[1..].to_vec())
    }

    fn node(answer: Option<Vec<Op>>) -> NodeInfo {
        match answer.as_deref() {
            Some(&[Op::InfoResp(info)]) => info,
            other => panic!("{other:?}"),
        }
    }

    const WHO: &[Op] = &[Op::InfoReq, Op::Return];
    const PASS: &[Op] = &[Op::Nop];

    #[test]
    fn the_topology_is_transport_crossbar_and_two_endpoints() {
        let mut parts = parts();
        let info = node(ask(&mut parts, 1, &[WHO]));
        assert_eq!((info.device_id, info.node), (77, Node::Transport { subtype: 1 }));
        let info = node(ask(&mut parts, 1, &[PASS, WHO]));
        assert_eq!(info.node, Node::Crossbar { ports: 3, transports: 1 });
        for port in 1..=2 {
            let info = node(ask(&mut parts, 1, &[PASS, &[Op::SelDest(port)], WHO]));
            assert_eq!(info.instance, port - 1);
            assert!(matches!(info.node, Node::StreamEndpoint { .. }));
        }
        for port in [0, 3, 0xffff] {
            assert_eq!(ask(&mut parts, 1, &[PASS, &[Op::SelDest(port)], WHO]), None);
        }
    }

    #[test]
    fn a_host_is_reachable_once_it_advertised_and_set_its_route() {
        let mut parts = parts();
        assert_eq!(ask(&mut parts, 9, &[&[Op::Advertise, Op::Return]]), Some(vec![]));
        assert_eq!(parts.0.host(Epid(9)), None);
        let route = Op::CfgWrite { address: 9, value: 0 };
        assert_eq!(ask(&mut parts, 9, &[PASS, &[route, Op::Return]]), Some(vec![]));
        assert_eq!(parts.0.host(Epid(9)), Some(HOST));
        parts.0.reset();
        assert_eq!(parts.0.host(Epid(9)), None);
    }

    #[test]
    fn an_endpoint_is_reached_by_its_route() {
        let mut parts = parts();
        assert_eq!(parts.0.endpoint_of(Epid(3)), None);
        let hop = [Op::CfgWrite { address: 3, value: 2 }, Op::SelDest(2)];
        let set = [Op::CfgWrite { address: sep::EPID_SELF, value: 3 }, Op::Return];
        ask(&mut parts, 1, &[PASS, &hop, &set]);
        assert_eq!(parts.0.endpoint_of(Epid(3)), Some(1));
        assert_eq!(parts.1[1].epid, Epid(3));
        let bad = [Op::CfgWrite { address: 3, value: 3 }, Op::Return];
        ask(&mut parts, 1, &[PASS, &bad]);
        assert_eq!(parts.0.endpoint_of(Epid(3)), None, "a route to nowhere is none");
    }

    #[test]
    fn with_two_links_the_endpoints_follow_behind_both_and_packets_leave_by_the_route() {
        let mut parts = parts_with(2);
        let far = HostAddress { link: 1, socket: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 6000) };
        for from in [HOST, far] {
            let entry = from.link as u16;
            let ask = |parts: &mut _, hops: &[&[Op]]| node(ask_from(parts, from, 1, hops));
            assert_eq!(ask(&mut parts, &[WHO]).instance, entry);
            let crossbar = ask(&mut parts, &[PASS, WHO]);
            assert_eq!(crossbar.node, Node::Crossbar { ports: 4, transports: 2 });
            assert_eq!(crossbar.instance, entry, "the port by which the request came");
            assert_eq!(ask(&mut parts, &[PASS, &[Op::SelDest(3)], WHO]).instance, 1);
        }
        for from in [HOST, far] {
            ask_from(&mut parts, from, 9, &[&[Op::Advertise, Op::Return]]);
        }
        for from in [HOST, far] {
            let route = Op::CfgWrite { address: 9, value: from.link as u32 };
            ask(&mut parts, 1, &[PASS, &[route, Op::Return]]);
            assert_eq!(parts.0.host(Epid(9)), Some(from));
        }
        assert_eq!(ask(&mut parts, 1, &[PASS, &[Op::SelDest(4)], WHO]), None);
    }

    #[test]
    fn a_crowd_of_strangers_takes_nobodys_place() {
        let mut parts = parts();
        for epid in 0..=u16::MAX {
            ask(&mut parts, epid, &[&[Op::Advertise, Op::Return]]);
        }
        let route = Op::CfgWrite { address: u16::MAX, value: 0 };
        ask(&mut parts, u16::MAX, &[PASS, &[route, Op::Return]]);
        assert_eq!(parts.0.host(Epid(u16::MAX)), Some(HOST));
    }
}
