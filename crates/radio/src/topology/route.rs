//! Routes: the way back to a port of this host, and the way to an endpoint of the device.

use millstream_wire::mgmt::{Node, Op};

use super::{Endpoint, Management};
use crate::RadioError;

/// Makes the device remember where the port's endpoint lives, and its crossbar how to get there.
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

/// Opens the way from the port to `endpoint`.
///
/// # Errors
/// [`RadioError::Silent`]; [`RadioError::Unusable`] when the way leads elsewhere.
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
