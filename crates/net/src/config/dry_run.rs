//! What opening the links of a file would do here, and what stands in the way; nothing is done.

use millstream_link::check_options;
use serde::Serialize;

use crate::options::Asked;

use super::survey::{Found, Survey};
use super::{Config, InterfaceConfig, LinkKind, process};

/// What a finding is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A link that would be opened.
    Open,
    /// A setting that would be changed, and put back.
    Change,
    /// Worth knowing.
    Note,
    /// Something that stands in the way.
    Obstacle,
}

impl Kind {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Change => "change",
            Self::Note => "note",
            Self::Obstacle => "obstacle",
        }
    }
}

/// One thing found out about an interface or a thread of a file.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Finding {
    /// The interface, or the thread.
    pub about: String,
    /// What it is.
    pub kind: Kind,
    /// What was found, and what to do about it.
    pub text: String,
}

/// Largest MTU at which a driver takes an XDP program that knows no parts: a page less what the
/// kernel needs beside the frame. Of veth, measured.
const WHOLE_FRAME_MTU_MAX: u32 = 3506;

/// What would happen, in the order of the file.
#[must_use]
pub fn dry_run(config: &Config, survey: &Survey, cpus: &[usize]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for interface in &config.interfaces {
        let mut tell = |kind, text: String| {
            findings.push(Finding { about: interface.name.clone(), kind, text });
        };
        match survey.interface(&interface.name) {
            _ if interface.link == LinkKind::Dpdk => dpdk(config, interface, survey, &mut tell),
            None => {
                let known = survey.interfaces.iter().map(|found| found.interface.name.as_str());
                let known = known.collect::<Vec<_>>().join(", ");
                tell(
                    Kind::Obstacle,
                    format!("there is no such interface here; there are: {known}"),
                );
            }
            Some(found) => examine(config, interface, found, survey, &mut tell),
        }
    }
    for thread in &config.threads {
        let about = format!("thread {}", thread.name);
        if let Some(cpu) = thread.cpu.filter(|cpu| !cpus.contains(cpu)) {
            let text = format!("may not run on CPU {cpu}: allowed are {cpus:?}");
            findings.push(Finding { about: about.clone(), kind: Kind::Obstacle, text });
        }
        if thread.interfaces.is_empty() {
            let text = "owns no interface, so it would never start".to_owned();
            findings.push(Finding { about, kind: Kind::Note, text });
        }
    }
    findings
}

fn examine(
    config: &Config,
    wanted: &InterfaceConfig,
    found: &Found,
    survey: &Survey,
    tell: &mut impl FnMut(Kind, String),
) {
    opening(config, wanted, tell);
    if !found.interface.up {
        let name = &wanted.name;
        tell(Kind::Obstacle, format!("the interface is down: `ip link set {name} up`"));
    } else if !found.interface.running {
        tell(Kind::Note, "there is no carrier: is the cable in, and the other end up?".into());
    }
    rights(wanted, survey, tell);
    if wanted.link == LinkKind::Xdp {
        xdp(wanted, found, tell);
    }
    expectations(wanted, found, tell);
    for change in process::changes(wanted, found) {
        match change {
            Ok(value) if process::is_the_links(wanted, &value) || survey.means.network => {
                tell(Kind::Change, format!("would set {value}, and put it back"));
            }
            Ok(value) => {
                let text = format!("cannot set {value}: that needs CAP_NET_ADMIN");
                tell(Kind::Obstacle, text);
            }
            Err(problem) => tell(Kind::Obstacle, problem),
        }
    }
}

/// The link that would be opened, and whether it can be understood.
fn opening(config: &Config, wanted: &InterfaceConfig, tell: &mut impl FnMut(Kind, String)) {
    let link = format!("{}:{}", wanted.link.name(), wanted.name);
    let link = process::expand_by(config, &link);
    let understood = Asked::parse(&link).and_then(|asked| check_options(&asked.link_text()));
    tell(Kind::Open, link);
    if let Err(error) = understood {
        tell(Kind::Obstacle, error.to_string());
    }
}

/// What is DPDK's: whether the kernel has let the device go.
fn dpdk(
    config: &Config,
    wanted: &InterfaceConfig,
    survey: &Survey,
    tell: &mut impl FnMut(Kind, String),
) {
    opening(config, wanted, tell);
    let device = wanted.device.as_deref().unwrap_or_default();
    if !device.contains(':') {
        return tell(
            Kind::Note,
            "a port in software: what it needs shows when it is opened".into(),
        );
    }
    let card = survey.cards.iter().find(|card| card.address == device);
    let bind = format!("`dpdk-devbind.py --bind=vfio-pci {device}`");
    match card.map(|card| card.driver.as_deref()) {
        None => tell(Kind::Obstacle, format!("there is no network device {device} here")),
        Some(Some("vfio-pci" | "mlx4_core" | "mlx5_core")) => {}
        Some(Some(driver)) => tell(
            Kind::Obstacle,
            format!("{driver} has the device: `ip link set {} down`, then {bind}", wanted.name),
        ),
        Some(None) => tell(Kind::Obstacle, format!("no driver has the device: {bind}")),
    }
}

