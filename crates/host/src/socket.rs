//! Options of sockets that neither `rustix` nor `socket2` supports, and batches of messages.

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

/// Reads an option into `words` and returns the bytes of its value.
///
/// # Errors
/// The error of getsockopt(2).
pub fn get(socket: impl AsFd, level: i32, name: i32, words: &mut [u32]) -> io::Result<usize> {
    let mut bytes = size_of_val(words) as libc::socklen_t;
    let (at, length) = (words.as_mut_ptr().cast(), &raw mut bytes);
    // SAFETY: the kernel writes at most `bytes` bytes into `words`, which is that long; then it
    // stores the bytes of the value.
    let rc = unsafe { libc::getsockopt(socket.as_fd().as_raw_fd(), level, name, at, length) };
    if rc == 0 { Ok(bytes as usize) } else { Err(io::Error::last_os_error()) }
}

/// Makes a queue of a socket hold `bytes` bytes: by the option that ignores the system's limit, or,
/// where that needs rights, by the other one.
///
/// # Errors
/// The error of setsockopt(2).
pub fn grow(socket: impl AsFd, forced: i32, limited: i32, bytes: usize) -> io::Result<()> {
    let wish = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
    set(&socket, libc::SOL_SOCKET, forced, &wish)
        .or_else(|_| set(&socket, libc::SOL_SOCKET, limited, &wish))
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
    match get(socket, libc::SOL_SOCKET, SO_MEMINFO, &mut words)? {
        bytes if bytes > SK_MEMINFO_DROPS * 4 => Ok(words[SK_MEMINFO_DROPS]),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Sends the messages that `heads` describe in one system call, and returns how many left.
///
/// The C library musl has a loop of `sendmsg` in place of this call, so the kernel is called.
///
/// # Errors
/// The error of sendmmsg(2).
///
/// # Safety
/// Each header describes live memory with its true length. Every unused byte of it is zero: the
/// kernel takes the lengths as machine words, also where the C library declares shorter fields.
pub unsafe fn send_messages(
    socket: impl AsFd,
    heads: &mut [libc::mmsghdr],
    flags: i32,
) -> io::Result<usize> {
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the caller's promise; the slice has this length.
    let sent = unsafe {
        libc::syscall(libc::SYS_sendmmsg, socket, heads.as_mut_ptr(), heads.len(), flags)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives up to as many messages as there are `heads` in one system call, without a time limit,
/// and returns how many came.
///
/// # Errors
/// The error of recvmmsg(2).
///
/// # Safety
/// As for [`send_messages`], and the memory may be written.
pub unsafe fn receive_messages(
    socket: impl AsFd,
    heads: &mut [libc::mmsghdr],
    flags: i32,
) -> io::Result<usize> {
    let (socket, no_limit) = (socket.as_fd().as_raw_fd(), std::ptr::null::<libc::timespec>());
    // SAFETY: the caller's promise; the slice has this length.
    let received = unsafe {
        libc::syscall(libc::SYS_recvmmsg, socket, heads.as_mut_ptr(), heads.len(), flags, no_limit)
    };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}
