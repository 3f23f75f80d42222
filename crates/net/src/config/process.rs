//! The configuration of this process, and the parts of link strings that come from it.

use std::sync::{Mutex, PoisonError};

use millstream_host::ethtool::Channels;
use millstream_host::journal::{Journal, SettingValue, TemporaryChange, recover};

use super::survey::{FoundInterface, InterfaceSurvey};
use super::{Config, ConfigError, InterfaceConfig};
use crate::IoMode;

static CURRENT: Mutex<Option<Config>> = Mutex::new(None);

/// A configuration in force. Dropping it ends that and restores the settings that it changed.
#[derive(Debug)]
#[must_use = "dropping it takes the configuration out of force"]
pub struct Configured {
    _changes: Vec<TemporaryChange>,
}

impl Drop for Configured {
    fn drop(&mut self) {
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Applies a configuration to the process: changes the settings that it wants. Link strings opened
/// from now on take from it what they do not specify themselves. Replaces an earlier one.
///
/// First restores settings that a dead process has left changed.
///
/// # Errors
/// [`ConfigError::Unfit`] when an interface is missing or has another MTU than expected,
/// [`ConfigError::Setting`] when a setting cannot be changed. Nothing is changed then.
pub fn configure(config: &Config) -> Result<Configured, ConfigError> {
    let unfit = |problem| ConfigError::Unfit { problem };
    // Settings that cannot be restored now are tried again by the next start.
    let _ = recover();
    let survey = InterfaceSurvey::take().map_err(|error| unfit(error.to_string()))?;
    let mut changes = Vec::new();
    // The kernel does not know a device that it has given up.
    let of_kernel = config.interfaces.iter().filter(|wanted| !wanted.link.takes_device());
    for wanted in of_kernel {
        let name = &wanted.name;
        let found = survey.interface(name).ok_or_else(|| {
            unfit(format!("there is no interface {name}; `millstream host net show` lists them"))
        })?;
        let mtu = found.interface.mtu;
        if let Some(expected) = wanted.mtu.filter(|expected| *expected != mtu) {
            let advice = format!("`ip link set {name} mtu {expected}`");
            return Err(unfit(format!("the MTU of {name} is {mtu}, not {expected}: {advice}")));
        }
        for value in self::changes(wanted, found) {
            let value = value.map_err(|problem| unfit(format!("{name}: {problem}")))?;
            if is_the_links(wanted, &value) {
                continue;
            }
            let change = Journal::of_process().change(name, value);
            let failed = |source| ConfigError::Setting { interface: name.clone(), source };
            changes.push(change.map_err(failed)?);
        }
    }
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(config.clone());
    Ok(Configured { _changes: changes })
}

/// Whether the link makes that change itself when it is opened, perhaps through a broker.
pub(super) fn is_the_links(wanted: &InterfaceConfig, value: &SettingValue) -> bool {
    matches!(value, SettingValue::Channels(_)) && wanted.link.entry().has_option("channels")
}

/// Returns the settings that an interface should have and does not have.
pub(super) fn changes(
    wanted: &InterfaceConfig,
    found: &FoundInterface,
) -> Vec<Result<SettingValue, String>> {
    let mut changes = Vec::new();
    if let Some(count) = wanted.channels {
        match found.channels {
            None => changes.push(Err("its driver can neither report nor set queues".into())),
            Some((now, max)) => changes.extend(channels(count, now, max)),
        }
    }
    for (offload, on) in &wanted.offloads {
        let offload = offload.0;
        match found.offloads.iter().find(|(known, _)| *known == offload) {
            None => changes.push(Err(format!(
                "the driver of the interface has no offload {}",
                offload.name()
            ))),
            Some((_, now)) if now == on => {}
            Some(_) => changes.push(Ok(SettingValue::Offload(offload, *on))),
        }
    }
    if !wanted.steer.is_empty() && !found.steers {
        let problem = "its driver cannot steer a UDP port to a queue: leave `steer` out";
        changes.push(Err(problem.to_owned()));
        return changes;
    }
    changes.extend(wanted.steer.iter().filter_map(|(port, queue)| {
        Some(Ok(SettingValue::PortQueue { port: port.parse().ok()?, queue: Some(*queue) }))
    }));
    changes
}

/// Returns channels with `count` queues for each direction, of the kind that the driver has.
fn channels(count: u32, now: Channels, max: Channels) -> Option<Result<SettingValue, String>> {
    if now.receiving() == count && now.transmitting() == count {
        return None;
    }
    let wanted = if max.combined > 0 {
        Channels { receive: 0, transmit: 0, combined: count }
    } else {
        Channels { receive: count, transmit: count, combined: 0 }
    };
    let possible =
        wanted.receiving() <= max.receiving() && wanted.transmitting() <= max.transmitting();
    let refuse =
        || format!("the interface can have at most {} queues, not {count}", max.receiving());
    Some(if possible { Ok(SettingValue::Channels(wanted)) } else { Err(refuse()) })
}

/// Completes a link string from the configuration of the process.
pub(crate) fn expand(link: &str) -> String {
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    current.as_ref().map_or_else(|| link.to_owned(), |config| expand_by(config, link))
}

/// Completes a link string from a configuration: explicit options win. A string that names no link
/// but an interface of the file gets the file's link.
pub(super) fn expand_by(config: &Config, link: &str) -> String {
    let (name, rest) = link.split_once(':').unwrap_or((link, ""));
    let bare = config.interface(name.split(',').next().unwrap_or_default().trim());
    let (name, rest) = match bare {
        Some(interface) if rest.is_empty() => (interface.link.name(), link),
        _ => (name.trim(), rest),
    };
    let target = rest.split(',').next().unwrap_or_default().trim();
    let named = config.interface(target);
    let Some(interface) = named.or_else(|| of_device(config, target)) else {
        return link.to_owned();
    };
    let said: Vec<(&str, &str)> =
        rest.split(',').filter_map(|word| word.split_once('=')).map(trimmed).collect();
    let same_link = name == interface.link.name();
    let rest = match &interface.device {
        Some(device) if same_link => rest.replacen(target, device, 1),
        _ => rest.to_owned(),
    };
    let mut text = format!("{name}:{rest}");
    for (key, value) in options(config, interface, same_link, &said) {
        if !said.iter().any(|(other, _)| *other == key) {
            text.push_str(&format!(",{key}={value}"));
        }
    }
    text
}

/// Returns the interface whose device DPDK takes.
fn of_device<'a>(config: &'a Config, device: &str) -> Option<&'a InterfaceConfig> {
    config.interfaces.iter().find(|one| one.device.as_deref() == Some(device))
}

