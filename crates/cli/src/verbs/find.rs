//! `millstream find`: the radios that answer.

use crate::numbers::{ipv4, seconds, whole};
use crate::output::Report;
use anyhow::Context;
use millstream_radio::discover::{DISCOVERY_TIMEOUT, DeviceInfo, DiscoveryTarget, discover};
use millstream_radio::examine::{Examination, examine};
use millstream_radio::generation::MpmGeneration;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Lists the radios that answer on the network: their versions of MPM, of the RFNoC protocol and of
/// the image, and whether this program works with them.
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

    /// TCP port of the radios' management servers, which are asked for versions.
    #[arg(long, value_name = "PORT", default_value_t = millstream_wire::mpm::RPC_PORT,
          value_parser = whole::<u16>(1..=65_535))]
    rpc_port: u16,

    /// How long to wait for answers.
    #[arg(long, value_name = "TIME", default_value_t = DISCOVERY_TIMEOUT.as_secs_f64(),
          value_parser = seconds)]
    timeout: f64,
}

crate::results! {
    /// The radios that answer.
    struct FoundRadios<'a> {
        /// Each of them.
        radios: Vec<FoundRadio<'a>>,
    }

    /// A radio that answers.
    struct FoundRadio<'a> {
        /// Its address.
        addr: Ipv4Addr,
        /// Whether another program uses it.
        claimed: bool,
        /// Its answer: product, type, serial, name and more.
        fields: &'a BTreeMap<String, String>,
        /// Its version of MPM.
        mpm: Option<String>,
        /// Its version of the RFNoC protocol.
        protocol: Option<String>,
        /// The name of its FPGA image.
        image: &'a str,
        /// Whether this program works with it.
        usable: bool,
        /// Why not.
        obstacle: Option<&'a str>,
    }
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
    let known = examine(&found, args.rpc_port);
    let both = || found.iter().zip(&known);
    let lines = |(at, (one, known))| line(one, &found[..at]) + &second_line(known);
    let text = both().enumerate().map(lines).collect();
    let radios = both().map(|(one, known)| FoundRadio::of(one, known)).collect();
    Ok(Report::of(text, &FoundRadios { radios }))
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

/// Formats what a radio is, and whether this program works with it.
fn second_line(known: &Examination) -> String {
    let mut parts = Vec::new();
    if let Some(mpm) = known.mpm {
        let uhd = MpmGeneration::of(mpm)
            .map_or_else(|_| String::new(), |one| format!(" (UHD {})", one.uhd));
        parts.push(format!("MPM {}{uhd}", version(mpm)));
    }
    parts.extend(known.protocol.map(|protocol| format!("RFNoC {}", version(protocol))));
    if !known.image.is_empty() {
        parts.push(format!("image {}", known.image));
    }
    parts.push(match &known.obstacle {
        Some(obstacle) => format!("not usable: {obstacle}"),
        None => "usable".to_owned(),
    });
    format!("{:<15} {}\n", "", parts.join(", "))
}

fn version<T: std::fmt::Display>((major, minor): (T, T)) -> String {
    format!("{major}.{minor}")
}

impl<'a> FoundRadio<'a> {
    fn of(device: &'a DeviceInfo, known: &'a Examination) -> Self {
        Self {
            addr: device.address,
            claimed: device.is_claimed(),
            fields: &device.fields,
            mpm: known.mpm.map(version),
            protocol: known.protocol.map(version),
            image: &known.image,
            usable: known.obstacle.is_none(),
            obstacle: known.obstacle.as_deref(),
        }
    }
}
