//! Datagrams within a private network namespace.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use crate::packets::testbed::enter_new_network;

/// Datagrams between two checks of the progress.
const BATCH: u64 = 256;

/// Moves this process to a network of its own, with its loopback up. The process must not have
/// threads yet.
pub fn enter_network() -> Result<(), String> {
    enter_new_network("new")?;
    bring_up_loopback().map_err(|error| format!("cannot bring the loopback up: {error}"))
}

/// netdevice(7): SIOCSIFFLAGS.
fn bring_up_loopback() -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: an `ifreq` is plain numbers and bytes, for which zeros are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
    // SAFETY: the kernel reads the request, which outlives the call.
    let done = unsafe { libc::ioctl(fd, libc::SIOCSIFFLAGS as _, &raw const request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends to a socket without a reader: every datagram passes the stack and is dropped at the
/// socket, once that is full.
pub fn run(bytes: usize, ready: impl Fn(), did: impl Fn(u64) -> bool) -> Result<(), String> {
    let fail = |error: io::Error| format!("cannot send datagrams: {error}");
    let sink = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fail)?;
    let source = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(fail)?;
    source.connect(sink.local_addr().map_err(fail)?).map_err(fail)?;
    let datagram = vec![0x5A; bytes.clamp(1, 65_000)];
    ready();
    while did(BATCH) {
        for _ in 0..BATCH {
            source.send(&datagram).map_err(fail)?;
        }
    }
    Ok(())
}
