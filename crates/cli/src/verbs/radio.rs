//! `millstream radio`: an emulated radio, served until somebody ends it.

use crate::interrupt;
use crate::live::Live;
use crate::numbers::positive;
use crate::output::{Report, note};
use crate::start;
use anyhow::Context;
use millstream_emulator::{
    ANTENNA_FORMS, CounterSnapshot, FAULT_FORMS, Radio, RadioConfig, RunningRadio,
};
use millstream_net::choice::{AUTO, for_local};
use serde_json::{Map, Value, json};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Serves an emulated E320 that stock UHD tools accept.
#[derive(clap::Args)]
pub struct Args {
    /// Address of all its ports; on one machine use 127.0.0.2 and so on.
    #[arg(long, value_name = "IPV4", default_value = "127.0.0.2")]
    pub addr: Ipv4Addr,

    /// What the receive channels hear; give it twice for two different antennas.
    #[arg(long, value_name = "SPEC", long_help = antenna_help())]
    pub rx_antenna: Vec<String>,

    /// File for everything that a transmit channel sends: sc16, with SigMF metadata beside it; give
    /// it twice for both channels. With --count the radio's number is added to the name.
    #[arg(long, value_name = "FILE.sc16")]
    pub tx_out: Vec<PathBuf>,

    /// Radios to serve, at consecutive addresses and with consecutive serial numbers.
    #[arg(long, value_name = "RADIOS", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=64))]
    pub count: u8,

    /// Serial number shown to hosts, which take two radios with the same one for one.
    #[arg(long, value_name = "TEXT", default_value = "MS0001")]
    pub serial: String,

    /// Name shown to hosts.
    #[arg(long, value_name = "TEXT", default_value = "millstream")]
    pub name: String,

    /// Seconds of device time per second of wall time; 0.1 runs ten times slower.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive,
          allow_negative_numbers = true)]
    pub time_scale: f64,

    /// Samples per channel that wait while the host grants no credit, before an overrun.
    #[arg(long, value_name = "N", default_value_t = RadioConfig::default().rx_buffer_samples)]
    pub rx_buffer_samples: u64,

    /// Size of each channel's transmit packet buffer, in samples of four bytes.
    #[arg(long, value_name = "N", default_value_t = RadioConfig::default().tx_buffer_samples)]
    pub tx_buffer_samples: u64,

    /// Largest IP packet of its network, bytes; hosts measure it and choose their packets by it.
    #[arg(long, value_name = "BYTES", default_value_t = RadioConfig::default().mtu)]
    pub mtu: usize,

    /// UDP port of discovery and echo.
    #[arg(long, value_name = "PORT", default_value_t = millstream_wire::mpm::DISCOVERY_PORT,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub discovery_port: u16,

    /// TCP port of remote procedure calls.
    #[arg(long, value_name = "PORT", default_value_t = millstream_wire::mpm::RPC_PORT,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub rpc_port: u16,

    /// UDP port of CHDR packets; 0 takes any free one.
    #[arg(long, value_name = "PORT", default_value_t = RadioConfig::default().chdr_port)]
    pub chdr_port: u16,

    /// The link that carries CHDR, with its options: udp, udp:gro=off, or one of an interface, such
    /// as xdp:eth1. Discovery and RPC stay with the kernel's sockets. auto: what `bench packets
    /// --choose` stored for the interface of the address, else udp.
    #[arg(long, value_name = "LINK", default_value = AUTO)]
    pub link: String,

    /// Something that goes wrong from the start; may be given many times.
    #[arg(long, value_name = "SPEC", long_help = fault_help())]
    pub fault: Vec<String>,

    /// Listen here for `millstream fault`; a port alone is on loopback, port 0 takes any free one.
    /// With --count each radio has the next port.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = control_address)]
    pub control: Option<SocketAddrV4>,

    /// End after this many seconds; until SIGINT or SIGTERM otherwise.
    #[arg(long, value_name = "SECONDS", value_parser = positive, allow_negative_numbers = true)]
    pub duration: Option<f64>,
}

fn antenna_help() -> String {
    format!(
        "What the receive channels hear; give it twice for two different antennas: {ANTENNA_FORMS}"
    )
}

fn fault_help() -> String {
    format!("Something that goes wrong from the start; may be given many times: {FAULT_FORMS}")
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
        let addr = u32::from(self.addr).checked_add(index.into()).map(Ipv4Addr::from);
        let numbered =
            |path: &PathBuf| if self.count > 1 { number(path, index) } else { path.clone() };
        Ok(RadioConfig {
            addr: addr.context("--count: there are no addresses behind 255.255.255.255")?,
            discovery_port: self.discovery_port,
            rpc_port: self.rpc_port,
            chdr_port: self.chdr_port,
            serial: successor(&self.serial, index),
            name: self.name.clone(),
            rx_antennas: self.rx_antenna.clone(),
            tx_out: self.tx_out.iter().map(numbered).collect(),
            time_scale: self.time_scale,
            rx_buffer_samples: self.rx_buffer_samples,
            tx_buffer_samples: self.tx_buffer_samples,
            mtu: self.mtu,
            link: self.link.clone(),
            faults: self.fault.clone(),
            control: self.control.map(|address| nth_port(address, index)).transpose()?,
            ..RadioConfig::default()
        })
    }
}

