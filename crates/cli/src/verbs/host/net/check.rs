//! `millstream host net check`: a dry run of a configuration file.

use crate::output::{Report, count, shown};
use millstream_link::entry::Remark;
use millstream_net::config::{Config, FoundInterface, InterfaceConfig, InterfaceSurvey};
use std::path::PathBuf;

/// Shows what opening the links of a configuration file would change, and what would prevent it. It
/// opens and changes nothing.
#[derive(clap::Args)]
pub struct Args {
    /// The configuration file (TOML).
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

crate::results! {
    /// What opening the links of a configuration would do.
    struct CheckedConfig {
        /// The configuration file.
        file: String,
        /// What was found.
        findings: Vec<DryRunFinding>,
    }

    /// One finding about an interface or a thread of a file.
    #[derive(Debug)]
    pub(super) struct DryRunFinding {
        /// The interface, or the thread.
        about: String,
        /// Its kind: `open`, `change`, `note` or `obstacle`.
        kind: &'static str,
        /// The finding, and what to do about it.
        text: String,
    }
}

/// Succeeds when the dry run finds no obstacle.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let config = Config::read(&args.file)?;
    let survey = InterfaceSurvey::take()?;
    let cpus: Vec<usize> = millstream_cpu::thread::allowed_cpus()?.iter().collect();
    let findings = dry_run(&config, &survey, &cpus);
    let obstacles = findings.iter().filter(|finding| finding.kind == OBSTACLE).count();
    let failure = (obstacles > 0)
        .then(|| format!("{}: {}", args.file.display(), count(obstacles as u64, "obstacle")));
    let text = findings.iter().map(line).collect();
    let checked = CheckedConfig { file: shown(&args.file), findings };
    Ok(Report::of(text, &checked).failing(failure))
}

fn line(finding: &DryRunFinding) -> String {
    format!("{:<10} {:<9} {}\n", finding.about, finding.kind, finding.text)
}

/// A link that would be opened.
const OPEN: &str = "open";
/// A setting that would be changed, and restored.
pub(super) const CHANGE: &str = "change";
/// Useful information.
const NOTE: &str = "note";
/// An obstacle, with what to do about it.
pub(super) const OBSTACLE: &str = "obstacle";

/// Returns the steps in the order of the file.
pub(super) fn dry_run(
    config: &Config,
    survey: &InterfaceSurvey,
    cpus: &[usize],
) -> Vec<DryRunFinding> {
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
                let known =
                    survey.interfaces.iter().map(|found| found.state.interface.name.as_str());
                let known = known.collect::<Vec<_>>().join(", ");
                tell(OBSTACLE, format!("there is no such interface here; there are: {known}"));
            }
            Some(found) => examine(config, interface, found, survey, &mut tell),
        }
    }
    for thread in &config.threads {
        let about = format!("thread {}", thread.name);
        let cpu = thread.cpu.as_ref().and_then(|cpu| cpu.0.parse().ok());
        if let Some(cpu) = cpu.filter(|cpu| !cpus.contains(cpu)) {
            let text = format!("may not run on CPU {cpu}: allowed are {cpus:?}");
            findings.push(DryRunFinding { about: about.clone(), kind: OBSTACLE, text });
        }
        if thread.interfaces.is_empty() {
            let text = "owns no interface, so it would never start".to_owned();
            findings.push(DryRunFinding { about, kind: NOTE, text });
        }
    }
    findings
}

fn examine(
    config: &Config,
    wanted: &InterfaceConfig,
    found: &FoundInterface,
    survey: &InterfaceSurvey,
    tell: &mut impl FnMut(&'static str, String),
) {
    let mut opened = opening(config, wanted, Some(found), survey).into_iter();
    // The link first, then the interface, then the link's remarks about it.
    opened.by_ref().take(1).for_each(|(kind, text)| tell(kind, text));
    if !found.state.interface.up {
        let name = &wanted.name;
        tell(OBSTACLE, format!("the interface is down: `ip link set {name} up`"));
    } else if !found.state.interface.running {
        tell(NOTE, "there is no carrier: check the cable and the other end".into());
    }
    rights(wanted, survey, tell);
    opened.for_each(|(kind, text)| tell(kind, text));
    expectations(wanted, found, tell);
    for change in wanted.changes(found) {
        match change {
            Ok(value) if wanted.leaves_to_link(&value) || survey.means.network => {
                tell(CHANGE, format!("would set {value}, and put it back"));
            }
            Ok(value) => {
                let text = format!("cannot set {value}: that needs CAP_NET_ADMIN");
                tell(OBSTACLE, text);
            }
            Err(problem) => tell(OBSTACLE, problem),
        }
    }
}

/// Returns the link that would be opened, whether it can be understood, and what it would meet.
fn opening(
    config: &Config,
    wanted: &InterfaceConfig,
    found: Option<&FoundInterface>,
    survey: &InterfaceSurvey,
) -> Vec<(&'static str, String)> {
    let link = config.complete(&format!("{}:{}", wanted.link.name(), wanted.name));
    let understood = millstream_net::check(&link);
    let open = (OPEN, link);
    let spec = match understood {
        Ok(spec) => spec,
        Err(error) => return vec![open, (OBSTACLE, error.to_string())],
    };
    let remarks = (wanted.link.entry().foresee)(&spec, &survey.place(&wanted.name, found));
    let remarks = remarks.into_iter().map(|remark| match remark {
        Remark::Obstacle(text) => (OBSTACLE, text),
        Remark::Note(text) => (NOTE, text),
    });
    [open].into_iter().chain(remarks).collect()
}

fn rights(
    wanted: &InterfaceConfig,
    survey: &InterfaceSurvey,
    tell: &mut impl FnMut(&'static str, String),
) {
    let means = &survey.means;
    let Some(family) = wanted.link.entry().rights else { return };
    if means.allow(family) {
        return;
    }
    match &means.broker {
        Some(broker) => tell(NOTE, format!("by the broker at {}", broker.display())),
        None => tell(
            OBSTACLE,
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
    tell: &mut impl FnMut(&'static str, String),
) {
    let name = &wanted.name;
    let mtu = found.state.interface.mtu;
    if let Some(expected) = wanted.mtu.filter(|expected| *expected != mtu) {
        let text = format!("its MTU is {mtu}, not {expected}: `ip link set {name} mtu {expected}`");
        tell(OBSTACLE, text);
    }
    for cidr in &wanted.addresses {
        let has = found.addresses.iter().any(|own| own.address == cidr.address);
        if wanted.own && has {
            let text = format!("the kernel has {cidr}, too: `ip addr del {cidr} dev {name}`");
            tell(OBSTACLE, text);
        }
        if !wanted.own && !found.addresses.contains(cidr) {
            let text = format!("the kernel has no {cidr} there: `ip addr add {cidr} dev {name}`");
            tell(OBSTACLE, text);
        }
    }
    if !wanted.own && found.addresses.is_empty() {
        let text = "has no IPv4 address: give it one, or say own = true with an address";
        tell(OBSTACLE, text.into());
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
            tell(OBSTACLE, text);
        }
    }
}
