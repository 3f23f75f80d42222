//! The links of an open device, over which its streams are spread.

use std::net::SocketAddrV4;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use millstream_link::port::{Port, PortOptions};
use millstream_wire::{Epid, Width};

use super::DEVICE_ID;
use super::session::ChdrLink;
use crate::deadline::OpenDeadline;
use crate::topology::{Management, RadioTopology, survey};
use crate::{DeviceArgs, RadioError, mtu};

/// A link of an open device.
pub struct DeviceLink {
    /// The destination of its packets.
    pub address: SocketAddrV4,
    /// The largest CHDR packet on its path, bytes.
    pub frame_bytes: usize,
    /// The crossbar port of its transport: the destination of packets to this host.
    pub entry_port: u16,
    /// The instance of that transport among those of the device.
    pub transport: u16,
    /// The instances of the endpoints that it reaches.
    endpoints: Vec<u16>,
    /// Holds a link open that would otherwise connect to its peer again for each stream.
    _port: Option<Mutex<Port>>,
}

impl DeviceLink {
    /// Returns the link by which a device was walked.
    pub(super) fn first(link: &ChdrLink, frame_bytes: usize, topology: &RadioTopology) -> Self {
        Self {
            address: link.address,
            frame_bytes,
            entry_port: topology.entry_port,
            transport: topology.transport,
            endpoints: topology.endpoints.iter().map(|endpoint| endpoint.instance).collect(),
            _port: None,
        }
    }

    /// Measures and walks a further link, as endpoint `epid` of this host.
    pub(super) fn further(
        args: &DeviceArgs,
        number: usize,
        link: &ChdrLink,
        (width, epid): (Width, Epid),
        topology: &RadioTopology,
        deadline: OpenDeadline,
    ) -> Result<Self, RadioError> {
        let mut port = args.port(number, &PortOptions::default())?;
        let frame_bytes = measure(args, number, link)?;
        let mut management = Management::new(&mut port, link.address, width, epid).until(deadline);
        let (entry, endpoints) = survey(&mut management, DEVICE_ID, topology)?;
        Ok(Self {
            address: link.address,
            frame_bytes,
            entry_port: entry.port,
            transport: entry.transport,
            endpoints,
            _port: Some(Mutex::new(port)),
        })
    }

    /// Returns whether streams of this endpoint can use it.
    pub fn reaches(&self, instance: u16) -> bool {
        self.endpoints.contains(&instance)
    }
}

/// The number of the link that a channel's latest stream uses.
#[derive(Debug, Default)]
pub(super) struct LinkNumber(AtomicUsize);

impl LinkNumber {
    /// Returns the number.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the number.
    pub fn set(&self, number: usize) {
        self.0.store(number, Ordering::Relaxed);
    }
}

/// Returns the number of the link for a new stream of an endpoint: the one that reaches it and has
/// the fewest streams of the direction, whose links are `used`.
pub(super) fn least_used(
    links: &[DeviceLink],
    instance: u16,
    used: impl Iterator<Item = usize> + Clone,
) -> usize {
    let streams = |number: &usize| used.clone().filter(|other| other == number).count();
    let all = (0..links.len()).filter(|number| links[*number].reaches(instance));
    // The first link reaches all endpoints.
    all.min_by_key(streams).unwrap_or(0)
}

/// Measures the largest CHDR packet on a link, bytes.
pub(super) fn measure(
    args: &DeviceArgs,
    number: usize,
    link: &ChdrLink,
) -> Result<usize, RadioError> {
    let bytes_max = if link.is_1g { mtu::DATAGRAM_BYTES_MAX_1G } else { mtu::DATAGRAM_BYTES_MAX };
    let mut port = args.port(number, &PortOptions::default())?;
    let bytes_max = bytes_max.min(port.rx.capabilities().datagram_bytes_max);
    let echo = SocketAddrV4::new(*link.address.ip(), args.discovery_port);
    mtu::probe(&mut port, echo, bytes_max)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn link(endpoints: &[u16]) -> DeviceLink {
        DeviceLink {
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1),
            frame_bytes: 8016,
            entry_port: 0,
            transport: 0,
            endpoints: endpoints.to_vec(),
            _port: None,
        }
    }

    #[test]
    fn streams_are_spread_over_the_links_that_reach_their_endpoints() {
        let links = [link(&[0, 1, 2]), link(&[0, 1])];
        let pick = |instance, used: &[usize]| least_used(&links, instance, used.iter().copied());
        assert_eq!((pick(0, &[]), pick(1, &[0]), pick(0, &[0, 1])), (0, 1, 0));
        assert_eq!((pick(0, &[1]), pick(2, &[0, 0])), (0, 0), "only the first reaches endpoint 2");
    }
}
