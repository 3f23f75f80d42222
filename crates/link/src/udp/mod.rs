//! Kernel UDP sockets: `recvmmsg` and `sendmmsg` in batches, GRO and GSO where the kernel has them.
//!
//! Sources: recvmmsg(2), udp(7), socket(7), and the kernel's `Documentation/networking/` on
//! segmentation offloads. Datagrams leave unfragmented (`IP_PMTUDISC_PROBE`): one that does not fit
//! the interface gives `EMSGSIZE`. Whether it fits the path is found by an echo, not by ICMP
//! messages, which are easily forged (RFC 5927).

mod gso;
mod holder;
mod launch;
mod options;
mod rx;
mod slots;
mod sockopt;
mod tx;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::entry::{Factory, LinkEntry, Target, nothing_ahead};
use crate::options::Options;
use crate::port::{Capabilities, Port, PortOptions};
use crate::{LinkError, Spec};
use options::UdpOptions;

#[cfg(fuzzing)]
pub use gso::exercise as exercise_notes;

/// The entry of `udp`.
pub static LINK: LinkEntry = LinkEntry {
    name: "udp",
    about: "the kernel's UDP sockets, in batches",
    options: UdpOptions::describe,
    target: Target::None,
    factory: Factory::Ports(open),
    check: |spec| UdpOptions::from_spec(spec).map(drop),
    rights: None,
    missing: None,
    foresee: nothing_ahead,
};

/// Largest UDP payload over IPv4, bytes (65 535 less the IPv4 and UDP headers, RFC 768 and 791).
pub const PAYLOAD_BYTES_MAX: usize = 65_507;

/// The longest that one send may wait for room in the socket's send queue.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// Opens a kernel UDP port. At the address of a multicast group it joins the group, on the
/// interface that the route to the group names, and shares the port with other members on this
/// machine.
///
/// # Errors
/// [`LinkError::Bind`] with a hint when the address is not available, [`LinkError::BadOption`] for
/// unusable options, [`LinkError::Setup`] for other refusals of the kernel.
pub fn open(spec: &Spec, bind: SocketAddrV4, sizes: &PortOptions) -> Result<Port, LinkError> {
    let options = UdpOptions::from_spec(spec)?;
    let setup = |what| move |source| LinkError::Setup { what, source };
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).map_err(setup("socket"))?;
    socket.set_broadcast(true).map_err(setup("SO_BROADCAST"))?;
    socket.set_write_timeout(Some(SEND_TIMEOUT)).map_err(setup("SO_SNDTIMEO"))?;
    sockopt::forbid_fragments(&socket).map_err(setup("IP_MTU_DISCOVER"))?;
    sockopt::report_drops(&socket).map_err(setup("SO_RXQ_OVFL"))?;
    let recv_queue_bytes =
        sockopt::grow_recv_queue(&socket, sizes.recv_queue_bytes).map_err(setup("SO_RCVBUF"))?;
    sockopt::grow_send_queue(&socket, sizes.send_queue_bytes).map_err(setup("SO_SNDBUF"))?;
    options.apply_busy_poll(&socket)?;
    let coalescing = options.gro && sockopt::enable_gro(&socket).is_ok();
    let segmentation = options.gso && sockopt::has_gso(&socket);
    options.apply_launch(&socket)?;

    let is_group = bind.ip().is_multicast();
    socket.set_reuse_address(is_group).map_err(setup("SO_REUSEADDR"))?;
    socket.bind(&bind.into()).map_err(|source| bind_error(bind, source))?;
    if is_group {
        let joined = socket.join_multicast_v4(bind.ip(), &Ipv4Addr::UNSPECIFIED);
        joined.map_err(|source| join_error(bind, source))?;
    }
    let local = local_address(&socket).map_err(setup("getsockname"))?;

    let datagram_bytes_max = sizes.datagram_bytes_max.clamp(1, PAYLOAD_BYTES_MAX);
    let shape = slots::SlotLayout::for_datagrams(datagram_bytes_max, coalescing);
    let capabilities = Capabilities {
        segmentation,
        coalescing,
        recv_queue_bytes,
        ..Capabilities::new(datagram_bytes_max, shape.datagrams)
    };
    let socket = Arc::new(OwnedFd::from(socket));
    let launch = options.launch.map(|clock| {
        let refused = Arc::new(launch::RefusalReader::new(Arc::clone(&socket)));
        launch::UdpLaunch { refused, clock }
    });
    let refused = launch.as_ref().map(|launch| Arc::clone(&launch.refused));
    let (rx_socket, wait) = (Arc::clone(&socket), sizes.wait(options.wait));
    Ok(Port {
        local,
        rx: Box::new(rx::UdpRx::new(rx_socket, shape, capabilities, wait, refused)),
        tx: Box::new(tx::UdpTx::new(socket, capabilities, launch)),
    })
}

fn local_address(socket: &Socket) -> io::Result<SocketAddrV4> {
    let address = socket.local_addr()?.as_socket_ipv4();
    address.ok_or_else(|| io::Error::other("the socket has no IPv4 address"))
}

/// Whether a send failed by the network's state, which passes: a cable is pulled, a route is away,
/// a queue has no room, or an answer to an earlier datagram says that nobody listens. Such a
/// datagram is lost, and a later one may arrive.
#[must_use]
pub fn is_loss(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ENETUNREACH
                | libc::ENETDOWN
                | libc::EHOSTUNREACH
                | libc::EHOSTDOWN
                | libc::ENONET
                | libc::ENODEV
                | libc::ENXIO
                | libc::ENOBUFS
                | libc::ENOMEM
                | libc::EAGAIN
                | libc::ETIMEDOUT
                | libc::ECONNREFUSED
        )
    )
}

fn join_error(address: SocketAddrV4, source: io::Error) -> LinkError {
    let hint = match source.raw_os_error() {
        Some(libc::ENODEV) => format!(
            "no route leads to this multicast group: name its interface with `ip route add \
             {}/32 dev INTERFACE`",
            address.ip()
        ),
        Some(libc::ENOBUFS) => "this machine is in too many groups: raise the setting \
                                net.ipv4.igmp_max_memberships"
            .to_owned(),
        _ => "the multicast group cannot be joined".to_owned(),
    };
    LinkError::Bind { address, source, hint }
}

/// Returns the reason why `address` cannot be bound, with a hint that names its holder.
pub fn bind_error(address: SocketAddrV4, source: io::Error) -> LinkError {
    let hint = match source.raw_os_error() {
        Some(libc::EADDRINUSE) => {
            let who = holder::of_udp_port(address).unwrap_or_else(|| {
                format!(
                    "find the program that uses it with: ss -ulpn 'sport = :{}'",
                    address.port()
                )
            });
            format!("the port is in use: {who}; stop it, or choose another address")
        }
        Some(libc::EADDRNOTAVAIL) => {
            "the address is not on this machine: choose one that `ip -4 addr` lists".to_owned()
        }
        Some(libc::EACCES) => "ports below 1024 need privileges: choose a higher one".to_owned(),
        _ => "check the address".to_owned(),
    };
    LinkError::Bind { address, source, hint }
}
