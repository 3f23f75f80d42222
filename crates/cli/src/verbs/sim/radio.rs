//! `millstream sim radio`: an emulated radio, served until the user ends it.

mod names;
mod page;
mod spectra;
mod trouble;

use crate::dashboard::WebArgs;
use crate::force::ForceArgs;
use crate::interrupt;
use crate::live::Live;
use crate::numbers::{ipv4, positive, seconds, whole};
use crate::output::{Join, Report, last_words, note, numbered};
use crate::start;
use anyhow::Context;
use millstream_emulator::{
    ClockRates, CounterSnapshot, DeviceKind, FaultState, Radio, RadioConfig, RunningRadio,
    SecondLink, UhdGeneration, antenna, fault_forms, scene::Scene,
};
use millstream_net::choice::{AUTO, for_local};
use millstream_wire::chdr::Width;
use names::{is_hexadecimal, nth_port, successor};
use spectra::Spectra;
use std::collections::{BTreeMap, HashSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use trouble::Trouble;

/// Emulates an E310, E320, N310, N320 or X410 radio that unmodified UHD tools accept.
#[derive(clap::Args)]
pub struct Args {
    /// Kind of device: e320-radio, e310, e320, n310, n320, x410 or x410-400. All but an e320-radio
    /// have the blocks of their stock image: DUC, radio and DDC; an e310 and an x410-400 only the
    /// radio. An n310 and an x410 have four channels; n310, n320 and x410 can have a second link.
    #[arg(long, value_name = "DEVICE", default_value = DeviceKind::default().name(),
          value_parser = device)]
    pub device: DeviceKind,

    /// Version of UHD that the radio's software and image belong to: 4.0 to 4.11. auto gives each
    /// caller its own: UHD 4.0 to 4.3 and 4.5 to 4.9. Hosts with UHD 4.4 or 4.10 need their version
    /// here.
    #[arg(long, value_name = "VERSION", default_value = "auto", value_parser = uhd)]
    pub uhd: UhdGeneration,

    /// Bits of a CHDR word of the image: 64, 128, 256 or 512. The stock images have 64.
    #[arg(long, value_name = "BITS", default_value = "64", value_parser = chdr_width)]
    pub chdr_width: Width,

    /// Add blocks to the image: a replay block (n310 and n320 have one), a generator of signals,
    /// and a null source and sink.
    #[arg(long)]
    pub extra_blocks: bool,

    /// IP address of the radio. On a single machine use 127.0.0.2 and so on.
    #[arg(long, value_name = "IPV4", default_value = "127.0.0.2", value_parser = ipv4)]
    pub addr: Ipv4Addr,

    /// IP address of the second link, for devices that have two. A host uses both links if it
    /// reaches the two addresses from two addresses of its own.
    #[arg(long, value_name = "IPV4", value_parser = ipv4)]
    pub second_addr: Option<Ipv4Addr>,

    /// Source of the receive channels. Give the option twice for two different antennas.
    #[arg(long, value_name = "SPEC", long_help = antenna_help())]
    pub rx_antenna: Vec<String>,

    /// File with the scene: the stations that the antennas receive, at absolute frequencies (TOML).
    /// Tuning, gain and bandwidth then have their effects. All devices but e320-radio and x410 have
    /// a default scene; an x410 can have none.
    #[arg(long, value_name = "FILE", conflicts_with = "rx_antenna")]
    pub scene: Option<PathBuf>,

    /// File for all samples that a transmit channel sends (sc16, with SigMF metadata beside it).
    /// Repeat the option for more channels. With --radios the number of the radio is added to
    /// the name. The file is called FILE.part until the radio ends; after a failure the .part file
    /// remains.
    #[arg(long, value_name = "FILE.sc16")]
    pub tx_out: Vec<PathBuf>,

    #[command(flatten)]
    pub force: ForceArgs,

    /// Number of radios to emulate, at consecutive addresses and with consecutive serial numbers.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u8>(1..=64))]
    pub radios: u8,

    /// Serial number of the radio. The default is its IP address as a hexadecimal number. UHD finds
    /// a radio by its serial number only if that is hexadecimal and below 80000000.
    #[arg(long, value_name = "HEX")]
    pub serial: Option<String>,

    /// Name of the radio.
    #[arg(long, value_name = "NAME", default_value = "millstream")]
    pub name: String,

    /// Accept every sample rate from 1 kHz to 2 GHz, and every frequency, gain and bandwidth.
    /// Without this option the radio has the ranges of the device, for example 0.22 to 61.44 MS/s
    /// of an e320; a host that requests another value gets the nearest one.
    #[arg(long)]
    pub any_rate: bool,

    /// Speed of the radio's clock relative to real time; 0.1 is ten times slower.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive)]
    pub time_scale: f64,

    /// Samples that each channel can keep while the host grants no credit. More samples are an
    /// overrun.
    #[arg(long, value_name = "N", default_value_t = RadioConfig::default().rx_buffer_samples,
          value_parser = whole::<u64>(..))]
    pub rx_buffer_samples: u64,

    /// Size of the transmit buffer of each channel, in samples of four bytes.
    #[arg(long, value_name = "N", default_value_t = RadioConfig::default().tx_buffer_samples,
          value_parser = whole::<u64>(..))]
    pub tx_buffer_samples: u64,

    /// Size of the largest IP packet of the radio's network, in bytes. Hosts measure it and choose
    /// the size of their packets by it.
    #[arg(long, value_name = "BYTES", default_value_t = RadioConfig::default().mtu,
          value_parser = whole::<usize>(..))]
    pub mtu: usize,

    /// UDP port on which the radio answers searches and echoes.
    #[arg(long, value_name = "PORT", default_value_t = millstream_wire::mpm::DISCOVERY_PORT,
          value_parser = whole::<u16>(1..=65_535))]
    pub discovery_port: u16,

    /// TCP port for remote procedure calls.
    #[arg(long, value_name = "PORT", default_value_t = millstream_wire::mpm::RPC_PORT,
          value_parser = whole::<u16>(1..=65_535))]
    pub rpc_port: u16,

    /// UDP port for CHDR packets; 0 takes any free port.
    #[arg(long, value_name = "PORT", default_value_t = RadioConfig::default().chdr_port,
          value_parser = whole::<u16>(..))]
    pub chdr_port: u16,

    /// Link that carries CHDR packets, with its options: udp, udp:gro=off, or a link on an
    /// interface, such as xdp:eth1. auto uses the link that `millstream-lab bench packets --choose`
    /// stored for the interface of the address, otherwise udp. Searches and remote calls always use
    /// kernel sockets.
    #[arg(long, value_name = "LINK", default_value = AUTO)]
    pub link: String,

    /// Link that carries CHDR packets of the second address, as --link.
    #[arg(long, value_name = "LINK", default_value = AUTO, requires = "second_addr")]
    pub second_link: String,

    /// Fault that is active from the start. Repeat the option for more.
    #[arg(long, value_name = "SPEC", long_help = fault_help())]
    pub fault: Vec<String>,

    /// Port for `millstream sim fault`. A port alone means loopback; port 0 takes any free port.
    /// With --radios each radio uses the next port.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = control_address)]
    pub control: Option<SocketAddrV4>,

    /// End after this time. By default the radio runs until SIGINT or SIGTERM.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub duration: Option<f64>,

    #[command(flatten)]
    pub web: WebArgs,
}

