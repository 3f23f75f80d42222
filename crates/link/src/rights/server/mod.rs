//! The granting side: one thread that serves every client of one socket.
//!
//! A client can cost the others nothing: its requests are short and done one at a time, nothing
//! here waits for it, its connections are counted, and what it leaves behind is undone when its
//! connection ends.

mod peer;
mod session;
mod taken;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};

use super::policy::{Peer, Policy};
use super::{Family, Rights};
use session::Session;

/// Connections of one user at a time.
const SESSIONS_OF_USER_MAX: usize = 16;

/// Connections at a time.
const SESSIONS_MAX: usize = 128;

/// How a link's privileged steps are begun: the link, the interface, the process to act for.
pub type Open = fn(Family, &str, &Peer) -> io::Result<Box<dyn Rights>>;

/// What a broker has to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A client got a link.
    Opened {
        /// The client.
        peer: Peer,
        /// What it got: link and interface.
        what: String,
    },
    /// A client was refused something.
    Refused {
        /// The client.
        peer: Peer,
        /// Why.
        reason: String,
    },
    /// A client that had a link has gone; what was done for it is undone.
    Closed {
        /// The client.
        peer: Peer,
        /// What it had.
        what: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peer, text) = match self {
            Self::Opened { peer, what } => (peer, format!("has {what}")),
            Self::Refused { peer, reason } => (peer, format!("refused: {reason}")),
            Self::Closed { peer, what } => (peer, format!("has gone; {what} is free again")),
        };
        write!(f, "user {} process {}: {text}", peer.uid, peer.pid)
    }
}

/// A broker.
pub struct Server {
    listener: OwnedFd,
    path: PathBuf,
    policy: Policy,
    open: Open,
    sessions: Vec<Session>,
    refusals: u64,
}

impl Server {
    /// Listens at `path`; anybody may connect, and the policy says who is heard.
    ///
    /// # Errors
    /// `AddrInUse` when a broker listens there already; what the system reports.
    pub fn listen(path: &Path, policy: Policy, open: Open) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        }
        remove_stale(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new(path)?)?;
        open_to_all(path)?;
        listen(&listener, 64)?;
        let path = path.to_owned();
        Ok(Self { listener, path, policy, open, sessions: Vec::new(), refusals: 0 })
    }

    /// Clients that have a connection.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.sessions.len()
    }

    /// Waits up to `timeout` for something to do, and does it: at most one request of each client.
    ///
    /// # Errors
    /// What poll(2) reports.
    pub fn turn(&mut self, timeout: Duration, tell: &mut dyn FnMut(Event)) -> io::Result<()> {
        let timeout = Timespec::try_from(timeout).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut wait: Vec<_> = std::iter::once(self.listener.as_fd())
            .chain(self.sessions.iter().map(Session::descriptor))
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        match poll(&mut wait, Some(&timeout)) {
            Ok(_) => {}
            // A signal: whoever turns this looks whether to end.
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = wait.iter().map(|one| !one.revents().is_empty()).collect();
        let mut index = 0;
        let (policy, open) = (&self.policy, self.open);
        self.sessions.retain_mut(|session| {
            index += 1;
            let stays = !ready[index] || session.turn(policy, open, tell);
            if !stays && let Some(what) = session.end() {
                tell(Event::Closed { peer: session.peer.clone(), what });
            }
            stays
        });
        if ready[0] {
            self.accept(tell);
        }
        Ok(())
    }

    /// Takes whoever knocks; the rest of the queue comes with the next turn.
    fn accept(&mut self, tell: &mut dyn FnMut(Event)) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let Ok(socket) = accept_with(&self.listener, flags) else { return };
        let Ok(peer) = peer::of(&socket) else { return };
        let of_user = self.sessions.iter().filter(|one| one.peer.uid == peer.uid).count();
        let full = of_user >= SESSIONS_OF_USER_MAX || self.sessions.len() >= SESSIONS_MAX;
        let session = Session::new(socket, peer);
        let refusal = match self.policy.admits(&session.peer) {
            Err(reason) => Some(reason),
            Ok(()) => full.then(|| "too many connections; close some".to_owned()),
        };
        let Some(reason) = refusal else { return self.sessions.push(session) };
        session.refuse(&reason);
        // Somebody who knocks for ever must not fill a log.
        self.refusals += 1;
        if self.refusals.is_power_of_two() {
            tell(Event::Refused { peer: session.peer.clone(), reason });
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Lets anybody connect to our socket. In a folder of somebody else's, its name may be another
/// file's by now: only a socket of ours is touched, and no link followed.
fn open_to_all(path: &Path) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.file_type().is_socket() || found.uid() != rustix::process::geteuid().as_raw() {
        let text = format!("{} was replaced by somebody else", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(itself, fs::Permissions::from_mode(0o666))
}

/// Removes the socket that a broker left when it was killed; one that answers stays.
fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {}
        Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => return Ok(()),
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let probe = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    match connect(&probe, &SocketAddrUnix::new(path)?) {
        Err(rustix::io::Errno::CONNREFUSED) => fs::remove_file(path),
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}
