//! `millstream probe`: the structure of one radio.

use crate::output::{Join, Report, short};
use anyhow::Context;
use millstream_radio::client_zero::ClientZero;
use millstream_radio::device::{DeviceLink, SensorReading, SourceKind};
use millstream_radio::generation::MpmGeneration;
use millstream_radio::graph::{RadioChain, StreamDirection};
use millstream_radio::{Device, DeviceArgs, RadioError};
use millstream_wire::regs::client_zero::Edge;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Opens one radio and shows its parts: clocks, sources, channels, blocks, connections, endpoints.
///
/// The command claims the radio while it runs. If another program uses the radio, the command does
/// not disturb it and names it in an error. `millstream find` lists the radios that answer.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream probe
  millstream probe --args addr=192.168.10.2
  millstream probe --args addr=192.168.10.2,link=xdp:eth1 --json")]
pub struct Args {
    #[arg(
        long,
        value_name = "ARGS",
        default_value = "",
        hide_default_value = true,
        help = "Device arguments; without them the only radio that answers: \
                addr=IPV4[,rpc_port=N][,discovery_port=N][,claim_wait_s=SECONDS]\
                [,link=LINK]"
    )]
    args: DeviceArgs,
}

crate::results! {
    /// The parts of a radio.
    struct ProbedRadio<'a> {
        /// Its address.
        addr: Ipv4Addr,
        /// Samples per second.
        rate_hz: f64,
        /// Bytes of the longest packet.
        packet_bytes_max: usize,
        /// Number of receive channels.
        rx_channels: usize,
        /// Number of transmit channels.
        tx_channels: usize,
        /// What it says about itself.
        device: &'a BTreeMap<String, String>,
        /// Its sensors.
        sensors: Vec<SensorDocument<'a>>,
        /// The lines of each heading: versions, clocks, sources, stream, links, channels, rates,
        /// front_ends, blocks, connections and stream_endpoints.
        #[serde(flatten)]
        parts: BTreeMap<String, Vec<ProbedLine<'a>>>,
    }

    /// A line below a heading.
    struct ProbedLine<'a> {
        /// The part.
        name: &'a str,
        /// What is known about it.
        value: &'a str,
    }

    /// A sensor and its value.
    struct SensorDocument<'a> {
        /// `motherboard`, or the direction and channel.
        place: &'a str,
        /// Its name.
        name: &'a str,
        /// Its value: a truth value, a number or text.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
        /// The unit of the value.
        #[serde(skip_serializing_if = "Option::is_none")]
        unit: Option<&'a str>,
        /// Why it cannot be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    }
}

/// Succeeds when the radio could be opened.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let device = Device::open(args.args).context("cannot open the radio")?;
    let tree = Tree::of(&device);
    Ok(Report::of(tree.words(), &tree.document(&device)))
}

/// Headings with their lines: a name and its value.
struct Tree {
    title: String,
    branches: Vec<(&'static str, Vec<(String, String)>)>,
    sensors: Vec<SensorEntry>,
}

impl Tree {
    fn of(device: &Device) -> Self {
        let info = device.info();
        let named = |(name, value): (&String, &String)| (name.clone(), value.clone());
        let clock = |clock: &BTreeMap<String, String>| {
            let field = |name: &str| clock.get(name).map_or("?", String::as_str);
            (field("name").to_owned(), format!("{} Hz", field("freq")))
        };
        let sensors = read_sensors(device);
        let blocks = device.blocks();
        let (major, minor) = (blocks.protocol >> 8, blocks.protocol & 0xFF);
        let time = device.time_ticks().map(|ticks| {
            let seconds = ticks as f64 / device.tick_rate_hz();
            ("time".to_owned(), format!("{seconds:.6} s, {ticks} ticks"))
        });
        let mut stream = vec![
            ("sample rate".to_owned(), format!("{} Hz", short(device.rate_hz()))),
            ("ticks".to_owned(), format!("{} Hz", short(device.tick_rate_hz()))),
            (
                "RFNoC".to_owned(),
                format!(
                    "{major}.{minor}, device type {:04X}, CHDR words of {} bits",
                    blocks.device_type,
                    device.width().bits()
                ),
            ),
        ];
        stream.extend(time.ok());
        let branches = vec![
            ("device", info.device.iter().map(named).collect()),
            ("versions", versions(device)),
            ("clocks", info.clocks.iter().map(clock).collect()),
            ("sources", sources(device)),
            ("stream", stream),
            ("links", links(device)),
            ("channels", channels(blocks)),
            ("rates", rates(device)),
            ("front ends", front_ends(device)),
            ("sensors", sensors.iter().map(SensorEntry::line).collect()),
            ("blocks", list_blocks(blocks)),
            ("connections", blocks.edges.iter().map(|edge| connection(blocks, edge)).collect()),
            ("stream endpoints", endpoints(device)),
        ];
        let title = format!("{} at {}", info.product(), device.address());
        Self { title, branches, sensors }
    }

