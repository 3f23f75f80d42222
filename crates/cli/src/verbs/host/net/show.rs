//! `millstream host net show`: the interfaces, and the effects of links there.

use crate::output::{Join, Report};
use millstream_host::netlink::XdpMode;
use millstream_link::LINKS;
use millstream_link::entry::Target;
use millstream_link::rights::Family;
use millstream_net::config::{FoundInterface, InterfaceSurvey, ProcessRights};
use std::fmt::Write;

/// Lists network interfaces with driver, MTU, queues, offloads and XDP support, and says what a
/// link would change there.
#[derive(clap::Args)]
pub struct Args {
    /// Interfaces to show. The default is all.
    #[arg(value_name = "INTERFACE")]
    interfaces: Vec<String>,
}

crate::results! {
    /// The interfaces.
    struct ShownInterfaces {
        /// What was found.
        survey: InterfaceSurvey,
        /// What links would do.
        links: Vec<InterfaceLinks>,
    }

    /// The links of an interface.
    struct InterfaceLinks {
        /// Its name.
        interface: String,
        /// Each kind of link.
        links: Vec<LinkOutcome>,
    }

    /// What opening a link does.
    struct LinkOutcome {
        /// The link string.
        link: String,
        /// The result, in words.
        outcome: String,
    }
}

/// Succeeds when every requested interface exists.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let mut survey = InterfaceSurvey::take()?;
    for name in &args.interfaces {
        if survey.interface(name).is_none() {
            return Err(super::no_interface(name, &survey));
        }
    }
    if !args.interfaces.is_empty() {
        survey.interfaces.retain(|found| args.interfaces.contains(&found.state.interface.name));
    }
    let mut text: String = survey.interfaces.iter().map(|one| block(one, &survey)).collect();
    text.push_str(&rights(&survey.means));
    let links = |found: &FoundInterface| InterfaceLinks {
        interface: found.state.interface.name.clone(),
        links: links(found, &survey),
    };
    let links = survey.interfaces.iter().map(links).collect();
    Ok(Report::of(text, &ShownInterfaces { survey, links }))
}

fn block(found: &FoundInterface, survey: &InterfaceSurvey) -> String {
    let interface = &found.state.interface;
    let state = match (interface.up, interface.running) {
        (true, true) => "up",
        (true, false) => "up, no carrier",
        (false, _) => "down",
    };
    let mac = interface.mac.map_or_else(String::new, |mac| {
        format!(", {}", mac.map(|byte| format!("{byte:02x}")).join(":"))
    });
    let driver = found.state.driver.as_deref().or(interface.kind.as_deref()).unwrap_or("unknown");
    let mut text =
        format!("{}: {state}, driver {driver}, MTU {}{mac}\n", interface.name, interface.mtu);
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<10} {value}");
    };
    if !found.addresses.is_empty() {
        row("addresses", found.addresses.iter().join(", "));
    }
    for route in &found.routes {
        let gateway = route.gateway.map_or_else(String::new, |gateway| gateway.to_string());
        row("route", format!("{}/{} via {gateway}", route.destination, route.prefix));
    }
    row("queues", queues(found));
    let offloads = found.offloads.iter();
    let offloads =
        offloads.map(|(one, on)| format!("{} {}", one.name(), if *on { "on" } else { "off" }));
    row("offloads", offloads.join(", "));
    row("XDP", xdp(found));
    for LinkOutcome { link, outcome } in links(found, survey) {
        row("link", format!("{link}: {outcome}"));
    }
    text
}

fn queues(found: &FoundInterface) -> String {
    let interface = &found.state.interface;
    match found.state.channels {
        Some((now, max)) => format!(
            "{} receive (of {}), {} transmit (of {})",
            now.receiving(),
            max.receiving(),
            now.transmitting(),
            max.transmitting()
        ),
        None => format!(
            "{} receive, {} transmit; the driver cannot change them",
            interface.receive_queues, interface.transmit_queues
        ),
    }
}

fn xdp(found: &FoundInterface) -> String {
    let features = match &found.state.features {
        None => "not reported (kernels report it from 6.3 on)".to_owned(),
        Some(features) => {
            let known = [
                (features.zero_copy, "zero-copy"),
                (features.native, "native"),
                (features.parts, "frames in parts"),
            ];
            let can = known.iter().filter(|(can, _)| *can).map(|(_, name)| *name);
            can.chain(["generic"]).join(", ")
        }
    };
    let attached = found.state.interface.xdp.map_or_else(String::new, |attached| {
        let mode = match attached.mode {
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
            XdpMode::Offloaded => "offloaded",
            XdpMode::Several => "several modes",
        };
        let id = attached.program_id.map_or_else(String::new, |id| format!(" {id}"));
        format!("; program{id} is attached ({mode})")
    });
    format!("{features}{attached}")
}

/// The result of opening each kind of link there.
fn links(found: &FoundInterface, survey: &InterfaceSurvey) -> Vec<LinkOutcome> {
    let interface = &found.state.interface;
    let place = survey.place(&interface.name, Some(found));
    let outcome = |family: Option<&Family>, outlook: String| match () {
        () if interface.mac.is_none() || interface.loopback => {
            "not possible on this kind of interface".to_owned()
        }
        () if !interface.up => format!("refused: down (else {outlook})"),
        () if family.is_none_or(|family| survey.means.allow(family)) => outlook,
        () if survey.means.broker.is_some() => format!("{outlook}, by the broker"),
        () => format!("refused: no rights (else {outlook})"),
    };
    let links = LINKS.iter().filter_map(|entry| {
        let Target::Interface { outlook } = entry.target else { return None };
        let link = format!("{}:{}", entry.name, interface.name);
        Some(LinkOutcome { link, outcome: outcome(entry.rights, outlook(&place)) })
    });
    links.collect()
}

fn rights(means: &ProcessRights) -> String {
    let own = match (means.network, means.programs) {
        (true, true) => "this process may open every link",
        (true, false) => "this process may open packet links, but load no XDP programs",
        _ => "this process may open only udp links",
    };
    match &means.broker {
        Some(broker) => format!("rights: {own}; a broker listens at {}\n", broker.display()),
        None => format!("rights: {own}; there is no broker (`millstream host grant` starts one)\n"),
    }
}