fn rights(wanted: &InterfaceConfig, survey: &Survey, tell: &mut impl FnMut(Kind, String)) {
    let means = &survey.means;
    if means.network && (means.programs || wanted.link == LinkKind::Packet) {
        return;
    }
    match &means.broker {
        Some(broker) => tell(Kind::Note, format!("by the broker at {}", broker.display())),
        None => tell(
            Kind::Obstacle,
            format!(
                "this process may not open {} links: run as root, or have root run `millstream \
                 host grant`",
                wanted.link.name()
            ),
        ),
    }
}

fn xdp(wanted: &InterfaceConfig, found: &Found, tell: &mut impl FnMut(Kind, String)) {
    if let Some(other) = &found.interface.xdp {
        let id = other.program_id.map_or_else(String::new, |id| format!(" (program {id})"));
        let text = format!(
            "another XDP program is attached{id}: end the process that holds it, or detach it with \
             `ip link set {} xdp off`",
            wanted.name
        );
        tell(Kind::Obstacle, text);
    }
    let mode = wanted.mode.as_deref().unwrap_or("auto");
    let driver = found.driver.as_deref().unwrap_or("of this interface");
    let features = found.features.unwrap_or_default();
    match mode {
        "zero-copy" if !features.zero_copy => {
            tell(
                Kind::Obstacle,
                format!("the driver {driver} has no zero-copy: use mode = \"auto\""),
            );
        }
        "native" if !features.native => {
            let text = format!("the driver {driver} runs no XDP programs: use mode = \"generic\"");
            tell(Kind::Obstacle, text);
        }
        "auto" => {
            let best = match (features.zero_copy, features.native) {
                (true, _) => "zero-copy",
                (false, true) => "native copy",
                (false, false) => "generic",
            };
            tell(Kind::Note, format!("mode auto: at best {best} with the driver {driver}"));
        }
        _ => {}
    }
    if found.interface.mtu > WHOLE_FRAME_MTU_MAX && mode == "native" && !features.parts {
        let mtu = found.interface.mtu;
        let text = format!("at an MTU of {mtu} the driver wants frames in parts: lower the MTU");
        tell(Kind::Obstacle, text);
    }
    queues(wanted, found, tell);
    veth(wanted, found, tell);
}

/// What the veth driver asks of the other end before it takes a program; it says ENOSPC otherwise.
fn veth(wanted: &InterfaceConfig, found: &Found, tell: &mut impl FnMut(Kind, String)) {
    let is_veth = found.driver.as_deref() == Some("veth");
    if let Some(count) = wanted.channels.filter(|_| is_veth) {
        let text = format!(
            "on veth, the other end may transmit on {count} queue{} at most",
            if count == 1 { "" } else { "s" }
        );
        tell(Kind::Note, text);
    }
}

fn queues(wanted: &InterfaceConfig, found: &Found, tell: &mut impl FnMut(Kind, String)) {
    let (Some(queues), Some((now, _))) = (wanted.queues.as_deref(), found.channels) else { return };
    let serving = wanted.channels.unwrap_or(now.receiving());
    let last = queues.rsplit('-').next().and_then(|last| last.parse::<u32>().ok());
    match last {
        Some(last) if last >= serving => {
            let text = format!("there are {serving} queues, 0 to {}: no queue {last}", serving - 1);
            tell(Kind::Obstacle, text);
        }
        Some(last) if last + 1 < serving => {
            let text = format!(
                "queues {queues} of {serving} are served: what arrives on the others goes to the \
                 kernel"
            );
            tell(Kind::Note, text);
        }
        _ => {}
    }
}

/// What the file says that the system should have.
fn expectations(wanted: &InterfaceConfig, found: &Found, tell: &mut impl FnMut(Kind, String)) {
    let name = &wanted.name;
    let mtu = found.interface.mtu;
    if let Some(expected) = wanted.mtu.filter(|expected| *expected != mtu) {
        let text = format!("its MTU is {mtu}, not {expected}: `ip link set {name} mtu {expected}`");
        tell(Kind::Obstacle, text);
    }
    for cidr in &wanted.addresses {
        let has = found.addresses.iter().any(|own| own.address == cidr.address);
        if wanted.own && has {
            let text = format!("the kernel has {cidr}, too: `ip addr del {cidr} dev {name}`");
            tell(Kind::Obstacle, text);
        }
        if !wanted.own && !found.addresses.contains(cidr) {
            let text = format!("the kernel has no {cidr} there: `ip addr add {cidr} dev {name}`");
            tell(Kind::Obstacle, text);
        }
    }
    if !wanted.own && found.addresses.is_empty() {
        let text = "has no IPv4 address: give it one, or say own = true with an address";
        tell(Kind::Obstacle, text.into());
    }
    if wanted.own {
        return;
    }
    let default = wanted.gateway.map(|via| (std::net::Ipv4Addr::UNSPECIFIED, 0, via));
    let routes = wanted.routes.iter().map(|route| (route.to.address, route.to.prefix, route.via));
    for (to, prefix, via) in default.into_iter().chain(routes) {
        let same = |route: &&millstream_host::netlink::Route| {
            (route.destination, route.prefix, route.gateway) == (to, prefix, Some(via))
        };
        if found.routes.iter().find(same).is_none() {
            let text = format!(
                "the kernel has no such route: `ip route add {to}/{prefix} via {via} dev {name}`"
            );
            tell(Kind::Obstacle, text);
        }
    }
}
