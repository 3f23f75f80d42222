//! Shared addresses: the configuration of the kernel's interface, and ports reserved with the
//! kernel.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::AsFd;

use millstream_host::netlink::{Netlink, NetlinkError, RouteKind};
use millstream_link::LinkError;
use millstream_link::udp::bind_error;

use crate::stack::{Route, Subnet};

/// The kernel's configuration of an interface.
#[derive(Debug)]
pub(super) struct KernelInterface {
    pub index: u32,
    /// In the kernel's order: the first one is the default source.
    pub addresses: Vec<Subnet>,
    /// Networks behind gateways, reached over this interface.
    pub routes: Vec<Route>,
    pub netlink: Netlink,
}

impl KernelInterface {
    /// Reads the interface `name` of the calling thread's network namespace.
    pub fn read(name: &str) -> Result<Self, LinkError> {
        let mut netlink = Netlink::open().map_err(setup)?;
        let index = netlink.interface(name).map_err(setup)?.index;
        let mut addresses = netlink.addresses().map_err(setup)?;
        addresses.retain(|address| address.interface == index);
        addresses.sort_by_key(|address| address.secondary);
        let addresses: Vec<Subnet> = addresses
            .iter()
            .map(|found| Subnet { address: found.address, prefix: found.prefix })
            .collect();
        let routes = netlink.routes().map_err(setup)?;
        let routes = routes
            .iter()
            .filter(|route| route.interface == Some(index) && route.kind == RouteKind::Unicast)
            .filter_map(|route| {
                let gateway = route.gateway?;
                // A gateway outside our networks (onlink) is not used.
                let near = addresses.iter().any(|own: &Subnet| own.contains(gateway));
                let (destination, prefix, metric) = (route.destination, route.prefix, route.metric);
                near.then_some(Route { destination, prefix, gateway, metric })
            })
            .collect();
        Ok(Self { index, addresses, routes, netlink })
    }
}

fn setup(error: NetlinkError) -> LinkError {
    LinkError::Setup { what: "the kernel's addresses and routes", source: io::Error::other(error) }
}

/// A kernel socket that reserves a port for us: no other process gets it, and the kernel neither
/// queues datagrams for it nor answers "port unreachable".
#[derive(Debug)]
pub(super) struct Reservation {
    _socket: UdpSocket,
    pub address: SocketAddrV4,
}

impl Reservation {
    /// Reserves a port; 0 takes a free one.
    pub fn new(address: SocketAddrV4) -> Result<Self, LinkError> {
        Self::take(address)?.map_err(|source| bind_error(address, source))
    }

    /// Reserves a free port among `granted`, in which an empty list stands for all; the search
    /// begins at the port given by `seed`.
    pub fn any_of(
        address: Ipv4Addr,
        granted: &[RangeInclusive<u16>],
        seed: u64,
    ) -> Result<Self, LinkError> {
        let free = Self::new(SocketAddrV4::new(address, 0))?;
        if is_granted(granted, free.address.port()) {
            return Ok(free);
        }
        for port in ports_from(granted, seed) {
            match Self::take(SocketAddrV4::new(address, port))? {
                // The port is in use, or needs root.
                Err(error) if is_taken(&error) => {}
                taken => return taken.map_err(|e| bind_error(SocketAddrV4::new(address, port), e)),
            }
        }
        let ranges: Vec<_> =
            granted.iter().map(|range| format!("{}-{}", range.start(), range.end())).collect();
        Err(LinkError::Bind {
            address: SocketAddrV4::new(address, 0),
            source: io::Error::from_raw_os_error(libc::EADDRINUSE),
            hint: format!(
                "all UDP ports that the broker grants ({}) are in use: close some, or start the \
                 broker with more ports (--port)",
                ranges.join(", ")
            ),
        })
    }

    /// Reserves a port; the inner error is bind(2)'s.
    fn take(address: SocketAddrV4) -> Result<io::Result<Self>, LinkError> {
        // Bound with the filter in place: nothing is ever queued.
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)
            .map_err(|source| LinkError::Setup { what: "socket", source })?;
        drop_everything(&socket)
            .map_err(|source| LinkError::Setup { what: "SO_ATTACH_FILTER", source })?;
        if let Err(error) = socket.bind(&address.into()) {
            return Ok(Err(error));
        }
        let socket: UdpSocket = socket.into();
        match socket.local_addr() {
            Ok(std::net::SocketAddr::V4(address)) => Ok(Ok(Self { _socket: socket, address })),
            Ok(_) | Err(_) => Err(LinkError::Setup {
                what: "getsockname",
                source: io::ErrorKind::AddrNotAvailable.into(),
            }),
        }
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied)
}

/// Whether a port is in one of the ranges; without ranges all ports are granted.
pub(super) fn is_granted(ranges: &[RangeInclusive<u16>], port: u16) -> bool {
    ranges.is_empty() || ranges.iter().any(|range| range.contains(&port))
}

/// Lists every port of the ranges but 0, once, starting with the one that `seed` selects.
fn ports_from(ranges: &[RangeInclusive<u16>], seed: u64) -> impl Iterator<Item = u16> {
    let all = || ranges.iter().cloned().flatten().filter(|port| *port != 0);
    let first = (seed % all().count().max(1) as u64) as usize;
    all().skip(first).chain(all().take(first))
}

/// Attaches a classic BPF program of one instruction: keep 0 bytes (socket(7), SO_ATTACH_FILTER).
fn drop_everything(socket: &impl AsFd) -> io::Result<()> {
    let mut code = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut code };
    // The kernel copies the program and its one instruction.
    millstream_host::socket::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The kernel's own choice is almost never among the ports that a broker grants.
    #[test]
    fn a_free_port_is_one_of_those_that_are_granted() {
        let ours = Ipv4Addr::new(127, 77, 1, 1);
        let granted = [49_160..=49_162, 49_170..=49_170];
        let mut held: Vec<Reservation> = Vec::new();
        for seed in 0..4 {
            held.push(Reservation::any_of(ours, &granted, seed * 77).unwrap());
        }
        let mut ports: Vec<_> = held.iter().map(|one| one.address.port()).collect();
        ports.sort_unstable();
        assert_eq!(ports, [49_160, 49_161, 49_162, 49_170]);
        let error = Reservation::any_of(ours, &granted, 5).unwrap_err().to_string();
        assert!(error.contains("(49160-49162, 49170-49170) are in use"), "{error}");
        assert!(error.contains("start the broker with more ports (--port)"), "{error}");
        held.remove(1);
        assert!(Reservation::any_of(ours, &granted, 5).is_ok());
        // Without ranges, and where all ports are granted, the kernel chooses.
        for granted in [&[][..], &[0..=u16::MAX]] {
            assert_ne!(Reservation::any_of(ours, granted, 0).unwrap().address.port(), 0);
        }
    }

    #[test]
    fn a_reserved_port_is_taken_and_keeps_quiet() {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let held = Reservation::new(any).unwrap();
        let error = Reservation::new(held.address).unwrap_err().to_string();
        assert!(error.contains("in use"), "{error}");
        let sender = UdpSocket::bind(any).unwrap();
        sender.connect(held.address).unwrap();
        sender.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        for _ in 0..3 {
            // "Port unreachable" would make one of these fail.
            sender.send(b"for nobody").unwrap();
            let error = sender.recv(&mut [0; 16]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        }
        drop(held);
        sender.send(b"for nobody").unwrap();
        let error = sender.recv(&mut [0; 16]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "given back");
    }
}
