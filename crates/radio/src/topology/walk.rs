//! Finds the crossbar and the stream endpoints, and assigns the endpoints' ids.

use std::net::Ipv4Addr;
use std::ops::Range;

use millstream_wire::Epid;
use millstream_wire::mgmt::{Node, NodeInfo, Op};
use millstream_wire::regs::sep;

use super::{Endpoint, Management, RadioTopology, route};
use crate::RadioError;

/// Where the packets of a link enter a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPoint {
    /// The crossbar port of its transport.
    pub port: u16,
    /// The instance of that transport among those of the device.
    pub transport: u16,
}

/// Walks the device from the transport of `management`. Endpoints get the ids from `first_epid` on.
///
/// # Errors
/// [`RadioError::Silent`], and [`RadioError::Unusable`] for a device without crossbar or endpoints.
pub fn discover(
    management: &mut Management<'_>,
    device: Ipv4Addr,
    device_id: u16,
    first_epid: u16,
) -> Result<RadioTopology, RadioError> {
    let unusable = |reason: &str| RadioError::Unusable { address: device, reason: reason.into() };
    let (EntryPoint { port: entry_port, transport }, ports) = enter(management)?;

    let mut endpoints = Vec::new();
    for port in ports.filter(|port| *port != entry_port) {
        let select = [Op::SelDest(port)];
        let hops: [&[Op]; 3] = [&[Op::Nop], &select, &[Op::InfoReq, Op::Return]];
        let Some(answers) = management.probe(&hops)? else { continue };
        let Some(info) = node_info(&answers) else { continue };
        if info.device_id != device_id {
            continue;
        }
        if let Node::StreamEndpoint { control, data, .. } = info.node {
            let epid = Epid(0);
            endpoints.push(Endpoint { port, instance: info.instance, epid, control, data });
        }
    }
    endpoints.sort_by_key(|endpoint| endpoint.instance);
    for (endpoint, epid) in endpoints.iter_mut().zip(first_epid..) {
        endpoint.epid = Epid(epid);
        name(management, endpoint)?;
    }
    let topology = RadioTopology { entry_port, transport, endpoints };
    match topology.control() {
        Some(_) => Ok(topology),
        None => Err(unusable("it has no stream endpoint for control")),
    }
}

/// Walks a further link of a device that [`discover`] has walked by another one: returns
/// where it enters, and the instances of the known endpoints that it reaches.
///
/// # Errors
/// [`RadioError::Silent`], and [`RadioError::Unusable`] for a link that reaches none of them.
pub fn survey(
    management: &mut Management<'_>,
    device_id: u16,
    known: &RadioTopology,
) -> Result<(EntryPoint, Vec<u16>), RadioError> {
    let (entry, _) = enter(management)?;
    let mut reached = Vec::new();
    for endpoint in &known.endpoints {
        let select = [Op::SelDest(endpoint.port)];
        let hops: [&[Op]; 3] = [&[Op::Nop], &select, &[Op::InfoReq, Op::Return]];
        let Some(info) = management.probe(&hops)?.as_deref().and_then(node_info) else { continue };
        let is_it = info.device_id == device_id
            && info.instance == endpoint.instance
            && matches!(info.node, Node::StreamEndpoint { .. });
        if is_it {
            reached.push(endpoint.instance);
        }
    }
    if reached.is_empty() {
        let reason = "this link reaches none of the stream endpoints of its first link: check that \
                      both addresses belong to one device";
        return Err(management.unusable(reason));
    }
    Ok((entry, reached))
}

/// Registers this host with the transport of `management`, and finds the crossbar behind it.
/// Returns the transport's port of the crossbar, and the crossbar's ports behind those of
/// transports: only there are endpoints, and a transport without a peer does not answer.
fn enter(management: &mut Management<'_>) -> Result<(EntryPoint, Range<u16>), RadioError> {
    let info = ask(management, "a query of its transport", &[])?;
    let Some(NodeInfo { instance: transport, node: Node::Transport { .. }, .. }) = info else {
        let reason = "its answer to management packets does not come from a transport";
        return Err(management.unusable(reason));
    };
    // The transport answers by itself; from the crossbar on, answers need the address.
    route::advertise(management)?;
    let crossbar = ask(management, "a query of its crossbar", &[&[Op::Nop]])?;
    let Some(NodeInfo { instance: entry_port, node: Node::Crossbar { ports, transports }, .. }) =
        crossbar
    else {
        return Err(management.unusable("no crossbar is connected to its transport"));
    };
    route::route_to_host(management, entry_port)?;
    Ok((EntryPoint { port: entry_port, transport }, transports.into()..ports.into()))
}

