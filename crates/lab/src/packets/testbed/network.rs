//! The networks of both sides: unnamed namespaces joined by a veth pair, or existing ones.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use millstream_host::netlink::{Netlink, NetlinkError};

use super::{SideSetup, StageError, TestNetwork};

/// Interfaces, Ethernet and IPv4 addresses of a private pair, and of an absent station behind it,
/// for packets that are for neither side.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrivatePair {
    names: [&'static str; 2],
    macs: [&'static str; 2],
    network: [u8; 3],
}

/// The pair of a measurement.
pub(super) const FIRST: PrivatePair = PrivatePair {
    names: ["ms-a", "ms-b"],
    macs: ["02:6d:73:00:00:01", "02:6d:73:00:00:02"],
    network: [10, 77, 0],
};
/// A second pair, for traffic that must not share the first.
pub(super) const SECOND: PrivatePair = PrivatePair {
    names: ["ms-c", "ms-d"],
    macs: ["02:6d:73:00:00:03", "02:6d:73:00:00:04"],
    network: [10, 77, 1],
};
/// An address without an interface.
const NOBODY: &str = "02:6d:73:00:00:ff";

impl PrivatePair {
    /// The interface of the active side.
    pub fn interface(&self) -> &'static str {
        self.names[0]
    }

    /// The address of a side.
    pub fn address(&self, index: usize) -> Ipv4Addr {
        self.host(1 + index as u8)
    }

    /// The address of the absent station behind the port, which never answers.
    pub fn nobody(&self) -> Ipv4Addr {
        self.host(99)
    }

    /// The words that describe a side's end to `ip`, in the network of a process.
    fn end(&self, index: usize, pid: u32, mtu: usize) -> String {
        let (name, mac) = (self.names[index], self.macs[index]);
        format!("{name} address {mac} mtu {mtu} numtxqueues 1 numrxqueues 1 netns {pid}")
    }

    fn host(&self, host: u8) -> Ipv4Addr {
        let [a, b, c] = self.network;
        Ipv4Addr::new(a, b, c, host)
    }
}

/// A side before its process runs.
pub(super) struct NetworkSide {
    /// The argument of [`enter_new_network`], `new` or a namespace's name; `None`: the network of
    /// this process.
    pub network: Option<String>,
    interface: Option<String>,
}

pub(super) fn sides(ground: &TestNetwork) -> Result<[NetworkSide; 2], StageError> {
    let made =
        |name: &str| NetworkSide { network: Some("new".into()), interface: Some(name.into()) };
    match ground {
        TestNetwork::Private { .. }
        | TestNetwork::Bridged { .. }
        | TestNetwork::Ports
        | TestNetwork::Links { .. } => Ok(FIRST.names.map(made)),
        TestNetwork::Loopback => {
            Ok([(); 2].map(|()| NetworkSide { network: None, interface: None }))
        }
        TestNetwork::Given(given) => Ok(given.clone().map(|given| {
            let (name, network) = given.split_once('@').unwrap_or((&given, ""));
            let network = (!network.is_empty()).then(|| network.to_owned());
            NetworkSide { network, interface: Some(name.to_owned()) }
        })),
    }
}

/// Moves this process, which must not have started threads yet, to a network: `new`, the name of a
/// namespace (`ip netns`), or the path of one (`/proc/PID/ns/net`).
///
/// # Errors
/// The reason in words.
pub fn enter_new_network(network: &str) -> Result<(), String> {
    if network == "new" {
        // SAFETY: a network namespace of its own; descriptors and files stay as they are.
        let entered = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) };
        entered.map_err(|error| {
            format!("cannot make a network namespace ({error}): that needs root")
        })?;
        // Neighbour discovery would mix its packets with ours; a kernel without IPv6 has no file.
        for scope in ["all", "default"] {
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
        }
        return Ok(());
    }
    let path = Path::new("/run/netns").join(network);
    let file = File::open(path).map_err(|error| {
        format!("there is no network namespace `{network}` ({error}); `ip netns` lists them")
    })?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| format!("cannot enter the network namespace `{network}`: {error}"))
}

