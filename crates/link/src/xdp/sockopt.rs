//! setsockopt(2) for the options that `rustix` does not have.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets an option to the bytes of `value`, which must be what the option expects.
pub fn set<T: Copy>(socket: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    let (at, bytes) = ((&raw const *value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the kernel reads at most `bytes` bytes of a live value.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, at, bytes) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
