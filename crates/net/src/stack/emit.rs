//! The headers of sent datagrams.

use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_wire::ethernet::Mac;
use millstream_wire::{ipv4, udp};

use super::neighbours::NeighbourState;
use super::routes::{NextHop, Unreachable};
use super::template::HeaderTemplate;
use super::{AddressState, Stack};

/// The next hop of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmitHop<T> {
    /// The datagram can be sent.
    Known(T),
    /// Not yet: the next hop, or the claim of our own address, is not resolved. Try again when
    /// [`Stack::generation`] has changed.
    Pending,
    /// The datagram cannot be sent.
    Unreachable(Unreachable),
}

/// The reason why no headers were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// See [`EmitHop::Pending`].
    #[error("the Ethernet address of the next host is not known yet, so the datagram was not sent")]
    Pending,
    /// There is no route.
    #[error("cannot send to {to}: {why}")]
    Unreachable {
        /// The destination.
        to: Ipv4Addr,
        /// The reason.
        why: Unreachable,
    },
    /// The datagram does not fit the MTU, and nothing is fragmented.
    #[error("a datagram of {len} bytes is too long: at most {max} bytes fit into the MTU of {mtu}")]
    TooLong {
        /// Bytes of the payload.
        len: usize,
        /// Bytes that fit.
        max: usize,
        /// Largest IP packet, bytes.
        mtu: usize,
    },
}

/// The number of templates in use; a power of two.
const PATHS: usize = 64;

/// The templates of the streams that were sent last, each in the slot selected by its addresses.
#[derive(Debug)]
pub(super) struct Paths(Box<[Option<Path>]>);

#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    from: SocketAddrV4,
    to: SocketAddrV4,
    generation: u64,
    pub(super) template: HeaderTemplate,
    /// The longest IP packet that was sent, bytes.
    pub(super) longest: usize,
}

impl Paths {
    pub(super) fn new() -> Paths {
        Paths(vec![None; PATHS].into_boxed_slice())
    }

    #[inline]
    fn place(from: SocketAddrV4, to: SocketAddrV4) -> usize {
        let ports = u32::from(from.port()) << 16 | u32::from(to.port());
        let mixed = (u32::from(*to.ip()) ^ u32::from(*from.ip()).rotate_left(16) ^ ports)
            .wrapping_mul(0x9E37_79B1);
        (mixed >> 26) as usize % PATHS
    }

    /// Returns the path used lately from our address and port, or from the port alone.
    pub(super) fn used(&mut self, from: SocketAddrV4, to: SocketAddrV4) -> Option<&mut Path> {
        let of_port = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, from.port());
        let used = |from| {
            let place = Self::place(from, to);
            let path = self.0[place].as_ref()?;
            (path.from == from && path.to == to).then_some(place)
        };
        let place = used(from).or_else(|| used(of_port))?;
        self.0[place].as_mut()
    }
}

impl Stack {
    /// Writes headers to the start of `frame`; the payload lies behind them
    /// ([`Stack::header_len`]) and goes on in `rest`.
    ///
    /// When `from` has the address 0.0.0.0, the stack chooses our address.
    ///
    /// # Errors
    /// [`EmitError`]; each is also counted.
    ///
    /// # Panics
    /// If `frame` is shorter than the headers.
    #[inline]
    pub fn emit(
        &mut self,
        from: SocketAddrV4,
        to: SocketAddrV4,
        frame: &mut [u8],
        rest: &[&[u8]],
        now_ns: u64,
    ) -> Result<(), EmitError> {
        let more: usize = rest.iter().map(|part| part.len()).sum();
        let len = frame.len() - self.header_len() + more;
        let max = self.payload_len_max();
        if len > max {
            self.counters.too_long += 1;
            return Err(EmitError::TooLong { len, max, mtu: self.config.mtu });
        }
        let generation = self.generation();
        let id = self.take_id();
        let place = Paths::place(from, to);
        let packet_len = ipv4::HEADER_LEN + udp::HEADER_LEN + len;
        let found = self.paths.0[place].as_mut();
        match found.filter(|p| p.generation == generation && p.from == from && p.to == to) {
            Some(path) => {
                path.longest = path.longest.max(packet_len);
                path.template.write(id, frame, rest);
            }
            None => {
                let template = self.template_for(place, from, to, packet_len, now_ns)?;
                template.write(id, frame, rest);
            }
        }
        self.counters.tx_datagrams += 1;
        self.counters.tx_bytes += len as u64;
        Ok(())
    }