    fn words(&self) -> String {
        let mut text = format!("{}\n", self.title);
        for (heading, lines) in self.branches.iter().filter(|(_, lines)| !lines.is_empty()) {
            let _ = writeln!(text, "  {heading}");
            for (name, value) in lines {
                let _ = writeln!(text, "    {name:<18} {value}");
            }
        }
        text
    }

    fn document<'a>(&'a self, device: &'a Device) -> ProbedRadio<'a> {
        // They have fields of their own.
        let others = |heading: &str| !["device", "sensors"].contains(&heading);
        let branches = self.branches.iter().filter(|(heading, _)| others(heading));
        let branch = |(heading, lines): &'a (&str, Vec<(String, String)>)| {
            let lines = lines.iter().map(|(name, value)| ProbedLine { name, value });
            (heading.replace(' ', "_"), lines.collect())
        };
        ProbedRadio {
            addr: device.address(),
            rate_hz: device.rate_hz(),
            packet_bytes_max: device.frame_bytes(),
            rx_channels: device.rx_channels(),
            tx_channels: device.tx_channels(),
            device: &device.info().device,
            sensors: self.sensors.iter().map(SensorEntry::document).collect(),
            parts: branches.map(branch).collect(),
        }
    }
}

/// The versions of its parts. All of them work with this program, or it would not be open.
fn versions(device: &Device) -> Vec<(String, String)> {
    let (info, blocks) = (device.info(), device.blocks());
    let uhd = MpmGeneration::of(info.mpm).map_or("?", |generation| generation.uhd);
    let line = |name: &str, value: String| (name.to_owned(), value);
    vec![
        line("MPM", format!("{}.{} (UHD {uhd})", info.mpm.0, info.mpm.1)),
        line("RFNoC protocol", format!("{}.{}", blocks.protocol >> 8, blocks.protocol & 0xFF)),
    ]
}

/// The possible clock and time sources, and the present ones. A device need not report them.
fn sources(device: &Device) -> Vec<(String, String)> {
    let source = |kind: SourceKind| {
        let all = device.sources(kind).iter().join(", ");
        let value = format!("{} (there are: {all})", device.source(kind)?);
        Some((kind.name().to_owned(), value))
    };
    [SourceKind::Clock, SourceKind::Time].into_iter().filter_map(source).collect()
}

/// The addresses of the device by which it was opened, with the longest packet of each.
fn links(device: &Device) -> Vec<(String, String)> {
    let line = |link: &DeviceLink| {
        let value = format!(
            "packets of {} bytes at most, crossbar port {}",
            link.frame_bytes, link.entry_port
        );
        (link.address.to_string(), value)
    };
    device.links().iter().map(line).collect()
}

/// Channels with the numbers of `rx` and `tx`, and the radio's others with the reason.
fn channels(blocks: &ClientZero) -> Vec<(String, String)> {
    let lines = |direction: StreamDirection| {
        let mut number = 0;
        let line = move |chain: &RadioChain| {
            let usable = chain.endpoint.is_ok();
            number += usize::from(usable);
            let label = if usable { (number - 1).to_string() } else { "–".to_owned() };
            (format!("{} {label}", direction.name()), chain.describe(blocks))
        };
        blocks.chains(direction).iter().map(line).collect::<Vec<_>>()
    };
    [lines(StreamDirection::Rx), lines(StreamDirection::Tx)].concat()
}

/// The rates of each channel.
fn rates(device: &Device) -> Vec<(String, String)> {
    let line = |direction: StreamDirection, channel| {
        let ticks_hz = device.tick_rate_hz();
        let value = match device.factor_max(direction, channel)? {
            1 => "that of the radio".to_owned(),
            most => {
                let slowest = short(ticks_hz / f64::from(most));
                format!("{slowest} to {} Hz: the radio's by 1 to {most}", short(ticks_hz))
            }
        };
        Some((format!("{} {channel}", direction.name()), value))
    };
    let rx = (0..device.rx_channels()).filter_map(|channel| line(StreamDirection::Rx, channel));
    let tx = (0..device.tx_channels()).filter_map(|channel| line(StreamDirection::Tx, channel));
    rx.chain(tx).collect()
}

/// The ranges of the front ends, where this host can set them.
fn front_ends(device: &Device) -> Vec<(String, String)> {
    let line = |direction: StreamDirection| {
        let ranges = device.ranges(direction)?;
        let mut parts = vec![range("", ranges.freq_hz, 1e6, "MHz")];
        parts.extend(ranges.gain_db.map(|gain| range("gain ", gain, 1.0, "dB")));
        parts.extend(ranges.bandwidth_hz.map(|width| range("bandwidth ", width, 1e6, "MHz")));
        if !ranges.antennas.is_empty() {
            parts.push(format!("antenna {}", ranges.antennas.join(" or ")));
        }
        Some((direction.name().to_owned(), parts.join(", ")))
    };
    [StreamDirection::Rx, StreamDirection::Tx].into_iter().filter_map(line).collect()
}

fn range(name: &str, (from, to): (f64, f64), unit: f64, symbol: &str) -> String {
    format!("{name}{} to {} {symbol}", from / unit, to / unit)
}

