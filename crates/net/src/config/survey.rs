//! A survey of the system: the interfaces, with everything that matters for opening links on them.

use std::io;
use std::path::{Path, PathBuf};

use millstream_host::ethtool::{Ethtool, Offload};
use millstream_host::netlink::{
    Netlink, NetlinkAddress, NetlinkError, NetlinkInterface, NetlinkRoute, RouteKind,
};
use millstream_host::pci::{self, Card};
use millstream_link::entry::OpenTarget;
use millstream_link::rights::{Family, RightsOptions};
use millstream_link::{InterfaceState, Subnet};
use serde::Serialize;

/// The rights of this process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProcessRights {
    /// The right to open sockets of links and change settings (CAP_NET_ADMIN and CAP_NET_RAW).
    pub network: bool,
    /// The right to load programs (CAP_BPF or CAP_SYS_ADMIN).
    pub programs: bool,
    /// The socket of a broker, if there is one.
    pub broker: Option<PathBuf>,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundInterface {
    /// What links ask for.
    #[serde(flatten)]
    pub state: InterfaceState,
    /// The known offloads, and whether they are on.
    pub offloads: Vec<(Offload, bool)>,
    /// Whether the driver can assign queues to UDP ports.
    pub steers: bool,
    /// IPv4 addresses, the kernel's first choice first.
    pub addresses: Vec<Subnet>,
    /// Routes with a gateway: network, router.
    pub routes: Vec<NetlinkRoute>,
    /// Its device on the PCI bus.
    pub device: Option<String>,
}

/// All interfaces and devices in the network namespace of the calling thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InterfaceSurvey {
    /// The interfaces, loopback too.
    pub interfaces: Vec<FoundInterface>,
    /// Network devices on the PCI bus, including those that the kernel has given up.
    pub cards: Vec<Card>,
    /// The rights of this process.
    pub means: ProcessRights,
}

impl InterfaceSurvey {
    /// Reads the state of the system; changes nothing and needs no rights.
    ///
    /// # Errors
    /// [`NetlinkError`] when the kernel does not answer.
    pub fn take() -> Result<Self, NetlinkError> {
        let mut netlink = Netlink::open()?;
        let interfaces = netlink.interfaces()?;
        let (addresses, routes) = (netlink.addresses()?, netlink.routes()?);
        let ethtool = Ethtool::open().ok();
        let interfaces = interfaces.into_iter();
        let found = interfaces.map(|one| look(one, &addresses, &routes, ethtool.as_ref()));
        Ok(Self { interfaces: found.collect(), cards: pci::cards(), means: ProcessRights::look() })
    }

    /// Returns an interface as a target of links, whether the kernel still has it or not.
    #[must_use]
    pub fn place<'a>(&'a self, name: &'a str, found: Option<&'a FoundInterface>) -> OpenTarget<'a> {
        OpenTarget { name, state: found.map(|found| &found.state), cards: &self.cards }
    }

    /// Returns the interface of a name.
    #[must_use]
    pub fn interface(&self, name: &str) -> Option<&FoundInterface> {
        self.interfaces.iter().find(|found| found.state.interface.name == name)
    }
}

fn look(
    interface: NetlinkInterface,
    addresses: &[NetlinkAddress],
    routes: &[NetlinkRoute],
    ethtool: Option<&Ethtool>,
) -> FoundInterface {
    let (name, index) = (interface.name.as_str(), interface.index);
    let mut own: Vec<_> = addresses.iter().filter(|address| address.interface == index).collect();
    own.sort_by_key(|address| address.secondary);
    let routes = routes.iter().filter(|route| {
        let unicast = route.kind == RouteKind::Unicast && route.gateway.is_some();
        unicast && route.interface == Some(index)
    });
    let offload = |offload| Some((offload, ethtool?.offload(name, offload).ok()?));
    FoundInterface {
        offloads: Offload::ALL.into_iter().filter_map(offload).collect(),
        steers: ethtool.is_some_and(|ethtool| ethtool.port_queue(name, 1).is_ok()),
        addresses: own.iter().map(|a| Subnet { address: a.address, prefix: a.prefix }).collect(),
        routes: routes.copied().collect(),
        device: pci::of_interface(name),
        state: InterfaceState::of(interface, ethtool),
    }
}

impl ProcessRights {
    /// Whether the process may open links that need these rights.
    #[must_use]
    pub fn allow(&self, family: &Family) -> bool {
        self.network && (self.programs || !family.programs)
    }

    /// Reads the rights of the calling thread.
    #[must_use]
    pub fn look() -> Self {
        let has = |bit: u32| effective().is_ok_and(|bits| bits >> bit & 1 == 1);
        // capabilities(7): CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN, CAP_BPF.
        let broker = RightsOptions::default().broker_path();
        Self {
            network: has(12) && has(13),
            programs: has(21) || has(39),
            broker: broker.exists().then_some(broker),
        }
    }
}

fn effective() -> io::Result<u64> {
    let bits = millstream_cpu::proc::capabilities(Path::new("/proc/thread-self"));
    bits.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
