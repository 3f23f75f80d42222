//! Network interfaces (rtnetlink(7), RTM_GETLINK).

use super::message::{
    NetlinkMessage, NetlinkRequest, attributes, attributes_after, mac, text, u32_at,
};
use super::{Netlink, NetlinkError};
use serde::Serialize;

/// Bytes of `struct ifinfomsg`.
const FIXED_BYTES: usize = 16;
/// The flag that leaves counters out of the answer (`linux/rtnetlink.h`).
const RTEXT_FILTER_SKIP_STATS: u32 = 1 << 3;
/// `linux/if_link.h`.
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;

/// The place of an XDP program.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum XdpMode {
    /// In the driver.
    Native,
    /// Before the kernel's stack, after the allocation of a socket buffer.
    Generic,
    /// In the device.
    Offloaded,
    /// Several of these places.
    Several,
}

/// The XDP program of an interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct XdpAttached {
    /// The place.
    pub mode: XdpMode,
    /// The number of the program; `None` when it runs in several places.
    pub program_id: Option<u32>,
}

/// One network interface.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct NetlinkInterface {
    /// The number in this namespace.
    pub index: u32,
    /// The name.
    pub name: String,
    /// The Ethernet address; `None` for addresses of another kind.
    pub mac: Option<[u8; 6]>,
    /// The largest IP packet, bytes.
    pub mtu: u32,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it is on and has a carrier.
    pub running: bool,
    /// Whether it leads back to this machine.
    pub loopback: bool,
    /// The kind of a virtual interface: `veth`, `bridge`, `vlan`; `None` for hardware.
    pub kind: Option<String>,
    /// The number of receive queues at its creation (ethtool channels has the number of active
    /// ones).
    pub receive_queues: u32,
    /// The number of transmit queues at its creation.
    pub transmit_queues: u32,
    /// The XDP program, if it has one.
    pub xdp: Option<XdpAttached>,
}

impl Netlink {
    /// Returns every interface of the namespace.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer.
    pub fn interfaces(&mut self) -> Result<Vec<NetlinkInterface>, NetlinkError> {
        let request = NetlinkRequest::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &[0; FIXED_BYTES])
            .with(libc::IFLA_EXT_MASK, &RTEXT_FILTER_SKIP_STATS.to_ne_bytes());
        self.socket.ask("list the network interfaces", &request, parse)
    }

    /// Switches an interface on or off. Needs CAP_NET_ADMIN.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer.
    pub fn set_up(&mut self, interface: u32, up: bool) -> Result<(), NetlinkError> {
        let flag = libc::IFF_UP as u32;
        // Family and type, number, flags, and those of the flags that change.
        let fixed = [0, interface, if up { flag } else { 0 }, flag].map(u32::to_ne_bytes).concat();
        let request = NetlinkRequest::new(libc::RTM_NEWLINK, libc::NLM_F_ACK, &fixed);
        self.socket.ask("switch an interface", &request, |_| None::<()>).map(drop)
    }

    /// Returns which interface of the namespace sends and receives for which other: pairs of the
    /// numbers of an upper one (VLAN, macvlan, bond, bridge) and of one below it.
    ///
    /// # Errors
    /// As [`Netlink::interfaces`].
    pub fn layers(&mut self) -> Result<Vec<(u32, u32)>, NetlinkError> {
        let request = NetlinkRequest::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &[0; FIXED_BYTES])
            .with(libc::IFLA_EXT_MASK, &RTEXT_FILTER_SKIP_STATS.to_ne_bytes());
        Ok(self.socket.ask("list the network interfaces", &request, layers)?.concat())
    }

    /// Returns the interface of a name.
    ///
    /// # Errors
    /// [`NetlinkError::NoInterface`], which lists those that exist; else as
    /// [`Netlink::interfaces`].
    pub fn interface(&mut self, name: &str) -> Result<NetlinkInterface, NetlinkError> {
        // The whole list instead of a query by name: the error for a wrong name needs it anyway.
        let mut all = self.interfaces()?;
        match all.iter().position(|interface| interface.name == name) {
            Some(index) => Ok(all.swap_remove(index)),
            None => {
                let known: Vec<_> = all.into_iter().map(|interface| interface.name).collect();
                Err(NetlinkError::NoInterface { name: name.to_owned(), known: known.join(", ") })
            }
        }
    }
}

