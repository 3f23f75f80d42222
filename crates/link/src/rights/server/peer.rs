//! The process at the other end of a Unix socket.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use millstream_host::socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};

use super::PeerIdentity;

/// The groups that the first question has room for, and the most that a process can have
/// (`NGROUPS_MAX` of `linux/limits.h`).
const GROUPS_FIRST: usize = 256;
const GROUPS_MAX: usize = 65_536;

/// `SO_PEERPIDFD` of `asm-generic/socket.h` (Linux 6.5).
const SO_PEERPIDFD: libc::c_int = 77;

/// A client: its identity, and a descriptor of its process. The process number alone could be
/// reused after the process has ended.
pub struct Client {
    pub peer: PeerIdentity,
    pub(super) process: OwnedFd,
}

impl Client {
    /// Returns the peer of a connected socket, as of its connect(2).
    pub fn of(socket: &OwnedFd) -> io::Result<Self> {
        let credentials = rustix::net::sockopt::socket_peercred(socket)?;
        let mut groups = peer_groups(socket)?;
        groups.push(credentials.gid.as_raw());
        let (pid, uid) = (credentials.pid.as_raw_pid(), credentials.uid.as_raw());
        let process = match peer_process(socket) {
            Ok(process) => process,
            // Before Linux 6.5: the process that has the number now.
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                pidfd_open(credentials.pid, PidfdFlags::empty())?
            }
            Err(error) => return Err(error),
        };
        Ok(Self { peer: PeerIdentity { pid, uid, groups }, process })
    }

    /// Whether the process still runs. If it does, its number was its own all the time.
    pub fn is_alive(&self) -> bool {
        let mut wait = [PollFd::new(&self.process, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(rustix::io::retry_on_intr(|| poll(&mut wait, Some(&now))), Ok(0))
    }

    /// Whether it is in the network namespace of this thread.
    pub fn is_in_this_network(&self) -> bool {
        let there = std::fs::read_link(format!("/proc/{}/ns/net", self.peer.pid));
        let here = std::fs::read_link("/proc/thread-self/ns/net");
        // Checked last: until then the number was not reused.
        matches!((there, here), (Ok(there), Ok(here)) if there == here) && self.is_alive()
    }
}

/// Returns a descriptor of the process that connected a socket.
fn peer_process(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let mut process = [0];
    socket::get(socket, libc::SOL_SOCKET, SO_PEERPIDFD, &mut process)?;
    // SAFETY: the kernel has just opened it for us (close-on-exec), and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(process[0] as i32) })
}

/// Returns its supplementary groups (SO_PEERGROUPS). The kernel refuses a buffer that is too small
/// for all of them (ERANGE).
fn peer_groups(socket: &OwnedFd) -> io::Result<Vec<u32>> {
    let mut groups = vec![0u32; GROUPS_FIRST];
    loop {
        match socket::get(socket, libc::SOL_SOCKET, libc::SO_PEERGROUPS, &mut groups) {
            Ok(bytes) => {
                groups.truncate(bytes / size_of::<u32>());
                return Ok(groups);
            }
            Err(error)
                if error.raw_os_error() == Some(libc::ERANGE) && groups.len() < GROUPS_MAX =>
            {
                groups.resize(groups.len() * 4, 0);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::channel;
    use std::process::{Command, Stdio};

    /// The system call itself sets the groups of this thread alone, and a socket has those of the
    /// thread that made it.
    #[test]
    fn all_groups_of_a_client_are_read_however_many_it_has() {
        for count in [0, 1, GROUPS_FIRST, GROUPS_FIRST + 1, 5000, GROUPS_MAX] {
            let groups: Vec<u32> = (0..count as u32).map(|group| 100_000 + group).collect();
            // SAFETY: the kernel reads that many groups of a live list.
            let rc = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
            if rc != 0 {
                let error = io::Error::last_os_error();
                assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{count} groups");
                eprintln!("not run: setting groups needs CAP_SETGID");
                return;
            }
            let (here, _there) = channel::pair().unwrap();
            assert_eq!(peer_groups(&here).unwrap(), groups);
        }
    }

    #[test]
    fn a_process_that_has_ended_is_told_from_one_that_runs() {
        let (here, _there) = channel::pair().unwrap();
        let client = Client::of(&here).unwrap();
        assert_eq!(client.peer.pid, std::process::id() as i32);
        assert!(client.is_alive() && client.is_in_this_network());
        // Its number stays in use until the process is waited for: only the descriptor shows the
        // end.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let client =
            Client { peer: PeerIdentity { pid: pid.as_raw_pid(), ..client.peer }, process };
        assert!(client.is_alive() && client.is_in_this_network());
        drop(child.stdin.take());
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while client.is_alive() {
            assert!(std::time::Instant::now() < until);
        }
        assert!(!client.is_in_this_network());
        assert!(std::path::Path::new(&format!("/proc/{}", client.peer.pid)).exists());
        child.wait().unwrap();
    }
}
