//! Transport, crossbar and endpoints for management packets.

use super::endpoint::Endpoint;
use super::epid_table::EpidTable;
use millstream_wire::mgmt::{ForwardHops, MgmtRepr, Node, NodeInfo, Op};
use millstream_wire::stream::CommandRepr;
use millstream_wire::{Epid, Result};
use std::net::SocketAddrV4;

/// The port by which packets leave whose destination has no route: the first transport.
const DEFAULT_PORT: u8 = 0;

/// The nodes in front of the endpoints, and their configuration.
///
/// The first ports of the crossbar are those of the transport adapters, one for each link; the
/// endpoints follow.
pub(crate) struct Fabric {
    endpoints: u8,
    /// The id in information responses; RPC sets it.
    pub device_id: u16,
    /// Crossbar output port by endpoint id.
    routes: EpidTable<u8>,
    transports: Box<[Transport]>,
}

/// The transport adapter of a link.
struct Transport {
    /// Where the packets to an endpoint id leave to: the address that it has advertised, or the one
    /// that the management side has written. Both are entries of the same table, as in the logic.
    hosts: EpidTable<HostAddress>,
    /// Its port of the crossbar waits for an answer that does not come, until the next reset.
    is_stopped: bool,
}

/// The address of a host's endpoint, and the link that leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostAddress {
    pub link: usize,
    pub socket: SocketAddrV4,
    /// Packets leave without their header.
    pub raw: bool,
}

impl HostAddress {
    /// Returns the address of a host that gets whole packets.
    pub fn new(link: usize, socket: SocketAddrV4) -> Self {
        Self { link, socket, raw: false }
    }
}

/// The destination of the packets to an endpoint, as the management side writes it to a transport
/// adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemoteRoute {
    pub epid: Epid,
    pub to: HostAddress,
}

/// Where a management packet is behind transport and crossbar.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Forwarded {
    /// It leaves for this host.
    Host(MgmtRepr, HostAddress),
    /// It leaves for nobody, or ends at a port without a node.
    Nowhere,
    /// It has come to the endpoint with this index.
    Endpoint(usize, MgmtRepr),
}

/// The effect of a management packet at an endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EndpointEffect {
    /// What leaves.
    pub forwarded: Forwarded,
    /// The endpoint started a stream: the command for its host.
    pub command: Option<CommandRepr>,
}

impl Fabric {
    /// Returns nodes without configuration, between this number of links and of endpoints.
    pub fn new(links: usize, endpoints: u16) -> Self {
        let transport = |_| Transport { hosts: EpidTable::new(), is_stopped: false };
        let (transports, routes) = ((0..links).map(transport).collect(), EpidTable::new());
        Self { endpoints: endpoints as u8, device_id: 0, routes, transports }
    }

    /// Restores the state after power-on.
    pub fn reset(&mut self) {
        self.device_id = 0;
        self.routes.clear();
        for transport in &mut self.transports {
            transport.hosts.clear();
            transport.is_stopped = false;
        }
    }

    /// Has the packets to an endpoint that leave by a link go to this address from now on.
    pub fn route(&mut self, RemoteRoute { epid, to }: RemoteRoute) {
        if let Some(transport) = self.transports.get_mut(to.link) {
            transport.hosts.insert(epid, to);
        }
    }

    /// Returns the index of the endpoint to which the crossbar routes `epid`.
    pub fn endpoint_of(&self, epid: Epid) -> Option<usize> {
        self.endpoint_at(self.port_of(epid).into())
    }

    /// Returns the address of a host endpoint, which must have advertised itself on the link by
    /// which packets to it leave.
    pub fn host(&self, epid: Epid) -> Option<HostAddress> {
        self.host_behind(self.port_of(epid).into(), epid)
    }

    /// Returns whether nothing that comes by a link passes the crossbar any more.
    pub fn is_stopped(&self, link: usize) -> bool {
        self.transports[link].is_stopped
    }

