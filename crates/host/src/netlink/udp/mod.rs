//! The UDP sockets of a network namespace (sock_diag(7)).

mod table;

use super::NetlinkError;
use super::message::{NetlinkMessage, NetlinkRequest, attributes_after, u32_at};
use super::socket::Socket;
use rustix::net::netlink::SOCK_DIAG;
use std::net::{Ipv4Addr, SocketAddrV4};

/// `linux/sock_diag.h`, `linux/inet_diag.h`.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_SKMEMINFO: u16 = 7;
const INET_DIAG_SKV6ONLY: u16 = 11;
/// `struct inet_diag_req_v2`, `struct inet_diag_msg`.
const REQUEST_BYTES: usize = 56;
const FIXED_BYTES: usize = 72;

/// A UDP socket that receives IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpSocketState {
    /// Its address; [`Ipv4Addr::UNSPECIFIED`] for all.
    pub local: SocketAddrV4,
    /// The other end, if it is connected.
    pub remote: Option<SocketAddrV4>,
    /// The number of its user.
    pub user: u32,
    /// Its inode, which names it while it is open.
    pub inode: u64,
    /// Memory that received datagrams take, bytes (`SK_MEMINFO_RMEM_ALLOC`): a datagram is dropped
    /// when this is above `receive_buffer`.
    pub received: u32,
    /// The limit of `received`, bytes (`SK_MEMINFO_RCVBUF`): twice what the program asked for.
    pub receive_buffer: u32,
    /// Memory that datagrams not yet sent take, bytes (`SK_MEMINFO_WMEM_ALLOC`).
    pub unsent: u32,
    /// Datagrams that it dropped, modulo 2³² (`SK_MEMINFO_DROPS`).
    pub drops: u32,
}

/// A connection to the kernel's list of sockets, in the network namespace of the thread that opens
/// it.
#[derive(Debug)]
pub struct UdpSockets {
    socket: Socket,
}

impl UdpSockets {
    /// Opens a connection; needs no rights.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] where the kernel has no such list.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { socket: Socket::open(Some(SOCK_DIAG))? })
    }

    /// Returns the sockets of IPv4, and those of IPv6 that receive IPv4, too. A kernel without
    /// IPv6 has none of these.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer: "not found" without the module
    /// `udp_diag`.
    pub fn list(&mut self) -> Result<Vec<UdpSocketState>, NetlinkError> {
        let mut found = self.family(libc::AF_INET)?;
        found.extend(self.family(libc::AF_INET6).unwrap_or_default());
        Ok(found)
    }

    fn family(&mut self, family: libc::c_int) -> Result<Vec<UdpSocketState>, NetlinkError> {
        let mut fixed = [0; REQUEST_BYTES];
        (fixed[0], fixed[1]) = (family as u8, libc::IPPROTO_UDP as u8);
        fixed[2] = 1 << (INET_DIAG_SKMEMINFO - 1);
        // All states.
        fixed[4..8].fill(0xFF);
        let request = NetlinkRequest::new(SOCK_DIAG_BY_FAMILY, libc::NLM_F_DUMP, &fixed);
        self.socket.ask("list the UDP sockets", &request, parse)
    }
}

fn parse(message: &NetlinkMessage<'_>) -> Option<UdpSocketState> {
    let body = message.body;
    if message.kind != SOCK_DIAG_BY_FAMILY {
        return None;
    }
    // `struct inet_diag_sockid` at 4: ports and addresses in network byte order.
    let port = |at| Some(u16::from_be_bytes([*body.get(at)?, *body.get(at + 1)?]));
    let family = i32::from(*body.first()?);
    let address = |at| ipv4(family, body.get(at..at + 16)?);
    let (local, remote) = (SocketAddrV4::new(address(8)?, port(4)?), (address(24), port(6)?));
    let mut state = UdpSocketState {
        local,
        remote: remote.0.map(|ip| SocketAddrV4::new(ip, remote.1)).filter(|end| end.port() != 0),
        user: u32_at(body, 64)?,
        inode: u64::from(u32_at(body, 68)?),
        received: 0,
        receive_buffer: 0,
        unsent: 0,
        drops: 0,
    };
    let mut counted = false;
    for (kind, value) in attributes_after(body, FIXED_BYTES) {
        match kind {
            // `SK_MEMINFO_*`.
            INET_DIAG_SKMEMINFO => {
                let word = |index: usize| u32_at(value, index * 4);
                (state.received, state.receive_buffer) = (word(0)?, word(1)?);
                (state.unsent, state.drops) = (word(2)?, word(8)?);
                counted = true;
            }
            INET_DIAG_SKV6ONLY if value.first() != Some(&0) => return None,
            _ => {}
        }
    }
    counted.then_some(state)
}

