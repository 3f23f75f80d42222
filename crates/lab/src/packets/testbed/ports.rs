//! Ports of the active side that are as slow as real ones, and another sender over them.

use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_host::netlink::{LaunchQueue, Netlink, NetlinkError, PortShape, Queued};

use super::network::{self, FIRST, SECOND};
use super::process::SideProcess;
use super::{StageError, Testbed};
use crate::packets::end::EndAddress;
use crate::packets::job::{JobResult, SideJob};

/// Largest IP packet, bytes.
pub(super) const MTU: usize = 1500;
/// The UDP port for bulk (RFC 863); it has no listener.
const DISCARD: u16 = 9;

/// A port of the active side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivePort {
    /// The port of the measurement.
    First,
    /// The second port.
    Second,
}

impl ActivePort {
    fn pair(self) -> network::PrivatePair {
        match self {
            Self::First => FIRST,
            Self::Second => SECOND,
        }
    }

    /// The active side's address there.
    #[must_use]
    pub fn address(self) -> Ipv4Addr {
        self.pair().address(0)
    }

    /// The address of the absent station behind it, which never answers.
    #[must_use]
    pub fn nobody(self) -> EndAddress {
        EndAddress { mac: [0; 6], udp: SocketAddrV4::new(self.pair().nobody(), DISCARD) }
    }
}

/// The active side's ports of a test bed with [`TestNetwork::Ports`](super::TestNetwork::Ports),
/// and a process that sends over them. They end with its networks.
pub struct ActivePorts {
    pid: u32,
    other: SideProcess,
}

impl Testbed {
    /// Opens the ports, with a process in the active side's network on `cpu`.
    ///
    /// # Errors
    /// [`StageError`], with the remedy.
    pub fn ports(&self, cpu: Option<usize>) -> Result<ActivePorts, StageError> {
        let pid = self.active.pid();
        let network = format!("/proc/{pid}/ns/net");
        let mut other = SideProcess::spawn("bulk", self.start, Some(&network), cpu, self.ended)?;
        other.hello()?;
        Ok(ActivePorts { pid, other })
    }

    /// Gives the active side's interface on the first pair a queue that knows launch times, or its
    /// usual one.
    ///
    /// # Errors
    /// [`StageError::Refused`] where the kernel has no such queue; the other rows can continue.
    pub fn launch_queue(&self, queue: Option<LaunchQueue>) -> Result<(), StageError> {
        let set = |netlink: &mut Netlink| {
            let index = netlink.interface(FIRST.interface())?.index;
            match queue {
                Some(queue) => netlink.launch(index, queue),
                None => netlink.unshape(index),
            }
        };
        let set = network::ask(self.active.pid(), |netlink| {
            Ok(set(netlink).map_err(|error| error.to_string()))
        });
        set?.map_err(StageError::Refused)
    }

    /// Returns the counts of that queue; `None` where it is the usual one.
    ///
    /// # Errors
    /// [`StageError::Network`] with the kernel's answer.
    pub fn launch_counts(&self) -> Result<Option<Queued>, StageError> {
        network::ask(self.active.pid(), |netlink| {
            let index = netlink.interface(FIRST.interface())?.index;
            netlink.launched(index)
        })
    }
}

impl ActivePorts {
    /// Sets the rate and queue of a port; its counts begin at zero.
    ///
    /// # Errors
    /// [`StageError::Network`] with the kernel's answer.
    pub fn shape(&self, port: ActivePort, shape: &PortShape) -> Result<(), StageError> {
        self.at(port, |netlink, index| netlink.shape(index, shape))
    }

    /// Returns the counts of a port's queue.
    ///
    /// # Errors
    /// [`StageError::Network`] with the kernel's answer.
    pub fn queued(&self, port: ActivePort) -> Result<Queued, StageError> {
        let queued = self.at(port, Netlink::queued)?;
        queued.ok_or_else(|| StageError::Network("the port has lost its queue".to_owned()))
    }

    /// Whether the user asked to end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.other.is_ended()
    }

    fn at<T: Send>(
        &self,
        port: ActivePort,
        what: impl FnOnce(&mut Netlink, u32) -> Result<T, NetlinkError> + Send,
    ) -> Result<T, StageError> {
        network::ask(self.pid, |netlink| {
            let index = netlink.interface(port.pair().interface())?.index;
            what(netlink, index)
        })
    }

    /// Plays a job in the other process during `meanwhile`.
    ///
    /// # Errors
    /// [`StageError`] of the process, or of `meanwhile`.
    pub fn beside<T>(
        &mut self,
        job: &SideJob,
        meanwhile: impl FnOnce(&Self) -> Result<T, StageError>,
    ) -> Result<(T, JobResult), StageError> {
        self.other.start(job)?;
        let done = meanwhile(self);
        self.other.stop()?;
        let outcome = self.other.finish(std::time::Duration::ZERO)?;
        Ok((done?, outcome))
    }
}