    /// Forwards a packet from `source` through transport and crossbar.
    ///
    /// The transport's own answers go back to where the request came from; all others leave for the
    /// address that their endpoint has advertised.
    ///
    /// # Errors
    /// When the hops cannot be executed; the packet must then be dropped.
    pub fn forward(&mut self, mut packet: MgmtRepr, source: HostAddress) -> Result<Forwarded> {
        let src_epid = packet.src_epid;
        let forward = packet.execute(|op| self.transport(op, src_epid, source))?;
        if forward == ForwardHops::Return {
            return Ok(Forwarded::Host(packet, source));
        }
        if self.is_stopped(source.link) {
            return Ok(Forwarded::Nowhere);
        }
        let forward = packet.execute(|op| self.crossbar(op, source.link))?;
        if self.is_stopped(source.link) {
            return Ok(Forwarded::Nowhere);
        }
        let port = match forward {
            ForwardHops::Return => source.link as u16,
            ForwardHops::Port(port) => port,
            ForwardHops::Default => self.port_of(packet.dst_epid).into(),
        };
        Ok(match self.endpoint_at(port) {
            Some(index) => Forwarded::Endpoint(index, packet),
            None => self.leave(port, packet),
        })
    }

    /// Executes a packet at its endpoint.
    ///
    /// # Errors
    /// When the hop cannot be executed; the packet must then be dropped.
    pub fn execute(&self, mut packet: MgmtRepr, endpoint: &mut Endpoint) -> Result<EndpointEffect> {
        let mut command = None;
        packet.execute(|op| match op {
            Op::InfoReq => Some(Op::InfoResp(endpoint.info(self.device_id))),
            Op::CfgWrite { address, value } => {
                command = endpoint.write(address, value).or(command);
                None
            }
            Op::CfgRead { address } => {
                Some(Op::CfgReadResp { address, value: endpoint.read(address) })
            }
            _ => None,
        })?;
        let port = self.port_of(packet.dst_epid).into();
        Ok(EndpointEffect { forwarded: self.leave(port, packet), command })
    }

    fn transport(&mut self, op: Op, src_epid: Epid, source: HostAddress) -> Option<Op> {
        match op {
            Op::Advertise => {
                self.transports[source.link].hosts.insert(src_epid, source);
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
                let transports = self.transports.len() as u8;
                let node = Node::Crossbar { ports: transports + self.endpoints, transports };
                Some(self.info(node, link))
            }
            Op::CfgWrite { address, value } => {
                self.routes.insert(Epid(address), value as u8);
                None
            }
            Op::CfgRead { .. } => {
                // Its handler waits for a register interface that the crossbar does not have.
                self.transports[link].is_stopped = true;
                None
            }
            _ => None,
        }
    }

    /// Returns what becomes of a packet that leaves the crossbar by a port.
    fn leave(&self, port: u16, packet: MgmtRepr) -> Forwarded {
        match self.host_behind(port.into(), packet.dst_epid) {
            Some(host) => Forwarded::Host(packet, host),
            None => Forwarded::Nowhere,
        }
    }

    fn host_behind(&self, link: usize, epid: Epid) -> Option<HostAddress> {
        self.transports.get(link)?.hosts.get(epid).copied()
    }

    /// The instance of a transport is its number, and that of the crossbar the port of entry, which
    /// is the same.
    fn info(&self, node: Node, link: usize) -> Op {
        Op::InfoResp(NodeInfo { device_id: self.device_id, instance: link as u16, node })
    }

    fn port_of(&self, epid: Epid) -> u8 {
        self.routes.get(epid).copied().unwrap_or(DEFAULT_PORT)
    }

    fn endpoint_at(&self, port: u16) -> Option<usize> {
        let index = usize::from(port).checked_sub(self.transports.len())?;
        (index < self.endpoints.into()).then_some(index)
    }
}

#[cfg(test)]
#[path = "fabric_tests.rs"]
mod tests;
