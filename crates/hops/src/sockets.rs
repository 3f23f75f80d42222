//! The UDP sockets of flows and programs, with their owners.

use crate::counters::ProcFile;
use crate::namespace::{namespaces, within};
use crate::owners::Owners;
use millstream_host::netlink::{UdpSocketState, UdpSockets};
use millstream_watch::SocketReading;
use std::net::SocketAddrV4;
use std::time::Instant;

/// The port of a radio for CHDR packets (UHD's `CHDR_PORT`).
const RADIO_PORT: u16 = 49153;

/// Where the sockets are listed.
#[derive(Debug)]
enum List {
    Netlink(UdpSockets),
    /// Tables of IPv4 and IPv6, which say nothing of the buffers.
    Tables([ProcFile; 2]),
}

/// The sockets of one network namespace.
#[derive(Debug)]
pub(crate) struct Sockets {
    pid: Option<u32>,
    list: List,
    owners: Owners,
    /// Sockets of the last reading whose owners may not be seen.
    hidden: Vec<SocketAddrV4>,
}

impl Sockets {
    /// Opens the list of the calling thread's namespace. `pid` is the program whose sockets are
    /// wanted beside those of the flows.
    pub(crate) fn open(pid: Option<u32>) -> Self {
        let list = match UdpSockets::open().and_then(|mut list| list.list().map(|_| list)) {
            Ok(list) => List::Netlink(list),
            Err(_) => List::Tables(
                ["udp", "udp6"].map(|name| ProcFile::open(format!("/proc/thread-self/net/{name}"))),
            ),
        };
        Self { pid, list, owners: Owners::new(pid), hidden: Vec::new() }
    }

    /// Returns all of the namespace.
    pub(crate) fn list(&mut self) -> Vec<UdpSocketState> {
        match &mut self.list {
            List::Netlink(list) => list.list().unwrap_or_default(),
            List::Tables(files) => {
                let tables = files.iter_mut().filter_map(ProcFile::read);
                tables.flat_map(UdpSocketState::of_table).collect()
            }
        }
    }

    /// Chooses those that receive at one of these ends, which are sorted by port, and those of the
    /// program.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        states: Vec<UdpSocketState>,
        ends: &[SocketAddrV4],
    ) -> Vec<SocketReading> {
        let followed = |state: &UdpSocketState| receives(state.local, ends);
        self.owners.refresh(now, &states, followed);
        let mut readings = Vec::new();
        for state in states {
            let owner = self.owners.of(state.inode);
            if followed(&state) || (owner.is_some() && owner == self.pid) {
                readings.push(reading(state, owner));
            }
        }
        let hidden = readings.iter().filter(|reading| reading.pid.is_none());
        self.hidden = hidden.map(|reading| reading.local).collect();
        readings
    }

    /// Looks anew for the owners that were not found.
    pub(crate) fn look_again(&mut self) {
        self.owners.look_again();
    }

    /// Says what these readings leave open.
    pub(crate) fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        if matches!(self.list, List::Tables(_)) {
            lacks.push(
                "this kernel does not list its UDP sockets' buffers: load the module that does \
                 (sudo modprobe udp_diag)"
                    .into(),
            );
        }
        lacks.extend(self.hidden.iter().map(|local| {
            format!(
                "whose socket {local} is, is not visible: another user's. Run with sudo, or with \
                 the capabilities CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"
            )
        }));
        lacks
    }
}

/// Returns the UDP sockets that are connected to a radio's port for samples, with the namespace
/// that each is in: a process in it, or `None` for ours. Namespaces that this process may not
/// enter are left out.
#[must_use]
pub fn radio_sockets() -> Vec<(Option<u32>, SocketReading)> {
    let is_radio =
        |state: &UdpSocketState| state.remote.is_some_and(|remote| remote.port() == RADIO_PORT);
    let list = || UdpSockets::open()?.list();
    let mut found = Vec::new();
    for namespace in namespaces() {
        let Ok(Ok(mut states)) = within(namespace.pid, list) else { continue };
        states.retain(is_radio);
        let mut owners = Owners::new(None);
        owners.refresh(Instant::now(), &states, |_| true);
        found.extend(states.into_iter().map(|state| {
            let owner = owners.of(state.inode);
            (namespace.pid, reading(state, owner))
        }));
    }
    found
}

/// Returns whether a socket at `local` receives what is sent to one of these ends, which are sorted
/// by port.
fn receives(local: SocketAddrV4, ends: &[SocketAddrV4]) -> bool {
    let all = local.ip().is_unspecified() || local.ip().is_multicast();
    let from = ends.partition_point(|end| end.port() < local.port());
    let mut same = ends[from..].iter().take_while(|end| end.port() == local.port());
    same.any(|end| all || local.ip() == end.ip())
}

fn reading(state: UdpSocketState, pid: Option<u32>) -> SocketReading {
    SocketReading {
        local: state.local,
        remote: state.remote,
        inode: state.inode,
        pid,
        queued_bytes: u64::from(state.received),
        buffer_bytes: u64::from(state.receive_buffer),
        send_queued_bytes: u64::from(state.unsent),
        dropped: u64::from(state.drops),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_receives_at_its_address_or_at_all() {
        let ends = ["10.0.0.9:4", "10.0.0.1:5", "10.0.0.2:5", "10.0.0.9:6"];
        let ends = ends.map(|end| end.parse().unwrap());
        let receives = |local: &str| receives(local.parse().unwrap(), &ends);
        assert!(receives("10.0.0.2:5") && receives("0.0.0.0:5") && receives("10.0.0.9:4"));
        assert!(!receives("10.0.0.9:5") && !receives("0.0.0.0:3") && !receives("0.0.0.0:7"));
    }
}
