//! The processes of both sides, each on a CPU and in a network of its own.

mod bridge;
mod network;
mod ports;
mod process;

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use super::end::EndAddress;
use super::job::{JobResult, SideJob};
use bridge::Bridge;
use process::SideProcess;

pub use network::enter_new_network;
pub use ports::{ActivePort, ActivePorts};

/// The network that joins the sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestNetwork {
    /// Two network namespaces and a veth pair, made for the measurement and deleted after it.
    Private {
        /// MTU of the pair, bytes.
        mtu: usize,
    },
    /// As `Private`, with a pair for each side and a Linux bridge between them, in a third
    /// namespace.
    Bridged {
        /// MTU of the pairs and the bridge, bytes.
        mtu: usize,
    },
    /// As `Private`, with a second pair, both of Ethernet's usual MTU: [`Testbed::ports`].
    Ports,
    /// As `Private`, for a radio with one or two links, each a pair: [`Testbed::link_addresses`].
    Links {
        /// MTU of the pairs, bytes.
        mtu: usize,
        /// Whether there is a second one.
        second: bool,
    },
    /// Existing interfaces, each `NAME` or `NAME@NAMESPACE`.
    Given([String; 2]),
    /// This machine's loopback: kernel sockets only, no rights needed.
    Loopback,
}

impl TestNetwork {
    /// The way of packets between the sides in words, as records have it.
    #[must_use]
    pub fn topology(&self) -> String {
        match self {
            Self::Private { .. } | Self::Links { .. } | Self::Ports => "veth".to_owned(),
            Self::Bridged { .. } => "bridge".to_owned(),
            Self::Given([from, to]) => format!("{from} > {to}"),
            Self::Loopback => "loopback".to_owned(),
        }
    }

    /// Adds the remedy to the error of a side without network.
    fn advise(&self, error: StageError) -> StageError {
        let advice = match self {
            Self::Private { .. } | Self::Bridged { .. } => {
                "run it with sudo, or measure kernel sockets on loopback (--loopback)"
            }
            Self::Links { .. } => "run it with sudo, or leave out --veth",
            Self::Ports => "run it with sudo (its slow ports are the kernel's, made for the while)",
            Self::Given(_) | Self::Loopback => return error,
        };
        match error {
            StageError::Network(why) => StageError::Network(format!("{why}; {advice}")),
            other => other,
        }
    }
}

/// The set-up of one side.
#[derive(Debug, Clone, Serialize)]
pub struct SideSetup {
    /// Its interface; `None` on loopback.
    pub interface: Option<String>,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Its CPU; `None`: any.
    pub cpu: Option<usize>,
}

/// The reason why a measurement is not possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// A network is not available.
    #[error("{0}")]
    Network(String),
    /// A process of one side cannot be started, or ended too early.
    #[error("the process of the {side} side {what}")]
    Process {
        /// The side.
        side: &'static str,
        /// The event.
        what: String,
    },
    /// A side cannot play its role; the other rows can continue.
    #[error("{0}")]
    Refused(String),
    /// The user asked to end.
    #[error("interrupted before the measurement had a result: run the command again")]
    Ended,
}

/// Makes the command of a process that serves jobs ([`super::worker::serve`]): in the given network
/// (`new`, or the name of a namespace), or in its own.
pub type StartSide = fn(network: Option<&str>) -> std::io::Result<Command>;

/// Both sides, ready for jobs. They and their networks end when it is dropped, and when this
/// process ends for any reason.
pub struct Testbed {
    active: SideProcess,
    passive: SideProcess,
    places: [SideSetup; 2],
    bridge: Option<Bridge>,
    topology: String,
    start: StartSide,
    ended: fn() -> bool,
}

impl Testbed {
    /// Starts both sides, the active one on the first CPU given.
    ///
    /// # Errors
    /// [`StageError`], with the remedy.
    pub fn set(
        ground: &TestNetwork,
        cpus: [Option<usize>; 2],
        start: StartSide,
        ended: fn() -> bool,
    ) -> Result<Self, StageError> {
        let sides = network::sides(ground)?;
        let spawn = |side, index: usize| {
            SideProcess::spawn(side, start, sides[index].network.as_deref(), cpus[index], ended)
        };
        let (mut active, mut passive) = (spawn("active", 0)?, spawn("passive", 1)?);
        // Both have entered their networks when they have sent their first line.
        let advise = |error| ground.advise(error);
        active.hello().map_err(advise)?;
        passive.hello().map_err(advise)?;
        let pids = [active.pid(), passive.pid()];
        let mut bridge = None;
        match ground {
            TestNetwork::Bridged { mtu } => {
                bridge = Some(Bridge::between(pids, *mtu, start, ended)?);
            }
            TestNetwork::Private { mtu } => network::join(&network::FIRST, pids, *mtu)?,
            TestNetwork::Ports => {
                network::join(&network::FIRST, pids, ports::MTU)?;
                network::join(&network::SECOND, pids, ports::MTU)?;
            }
            TestNetwork::Links { mtu, second } => {
                network::join(&network::FIRST, pids, *mtu)?;
                if *second {
                    network::join(&network::SECOND, pids, *mtu)?;
                }
            }
            TestNetwork::Given(_) | TestNetwork::Loopback => {}
        }
        let place = |pid, index: usize| network::place(&sides[index], pid, cpus[index]);
        let places = [place(active.pid(), 0)?, place(passive.pid(), 1)?];
        let topology = ground.topology();
        Ok(Self { active, passive, places, bridge, topology, start, ended })
    }

