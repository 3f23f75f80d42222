//! The granting side: one thread that accepts clients, and one for each client.
//!
//! A driver may take seconds to change its queues or to accept a program. Clients of other
//! interfaces do not wait for that; those of the same interface are served one after the other. The
//! broker never waits for a client that does not read, limits connections per user and in total,
//! and undoes a client's changes when its connection ends.

mod peer;
mod served_connection;
mod session;
mod taken;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use millstream_cpu::listener::RestingListener;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};

use super::policy::{GrantPolicy, PeerIdentity};
use super::{Family, Rights};
use peer::Client;
use served_connection::{ServedConnection, ServerState};
use session::refuse_unread;

/// The most connections of one user at a time.
const SESSIONS_OF_USER_MAX: usize = 16;

/// The most connections at a time.
const SESSIONS_MAX: usize = 128;

/// Opens the privileged steps of a link: arguments are the link, the interface, the process to act
/// for.
pub type Open = fn(&'static Family, &str, &PeerIdentity) -> io::Result<Box<dyn Rights>>;

/// An event that a broker reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokerEvent {
    /// A client got a link.
    Opened {
        /// The client.
        peer: PeerIdentity,
        /// The link and interface.
        what: String,
    },
    /// A client was refused a request.
    Refused {
        /// The client.
        peer: PeerIdentity,
        /// The reason.
        reason: String,
    },
    /// A client with a link has gone; its changes are undone.
    Closed {
        /// The client.
        peer: PeerIdentity,
        /// The link and interface.
        what: String,
    },
}

impl fmt::Display for BrokerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peer, text) = match self {
            Self::Opened { peer, what } => (peer, format!("has {what}")),
            Self::Refused { peer, reason } => (peer, format!("refused: {reason}")),
            Self::Closed { peer, what } => (peer, format!("has ended; {what} is free again")),
        };
        write!(f, "user {} process {}: {text}", peer.uid, peer.pid)
    }
}

/// A broker.
pub struct Server {
    listener: RestingListener<OwnedFd>,
    path: PathBuf,
    shared: Arc<ServerState>,
    serving: Vec<ServedConnection>,
    /// The channel of the clients' threads' events.
    told: (Sender<BrokerEvent>, Receiver<BrokerEvent>),
    refusals: u64,
}

impl Server {
    /// Listens at `path`; every user may connect, and the policy decides whose requests are served.
    ///
    /// # Errors
    /// `AddrInUse` when a broker listens there already; otherwise the system's error.
    pub fn listen(path: &Path, policy: GrantPolicy, open: Open) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        }
        remove_stale(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new(path)?)?;
        open_to_all(path)?;
        listen(&listener, 64)?;
        let (path, listener) = (path.to_owned(), RestingListener::new(listener));
        let shared = Arc::new(ServerState::new(policy, open));
        let told = mpsc::channel();
        Ok(Self { listener, path, shared, serving: Vec::new(), told, refusals: 0 })
    }

    /// Waits up to `timeout` for a client, accepts it, and reports the events since the last call.
    /// Accepted clients are served even between calls.
    ///
    /// # Errors
    /// The error of poll(2).
    pub fn step(&mut self, timeout: Duration, tell: &mut dyn FnMut(BrokerEvent)) -> io::Result<()> {
        let timeout = Timespec::try_from(timeout).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, self.listener.is_awake());
        let mut wait = [PollFd::new(&self.listener, wanted)];
        match poll(&mut wait, Some(&timeout)) {
            Ok(0) => {}
            Ok(_) => self.accept(tell),
            // A signal: the caller of this loop checks whether to end.
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.serving.retain(|one| !one.has_ended());
        self.told.1.try_iter().for_each(tell);
        Ok(())
    }

    /// Accepts waiting clients; the rest of the queue is left to the next step.
    fn accept(&mut self, tell: &mut dyn FnMut(BrokerEvent)) {
        let take = |listener: &OwnedFd| Ok(accept_with(listener, SocketFlags::CLOEXEC)?);
        let Some(socket) = self.listener.accept(take) else { return };
        let client = match Client::of(&socket) {
            Ok(client) => client,
            Err(error) => {
                refuse_unread(&socket, &format!("cannot find out whose connection it is: {error}"));
                return;
            }
        };
        let peer = client.peer.clone();
        let busy = self.serving.iter().filter(|one| !one.has_ended());
        let (of_user, all) = busy.fold((0, 0), |(of_user, all), one| {
            (of_user + usize::from(one.peer.uid == peer.uid), all + 1)
        });
        let full = of_user >= SESSIONS_OF_USER_MAX || all >= SESSIONS_MAX;
        let socket = Arc::new(socket);
        let refusal = match self.shared.policy.admits(&peer) {
            Err(reason) => reason,
            Ok(()) if full => "too many connections; close some".to_owned(),
            Ok(()) => {
                let (shared, told) = (Arc::clone(&self.shared), self.told.0.clone());
                match ServedConnection::start(Arc::clone(&socket), client, shared, told) {
                    Ok(serving) => return self.serving.push(serving),
                    Err(error) => format!("cannot start a thread for it: {error}"),
                }
            }
        };
        refuse_unread(&socket, &refusal);
        // A client that connects again and again must not fill a log.
        self.refusals += 1;
        if self.refusals.is_power_of_two() {
            tell(BrokerEvent::Refused { peer, reason: refusal });
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Lets every user connect to our socket. In a folder of another owner its name may meanwhile be
/// another file's: only a socket of ours is changed, and no link followed.
fn open_to_all(path: &Path) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.file_type().is_socket() || found.uid() != rustix::process::geteuid().as_raw() {
        let text = format!("another program replaced {}", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(itself, fs::Permissions::from_mode(0o666))
}

/// Removes the socket that a killed broker left; one that answers stays.
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