    #[cold]
    fn template_for(
        &mut self,
        place: usize,
        from: SocketAddrV4,
        to: SocketAddrV4,
        longest: usize,
        now_ns: u64,
    ) -> Result<HeaderTemplate, EmitError> {
        match self.template(from, to, now_ns) {
            EmitHop::Known(template) => {
                let generation = self.generation();
                self.paths.0[place] = Some(Path { from, to, generation, template, longest });
                Ok(template)
            }
            EmitHop::Pending => {
                self.counters.unresolved += 1;
                Err(EmitError::Pending)
            }
            EmitHop::Unreachable(why) => {
                self.counters.unreachable += 1;
                Err(EmitError::Unreachable { to: *to.ip(), why })
            }
        }
    }

    /// Returns the headers of datagrams from one port to another, for callers that write them
    /// elsewhere. They stay valid as long as [`Stack::generation`] stays the same.
    pub fn template(
        &mut self,
        from: SocketAddrV4,
        to: SocketAddrV4,
        now_ns: u64,
    ) -> EmitHop<HeaderTemplate> {
        let way = match self.routes.way(*to.ip()) {
            Ok(way) => way,
            Err(why) => return EmitHop::Unreachable(why),
        };
        let (NextHop::Station { source, .. } | NextHop::Broadcast { source }) = way;
        let source = if from.ip().is_unspecified() { source } else { *from.ip() };
        if !self.config.addresses.iter().any(|own| own.address == source) {
            return EmitHop::Unreachable(Unreachable::NotOurs);
        }
        match self.claims.state(source) {
            AddressState::Ours => {}
            AddressState::Tentative => return EmitHop::Pending,
            AddressState::Taken => return EmitHop::Unreachable(Unreachable::AddressTaken),
        }
        match self.station(way, now_ns) {
            EmitHop::Known(mac) => {
                let from = SocketAddrV4::new(source, from.port());
                EmitHop::Known(HeaderTemplate::new(&self.config, mac, from, to))
            }
            EmitHop::Pending => EmitHop::Pending,
            EmitHop::Unreachable(why) => EmitHop::Unreachable(why),
        }
    }

    /// Returns the Ethernet address for packets to `to`: its own, or a gateway's. The first call
    /// starts the resolution.
    pub fn resolve(&mut self, to: Ipv4Addr, now_ns: u64) -> EmitHop<[u8; 6]> {
        match self.routes.way(to).map(|way| self.station(way, now_ns)) {
            Ok(EmitHop::Known(mac)) => EmitHop::Known(mac.0),
            Ok(EmitHop::Pending) => EmitHop::Pending,
            Ok(EmitHop::Unreachable(why)) | Err(why) => EmitHop::Unreachable(why),
        }
    }

    fn station(&mut self, way: NextHop, now_ns: u64) -> EmitHop<Mac> {
        let NextHop::Station { next, .. } = way else { return EmitHop::Known(Mac::BROADCAST) };
        match self.neighbours.use_of(next, now_ns) {
            NeighbourState::At(mac) => EmitHop::Known(mac),
            NeighbourState::Pending => EmitHop::Pending,
            NeighbourState::NoAnswer => EmitHop::Unreachable(Unreachable::NoAnswer),
            NeighbourState::Full => {
                self.counters.neighbours_full += 1;
                EmitHop::Unreachable(Unreachable::TableFull)
            }
        }
    }
}