/// Returns an address of IPv4: as it is, mapped into IPv6, or all addresses.
fn ipv4(family: i32, bytes: &[u8]) -> Option<Ipv4Addr> {
    let words: [u8; 16] = bytes.try_into().ok()?;
    if family == libc::AF_INET {
        return Some(Ipv4Addr::new(words[0], words[1], words[2], words[3]));
    }
    let address = std::net::Ipv6Addr::from(words);
    let any = address.is_unspecified().then_some(Ipv4Addr::UNSPECIFIED);
    any.or_else(|| address.to_ipv4_mapped())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    fn of(socket: &UdpSocket) -> Option<UdpSocketState> {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let all = UdpSockets::open().unwrap().list().unwrap();
        let is_it = |inode| link.as_os_str() == format!("socket:[{inode}]").as_str();
        all.into_iter().find(|state| is_it(state.inode))
    }

    #[test]
    fn a_socket_is_listed_with_its_ends_and_what_waits_in_it() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let end = |socket: &UdpSocket| match socket.local_addr().unwrap() {
            std::net::SocketAddr::V4(end) => end,
            std::net::SocketAddr::V6(end) => panic!("{end}"),
        };
        let before = of(&socket).expect("it is listed");
        assert_eq!((before.local, before.remote, before.received), (end(&socket), None, 0));
        socket.connect(end(&peer)).unwrap();
        peer.send_to(&[7; 1000], end(&socket)).unwrap();
        let after = of(&socket).unwrap();
        assert_eq!((after.remote, after.drops), (Some(end(&peer)), 0));
        assert!(after.received >= 1000 && after.received < after.receive_buffer, "{after:?}");
    }

    #[test]
    fn a_socket_of_ipv6_that_receives_ipv4_is_listed() {
        let Ok(socket) = UdpSocket::bind("[::]:0") else { return };
        let port = socket.local_addr().unwrap().port();
        let state = of(&socket).expect("it is listed");
        assert_eq!(state.local, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
        let Ok(only) = UdpSocket::bind("[::1]:0") else { return };
        assert_eq!(of(&only), None, "no datagram of IPv4 comes there");
    }

    #[test]
    fn a_cut_answer_is_left_out() {
        let mut fixed = [0; FIXED_BYTES];
        (fixed[0], fixed[4], fixed[8], fixed[68]) = (libc::AF_INET as u8, 0xC0, 10, 5);
        let memory: Vec<u8> = (0..9u32).flat_map(u32::to_ne_bytes).collect();
        let request = NetlinkRequest::new(SOCK_DIAG_BY_FAMILY, 0, &fixed);
        let bytes = request.with(INET_DIAG_SKMEMINFO, &memory).numbered(1);
        let of = |body| {
            parse(&NetlinkMessage { kind: SOCK_DIAG_BY_FAMILY, flags: 0, sequence: 1, body })
        };
        let state = of(&bytes[16..]).unwrap();
        assert_eq!((state.local.to_string(), state.drops), ("10.0.0.0:49152".to_owned(), 8));
        for cut in 0..bytes.len() - 16 {
            assert_eq!(of(&bytes[16..16 + cut]), None, "{cut} bytes");
        }
    }
}
