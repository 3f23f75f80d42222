//! The paths of streams: link, endpoints and rate.

use std::sync::PoisonError;

use millstream_link::port::{Port, PortOptions};
use millstream_wire::Epid;

use super::Device;
use super::chains::ChannelChain;
use super::link::least_used;
use crate::graph::{BlockPort, StreamDirection};
use crate::stream::{StreamPath, StreamRate};
use crate::topology::Endpoint;
use crate::{Clock, RadioError, SharedPort};

impl Device {
    /// Sets the rate of a chain, which is leased, and returns the number of the link that its
    /// stream takes, and the path between its endpoint and that of this host.
    pub(super) fn path<C>(
        &self,
        direction: StreamDirection,
        chain: &ChannelChain<C>,
        all: &[ChannelChain<C>],
        is_leased: impl Fn(&C) -> bool,
    ) -> Result<(usize, StreamPath), RadioError> {
        self.power_chains()?;
        chain.set.dsp.write(&*self.control, self.ticks_hz)?;
        let others = all.iter().filter(|other| !std::ptr::eq(*other, chain));
        let used = others.filter(|other| is_leased(&other.channel)).map(|other| other.link.get());
        let used: Vec<_> = used.collect();
        let number = least_used(&self.links, chain.endpoint.instance, used.iter().copied());
        chain.link.set(number);
        let link = &self.links[number];
        let path = StreamPath {
            device: link.address,
            width: self.width,
            frame_bytes: link.frame_bytes,
            entry_port: link.entry_port,
            endpoint: chain.endpoint,
            epid: self.stream_epid(direction, &chain.endpoint),
            rate: chain.set.dsp.stream_rate(self.ticks_hz),
            clock: Clock::MACHINE,
        };
        Ok((number, path))
    }

    /// Returns the number of the link, and the path, of a stream from or to a block that is wired
    /// to a stream endpoint.
    pub(crate) fn block_path(
        &self,
        direction: StreamDirection,
        place: BlockPort,
    ) -> Result<(usize, StreamPath), RadioError> {
        let neighbour = self.blocks.neighbour(direction, place);
        let endpoint = neighbour
            .and_then(|(index, _)| self.topology.instance(index.checked_sub(1)?))
            .filter(|endpoint| endpoint.data)
            .ok_or_else(|| RadioError::Unusable {
                address: self.args.addr,
                reason: format!(
                    "port {} of its block {} is not wired to a stream endpoint",
                    place.port,
                    self.blocks.name(place.block.index)
                ),
            })?;
        let number = least_used(&self.links, endpoint.instance, std::iter::empty());
        let link = &self.links[number];
        let path = StreamPath {
            device: link.address,
            width: self.width,
            frame_bytes: link.frame_bytes,
            entry_port: link.entry_port,
            endpoint: *endpoint,
            epid: self.stream_epid(direction, endpoint),
            rate: StreamRate::of_radio(self.ticks_hz),
            clock: Clock::MACHINE,
        };
        Ok((number, path))
    }

    /// Opens a port for a stream on a link, or takes part in the port that its streams share.
    pub(super) fn stream_port(
        &self,
        number: usize,
        path: &StreamPath,
        options: &PortOptions,
    ) -> Result<Port, RadioError> {
        if !self.args.one_port {
            return Ok(self.args.port(number, options)?);
        }
        let mut shared_ports = self.shared_ports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shared)) = shared_ports.iter().find(|(link, _)| *link == number) {
            return Ok(shared.port(path.epid));
        }
        let receivers = self.rx.len();
        let port = self.args.port(
            number,
            &PortOptions {
                datagram_bytes_max: path.frame_bytes,
                recv_queue_bytes: self.args.recv_queue_bytes.saturating_mul(receivers),
                ..PortOptions::default()
            },
        )?;
        let shared = SharedPort::new(port, self.width, receivers);
        let port = shared.port(path.epid);
        shared_ports.push((number, shared));
        Ok(port)
    }

    /// Returns the datagrams to ports that streams share ([`DeviceArgs::one_port`]) which were for
    /// none of the streams.
    ///
    /// [`DeviceArgs::one_port`]: crate::DeviceArgs::one_port
    pub fn strays(&self) -> u64 {
        let shared_ports = self.shared_ports.lock().unwrap_or_else(PoisonError::into_inner);
        shared_ports.iter().map(|(_, shared)| shared.strays()).sum()
    }

    /// Opens a port on a link for the stream of a block.
    pub(crate) fn block_port(&self, number: usize, bytes_max: usize) -> Result<Port, RadioError> {
        Ok(self.args.port(
            number,
            &PortOptions {
                datagram_bytes_max: bytes_max,
                recv_queue_bytes: self.args.recv_queue_bytes,
                ..PortOptions::default()
            },
        )?)
    }

    /// Returns the id of this host's end of the stream from or to an endpoint. Each has one, for
    /// all of its streams: a device knows the addresses of the last 64 ids only, and the oldest of
    /// them is that of control.
    fn stream_epid(&self, direction: StreamDirection, endpoint: &Endpoint) -> Epid {
        let all = &self.topology.endpoints;
        let place = all.iter().position(|one| one.epid == endpoint.epid).unwrap_or(0) as u16;
        let side = u16::from(direction == StreamDirection::Tx);
        Epid(self.first_stream_epid.0 + 2 * place + side)
    }
}
