//! Finds the crossbar and the stream endpoints, and assigns the endpoints' ids.

use std::net::Ipv4Addr;

use millstream_wire::Epid;
use millstream_wire::mgmt::{Node, NodeInfo, Op};
use millstream_wire::regs::sep;

use super::{Endpoint, Management, RadioTopology, route};
use crate::RadioError;

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
    let info = ask(management, "a query of its transport", &[])?;
    if !matches!(info.map(|info| info.node), Some(Node::Transport { .. })) {
        return Err(unusable("its answer to management packets does not come from a transport"));
    }
    let crossbar = ask(management, "a query of its crossbar", &[&[Op::Nop]])?;
    let Some(NodeInfo { instance: entry_port, node: Node::Crossbar { ports, .. }, .. }) = crossbar
    else {
        return Err(unusable("no crossbar is connected to its transport"));
    };
    route::advertise(management, entry_port)?;

    let mut endpoints = Vec::new();
    for port in (0..u16::from(ports)).filter(|port| *port != entry_port) {
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
    let topology = RadioTopology { entry_port, endpoints };
    match topology.control() {
        Some(_) => Ok(topology),
        None => Err(unusable("it has no stream endpoint for control")),
    }
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
