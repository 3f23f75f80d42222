//! The configuration of this process, and the parts of link strings that come from it.

use std::sync::{Mutex, PoisonError};

use millstream_host::journal::{Journal, SettingValue, TemporaryChange, recover};
use millstream_link::options::Options;
use millstream_link::queues::channels_for;

use super::survey::{FoundInterface, InterfaceSurvey};
use super::{Config, ConfigError, InterfaceConfig};
use crate::EngineOptions;

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
        let mtu = found.state.interface.mtu;
        if let Some(expected) = wanted.mtu.filter(|expected| *expected != mtu) {
            let advice = format!("`ip link set {name} mtu {expected}`");
            return Err(unfit(format!("the MTU of {name} is {mtu}, not {expected}: {advice}")));
        }
        for value in wanted.changes(found) {
            let value = value.map_err(|problem| unfit(format!("{name}: {problem}")))?;
            if wanted.leaves_to_link(&value) {
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

impl InterfaceConfig {
    /// Whether the link makes that change itself when it is opened, perhaps through a broker.
    #[must_use]
    pub fn leaves_to_link(&self, value: &SettingValue) -> bool {
        matches!(value, SettingValue::Channels(_)) && self.link.entry().has_option("channels")
    }

    /// Returns the settings that the interface should have and does not have, or why it cannot have
    /// them.
    #[must_use]
    pub fn changes(&self, found: &FoundInterface) -> Vec<Result<SettingValue, String>> {
        let mut changes = Vec::new();
        if let Some(count) = self.channels {
            match found.state.channels {
                None => changes.push(Err("its driver can neither report nor set queues".into())),
                Some((now, max)) => match channels_for(max, count) {
                    Ok(wanted) if wanted == now => {}
                    Ok(wanted) => changes.push(Ok(SettingValue::Channels(wanted))),
                    Err(most) => changes.push(Err(format!(
                        "the interface can have at most {most} queues, not {count}"
                    ))),
                },
            }
        }
        for (offload, on) in &self.offloads {
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
        if !self.steer.is_empty() && !found.steers {
            let problem = "its driver cannot steer a UDP port to a queue: leave `steer` out";
            changes.push(Err(problem.to_owned()));
            return changes;
        }
        changes.extend(self.steer.iter().filter_map(|(port, queue)| {
            Some(Ok(SettingValue::PortQueue { port: port.parse().ok()?, queue: Some(*queue) }))
        }));
        changes
    }
}

/// Completes a link string from the configuration of the process.
pub(crate) fn expand(link: &str) -> String {
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    current.as_ref().map_or_else(|| link.to_owned(), |config| complete(config, link))
}

/// See [`Config::complete`]: explicit options win.
pub(super) fn complete(config: &Config, link: &str) -> String {
    let (name, rest) = link.split_once(':').unwrap_or((link, ""));
    let bare = config.interface(name.split(',').next().unwrap_or_default().trim());
    let (name, rest) = match bare {
        Some(interface) if rest.is_empty() => (interface.link.name(), link),
        _ => (name.trim(), rest),
    };
    let target = rest.split(',').next().unwrap_or_default().trim();
    let of_device = |one: &&InterfaceConfig| one.device.as_deref() == Some(target);
    let named = config.interface(target);
    let Some(interface) = named.or_else(|| config.interfaces.iter().find(of_device)) else {
        return link.to_owned();
    };
    let said: Vec<(&str, &str)> = rest
        .split(',')
        .filter_map(|word| word.split_once('='))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
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
    let has = |option| same_link && interface.link.entry().has_option(option);
    add("channels", interface.channels.filter(|_| has("channels")).map(|count| count.to_string()));
    add("mtu", interface.mtu.filter(|_| has("mtu")).map(|mtu| mtu.to_string()));
    if interface.own {
        add("address", interface.addresses.first().map(ToString::to_string));
        // The file's gateway is on the network of the file's address.
        let gateway = interface.gateway.filter(|_| said("address").is_none());
        add("gateway", gateway.map(|gateway| gateway.to_string()));
    }
    for (key, value) in interface.options() {
        if same_link || EngineOptions::NAMES.contains(&key) {
            add(key, Some(value.to_owned()));
        }
    }
    let io = said("io").or_else(|| interface.options().find(|(key, _)| *key == "io").map(|o| o.1));
    let owner = config.thread_of(&interface.name).filter(|_| io != Some("inline"));
    // A thread other than the file's has its own CPU and priority.
    if let Some(thread) = owner.filter(|owner| said("thread").is_none_or(|it| it == owner.name)) {
        add("thread", Some(thread.name.clone()));
        all.extend(thread.options());
    }
    all
}