/// A radio that runs, and who it is.
struct Served {
    serial: String,
    addr: Ipv4Addr,
    radio: RunningRadio,
}

/// Serves until asked to end; the results are the radios' counters.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    let served = (0..args.count)
        .map(|index| {
            let config = args.config(index)?;
            if args.link == AUTO && !config.addr.is_loopback() {
                note(start::link_line(&for_local(config.addr)));
            }
            let (serial, addr) = (config.serial.clone(), config.addr);
            Ok(Served { serial, addr, radio: Radio::start(config)? })
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    start::note_links();
    for Served { serial, addr, radio } in &served {
        if let Some(control) = radio.control_addr() {
            note(format_args!("control: {control}, see `millstream fault --help`"));
        }
        // Scripts wait for this line.
        note(format_args!("ready: E320 {serial} at {addr}, CHDR on {}", radio.chdr_addr()));
    }
    let started = Instant::now();
    let mut live = Live::on_terminal_only();
    while !interrupt::asked() {
        std::thread::sleep(Duration::from_millis(50));
        let now = Instant::now();
        if args.duration.is_some_and(|limit| (now - started).as_secs_f64() >= limit) {
            break;
        }
        live.show(now, || status(&sum(served.iter().map(|one| one.radio.counters()))));
    }
    live.end();
    Ok(report(served))
}

/// Stops all radios. `counters` are their sums, `radios` say which counted what.
fn report(served: Vec<Served>) -> Report {
    let ended = served.into_iter().map(|one| {
        let chdr_port = one.radio.chdr_addr().port();
        (one.serial, one.addr, chdr_port, one.radio.stop())
    });
    let ended: Vec<_> = ended.collect();
    let total = sum(ended.iter().map(|one| one.3));
    let radios: Vec<_> = ended
        .iter()
        .map(|(serial, addr, chdr_port, counters)| {
            let counters = object(&counters.entries());
            json!({ "serial": serial, "addr": addr, "chdr_port": chdr_port, "counters": counters })
        })
        .collect();
    let text = format!("served: {}\n", status(&total));
    Report::done(text, json!({ "counters": object(&total), "radios": radios }))
}

type Entries = Vec<(&'static str, u64)>;

fn sum(counters: impl Iterator<Item = CounterSnapshot>) -> Entries {
    let add = |mut total: Entries, one: Entries| {
        total.iter_mut().zip(one).for_each(|(total, (_, value))| total.1 += value);
        total
    };
    counters.map(|one| one.entries()).reduce(add).unwrap_or_default()
}

fn object(entries: &[(&str, u64)]) -> Map<String, Value> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
}

/// The address of radio `index`: ports count up, but for the one that means any.
fn nth_port(address: SocketAddrV4, index: u8) -> anyhow::Result<SocketAddrV4> {
    let port = match address.port() {
        0 => Some(0),
        port => port.checked_add(index.into()),
    };
    let port = port.with_context(|| {
        format!("--control: there are no ports behind {address} for radio {index}; begin lower")
    })?;
    Ok(SocketAddrV4::new(*address.ip(), port))
}

/// The serial number `steps` behind this one: the digits at its end count, or some are appended.
fn successor(serial: &str, steps: u8) -> String {
    let stem = serial.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &serial[stem.len()..];
    match (steps, digits.parse::<u64>()) {
        (0, _) => serial.to_owned(),
        (_, Ok(value)) => {
            let value = value.saturating_add(steps.into());
            format!("{stem}{value:0width$}", width = digits.len())
        }
        (_, Err(_)) => format!("{serial}{steps}"),
    }
}

/// `a/b.sc16` becomes `a/b-1.sc16` for radio 1.
fn number(path: &Path, index: u8) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match path.extension() {
        Some(extension) => {
            path.with_file_name(format!("{stem}-{index}.{}", extension.to_string_lossy()))
        }
        None => path.with_file_name(format!("{stem}-{index}")),
    }
}

/// Every counter that has counted something.
fn status(entries: &[(&str, u64)]) -> String {
    let busy = entries.iter().filter(|(_, value)| *value > 0);
    let text = busy.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join("  ");
    if text.is_empty() { "nobody has asked for anything".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_count_up() {
        let cases = [("MS0001", 0, "MS0001"), ("MS0001", 1, "MS0002"), ("A9", 3, "A12")];
        for (serial, steps, want) in cases.into_iter().chain([("DEMO", 2, "DEMO2")]) {
            assert_eq!(successor(serial, steps), want);
        }
    }

    #[test]
    fn control_ports_count_up_as_far_as_there_are_any() {
        let nth = |port, index| {
            let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
            nth_port(address, index).map(|address| address.port()).map_err(|e| e.to_string())
        };
        assert_eq!(nth(0, 3), Ok(0), "any free one");
        assert_eq!(nth(5555, 3), Ok(5558));
        let error = nth(65535, 1).unwrap_err();
        assert!(error.contains("no ports behind 127.0.0.1:65535 for radio 1"), "{error}");
    }

    #[test]
    fn files_of_several_radios_are_numbered() {
        assert_eq!(number(Path::new("a/b.sc16"), 1), Path::new("a/b-1.sc16"));
        assert_eq!(number(Path::new("b"), 0), Path::new("b-0"));
    }
}
