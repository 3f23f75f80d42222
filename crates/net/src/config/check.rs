//! Checks of a file that need no machine: its content must be consistent.

use std::collections::BTreeSet;

use millstream_link::LinkError;
use millstream_link::options::{self, BadOption, UNKNOWN, names_for};

use crate::EngineOptions;

use super::error::ValueProblem;
use super::{Config, InterfaceConfig, LinkName, ThreadConfig};

/// The kernel's limit for interface names, and for the rest of a thread's name.
const INTERFACE_BYTES_MAX: usize = 15;
const THREAD_BYTES_MAX: usize = 9;
/// Options of link strings that stand elsewhere in the file, and where.
const ELSEWHERE: [(&str, &str); 5] = [
    ("address", "`addresses`, with own = true"),
    ("thread", "`name` of a [[thread]]"),
    ("cpu", "`cpu` of a [[thread]]"),
    ("wait", "`wait` of a [[thread]]"),
    ("priority", "`priority` of a [[thread]]"),
];

/// Returns the first inconsistency.
pub(super) fn first_problem(config: &Config) -> Option<ValueProblem> {
    let interfaces = config.interfaces.iter().enumerate();
    let threads = config.threads.iter().enumerate();
    twice(config)
        .or_else(|| interfaces.map(|(index, one)| interface(index, one)).find_map(|found| found))
        .or_else(|| threads.map(|(index, one)| thread(config, index, one)).find_map(|found| found))
        .or_else(|| {
            let mut interfaces = config.interfaces.iter().enumerate();
            interfaces.find_map(|(index, one)| understood(config, index, one))
        })
}

fn problem(key: impl Into<String>, text: impl Into<String>) -> Option<ValueProblem> {
    Some(ValueProblem { key: key.into(), text: text.into() })
}

/// Returns names that are used more than once.
fn twice(config: &Config) -> Option<ValueProblem> {
    let mut seen = BTreeSet::new();
    for (index, interface) in config.interfaces.iter().enumerate() {
        if !seen.insert(&interface.name) {
            let text = format!("`{}` is listed twice: join the two entries", interface.name);
            return problem(format!("interface[{index}].name"), text);
        }
    }
    let (mut names, mut owned) = (BTreeSet::new(), BTreeSet::new());
    for (index, thread) in config.threads.iter().enumerate() {
        let at = |key: &str| format!("thread[{index}].{key}");
        if !names.insert(&thread.name) {
            let text =
                format!("`{}` is listed twice: give every thread a name of its own", thread.name);
            return problem(at("name"), text);
        }
        for interface in &thread.interfaces {
            if !owned.insert(interface) {
                let text = format!(
                    "`{interface}` is listed in another thread already: only one \
                     thread can own a link"
                );
                return problem(at("interfaces"), text);
            }
        }
    }
    None
}

fn interface(index: usize, interface: &InterfaceConfig) -> Option<ValueProblem> {
    let at = |key: &str| format!("interface[{index}].{key}");
    let name = &interface.name;
    let odd = |c: char| c.is_whitespace() || matches!(c, ',' | '=' | '/' | ':');
    if name.is_empty() || name.len() > INTERFACE_BYTES_MAX || name.contains(odd) {
        return problem(
            at("name"),
            format!("`{name}` is not a valid interface name, such as `eth1`"),
        );
    }
    if let Some(text) = device(interface) {
        return problem(at(text.0), text.1);
    }
    if interface.channels == Some(0) {
        return problem(at("channels"), "an interface needs at least one queue");
    }
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    if let Some(port) = interface.steer.keys().find(|port| !is_port(port)) {
        return problem(at("steer"), format!("`{port}` is not a UDP port: write 1 to 65535"));
    }
    if interface.mtu.is_some_and(|mtu| !(68..=65_535).contains(&mtu)) {
        return problem(at("mtu"), "wants bytes from 68 to 65535");
    }
    for (key, value) in interface.options() {
        let text = match ELSEWHERE.iter().find(|(option, _)| *option == key) {
            Some((_, place)) => format!("is not an option here: write it as {place}"),
            None if key.contains(',') || value.contains(',') => {
                "has a comma, which options of links cannot have".to_owned()
            }
            None => continue,
        };
        return problem(option_key(index, interface, key), text);
    }
    addresses(interface, at)
}

/// Returns the problem of an interface whose link takes its device from the kernel, or of a device
/// whose link does not.
fn device(interface: &InterfaceConfig) -> Option<(&'static str, String)> {
    let link = interface.link;
    let said = format!("link = \"{}\"", link.name());
    match &interface.device {
        Some(_) if !link.takes_device() => {
            let takers = names(LinkName::all().filter(|link| link.takes_device()));
            Some(("device", format!("is for {takers} only: leave it out")))
        }
        _ if !link.takes_device() => None,
        None => {
            let text =
                format!("\"{}\" needs a device, such as `device = \"0000:03:00.0\"`", link.name());
            Some(("link", text))
        }
        Some(device) if device.is_empty() || device.contains([',', '=']) => {
            Some(("device", "wants a PCI address, or a port in software".to_owned()))
        }
        Some(_) if !interface.own => {
            let text = format!("must be true with {said}: the kernel has no such address");
            Some(("own", text))
        }
        Some(_) if interface.channels.is_some() => {
            let text = format!("is for the kernel's drivers: write queues = 2 with {said}");
            Some(("channels", text))
        }
        Some(_) => None,
    }
}

