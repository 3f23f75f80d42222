//! Socket options that `socket2` does not have.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libc::{c_int, socklen_t};
use socket2::Socket;

fn set(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: `value` is a live c_int and the length given is its size; the descriptor is open for
    // as long as it is borrowed.
    let rc = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            mem::size_of::<c_int>() as socklen_t,
        )
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// One datagram is one IP packet, and one that is longer than the interface's MTU is an error. What
/// ICMP says of links behind it, which anybody can forge (RFC 5927), does not make it one.
pub(super) fn forbid_fragments(socket: &Socket) -> io::Result<()> {
    set(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
}

/// Every received message carries the socket's drop counter once it is not zero.
pub(super) fn report_drops(socket: &Socket) -> io::Result<()> {
    set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)
}

/// Trains of datagrams arrive joined, with their segment size beside them.
pub(super) fn enable_gro(socket: &Socket) -> io::Result<()> {
    set(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Whether the kernel knows `UDP_SEGMENT` (setting 0 changes nothing where it does).
pub(super) fn has_gso(socket: &Socket) -> bool {
    set(socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
}

/// Sets one of the options of busy polling: `SO_BUSY_POLL` (microseconds) and its kin.
pub(super) fn busy_poll(socket: &Socket, option: c_int, value: u32) -> io::Result<()> {
    set(socket.as_fd(), libc::SOL_SOCKET, option, value as c_int)
}

/// Asks for a receive queue of `bytes` and returns what the kernel really gives.
///
/// The kernel doubles the wish to pay for its own bookkeeping (socket(7)), so half of what it
/// reports is what datagrams may use.
pub(super) fn grow_recv_queue(socket: &Socket, bytes: usize) -> io::Result<usize> {
    let wish = c_int::try_from(bytes).unwrap_or(c_int::MAX / 2);
    if set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, wish).is_err() {
        set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, wish)?;
    }
    Ok(socket.recv_buffer_size()? / 2)
}

/// The same for the send queue.
pub(super) fn grow_send_queue(socket: &Socket, bytes: usize) -> io::Result<usize> {
    let wish = c_int::try_from(bytes).unwrap_or(c_int::MAX / 2);
    if set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, wish).is_err() {
        set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, wish)?;
    }
    Ok(socket.send_buffer_size()? / 2)
}

/// Datagrams the socket dropped so far, modulo 2³² (`SK_MEMINFO_DROPS` of `SO_MEMINFO`).
pub(super) fn drops_now(fd: BorrowedFd<'_>) -> io::Result<u32> {
    const SK_MEMINFO_DROPS: usize = 8;
    const WORDS: usize = 16;
    let mut words = [0u32; WORDS];
    let mut length = mem::size_of_val(&words) as socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `words`, which is that long and lives
    // through the call.
    let rc = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    if (length as usize) < (SK_MEMINFO_DROPS + 1) * 4 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(words[SK_MEMINFO_DROPS])
}

/// `SO_MEMINFO` of `asm-generic/socket.h`; the `libc` crate has it on some targets only.
const SO_MEMINFO: c_int = 55;
