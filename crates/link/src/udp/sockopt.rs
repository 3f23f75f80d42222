//! Options of UDP sockets that `socket2` does not have.

use std::io;

use libc::c_int;
use millstream_host::socket::{grow, set};
use socket2::Socket;

/// Makes one datagram one IP packet; one that is longer than the interface's MTU is an error. ICMP
/// messages about links behind it, which are easily forged (RFC 5927), do not cause errors.
pub(super) fn forbid_fragments(socket: &Socket) -> io::Result<()> {
    set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &libc::IP_PMTUDISC_PROBE)
}

/// Makes every received message carry the socket's drop counter once it is not zero. Where the
/// option does not exist, as under QEMU's user-mode emulation, what a full queue loses is counted
/// without this cause.
pub(super) fn report_drops(socket: &Socket) -> io::Result<()> {
    match set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &1) {
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(()),
        done => done,
    }
}

/// Makes datagrams arrive joined (GRO), with their segment size.
pub(super) fn enable_gro(socket: &Socket) -> io::Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, &1)
}

/// Whether the kernel supports `UDP_SEGMENT` (setting 0 changes nothing where it does).
pub(super) fn has_gso(socket: &Socket) -> bool {
    set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, &0).is_ok()
}

/// Sets one of the options of busy polling: `SO_BUSY_POLL` (microseconds) and its kin.
pub(super) fn busy_poll(socket: &Socket, option: c_int, value: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, option, &(value as c_int))
}

/// Requests a receive queue of `bytes` and returns the size that the kernel really gives.
///
/// The kernel doubles the requested size for its own bookkeeping (socket(7)), so half of the
/// reported size is available to datagrams.
pub(super) fn grow_recv_queue(socket: &Socket, bytes: usize) -> io::Result<usize> {
    grow(socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, bytes)?;
    Ok(socket.recv_buffer_size()? / 2)
}

/// Requests a send queue of `bytes`.
pub(super) fn grow_send_queue(socket: &Socket, bytes: usize) -> io::Result<()> {
    grow(socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, bytes)
}
