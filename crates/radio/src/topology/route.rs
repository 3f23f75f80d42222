//! Routes: the path back to a port of this host, and the path to an endpoint of the device.

use std::net::SocketAddrV4;

use millstream_wire::Epid;
use millstream_wire::mgmt::{Node, Op};

use super::{Asker, Endpoint, Management, Question};
use crate::RadioError;

const NO_ENDPOINT: &str = "a route leads to no stream endpoint";

/// Registers the port's endpoint with the device's transport: until then the device knows no
/// address for it, and what comes through its crossbar leaves for nowhere.
///
/// # Errors
/// [`RadioError::Silent`].
pub(super) fn advertise(management: &mut Management<'_>) -> Result<(), RadioError> {
    management.ask(advertisement()).map(drop)
}

/// Opens the path from the crossbar to the port.
///
/// # Errors
/// [`RadioError::Silent`].
pub(super) fn route_to_host(
    management: &mut Management<'_>,
    entry_port: u16,
) -> Result<(), RadioError> {
    management.ask(route_back(management.epid(), entry_port)).map(drop)
}

/// Opens both paths between the port and an endpoint of the device.
///
/// # Errors
/// Those of [`route_to`].
pub(crate) fn connect(
    management: &mut Management<'_>,
    entry_port: u16,
    endpoint: &Endpoint,
) -> Result<(), RadioError> {
    advertise(management)?;
    route_to_host(management, entry_port)?;
    route_to(management, endpoint)
}

/// Opens the path from the port to `endpoint`.
///
/// # Errors
/// [`RadioError::Silent`]; [`RadioError::Unusable`] when the path leads to another endpoint.
pub fn route_to(management: &mut Management<'_>, endpoint: &Endpoint) -> Result<(), RadioError> {
    let answers = management.ask(route_there(endpoint))?;
    if has_arrived(&answers) { Ok(()) } else { Err(management.unusable(NO_ENDPOINT)) }
}

fn advertisement() -> Question {
    Question::new("an advertisement", &[&[Op::Advertise, Op::Return]])
}

fn route_back(epid: Epid, entry_port: u16) -> Question {
    let own = Op::CfgWrite { address: epid.0, value: entry_port.into() };
    Question::new("a route to this host", &[&[Op::Nop], &[own, Op::Return]])
}

fn route_there(endpoint: &Endpoint) -> Question {
    let there = [
        Op::CfgWrite { address: endpoint.epid.0, value: endpoint.port.into() },
        Op::SelDest(endpoint.port),
    ];
    let hops: [&[Op]; 3] = [&[Op::Nop], &there, &[Op::InfoReq, Op::Return]];
    Question::new("the route to an endpoint", &hops)
}

/// Returns whether the answers are those of a stream endpoint.
fn has_arrived(answers: &[Op]) -> bool {
    answers.iter().any(|op| match op {
        Op::InfoResp(info) => matches!(info.node, Node::StreamEndpoint { .. }),
        _ => false,
    })
}

/// The requests of [`connect`], one after the other.
#[derive(Debug)]
pub(crate) struct Routes {
    epid: Epid,
    entry_port: u16,
    endpoint: Endpoint,
    stage: RouteStage,
}

/// The request that is under way.
#[derive(Debug)]
enum RouteStage {
    Advertising,
    Back,
    There,
}

impl Routes {
    /// Begins with the first request.
    pub fn begin(asker: &mut Asker, epid: Epid, entry_port: u16, endpoint: Endpoint) -> Self {
        asker.ask(advertisement());
        Self { epid, entry_port, endpoint, stage: RouteStage::Advertising }
    }

    /// Goes on behind an answer. Returns true when both paths are there.
    ///
    /// # Errors
    /// [`RadioError::Unusable`] when the path leads to another endpoint.
    pub fn advance(
        &mut self,
        asker: &mut Asker,
        answers: &[Op],
        device: SocketAddrV4,
    ) -> Result<bool, RadioError> {
        let (question, stage) = match self.stage {
            RouteStage::Advertising => (route_back(self.epid, self.entry_port), RouteStage::Back),
            RouteStage::Back => (route_there(&self.endpoint), RouteStage::There),
            RouteStage::There if has_arrived(answers) => return Ok(true),
            RouteStage::There => {
                let (address, reason) = (*device.ip(), NO_ENDPOINT.to_owned());
                return Err(RadioError::Unusable { address, reason });
            }
        };
        asker.ask(question);
        self.stage = stage;
        Ok(false)
    }
}
