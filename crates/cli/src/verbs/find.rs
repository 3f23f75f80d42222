//! `millstream find`: the radios that answer.

use crate::numbers::{ipv4, seconds, whole};
use crate::output::Report;
use anyhow::Context;
use millstream_radio::discover::{DISCOVERY_TIMEOUT, DeviceInfo, DiscoveryTarget, discover};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Lists the radios that answer on the network.
#[derive(clap::Args)]
pub struct Args {
    /// Only ask this address. By default the command asks all networks of this machine and the
    /// machine itself.
    #[arg(long, value_name = "IPV4", value_parser = ipv4)]
    addr: Option<Ipv4Addr>,

    /// Only ask this machine, and send nothing to its networks.
    #[arg(long, conflicts_with = "addr")]
    local: bool,

    /// UDP port on which radios answer searches.
    #[arg(long, value_name = "PORT", default_value_t = millstream_wire::mpm::DISCOVERY_PORT,
          value_parser = whole::<u16>(1..=65_535))]
    discovery_port: u16,

    /// How long to wait for answers.
    #[arg(long, value_name = "TIME", default_value_t = DISCOVERY_TIMEOUT.as_secs_f64(),
          value_parser = seconds)]
    timeout: f64,
}

/// Succeeds when at least one radio answers.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let (target, place, ask) = match args.addr {
        Some(addr) => (DiscoveryTarget::Address(addr), format!("at {addr}"), ""),
        None if args.local => (DiscoveryTarget::Local, "on this machine".to_owned(), ""),
        None => (
            DiscoveryTarget::Broadcast,
            "on any network".to_owned(),
            "; for a radio behind a router give --addr",
        ),
    };
    let timeout = Duration::from_secs_f64(args.timeout);
    let found =
        discover(target, args.discovery_port, timeout).context("cannot search for radios")?;
    if found.is_empty() {
        anyhow::bail!(
            "no radio answers {place} (UDP port {}): check its power, cable and address{ask}; \
             without a radio, start an emulated one with `millstream sim radio`",
            args.discovery_port
        );
    }
    let text = found.iter().enumerate().map(|(at, one)| line(one, &found[..at])).collect();
    Ok(Report::done(text, json!({ "radios": found.iter().map(to_json).collect::<Vec<_>>() })))
}

/// Formats a device. `before` are the devices shown already: another address of one of them is the
/// same device on another network, or another one with the same serial number.
fn line(device: &DeviceInfo, before: &[DeviceInfo]) -> String {
    let serial = device.field("serial");
    let twin = before.iter().find(|one| !serial.is_empty() && one.field("serial") == serial);
    let twin = twin.map_or_else(String::new, |one| format!(", same serial as {}", one.address));
    let held = if device.is_claimed() { ", claimed by another program" } else { "" };
    format!(
        "{:<15} {} (type {}, serial {}, name {}){twin}{held}\n",
        device.address.to_string(),
        device.field("product"),
        device.field("type"),
        serial,
        device.field("name"),
    )
}

fn to_json(device: &DeviceInfo) -> Value {
    json!({ "addr": device.address, "claimed": device.is_claimed(), "fields": device.fields })
}
