//! Options of sockets that neither `rustix` nor `socket2` supports.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Sets an option to the bytes of `value`, which must be what the option expects.
///
/// # Errors
/// The error of setsockopt(2).
pub fn set<T: Copy>(socket: impl AsFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let (at, bytes) = ((&raw const *value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the kernel reads at most `bytes` bytes of a live value.
    let rc = unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, at, bytes) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the datagrams that the socket has dropped so far, modulo 2³² (`SK_MEMINFO_DROPS` of
/// `SO_MEMINFO`).
///
/// # Errors
/// The error of getsockopt(2); `Unsupported` where the kernel does not count them.
pub fn drops(socket: impl AsFd) -> io::Result<u32> {
    /// `asm-generic/socket.h`; the `libc` crate has it on some targets only.
    const SO_MEMINFO: libc::c_int = 55;
    const SK_MEMINFO_DROPS: usize = 8;
    let mut words = [0u32; 16];
    let mut bytes = size_of_val(&words) as libc::socklen_t;
    let (at, length) = (words.as_mut_ptr().cast(), &raw mut bytes);
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `bytes` bytes into `words`, which is that long.
    let rc = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, SO_MEMINFO, at, length) };
    match rc {
        0 if bytes as usize > SK_MEMINFO_DROPS * 4 => Ok(words[SK_MEMINFO_DROPS]),
        0 => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}