fn parse(message: &NetlinkMessage<'_>) -> Option<NetlinkInterface> {
    if message.kind != libc::RTM_NEWLINK {
        return None;
    }
    let flags = u32_at(message.body, 8)? as i32;
    let mut interface = NetlinkInterface {
        index: u32_at(message.body, 4)?,
        name: String::new(),
        mac: None,
        mtu: 0,
        up: flags & libc::IFF_UP != 0,
        running: flags & libc::IFF_UP != 0 && flags & libc::IFF_RUNNING != 0,
        loopback: flags & libc::IFF_LOOPBACK != 0,
        kind: None,
        receive_queues: 1,
        transmit_queues: 1,
        xdp: None,
    };
    for (kind, value) in attributes_after(message.body, FIXED_BYTES) {
        match kind {
            libc::IFLA_IFNAME => interface.name = text(value),
            libc::IFLA_ADDRESS => interface.mac = mac(value),
            // The carrier is immediate, while IFF_RUNNING may come a second late.
            libc::IFLA_CARRIER => interface.running = interface.up && value.first() == Some(&1),
            libc::IFLA_MTU => interface.mtu = u32_at(value, 0)?,
            libc::IFLA_NUM_RX_QUEUES => interface.receive_queues = u32_at(value, 0)?,
            libc::IFLA_NUM_TX_QUEUES => interface.transmit_queues = u32_at(value, 0)?,
            libc::IFLA_LINKINFO => interface.kind = nested(value, libc::IFLA_INFO_KIND).map(text),
            libc::IFLA_XDP => interface.xdp = xdp(value),
            _ => {}
        }
    }
    Some(interface)
}

fn layers(message: &NetlinkMessage<'_>) -> Option<Vec<(u32, u32)>> {
    let index = u32_at(message.body, 4).filter(|_| message.kind == libc::RTM_NEWLINK)?;
    let (mut link, mut master, mut is_other_end) = (None, None, false);
    for (kind, value) in attributes_after(message.body, FIXED_BYTES) {
        match kind {
            libc::IFLA_LINK => link = u32_at(value, 0),
            libc::IFLA_MASTER => master = u32_at(value, 0),
            libc::IFLA_LINKINFO => {
                let kind = nested(value, libc::IFLA_INFO_KIND).map(text);
                is_other_end |= kind.as_deref() == Some("veth");
            }
            // It is in another namespace.
            libc::IFLA_LINK_NETNSID => is_other_end = true,
            _ => {}
        }
    }
    let below = link.filter(|link| !is_other_end && *link != 0 && *link != index);
    let below = below.map(|link| (index, link)).into_iter();
    Some(below.chain(master.map(|master| (master, index))).collect())
}

fn nested(value: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(value).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

fn xdp(value: &[u8]) -> Option<XdpAttached> {
    let mode = match nested(value, IFLA_XDP_ATTACHED)?.first()? {
        1 => XdpMode::Native,
        2 => XdpMode::Generic,
        3 => XdpMode::Offloaded,
        4 => XdpMode::Several,
        _ => return None,
    };
    let program_id = nested(value, IFLA_XDP_PROG_ID).and_then(|id| u32_at(id, 0));
    Some(XdpAttached { mode, program_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_namespace_has_a_loopback() {
        let all = Netlink::open().unwrap().interfaces().unwrap();
        let lo = all.iter().find(|interface| interface.name == "lo").expect("lo");
        assert!(lo.loopback && lo.mtu > 0 && lo.index > 0, "{lo:?}");
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_right_ones() {
        let error = Netlink::open().unwrap().interface("nonsense").unwrap_err().to_string();
        let start = "there is no network interface \"nonsense\"; there are: ";
        assert!(error.starts_with(start) && error.contains("lo"), "{error}");
    }

    #[test]
    fn what_an_interface_stands_on_is_below_it_and_the_other_end_of_a_pair_is_not() {
        let Some(alone) = millstream_testkit::netns::Namespace::alone() else { return };
        alone.sh("ip link add one type veth peer other");
        alone.sh("ip link add link one name upper type macvlan");
        alone.sh("ip link add bridge type bridge");
        alone.sh("ip link set other master bridge");
        alone.run(|| {
            let mut netlink = Netlink::open().unwrap();
            let [one, other, upper, bridge] = ["one", "other", "upper", "bridge"]
                .map(|name| netlink.interface(name).unwrap().index);
            let mut layers = netlink.layers().unwrap();
            layers.sort_unstable();
            assert_eq!(layers, [(upper, one), (bridge, other)]);
        });
    }

    #[test]
    fn an_answer_cut_short_is_left_out() {
        let message =
            NetlinkMessage { kind: libc::RTM_NEWLINK, flags: 0, sequence: 0, body: &[0; 7] };
        assert_eq!(parse(&message), None);
    }
}
