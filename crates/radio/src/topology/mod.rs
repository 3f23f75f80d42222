//! The parts of a device, and the routes through it.

mod question;
mod route;
mod transact;
mod walk;

pub(crate) use question::{Asker, AskerStep, Question, REQUEST_BYTES_MAX};
pub use route::route_to;
pub(crate) use route::{Routes, connect};
use transact::TRIES;
pub use transact::{Management, TRANSACTION_TIMEOUT};
pub use walk::{EntryPoint, discover, survey};

use millstream_wire::Epid;

/// A stream endpoint of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// The crossbar port that it is connected to.
    pub port: u16,
    /// Its index among the device's endpoints; 0 is the one for control.
    pub instance: u16,
    /// The id that this host assigned to it.
    pub epid: Epid,
    /// Whether it takes control packets.
    pub control: bool,
    /// Whether it takes or sends samples.
    pub data: bool,
}

/// The transport of this host's connection, and the endpoints behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadioTopology {
    /// The crossbar port of the transport: the destination of packets to this host.
    pub entry_port: u16,
    /// The instance of the transport among those of the device.
    pub transport: u16,
    /// The endpoints, in the order of their instances.
    pub endpoints: Vec<Endpoint>,
}

impl RadioTopology {
    /// Returns the endpoint for control packets.
    pub fn control(&self) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.control && endpoint.instance == 0)
    }

    /// Returns the endpoint with this instance.
    pub fn instance(&self, instance: u16) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.instance == instance)
    }
}
