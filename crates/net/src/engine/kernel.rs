//! Shared addresses: what the kernel's interface has, and ports reserved with the kernel.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use millstream_link::LinkError;
use millstream_link::udp::bind_error;
use millstream_sys::netlink::{Netlink, NetlinkError, RouteKind};

use crate::stack::{Route, Subnet};

/// An interface as the kernel has it configured.
#[derive(Debug)]
pub(super) struct KernelInterface {
    pub index: u32,
    /// The kernel's order: the first one is the default source.
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
                // A gateway beyond our networks (onlink) is not for us.
                let near = addresses.iter().any(|own: &Subnet| own.contains(gateway));
                let (destination, prefix, metric) = (route.destination, route.prefix, route.metric);
                near.then_some(Route { destination, prefix, gateway, metric })
            })
            .collect();
        Ok(Self { index, addresses, routes, netlink })
    }
}

fn setup(error: NetlinkError) -> LinkError {
    LinkError::Setup { what: "what the kernel knows", source: io::Error::other(error) }
}

/// A kernel socket that holds a port for us: nobody else gets it, and the kernel neither queues
/// what comes for it nor answers "port unreachable".
#[derive(Debug)]
pub(super) struct Reservation {
    _socket: UdpSocket,
    pub address: SocketAddrV4,
}

impl Reservation {
    /// Reserves a port; 0 takes a free one.
    pub fn new(address: SocketAddrV4) -> Result<Self, LinkError> {
        // Bound with the filter in place: nothing is ever queued.
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)
            .map_err(|source| LinkError::Setup { what: "socket", source })?;
        drop_everything(&socket)
            .map_err(|source| LinkError::Setup { what: "SO_ATTACH_FILTER", source })?;
        socket.bind(&address.into()).map_err(|source| bind_error(address, source))?;
        let socket: UdpSocket = socket.into();
        match socket.local_addr() {
            Ok(std::net::SocketAddr::V4(address)) => Ok(Self { _socket: socket, address }),
            Ok(_) | Err(_) => Err(LinkError::Setup {
                what: "getsockname",
                source: io::ErrorKind::AddrNotAvailable.into(),
            }),
        }
    }
}

/// A classic BPF program of one instruction: keep 0 bytes (socket(7), SO_ATTACH_FILTER).
fn drop_everything(socket: &impl AsRawFd) -> io::Result<()> {
    let mut code = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut code };
    // SAFETY: the program and its one instruction outlive the call, which copies them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

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