fn antenna_help() -> String {
    format!(
        "Source of the received samples. Give the option twice for two different antennas: {}",
        antenna::forms()
    )
}

fn fault_help() -> String {
    format!("Fault that is active from the start. Repeat the option for more. {}", fault_forms())
}

/// A kind of device by its name.
pub fn device(text: &str) -> Result<DeviceKind, String> {
    let names = || DeviceKind::ALL.map(DeviceKind::name).join(", ");
    let found = DeviceKind::named(text);
    found.ok_or_else(|| format!("the devices are {}", names()))
}

fn uhd(text: &str) -> Result<UhdGeneration, String> {
    let names = || {
        format!("the known versions are auto and 4.0 to 4.11, for example {}", UhdGeneration::NAMES)
    };
    UhdGeneration::named(text).ok_or_else(names)
}

fn chdr_width(text: &str) -> Result<Width, String> {
    let width = text.parse().ok().and_then(Width::from_bits);
    width.ok_or_else(|| "the widths are 64, 128, 256, 512".to_owned())
}

/// `ADDR:PORT`, or `PORT` on loopback.
pub fn control_address(text: &str) -> Result<SocketAddrV4, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    let local = port.map(|port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
    local.or_else(|_| text.parse()).map_err(|_| "expected IPV4:PORT or a port number".to_owned())
}