    /// The set-ups of the active and the passive side.
    #[must_use]
    pub fn places(&self) -> &[SideSetup; 2] {
        &self.places
    }

    /// The way of packets between the sides in words ([`TestNetwork::topology`]).
    #[must_use]
    pub fn topology(&self) -> &str {
        &self.topology
    }

    /// Returns the frames that the bridge has received from both sides; `None` without a bridge.
    ///
    /// # Errors
    /// [`StageError::Network`].
    pub fn bridged(&self) -> Result<Option<u64>, StageError> {
        self.bridge.as_ref().map(Bridge::frames).transpose()
    }

    /// The processes of the active and the passive side, whose first threads play the jobs.
    #[must_use]
    pub fn pids(&self) -> [i32; 2] {
        [&self.active, &self.passive].map(|side| side.pid().cast_signed())
    }

    /// Makes a command start in the network of a side, the active or the passive one.
    ///
    /// # Errors
    /// The system's.
    pub fn start_in(&self, passive: bool, command: &mut Command) -> std::io::Result<()> {
        let side = if passive { &self.passive } else { &self.active };
        network::start_in(side.pid(), command)
    }

    /// Moves the calling thread, and threads that it starts later, into the network of the active
    /// side.
    ///
    /// # Errors
    /// [`StageError::Network`].
    pub fn enter(&self) -> Result<(), StageError> {
        network::enter(self.active.pid())
    }

    /// Returns the addresses of the passive side on the pairs of [`TestNetwork::Links`], of which
    /// the second may not be there.
    #[must_use]
    pub fn link_addresses() -> [Ipv4Addr; 2] {
        [network::FIRST.address(1), network::SECOND.address(1)]
    }

    /// Gives the passive side a second address, which the active side reaches: for a link without
    /// an interface, beside which the kernel still carries the radio's management. Returns it and
    /// one of the same network for the active side.
    ///
    /// # Errors
    /// [`StageError::Network`].
    pub fn add_second_address(&self) -> Result<[Ipv4Addr; 2], StageError> {
        let passive = network::add_second_address([self.active.pid(), self.passive.pid()])?;
        Ok([network::SECOND.address(0), passive])
    }

    /// Plays one measurement: starts the passive side, then the active one with the passive one's
    /// address; then stops the passive one. Returns the results of both, active first.
    ///
    /// # Errors
    /// [`StageError::Refused`] when a side cannot play its role; both can take the next job then.
    pub fn play(
        &mut self,
        passive: &SideJob,
        active: impl FnOnce(EndAddress) -> SideJob,
        longest: Duration,
    ) -> Result<[JobResult; 2], StageError> {
        let mut address = self.passive.start(passive)?;
        if address.mac == [0; 6] {
            address.mac = self.places[1].mac;
        }
        let played = self.active.start(&active(address)).and_then(|_| self.active.finish(longest));
        self.passive.stop()?;
        let turned = self.passive.finish(longest);
        Ok([played?, turned?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_rights_is_only_advised_what_the_measurement_takes() {
        let advised = |ground: TestNetwork| {
            ground.advise(StageError::Network("that needs root".to_owned())).to_string()
        };
        let private = advised(TestNetwork::Private { mtu: 1500 });
        assert!(private.contains("needs root; run it with sudo, or") && private.contains("--loop"));
        // `latency port` has no --loopback.
        let ports = advised(TestNetwork::Ports);
        assert!(ports.contains("needs root; run it with sudo") && !ports.contains("--loopback"));
        let links = advised(TestNetwork::Links { mtu: 9000, second: true });
        assert!(links.contains("sudo, or leave out --veth"));
        assert_eq!(advised(TestNetwork::Loopback), "that needs root");
    }

    #[test]
    fn records_say_which_way_packets_went() {
        let way = |ground: TestNetwork| ground.topology();
        assert_eq!(way(TestNetwork::Private { mtu: 1500 }), "veth");
        assert_eq!(way(TestNetwork::Bridged { mtu: 1500 }), "bridge");
        assert_eq!(way(TestNetwork::Loopback), "loopback");
        let given = ["eth1".to_owned(), "eth2@far".to_owned()];
        assert_eq!(way(TestNetwork::Given(given)), "eth1 > eth2@far");
    }
}
