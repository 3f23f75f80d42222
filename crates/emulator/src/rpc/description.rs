//! What a device tells about itself.

use super::methods::{Answer, Mpm};
use super::values::{none, string_map, strings, text};
use rmpv::Value;
use std::net::SocketAddrV4;

/// The announced link rate, bytes/s: 10 GbE, so hosts try large frames and buffers.
const LINK_RATE: &str = "1250000000";
/// Largest CHDR packet, bytes.
const LINK_MTU: &str = "8192";
const BUS_CLOCK_HZ: &str = "200000000.0";
const CONTROL_CLOCK_HZ: &str = "40000000.0";

/// The sensors of a motherboard: name, type, unit, value.
const SENSORS: [[&str; 4]; 2] =
    [["ref_locked", "BOOLEAN", "locked", "true"], ["temp_fpga", "REALNUM", "C", "45.0"]];

impl Mpm {
    /// Describes the daughterboards, one for each radio block.
    pub(super) fn board_info(&self) -> Value {
        let personality = self.identity.personality;
        let board = string_map([
            ("pid", personality.board_pid),
            ("serial", &self.identity.serial),
            ("rev", "1"),
        ]);
        Value::Array(vec![board; personality.radios])
    }

    pub(super) fn device_info(&self) -> Value {
        let personality = self.identity.personality;
        let generation = self.caller.generation();
        let [major, minor] = generation.mpm_compat;
        string_map([
            ("type", personality.mpm_type),
            ("product", personality.product),
            ("serial", &self.identity.serial),
            ("name", &self.identity.name),
            ("description", personality.description),
            ("pid", personality.pid),
            ("rev", personality.revision),
            ("mpm_version", &format!("{major}.{minor}")),
            ("fpga", "n/a"),
            ("fpga_version", personality.fpga.unwrap_or(generation.x4xx_fpga)),
            ("connection", "remote"),
        ])
    }

    pub(super) fn clocks(&self) -> Value {
        let rate = format!("{:?}", self.timekeeper.clock().rate_hz());
        let fixed = |name, freq| string_map([("name", name), ("freq", freq)]);
        let radio = |name| string_map([("name", name), ("freq", &rate), ("mutable", "true")]);
        let mut clocks = vec![
            radio("radio_clk"),
            fixed("bus_clk", BUS_CLOCK_HZ),
            fixed("ctrl_clk", CONTROL_CLOCK_HZ),
        ];
        if self.is_x410() {
            // By the numbers with which its blocks name them (client zero).
            clocks.push(fixed("1", CONTROL_CLOCK_HZ));
            clocks.extend(["2", "3", "4", "5"].map(radio));
        }
        Value::Array(clocks)
    }

    pub(super) fn link_options(&self, args: &[Value]) -> Answer {
        if text(args, 0)? != "udp" {
            return Ok(none());
        }
        let link = |(number, chdr): (usize, &SocketAddrV4)| {
            string_map([
                ("ipv4", &chdr.ip().to_string()),
                ("port", &chdr.port().to_string()),
                ("type", &format!("sfp{number}")),
                ("mtu", LINK_MTU),
                ("link_rate", LINK_RATE),
            ])
        };
        Ok(Value::Array(self.identity.chdr.iter().enumerate().map(link).collect()))
    }

    /// Returns the names of the sensors.
    pub(super) fn board_sensors(&self) -> Value {
        strings(&SENSORS.map(|[name, ..]| name))
    }

    /// Reads the sensor with a name.
    pub(super) fn board_sensor(&self, args: &[Value]) -> Answer {
        let wanted = text(args, 0)?;
        let found = SENSORS.iter().find(|[name, ..]| *name == wanted);
        let [name, kind, unit, value] = found.ok_or_else(|| {
            let names = SENSORS.map(|[name, ..]| name).join(", ");
            format!("there is no sensor {wanted}; there are {names}")
        })?;
        Ok(string_map([("name", name), ("type", kind), ("unit", unit), ("value", value)]))
    }
}

/// Returns pairs of sources that go together, as on the hardware.
pub(super) fn sync_sources() -> Value {
    let pairs = [("internal", "internal"), ("external", "external"), ("external", "internal")];
    let pair = |(clock, time)| string_map([("clock_source", clock), ("time_source", time)]);
    Value::Array(pairs.map(pair).into())
}
