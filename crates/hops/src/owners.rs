//! Which process has a socket open, by the links in `/proc/PID/fd` (proc_pid_fd(5)).

use crate::pace::Paced;
use millstream_cpu::folders;
use millstream_host::netlink::UdpSocketState;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The open files of a process that are looked at.
const FILES_MAX: usize = 16_384;

/// The owners of sockets, by their inodes.
#[derive(Debug)]
pub(crate) struct Owners {
    /// The process that is asked first.
    first: Option<u32>,
    /// The sockets that were looked for; `None` where no process may be seen to have them.
    known: HashMap<u64, Option<u32>>,
    /// The walks through all processes.
    walks: Paced<()>,
}

impl Owners {
    pub(crate) fn new(first: Option<u32>) -> Self {
        Self { first, known: HashMap::new(), walks: Paced::new(Duration::ZERO) }
    }

    /// Looks for the owners of sockets that it has not looked for: of those that are `followed` in
    /// all processes, as often as that may cost, and of the others in the first process only.
    pub(crate) fn refresh(
        &mut self,
        now: Instant,
        sockets: &[UdpSocketState],
        followed: impl Fn(&UdpSocketState) -> bool,
    ) {
        let Self { first, known, walks } = self;
        let mut new: Vec<_> = sockets
            .iter()
            .filter(|socket| !known.contains_key(&socket.inode))
            .filter(|socket| first.is_some() || followed(socket))
            .collect();
        if new.is_empty() {
            return;
        }
        let open: HashSet<_> = sockets.iter().map(|socket| socket.inode).collect();
        known.retain(|inode, _| open.contains(inode));
        if let Some(pid) = *first {
            let theirs: HashSet<_> = sockets_of(pid).into_iter().collect();
            new.retain(|socket| {
                let owner = theirs.contains(&socket.inode).then_some(pid);
                let found = owner.is_some() || !followed(socket);
                if found {
                    known.insert(socket.inode, owner);
                }
                !found
            });
        }
        if new.is_empty() {
            return;
        }
        let mut wanted: HashSet<_> = new.into_iter().map(|socket| socket.inode).collect();
        walks.read(now, || {
            for pid in folders::numbers(Path::new("/proc")) {
                let found = sockets_of(pid).into_iter().filter(|inode| wanted.remove(inode));
                known.extend(found.map(|inode| (inode, Some(pid))));
            }
            known.extend(wanted.drain().map(|inode| (inode, None)));
        });
    }

    /// Looks anew for those that were not found.
    pub(crate) fn look_again(&mut self) {
        self.known.retain(|_, owner| owner.is_some());
    }

    /// Returns the owner of a socket, if it may be seen.
    pub(crate) fn of(&self, inode: u64) -> Option<u32> {
        self.known.get(&inode).copied().flatten()
    }
}

/// Returns the inodes of the sockets that a process has open; none where that may not be seen.
fn sockets_of(pid: u32) -> Vec<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.take(FILES_MAX).filter_map(|entry| socket_at(&entry.path())).collect()
}

/// Returns the inode of a socket by the link of its descriptor.
pub(crate) fn socket_at(link: &Path) -> Option<u64> {
    let target = fs::read_link(link).ok()?;
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}
