//! AF_PACKET sockets: their options and reports (packet(7),
//! `Documentation/networking/packet_mmap.rst`). Only opening the socket needs a privilege.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{c_int, socklen_t};
use millstream_host::socket;

use super::options::Fanout;

/// A `TPACKET_V2` socket.
pub(super) const V2: c_int = libc::tpacket_versions::TPACKET_V2 as c_int;

/// Sets an option of the packet level, whose C type `T` is.
pub(super) fn set<T: Copy>(fd: BorrowedFd<'_>, name: c_int, value: &T) -> io::Result<()> {
    socket::set(fd, libc::SOL_PACKET, name, value)
}

/// Sets an option of the packet level that is a number.
pub(super) fn set_number(fd: BorrowedFd<'_>, name: c_int, value: c_int) -> io::Result<()> {
    set(fd, name, &value)
}

/// Binds the socket to an interface, to receive frames of every Ethernet type, or none (`receive`
/// off), and to transmit there.
pub(super) fn bind(fd: BorrowedFd<'_>, index: u32, receive: bool) -> io::Result<()> {
    let protocol = if receive { (libc::ETH_P_ALL as u16).to_be() } else { 0 };
    // SAFETY: a sockaddr_ll is plain data, and all zeros is one.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol;
    address.sll_ifindex = index as c_int;
    let (at, bytes) = ((&raw const address).cast(), mem::size_of_val(&address) as socklen_t);
    // SAFETY: `address` is a live sockaddr_ll of the length given.
    let rc = unsafe { libc::bind(fd.as_raw_fd(), at, bytes) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Joins the group of sockets that share the interface's frames.
pub(super) fn join(fd: BorrowedFd<'_>, fanout: Fanout) -> io::Result<()> {
    // The flag excludes this machine's own frames from the group, as from its sockets.
    let way = u32::from(fanout.mode) | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
    set_number(fd, libc::PACKET_FANOUT, (u32::from(fanout.id) | way << 16) as c_int)
}

/// Attaches a filter, in place of the previous one.
pub(super) fn attach(fd: BorrowedFd<'_>, code: &[libc::sock_filter]) -> io::Result<()> {
    let filter = code.as_ptr().cast_mut();
    let program = libc::sock_fprog { len: code.len() as u16, filter };
    // The struct points at `len` instructions, which the kernel copies.
    socket::set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Lets the socket queue frames that are too long for their slots, as far as the system allows.
pub(super) fn grow_queue(fd: BorrowedFd<'_>) {
    // A smaller queue only means that more frames are lost and counted.
    let _ = socket::grow(fd, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, 4 << 20);
}

/// Allows `bytes` bytes of frames to be in flight at once, as far as the system allows: the default
/// is about 20 jumbo frames, and a batch waits for a driver that reports completions late.
pub(super) fn grow_flight(fd: BorrowedFd<'_>, bytes: usize) {
    let bytes = bytes.clamp(1 << 20, 64 << 20);
    // A smaller queue only means that more frames wait.
    let _ = socket::grow(fd, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, bytes);
}

/// Returns the frames for which there was no room in the ring since the last call.
pub(super) fn drops(fd: BorrowedFd<'_>) -> io::Result<u64> {
    // `struct tpacket_stats`: packets, drops.
    let mut stats = [0; 2];
    socket::get(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats)?;
    Ok(stats[1].into())
}

/// Returns the socket's error since the last call: its interface went down.
pub(super) fn pending_error(fd: BorrowedFd<'_>) -> io::Result<()> {
    match rustix::net::sockopt::socket_error(fd)? {
        Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Converts the errors of a packet socket to those of the frame interface.
pub(super) fn plain(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENETDOWN) => io::ErrorKind::NetworkDown.into(),
        Some(libc::ENXIO | libc::ENODEV) => io::ErrorKind::NotFound.into(),
        _ => error,
    }
}

/// Whether the interface of this number exists and is up, in the socket's network namespace.
pub(super) fn check_interface(fd: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    // SAFETY: an ifreq is plain data, and all zeros is one.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    request.ifr_ifru.ifru_ifindex = index as c_int;
    for number in [libc::SIOCGIFNAME, libc::SIOCGIFFLAGS] {
        // SAFETY: the first request reads the index and writes the name, the second reads the name
        // and writes the flags, all members of this ifreq.
        if unsafe { libc::ioctl(fd.as_raw_fd(), number as _, &raw mut request) } != 0 {
            return Err(plain(io::Error::last_os_error()));
        }
    }
    // SAFETY: the second request wrote the flags.
    let up = i32::from(unsafe { request.ifr_ifru.ifru_flags }) & libc::IFF_UP != 0;
    if up { Ok(()) } else { Err(io::ErrorKind::NetworkDown.into()) }
}
