//! What a device is made of, and the routes through it (facts page, section 6).

mod route;
mod transact;
mod walk;

pub use route::{advertise, route_to};
pub use transact::{Management, SkippedPackets, TRANSACTION_TIMEOUT};
pub use walk::discover;

use millstream_wire::Epid;

/// A stream endpoint of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// The crossbar port that it hangs on.
    pub port: u16,
    /// Which of the device's endpoints it is; 0 is the one for control.
    pub instance: u16,
    /// The id that this host gave it.
    pub epid: Epid,
    /// Whether it takes control packets.
    pub control: bool,
    /// Whether it takes or sends samples.
    pub data: bool,
}

/// The transport this host came in by, and the endpoints behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadioTopology {
    /// The crossbar port of the transport: where packets to this host go.
    pub entry_port: u16,
    /// The endpoints, in the order of their instances.
    pub endpoints: Vec<Endpoint>,
}

impl RadioTopology {
    /// The endpoint for control packets.
    pub fn control(&self) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.control && endpoint.instance == 0)
    }

    /// The endpoint with this instance.
    pub fn instance(&self, instance: u16) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.instance == instance)
    }
}