/// Returns links in the form of the file.
fn names(links: impl IntoIterator<Item = LinkName>) -> String {
    let links = links.into_iter().map(|link| format!("link = \"{}\"", link.name()));
    links.collect::<Vec<_>>().join(" or ")
}

/// Returns the problem that a link or the engine finds in its options.
fn understood(config: &Config, index: usize, interface: &InterfaceConfig) -> Option<ValueProblem> {
    let link = format!("{}:{}", interface.link.name(), interface.name);
    let error = crate::check(&config.complete(&link)).err()?;
    let LinkError::BadOption { option, reason, hint } = error else {
        return problem(format!("interface[{index}]"), error.to_string());
    };
    let name = option.split_once('=').map_or("device", |(name, _)| name);
    let key = option_key(index, interface, name);
    let keys = InterfaceConfig::KEYS.iter().filter(|key| !key.serde.contains("flatten"));
    let keys: Vec<_> = keys.map(|key| key.name).collect();
    let keys = names_for(name, &keys, "");
    // The link knows only its own options, and not the keys of the file.
    let reason = match keys.split_once("? ") {
        Some((meant, _)) if reason.starts_with(UNKNOWN) => format!("{UNKNOWN}; {meant}?"),
        _ => in_file(BadOption { option, reason, hint }),
    };
    problem(key, reason)
}

/// Returns the key of an option of an interface.
fn option_key(index: usize, interface: &InterfaceConfig, name: &str) -> String {
    let table = if interface.options.contains_key(name) { "options." } else { "" };
    format!("interface[{index}].{table}{name}")
}

/// Returns the problem of an option in a file, where its name stands before.
fn in_file(BadOption { option, mut reason, hint }: BadOption) -> String {
    let value = option.split_once('=').map_or(&*option, |(_, value)| value);
    if reason.starts_with("wants ") {
        reason.push_str(&format!(", not `{value}`"));
    }
    if hint.is_empty() { reason } else { format!("{reason}; {hint}") }
}

fn addresses(interface: &InterfaceConfig, at: impl Fn(&str) -> String) -> Option<ValueProblem> {
    let own = interface.own;
    if own && interface.addresses.len() != 1 {
        let text = "own = true wants exactly one address, one that the kernel does not have";
        return problem(at("addresses"), text);
    }
    if own && !interface.routes.is_empty() {
        let text = "with own = true only a gateway is possible: leave the routes to it";
        return problem(at("routes"), text);
    }
    for (index, cidr) in interface.addresses.iter().enumerate() {
        let address = cidr.address;
        let special = address.is_unspecified() || address.is_multicast() || address.is_broadcast();
        if special || cidr.prefix == 0 || cidr.is_reserved(address) {
            let text = format!("{cidr} is not the address of one host on its network");
            return problem(at(&format!("addresses[{index}]")), text);
        }
    }
    let subnets = &interface.addresses;
    let near = |router| subnets.is_empty() || subnets.iter().any(|subnet| subnet.contains(router));
    if let Some(gateway) = interface.gateway.filter(|gateway| !near(*gateway)) {
        let text = format!("{gateway} is on none of the networks in `addresses`");
        return problem(at("gateway"), text);
    }
    for (index, route) in interface.routes.iter().enumerate() {
        if !near(route.via) {
            let text = format!("{} is on none of the networks in `addresses`", route.via);
            return problem(at(&format!("routes[{index}].via")), text);
        }
    }
    None
}

fn thread(config: &Config, index: usize, thread: &ThreadConfig) -> Option<ValueProblem> {
    let at = |key: &str| format!("thread[{index}].{key}");
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name = &thread.name;
    if name.is_empty() || name.len() > THREAD_BYTES_MAX || !name.chars().all(plain) {
        let text =
            format!("`{name}` is not a valid name: use up to {THREAD_BYTES_MAX} of a-z, 0-9, - _");
        return problem(at("name"), text);
    }
    if let Err(error) = options::read::<EngineOptions>(&thread.options()) {
        let key = at(error.option.split('=').next().unwrap_or_default());
        return problem(key, in_file(error));
    }
    for (number, interface) in thread.interfaces.iter().enumerate() {
        let key = at(&format!("interfaces[{number}]"));
        match config.interface(interface) {
            None => {
                let text = format!("there is no [[interface]] with name = \"{interface}\"");
                return problem(key, text);
            }
            Some(found) if found.options().any(|said| said == ("io", "inline")) => {
                let text = format!("`{interface}` says io = \"inline\", so no thread owns it");
                return problem(key, text);
            }
            Some(_) => {}
        }
    }
    None
}