impl Args {
    /// The configuration of radio `index`.
    fn config(&self, index: u8) -> anyhow::Result<RadioConfig> {
        anyhow::ensure!(
            self.radios == 1 || self.second_addr.is_none(),
            "--second-addr is for one radio, and --radios is {}: start a command for each radio",
            self.radios
        );
        let addr = u32::from(self.addr).checked_add(index.into()).map(Ipv4Addr::from);
        let of_it =
            |path: &PathBuf| if self.radios > 1 { numbered(path, index) } else { path.clone() };
        Ok(RadioConfig {
            device: self.device,
            uhd: self.uhd,
            chdr_width: self.chdr_width,
            extra_blocks: self.extra_blocks,
            addr: addr.context(
                "--radios: the addresses would go beyond 255.255.255.255: give a lower --addr",
            )?,
            discovery_port: self.discovery_port,
            rpc_port: self.rpc_port,
            chdr_port: self.chdr_port,
            // Consecutive addresses have consecutive serial numbers.
            serial: self.serial.as_deref().map_or_else(String::new, |s| successor(s, index)),
            name: self.name.clone(),
            rx_antennas: self.rx_antenna.clone(),
            scene: self.scene.as_deref().map(Scene::load).transpose()?,
            any_tuning: self.any_rate,
            tx_out: self.tx_out.iter().map(of_it).collect(),
            overwrite: self.force.is_given(),
            rates: if self.any_rate { ClockRates::ANY } else { self.device.rates() },
            time_scale: self.time_scale,
            rx_buffer_samples: self.rx_buffer_samples,
            tx_buffer_samples: self.tx_buffer_samples,
            mtu: self.mtu,
            link: self.link.clone(),
            second_link: self
                .second_addr
                .map(|addr| SecondLink { addr, link: self.second_link.clone() }),
            faults: self.fault.clone(),
            control: self.control.map(|address| nth_port(address, index)).transpose()?,
            ..RadioConfig::of(self.device)
        })
    }
}

crate::results! {
    /// Emulated radios.
    struct ServedRadios {
        /// The sums of the counters of all radios.
        counters: BTreeMap<&'static str, u64>,
        /// Each radio.
        radios: Vec<ServedRadio>,
    }

    /// An emulated radio.
    struct ServedRadio {
        /// Its serial number.
        serial: String,
        /// Its address.
        addr: Ipv4Addr,
        /// Its UDP port of CHDR packets; the dashboard leaves it out.
        #[serde(skip_serializing_if = "Option::is_none")]
        chdr_port: Option<u16>,
        /// Its counters.
        counters: BTreeMap<&'static str, u64>,
        /// What went wrong; the dashboard leaves it out.
        #[serde(skip_serializing_if = "Option::is_none")]
        troubles: Option<Vec<String>>,
        /// Its faults; only the dashboard has them.
        #[serde(skip_serializing_if = "Option::is_none")]
        faults: Option<Vec<FaultState>>,
    }
}

/// A running radio and its identity.
struct Served {
    serial: String,
    addr: Ipv4Addr,
    radio: RunningRadio,
}

