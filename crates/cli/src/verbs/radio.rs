//! `millstream radio`: an emulated radio, served until somebody ends it.

use crate::interrupt;
use crate::live::Live;
use crate::numbers::positive;
use crate::output::{Report, note};
use millstream_emulator::{ANTENNA_FORMS, FAULT_FORMS, Radio, RadioConfig};
use serde_json::{Map, json};
use std::net::{Ipv4Addr, SocketAddrV4};
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

    /// Serial number shown to hosts.
    #[arg(long, default_value = "MS0001")]
    pub serial: String,

    /// Name shown to hosts.
    #[arg(long, default_value = "millstream")]
    pub name: String,

    /// Seconds of device time per second of wall time; 0.1 runs ten times slower.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive,
          allow_negative_numbers = true)]
    pub time_scale: f64,

    /// Samples per channel that wait while the host grants no credit, before an overrun.
    #[arg(long, default_value_t = RadioConfig::default().rx_buffer_samples)]
    pub rx_buffer_samples: u64,

    /// Size of each channel's transmit packet buffer, in samples of four bytes.
    #[arg(long, default_value_t = RadioConfig::default().tx_buffer_samples)]
    pub tx_buffer_samples: u64,

    /// UDP port of discovery and echo.
    #[arg(long, default_value_t = millstream_wire::mpm::DISCOVERY_PORT)]
    pub discovery_port: u16,

    /// TCP port of remote procedure calls.
    #[arg(long, default_value_t = millstream_wire::mpm::RPC_PORT)]
    pub rpc_port: u16,

    /// UDP port of CHDR packets; 0 takes any free one.
    #[arg(long, default_value_t = RadioConfig::default().chdr_port)]
    pub chdr_port: u16,

    /// The link below its UDP ports.
    #[arg(long, default_value = "udp")]
    pub link: String,

    /// Something that goes wrong from the start; may be given many times.
    #[arg(long, value_name = "SPEC", long_help = fault_help())]
    pub fault: Vec<String>,

    /// Listen here for `millstream fault`; a port alone is on loopback, port 0 takes any free one.
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
    fn config(&self) -> RadioConfig {
        RadioConfig {
            addr: self.addr,
            discovery_port: self.discovery_port,
            rpc_port: self.rpc_port,
            chdr_port: self.chdr_port,
            serial: self.serial.clone(),
            name: self.name.clone(),
            rx_antennas: self.rx_antenna.clone(),
            time_scale: self.time_scale,
            rx_buffer_samples: self.rx_buffer_samples,
            tx_buffer_samples: self.tx_buffer_samples,
            link: self.link.clone(),
            faults: self.fault.clone(),
            control: self.control,
            ..RadioConfig::default()
        }
    }
}

/// Serves until asked to end; the results are the radio's counters.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    let radio = Radio::start(args.config())?;
    if let Some(control) = radio.control_addr() {
        note(format_args!("control: {control}, see `millstream fault --help`"));
    }
    // Scripts wait for this line.
    let (serial, addr, chdr) = (&args.serial, args.addr, radio.chdr_addr());
    note(format_args!("ready: E320 {serial} at {addr}, CHDR on {chdr}"));
    let started = Instant::now();
    let mut live = Live::on_terminal_only();
    while !interrupt::asked() {
        std::thread::sleep(Duration::from_millis(50));
        let now = Instant::now();
        if args.duration.is_some_and(|limit| (now - started).as_secs_f64() >= limit) {
            break;
        }
        live.show(now, || status(&radio.counters().entries()));
    }
    live.end();
    let counters = radio.stop();
    let entries = counters.entries();
    let text = format!("served: {}\n", status(&entries));
    let counters: Map<_, _> =
        entries.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    Ok(Report::done(text, json!({ "counters": counters })))
}

/// Every counter that has counted something.
fn status(entries: &[(&str, u64)]) -> String {
    let busy = entries.iter().filter(|(_, value)| *value > 0);
    let text = busy.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join("  ");
    if text.is_empty() { "nobody has asked for anything".to_owned() } else { text }
}
