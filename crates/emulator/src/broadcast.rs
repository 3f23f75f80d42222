//! Receives broadcast requests of hosts.
//!
//! A port bound to one address does not receive datagrams to a broadcast address, so additional
//! sockets receive those. Several radios on one machine share these ports and all receive them.

use millstream_link::interfaces;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

/// The most requests taken in one poll: further ones wait in the socket, and are dropped there.
const QUESTIONS_MAX: usize = 16;

/// Sockets for the broadcast addresses that reach one address of this machine.
pub(crate) struct Broadcasts {
    sockets: Vec<UdpSocket>,
}

impl Broadcasts {
    /// Opens the sockets for `local`. A radio without broadcasts can still be reached directly, so
    /// sockets that cannot be opened are left out.
    pub fn beside(local: SocketAddrV4) -> Self {
        let sockets = addresses(*local.ip())
            .into_iter()
            .filter_map(|address| listen(SocketAddrV4::new(address, local.port())).ok())
            .collect();
        Self { sockets }
    }

    /// Opens no socket: on a separate link there are no broadcasts.
    pub fn none() -> Self {
        Self { sockets: Vec::new() }
    }

    /// Passes every datagram that has arrived to `show`, with its sender.
    pub fn each(&self, buffer: &mut [u8], mut show: impl FnMut(&[u8], SocketAddrV4)) {
        for socket in &self.sockets {
            for _ in 0..QUESTIONS_MAX {
                let Ok((length, SocketAddr::V4(source))) = socket.recv_from(buffer) else { break };
                show(&buffer[..length], source);
            }
        }
    }
}

/// Returns the broadcast addresses of the network of `local`.
fn addresses(local: Ipv4Addr) -> Vec<Ipv4Addr> {
    if local.is_loopback() {
        // Linux broadcasts on the loopback network too (ip-route(8), table local).
        return vec![Ipv4Addr::new(127, 255, 255, 255)];
    }
    let all = interfaces::list().unwrap_or_default();
    let own = all.iter().find(|interface| interface.address == local);
    let mut list = vec![Ipv4Addr::BROADCAST];
    list.extend(own.and_then(|interface| interface.broadcast));
    list
}

fn listen(address: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}
