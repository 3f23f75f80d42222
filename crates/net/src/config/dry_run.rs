//! A dry run of a file: it lists what opening the links would do here, and the obstacles. It
//! changes nothing.

use millstream_link::check_options;
use millstream_link::entry::Remark;
use serde::Serialize;

use crate::options::Asked;

use super::survey::{FoundInterface, InterfaceSurvey};
use super::{Config, InterfaceConfig, process};

/// The kind of a finding.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingKind {
    /// A link that would be opened.
    Open,
    /// A setting that would be changed, and restored.
    Change,
    /// Useful information.
    Note,
    /// An obstacle.
    Obstacle,
}

impl FindingKind {
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

/// One finding about an interface or a thread of a file.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct DryRunFinding {
    /// The interface, or the thread.
    pub about: String,
    /// The kind of the finding.
    pub kind: FindingKind,
    /// The finding, and what to do about it.
    pub text: String,
}

/// Returns the steps in the order of the file.
#[must_use]
pub fn dry_run(config: &Config, survey: &InterfaceSurvey, cpus: &[usize]) -> Vec<DryRunFinding> {
    let mut findings = Vec::new();
    for interface in &config.interfaces {
        let mut tell = |kind, text: String| {
            findings.push(DryRunFinding { about: interface.name.clone(), kind, text });
        };
        match survey.interface(&interface.name) {
            found if interface.link.takes_device() => {
                opening(config, interface, found, survey).into_iter().for_each(|(k, t)| tell(k, t));
            }
            None => {
                let known = survey.interfaces.iter().map(|found| found.interface.name.as_str());
                let known = known.collect::<Vec<_>>().join(", ");
                tell(
                    FindingKind::Obstacle,
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
            findings.push(DryRunFinding {
                about: about.clone(),
                kind: FindingKind::Obstacle,
                text,
            });
        }
        if thread.interfaces.is_empty() {
            let text = "owns no interface, so it would never start".to_owned();
            findings.push(DryRunFinding { about, kind: FindingKind::Note, text });
        }
    }
    findings
}

fn examine(
    config: &Config,
    wanted: &InterfaceConfig,
    found: &FoundInterface,
    survey: &InterfaceSurvey,
    tell: &mut impl FnMut(FindingKind, String),
) {
    let mut opened = opening(config, wanted, Some(found), survey).into_iter();
    // The link first, then the interface, then the link's remarks about it.
    opened.by_ref().take(1).for_each(|(kind, text)| tell(kind, text));
    if !found.interface.up {
        let name = &wanted.name;
        tell(FindingKind::Obstacle, format!("the interface is down: `ip link set {name} up`"));
    } else if !found.interface.running {
        tell(FindingKind::Note, "there is no carrier: check the cable and the other end".into());
    }
    rights(wanted, survey, tell);
    opened.for_each(|(kind, text)| tell(kind, text));
    expectations(wanted, found, tell);
    for change in process::changes(wanted, found) {
        match change {
            Ok(value) if process::is_the_links(wanted, &value) || survey.means.network => {
                tell(FindingKind::Change, format!("would set {value}, and put it back"));
            }
            Ok(value) => {
                let text = format!("cannot set {value}: that needs CAP_NET_ADMIN");
                tell(FindingKind::Obstacle, text);
            }
            Err(problem) => tell(FindingKind::Obstacle, problem),
        }
    }
}

/// Returns the link that would be opened, whether it can be understood, and what it would meet.
fn opening(
    config: &Config,
    wanted: &InterfaceConfig,
    found: Option<&FoundInterface>,
    survey: &InterfaceSurvey,
) -> Vec<(FindingKind, String)> {
    let link = format!("{}:{}", wanted.link.name(), wanted.name);
    let link = process::expand_by(config, &link);
    let understood = Asked::parse(&link).and_then(|asked| {
        check_options(&asked.link_text())?;
        Ok(asked.link)
    });
    let open = (FindingKind::Open, link);
    let spec = match understood {
        Ok(spec) => spec,
        Err(error) => return vec![open, (FindingKind::Obstacle, error.to_string())],
    };
    let remarks = (wanted.link.entry().foresee)(&spec, &survey.place(&wanted.name, found));
    let remarks = remarks.into_iter().map(|remark| match remark {
        Remark::Obstacle(text) => (FindingKind::Obstacle, text),
        Remark::Note(text) => (FindingKind::Note, text),
    });
    [open].into_iter().chain(remarks).collect()
}

fn rights(
    wanted: &InterfaceConfig,
    survey: &InterfaceSurvey,
    tell: &mut impl FnMut(FindingKind, String),
) {
    let means = &survey.means;
    let Some(family) = wanted.link.entry().rights else { return };
    if means.allow(family) {
        return;
    }
    match &means.broker {
        Some(broker) => tell(FindingKind::Note, format!("by the broker at {}", broker.display())),
        None => tell(
            FindingKind::Obstacle,
            format!(
                "this process may not open {} links: run as root, or have root run `millstream \
                 host grant`",
                wanted.link.name()
            ),
        ),
    }
}

/// Checks what the file expects of the system.
fn expectations(
    wanted: &InterfaceConfig,
    found: &FoundInterface,
    tell: &mut impl FnMut(FindingKind, String),
) {
    let name = &wanted.name;
    let mtu = found.interface.mtu;
    if let Some(expected) = wanted.mtu.filter(|expected| *expected != mtu) {
        let text = format!("its MTU is {mtu}, not {expected}: `ip link set {name} mtu {expected}`");
        tell(FindingKind::Obstacle, text);
    }
    for cidr in &wanted.addresses {
        let has = found.addresses.iter().any(|own| own.address == cidr.address);
        if wanted.own && has {
            let text = format!("the kernel has {cidr}, too: `ip addr del {cidr} dev {name}`");
            tell(FindingKind::Obstacle, text);
        }
        if !wanted.own && !found.addresses.contains(cidr) {
            let text = format!("the kernel has no {cidr} there: `ip addr add {cidr} dev {name}`");
            tell(FindingKind::Obstacle, text);
        }
    }
    if !wanted.own && found.addresses.is_empty() {
        let text = "has no IPv4 address: give it one, or say own = true with an address";
        tell(FindingKind::Obstacle, text.into());
    }
    if wanted.own {
        return;
    }
    let default = wanted.gateway.map(|via| (std::net::Ipv4Addr::UNSPECIFIED, 0, via));
    let routes = wanted.routes.iter().map(|route| (route.to.address, route.to.prefix, route.via));
    for (to, prefix, via) in default.into_iter().chain(routes) {
        let same = |route: &&millstream_host::netlink::NetlinkRoute| {
            (route.destination, route.prefix, route.gateway) == (to, prefix, Some(via))
        };
        if found.routes.iter().find(same).is_none() {
            let text = format!(
                "the kernel has no such route: `ip route add {to}/{prefix} via {via} dev {name}`"
            );
            tell(FindingKind::Obstacle, text);
        }
    }
}
