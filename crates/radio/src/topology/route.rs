//! Routes: the path back to a port of this host, and the path to an endpoint of the device.

use millstream_wire::mgmt::{Node, Op};

use super::{Endpoint, Management};
use crate::RadioError;

/// Registers the port's endpoint with the device, and the route to it in the crossbar.
///
/// # Errors
/// [`RadioError::Silent`].
pub fn advertise(management: &mut Management<'_>, entry_port: u16) -> Result<(), RadioError> {
    let own = Op::CfgWrite { address: management.epid().0, value: entry_port.into() };
    management.transact("a no-operation", &[&[Op::Nop, Op::Return]])?;
    management.transact("an advertisement", &[&[Op::Advertise, Op::Return]])?;
    management.transact("a route to this host", &[&[Op::Nop], &[own, Op::Return]])?;
    Ok(())
}

/// Opens the path from the port to `endpoint`.
///
/// # Errors
/// [`RadioError::Silent`]; [`RadioError::Unusable`] when the path leads to another endpoint.
pub fn route_to(management: &mut Management<'_>, endpoint: &Endpoint) -> Result<(), RadioError> {
    let there = [
        Op::CfgWrite { address: endpoint.epid.0, value: endpoint.port.into() },
        Op::SelDest(endpoint.port),
    ];
    let hops: [&[Op]; 3] = [&[Op::Nop], &there, &[Op::InfoReq, Op::Return]];
    let answers = management.transact("the route to an endpoint", &hops)?;
    let arrived = answers.iter().any(|op| match op {
        Op::InfoResp(info) => matches!(info.node, Node::StreamEndpoint { .. }),
        _ => false,
    });
    if arrived { Ok(()) } else { Err(management.unusable("a route leads to no stream endpoint")) }
}
