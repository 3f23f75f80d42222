//! Who is at the other end of a Unix socket.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::Peer;

/// Groups that are looked at; more are not needed to find one that is granted.
const GROUPS_MAX: usize = 1024;

/// The peer of a connected socket, as of its connect(2).
pub fn of(socket: &OwnedFd) -> io::Result<Peer> {
    let credentials = rustix::net::sockopt::socket_peercred(socket)?;
    let mut groups = peer_groups(socket)?;
    groups.push(credentials.gid.as_raw());
    let (pid, uid) = (credentials.pid.as_raw_pid(), credentials.uid.as_raw());
    Ok(Peer { pid, uid, groups })
}

/// Its supplementary groups (SO_PEERGROUPS).
fn peer_groups(socket: &OwnedFd) -> io::Result<Vec<u32>> {
    let mut groups = vec![0u32; GROUPS_MAX];
    let mut bytes = (GROUPS_MAX * size_of::<u32>()) as libc::socklen_t;
    // SAFETY: the option writes at most `bytes` bytes of group numbers to `groups`, which has them,
    // and then says in `bytes` how many it wrote.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERGROUPS,
            groups.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    groups.truncate(bytes as usize / size_of::<u32>());
    Ok(groups)
}

/// Whether a process lives in the network namespace of this thread.
pub fn is_in_this_network(pid: i32) -> bool {
    let there = std::fs::read_link(format!("/proc/{pid}/ns/net"));
    let here = std::fs::read_link("/proc/thread-self/ns/net");
    matches!((there, here), (Ok(there), Ok(here)) if there == here)
}

/// Whether a process has not gone: its number may be another's by now, but not another user's.
pub fn is_alive(peer: &Peer) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(format!("/proc/{}", peer.pid)).is_ok_and(|found| found.uid() == peer.uid)
}