fn list_blocks(blocks: &ClientZero) -> Vec<(String, String)> {
    let line = |block: &millstream_radio::client_zero::DeviceBlock| {
        let info = &block.info;
        let value = format!(
            "NoC id {:08X}, version {}, control port {}, {} inputs, {} outputs",
            block.noc_id, info.version, block.port, info.inputs, info.outputs
        );
        (blocks.name(block.index), value)
    };
    blocks.blocks.iter().map(line).collect()
}

fn connection(blocks: &ClientZero, edge: &Edge) -> (String, String) {
    let end = |index, port| format!("{}:{port}", blocks.name(index));
    (end(edge.src_index, edge.src_port), format!("to {}", end(edge.dst_index, edge.dst_port)))
}

fn endpoints(device: &Device) -> Vec<(String, String)> {
    let line = |endpoint: &millstream_radio::topology::Endpoint| {
        let carries = match (endpoint.control, endpoint.data) {
            (true, true) => "control and data",
            (true, false) => "control",
            _ => "data",
        };
        let value = format!("crossbar port {}, {carries}", endpoint.port);
        (format!("{}", endpoint.instance), value)
    };
    device.topology().endpoints.iter().map(line).collect()
}

/// A sensor and its reading.
struct SensorEntry {
    /// `motherboard`, or the direction and channel.
    place: String,
    name: String,
    /// The reading, or why there is none.
    reading: Result<SensorReading, String>,
}

/// Reads all sensors: those of the motherboard, and those of each channel. A sensor that cannot be
/// read is no reason to fail.
fn read_sensors(device: &Device) -> Vec<SensorEntry> {
    let entry = |place: &str, name: &String, reading: Result<SensorReading, RadioError>| {
        let (place, name) = (place.to_owned(), name.clone());
        SensorEntry { place, name, reading: reading.map_err(|error| error.to_string()) }
    };
    let mut all = Vec::new();
    for name in device.sensors().unwrap_or_default() {
        all.push(entry("motherboard", &name, device.sensor(&name)));
    }
    for (direction, channels) in
        [(StreamDirection::Rx, device.rx_channels()), (StreamDirection::Tx, device.tx_channels())]
    {
        for channel in 0..channels {
            let place = format!("{} {channel}", direction.name());
            for name in device.channel_sensors(direction, channel).unwrap_or_default() {
                let reading = device.channel_sensor(direction, channel, &name);
                all.push(entry(&place, &name, reading));
            }
        }
    }
    all
}

impl SensorEntry {
    /// Returns the name with its place, and the value with its unit.
    fn line(&self) -> (String, String) {
        let value = match &self.reading {
            Ok(reading) => match reading.as_bool() {
                Some(true) => reading.value.clone(),
                Some(false) => format!("{} (not {})", reading.value, reading.unit),
                None => format!("{} {}", reading.value, reading.unit).trim_end().to_owned(),
            },
            Err(error) => format!("cannot be read: {error}"),
        };
        (format!("{} {}", self.place, self.name), value)
    }

    /// Returns the same for programs: the value as its type says.
    fn document(&self) -> SensorDocument<'_> {
        let Self { place, name, reading } = self;
        let value = |reading: &SensorReading| {
            let typed = match reading.kind.as_str() {
                "BOOLEAN" => reading.as_bool().map(Value::from),
                "INTEGER" | "REALNUM" => reading.as_f64().map(Value::from),
                _ => None,
            };
            typed.unwrap_or_else(|| reading.value.clone().into())
        };
        let read = reading.as_ref().ok();
        SensorDocument {
            place,
            name,
            value: read.map(value),
            unit: read.map(|reading| reading.unit.as_str()),
            error: reading.as_ref().err().map(String::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::document;
    use serde_json::json;

    #[test]
    fn values_have_units_and_types() {
        let entry = |value: &str, unit: &str, kind: &str| SensorEntry {
            place: "rx 0".into(),
            name: "x".into(),
            reading: Ok(SensorReading {
                name: "x".into(),
                value: value.into(),
                unit: unit.into(),
                kind: kind.into(),
            }),
        };
        let line = |entry: &SensorEntry| entry.line().1;
        let locked = entry("true", "locked", "BOOLEAN");
        assert_eq!(
            (line(&locked), document(&locked.document())["value"].clone()),
            ("true".into(), json!(true))
        );
        assert_eq!(line(&entry("false", "locked", "BOOLEAN")), "false (not locked)");
        let warm = entry("41.5", "C", "REALNUM");
        assert_eq!(
            (line(&warm), document(&warm.document())["value"].clone()),
            ("41.5 C".into(), json!(41.5))
        );
        let text = entry("$GPGGA,1", "", "STRING");
        assert_eq!(
            (line(&text), document(&text.document())["value"].clone()),
            ("$GPGGA,1".into(), json!("$GPGGA,1"))
        );
        let broken = SensorEntry { reading: Err("no".into()), ..entry("", "", "") };
        assert_eq!(broken.line(), ("rx 0 x".into(), "cannot be read: no".into()));
        assert_eq!(document(&broken.document())["error"], "no");
    }
}
