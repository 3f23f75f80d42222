//! A connection and the thread that serves it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::net::{Shutdown, shutdown};

use super::peer::Client;
use super::session::BrokerSession;
use super::{BrokerEvent, Open};
use crate::rights::policy::{GrantPolicy, PeerIdentity};

/// The state that every connection's thread uses.
pub struct ServerState {
    pub policy: GrantPolicy,
    pub open: Open,
    /// The interfaces of the policy, each with the lock for its changes.
    interfaces: Vec<(String, Mutex<()>)>,
}

impl ServerState {
    pub fn new(policy: GrantPolicy, open: Open) -> Self {
        let names = policy.interfaces.iter().cloned();
        let interfaces = names.map(|name| (name, Mutex::default())).collect();
        Self { policy, open, interfaces }
    }

    /// Calls `job` with the lock of the interface's changes.
    pub fn alone<T>(&self, interface: &str, job: impl FnOnce() -> T) -> T {
        let found = self.interfaces.iter().find(|(name, _)| name == interface);
        let _alone = found.map(|(_, lock)| lock.lock().unwrap_or_else(PoisonError::into_inner));
        job()
    }
}

/// A client's connection, and the thread that serves it.
pub struct ServedConnection {
    pub peer: PeerIdentity,
    /// The socket, shared with the thread: shutting it down here ends the thread.
    socket: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl ServedConnection {
    /// Starts a thread that answers one request after the other until the client has gone.
    pub fn start(
        socket: Arc<OwnedFd>,
        client: Client,
        shared: Arc<ServerState>,
        tell: Sender<BrokerEvent>,
    ) -> io::Result<Self> {
        let peer = client.peer.clone();
        let mut session = BrokerSession::new(Arc::clone(&socket), client, shared);
        let name = std::thread::Builder::new().name("ms-grant".to_owned());
        let thread = name.spawn(move || {
            // There is no receiver any more when the broker ends.
            let mut tell = |event| drop(tell.send(event));
            while session.step(&mut tell) {}
            session.end(&mut tell);
        })?;
        Ok(Self { peer, socket, thread: Some(thread) })
    }

    /// Whether the client has gone, and its changes are undone.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for ServedConnection {
    fn drop(&mut self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
        // A thread that panicked has undone its changes all the same.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