/// Serves until asked to end; the results are the radios' counters.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    if let Some(serial) = args.serial.as_deref().filter(|serial| !is_hexadecimal(serial)) {
        note(format_args!(
            "millstream: --serial {serial} is not a hexadecimal number below 80000000: UHD will \
             not find this radio by its serial number"
        ));
    }
    let mut spectra = Spectra::default();
    let served = (0..args.radios)
        .map(|index| {
            let config = args.config(index)?;
            if args.link == AUTO && !config.addr.is_loopback() {
                note(start::link_line(&for_local(config.addr)));
            }
            let (serial, addr) = (config.serial(), config.addr);
            let mut watchers = Vec::new();
            if args.web.is_wanted() {
                let prefix = if args.radios > 1 { format!("{addr} ") } else { String::new() };
                watchers = spectra.add(&prefix, args.device.channels());
            }
            Ok(Served { serial, addr, radio: Radio::start_watched(config, watchers)? })
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    start::note_links();
    let product = args.device.product().to_uppercase();
    for Served { serial, addr, radio } in &served {
        if let Some(control) = radio.control_addr() {
            note(format_args!("control: {control}, see `millstream sim fault --help`"));
        }
        // Scripts wait for this line.
        note(format_args!("ready: {product} {serial} at {addr}, CHDR on {}", radio.chdr_addr()));
    }
    let mut page = page::RadioPage::start(&args, &product, spectra)?;
    let started = Instant::now();
    let mut live = Live::on_terminal_only();
    let mut known = HashSet::new();
    while !interrupt::asked() {
        std::thread::sleep(Duration::from_millis(50));
        let now = Instant::now();
        if args.duration.is_some_and(|limit| (now - started).as_secs_f64() >= limit) {
            break;
        }
        for radio in &served {
            radio.tell_news(&mut known, &mut live);
        }
        if let Some(page) = &mut page {
            page.attend(now, &served);
        }
        live.show(now, || status(&sum(served.iter().map(|one| one.radio.counters()))));
    }
    live.end();
    Ok(report(served))
}

impl Served {
    /// Its troubles so far; the first parts are their kinds.
    fn troubles(&self) -> Vec<Trouble> {
        let refused = self.radio.tx_out_errors().map(|error| ("refused", error.to_string()));
        trouble::of(&self.radio.counters()).into_iter().chain(refused).collect()
    }

    /// Prints each kind of trouble when it begins, because a user does not watch counters while a
    /// radio serves.
    fn tell_news(&self, known: &mut HashSet<(Ipv4Addr, &'static str)>, live: &mut Live) {
        for (kind, text) in self.troubles() {
            if known.insert((self.addr, kind)) {
                live.end();
                note(format_args!("millstream: the radio at {}: {text}", self.addr));
            }
        }
    }
}

/// Stops all radios. `counters` are their sums, `radios` the counts of each.
fn report(mut served: Vec<Served>) -> Report {
    served.iter_mut().for_each(|one| one.radio.end());
    let total = sum(served.iter().map(|one| one.radio.counters()));
    let mut text = format!("served: {}\n", status(&total));
    let (mut radios, mut failure) = (Vec::new(), None);
    for one in &served {
        let troubles: Vec<_> = one.troubles().into_iter().map(|(_, text)| text).collect();
        for trouble in &troubles {
            text += &format!("trouble: the radio at {}: {trouble}\n", one.addr);
        }
        radios.push(ServedRadio {
            chdr_port: Some(one.radio.chdr_addr().port()),
            troubles: Some(troubles),
            ..one.document()
        });
        failure = failure.or_else(|| one.radio.tx_out_errors().next().map(ToString::to_string));
    }
    let counters = total.into_iter().collect();
    Report::of(last_words(&text), &ServedRadios { counters, radios }).failing(failure)
}

impl Served {
    fn document(&self) -> ServedRadio {
        ServedRadio {
            serial: self.serial.clone(),
            addr: self.addr,
            chdr_port: None,
            counters: self.radio.counters().entries().into_iter().collect(),
            troubles: None,
            faults: None,
        }
    }
}

type Entries = Vec<(&'static str, u64)>;

fn sum(counters: impl Iterator<Item = CounterSnapshot>) -> Entries {
    let add = |mut total: Entries, one: Entries| {
        total.iter_mut().zip(one).for_each(|(total, (_, value))| total.1 += value);
        total
    };
    counters.map(|one| one.entries()).reduce(add).unwrap_or_default()
}

/// Every non-zero counter.
fn status(entries: &[(&str, u64)]) -> String {
    let busy = entries.iter().filter(|(_, value)| *value > 0);
    let text = busy.map(|(name, value)| format!("{name} {value}")).join("  ");
    if text.is_empty() { "no requests and no packets".to_owned() } else { text }
}