/// Makes a command start in the network of a process.
pub(super) fn start_in(pid: u32, command: &mut Command) -> io::Result<()> {
    let enter = way_into(pid)?;
    // SAFETY: between fork and exec only setns(2) is called, which is safe there.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// Moves the calling thread into the network of a process.
pub(super) fn enter(pid: u32) -> Result<(), StageError> {
    let entered = way_into(pid).and_then(|mut enter| enter());
    entered.map_err(|error| {
        StageError::Network(format!("cannot enter the network of process {pid}: {error}"))
    })
}

/// Gives the second side an address of its own beside that of its interface, and the first side
/// the way to it: for a link without an interface.
pub(super) fn add_second_address(pids: [u32; 2]) -> Result<Ipv4Addr, StageError> {
    let address = SECOND.address(1);
    ip(pids[1], &format!("addr replace {address}/32 dev lo"))?;
    ip(pids[0], &format!("route replace {address}/32 via {}", FIRST.address(1)))?;
    Ok(address)
}

/// Joins the networks of two processes by a veth pair with one queue, up and with addresses.
pub(super) fn join(pair: &PrivatePair, pids: [u32; 2], mtu: usize) -> Result<(), StageError> {
    add_pair(pair, 0, pids[0], mtu, &pair.end(1, pids[1], mtu))?;
    for (index, pid) in pids.into_iter().enumerate() {
        raise(pair, index, pid)?;
    }
    introduce(pair, pids)
}

/// Makes a side's end of a pair, and the other end as `far` describes it. It is created in the
/// side's network, so that interface names of this one do not matter.
pub(super) fn add_pair(
    pair: &PrivatePair,
    index: usize,
    pid: u32,
    mtu: usize,
    far: &str,
) -> Result<(), StageError> {
    ip(pid, &format!("link add {} type veth peer name {far}", pair.end(index, pid, mtu)))?;
    Ok(())
}

/// Gives a side's end its address, and sets it up.
pub(super) fn raise(pair: &PrivatePair, index: usize, pid: u32) -> Result<(), StageError> {
    ip(pid, "link set lo up")?;
    ip(pid, &format!("addr add {}/24 dev {}", pair.address(index), pair.names[index]))?;
    ip(pid, &format!("link set {} up", pair.names[index]))?;
    Ok(())
}

/// Tells each side the other one's Ethernet address.
pub(super) fn introduce(pair: &PrivatePair, pids: [u32; 2]) -> Result<(), StageError> {
    let PrivatePair { names, macs, .. } = pair;
    for (index, pid) in pids.into_iter().enumerate() {
        // No side needs to ask for addresses during a measurement.
        let other = (pair.address(1 - index), macs[1 - index]);
        for (address, mac) in [other, (pair.nobody(), NOBODY)] {
            ip(pid, &format!("neigh replace {address} lladdr {mac} dev {}", names[index]))?;
        }
    }
    Ok(())
}

/// Queries the kernel about the network of a process, by a thread that enters it.
pub(super) fn ask<T: Send>(
    pid: u32,
    question: impl FnOnce(&mut Netlink) -> Result<T, NetlinkError> + Send,
) -> Result<T, StageError> {
    let ask = || {
        enter(pid).map_err(|error| error.to_string())?;
        let mut netlink = Netlink::open().map_err(|error| error.to_string())?;
        question(&mut netlink).map_err(|error| error.to_string())
    };
    let asked = thread::scope(|scope| scope.spawn(ask).join());
    asked.unwrap_or_else(|_| Err("a thread panicked".to_owned())).map_err(StageError::Network)
}

/// Returns a side's set-up, once its process runs.
pub(super) fn place(
    side: &NetworkSide,
    pid: u32,
    cpu: Option<usize>,
) -> Result<SideSetup, StageError> {
    let Some(interface) = side.interface.clone() else {
        return Ok(SideSetup { interface: None, mac: [0; 6], address: Ipv4Addr::LOCALHOST, cpu });
    };
    let wrong = |what: &str| StageError::Network(format!("interface {interface} {what}"));
    let (mac, address) = ask(pid, |netlink| {
        let link = netlink.interface(&interface)?;
        let mut addresses = netlink.addresses()?.into_iter();
        Ok((link.mac, addresses.find(|address| address.interface == link.index)))
    })?;
    let mac = mac.ok_or_else(|| wrong("has no Ethernet address: give another one"))?;
    let address = address.ok_or_else(|| wrong("has no IPv4 address: give it one (ip addr add)"))?;
    Ok(SideSetup { interface: Some(interface), mac, address: address.address, cpu })
}

/// Runs `ip` in the network of a process; returns its output.
pub(super) fn ip(pid: u32, arguments: &str) -> Result<String, StageError> {
    let fail = |what: String| StageError::Network(format!("`ip {arguments}`: {what}"));
    let mut command = Command::new("ip");
    command.args(arguments.split(' '));
    start_in(pid, &mut command).map_err(|error| fail(error.to_string()))?;
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => fail("there is no such program: install iproute2".to_owned()),
        _ => fail(error.to_string()),
    })?;
    if !output.status.success() {
        return Err(fail(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns a function that moves the calling thread into the network of a process. Without rights
/// there is only one network, which needs no entering.
fn way_into(pid: u32) -> io::Result<impl FnMut() -> io::Result<()>> {
    let network = File::open(format!("/proc/{pid}/ns/net"))?;
    let here = same_network(pid);
    Ok(move || match here {
        true => Ok(()),
        false => {
            let kind = Some(LinkNameSpaceType::Network);
            Ok(move_into_link_name_space(network.as_fd(), kind)?)
        }
    })
}

/// Whether a process is in our own network.
fn same_network(pid: u32) -> bool {
    let network = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/net")).ok();
    network("self").is_some_and(|own| network(&pid.to_string()) == Some(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_may_name_its_namespace() {
        let given = TestNetwork::Given(["eth1@left".to_owned(), "eth2".to_owned()]);
        let sides = sides(&given).unwrap();
        let parts = sides.map(|side| (side.interface.unwrap(), side.network));
        let expected = [("eth1".to_owned(), Some("left".to_owned())), ("eth2".to_owned(), None)];
        assert_eq!(parts, expected);
    }

    #[test]
    fn a_namespace_that_is_not_there_is_named() {
        let error = enter_new_network("no-such-place").unwrap_err();
        assert!(error.contains("`no-such-place`") && error.contains("ip netns"), "{error}");
    }
}