fn trimmed<'a>((key, value): (&'a str, &'a str)) -> (&'a str, &'a str) {
    (key.trim(), value.trim())
}

/// Returns the file's settings of an interface as options, without those that the link string
/// itself has `said`. `same_link`: the link's own options apply to it.
fn options(
    config: &Config,
    interface: &InterfaceConfig,
    same_link: bool,
    said: &[(&str, &str)],
) -> Vec<(String, String)> {
    let said = |name| said.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |key: &str, value: Option<String>| {
        all.extend(value.map(|value| (key.to_owned(), value)));
    };
    if same_link {
        add("mode", interface.mode.clone());
        add("queues", interface.queues.clone());
        let has = |option| interface.link.entry().has_option(option);
        let channels = interface.channels.filter(|_| has("channels"));
        add("channels", channels.map(|count| count.to_string()));
        let mtu = interface.mtu.filter(|_| has("mtu"));
        add("mtu", mtu.map(|mtu| mtu.to_string()));
    }
    if interface.own {
        add("address", interface.addresses.first().map(ToString::to_string));
        // The file's gateway is on the network of the file's address.
        let gateway = interface.gateway.filter(|_| said("address").is_none());
        add("gateway", gateway.map(|gateway| gateway.to_string()));
    }
    add("vlan", interface.vlan.map(|vlan| vlan.to_string()));
    let io = interface.io.map(|io| if io == IoMode::Inline { "inline" } else { "thread" });
    add("io", io.map(str::to_owned));
    let inline = said("io").or(io) == Some("inline");
    let owner = config.thread_of(&interface.name).filter(|_| !inline);
    // A thread other than the file's has its own CPU and priority.
    if let Some(thread) = owner.filter(|owner| said("thread").is_none_or(|it| it == owner.name)) {
        add("thread", Some(thread.name.clone()));
        add("cpu", thread.cpu.map(|cpu| cpu.to_string()));
        add("wait", thread.wait.map(|wait| wait.name().to_owned()));
        add("priority", thread.priority.map(|priority| priority.to_string()));
    }
    if same_link {
        all.extend(interface.options.iter().map(|(key, value)| (key.clone(), value.0.clone())));
    }
    all
}