/// Resets an endpoint and sets its id.
fn name(management: &mut Management<'_>, endpoint: &Endpoint) -> Result<(), RadioError> {
    let select = [Op::SelDest(endpoint.port)];
    let writes = [
        Op::CfgWrite { address: sep::RESET_AND_FLUSH, value: sep::RESET_ALL },
        Op::CfgWrite { address: sep::EPID_SELF, value: endpoint.epid.0.into() },
        Op::Return,
    ];
    let hops: [&[Op]; 3] = [&[Op::Nop], &select, &writes];
    management.transact("the naming of an endpoint", &hops).map(drop)
}

fn ask(
    management: &mut Management<'_>,
    what: &'static str,
    way: &[&[Op]],
) -> Result<Option<NodeInfo>, RadioError> {
    let question: &[Op] = &[Op::InfoReq, Op::Return];
    let hops: Vec<&[Op]> = way.iter().copied().chain([question]).collect();
    Ok(node_info(&management.transact(what, &hops)?))
}

fn node_info(answers: &[Op]) -> Option<NodeInfo> {
    answers.iter().find_map(|op| match op {
        Op::InfoResp(info) => Some(*info),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV4;

    use millstream_wire::chdr::Packet;
    use millstream_wire::mgmt::{ForwardHops, MgmtRepr};
    use millstream_wire::{Epid, Width};

    use super::*;
    use crate::testing::{FakeSocket, fake_pair};

    /// A device that answers as the logic does: its transport itself, its crossbar by the table of
    /// addresses, which ADVERTISE fills. Returns the operations of all requests.
    fn serve(mut device: FakeSocket) -> Vec<Vec<Op>> {
        let crossbar = Node::Crossbar { ports: 7, transports: 2 };
        let (mut known, mut asked) = (None::<SocketAddrV4>, Vec::new());
        loop {
            let (bytes, from) = device.receive();
            let Ok(packet) = Packet::parse(&bytes, Width::W64) else { return asked };
            let mut request = MgmtRepr::parse(&packet).unwrap();
            asked.push(request.hops().flatten().copied().collect());
            let mut to = Some(from);
            for node in [Node::Transport { subtype: 0 }, crossbar] {
                let forward = request.execute(|op| match op {
                    Op::Advertise => {
                        known = Some(from);
                        None
                    }
                    Op::InfoReq => Some(Op::InfoResp(NodeInfo { device_id: 1, instance: 0, node })),
                    _ => None,
                });
                if forward.unwrap() == ForwardHops::Return {
                    break;
                }
                to = known;
            }
            let mut reply = [0; 256];
            let length = request.emit(Width::W64, &mut reply).unwrap();
            if let Some(to) = to {
                device.send(&reply[..length], to);
            }
        }
    }

    #[test]
    fn the_host_gives_its_address_before_it_asks_anything_behind_the_transport() {
        let (mut port, device) = fake_pair();
        let address = device.address();
        let serving = std::thread::spawn(move || serve(device));
        let mut management = Management::new(&mut port, address, Width::W64, Epid(1));
        let found = enter(&mut management);
        port.tx.send(b"the end", address).unwrap();
        let asked = serving.join().unwrap();
        assert_eq!(
            found.unwrap(),
            (EntryPoint { port: 0, transport: 0 }, 2..7),
            "the ports of transports lead to no endpoint"
        );
        let info = |hops: &[Op]| [hops, &[Op::InfoReq, Op::Return, Op::Nop]].concat();
        let own = Op::CfgWrite { address: 1, value: 0 };
        let order = [
            info(&[]),
            vec![Op::Advertise, Op::Return, Op::Nop],
            info(&[Op::Nop]),
            vec![Op::Nop, own, Op::Return, Op::Nop],
        ];
        assert_eq!(asked, order, "UHD's order");
    }
}
