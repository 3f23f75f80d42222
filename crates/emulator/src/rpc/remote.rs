//! Streams to hosts other than the caller: the transport adapters and their routes.

use super::methods::{Answer, Mpm};
use super::values::{entry, string_map, text, unsigned};
use crate::device::{HostAddress, RemoteRoute};
use crate::mailbox::DeviceCommand;
use millstream_mpm::RpcKind;
use millstream_wire::Epid;
use rmpv::Value;
use std::net::{Ipv4Addr, SocketAddrV4};

/// What the adapters can do: send packets elsewhere, and without their header.
const ABILITIES: [(&str, &str); 2] = [("rx_routing", "1"), ("rx_hdr_removal", "1")];

impl Mpm {
    /// Returns the adapters by name; none for a device without ports of its own.
    pub(super) fn adapters(&self) -> Value {
        let adapter = |(name, link): (String, usize)| {
            let instance = link.to_string();
            let [routing, removal] = ABILITIES;
            let told = match self.caller.generation().rpc {
                RpcKind::Msgpack => string_map([("ta_inst", &instance), routing, removal]),
                // A value of a gRPC map is a text.
                RpcKind::Grpc => {
                    let abilities = ABILITIES.map(|(name, value)| format!("{name}={value}"));
                    format!("ta_inst={instance},{}", abilities.join(",")).into()
                }
            };
            (Value::from(name), told)
        };
        Value::Map(self.adapter_names().map(adapter).collect())
    }

    /// Has the packets to an endpoint leave for the host that the arguments name. Returns the
    /// number of the adapter.
    pub(super) fn add_route(&mut self, args: &[Value]) -> Answer {
        let wanted = text(args, 0)?;
        let found = self.adapter_names().find(|(name, _)| name == wanted);
        let (_, link) = found.ok_or_else(|| {
            let names: Vec<_> = self.adapter_names().map(|(name, _)| name).collect();
            format!("there is no adapter {wanted} for a route; there are: {}", names.join(", "))
        })?;
        let epid = u16::try_from(unsigned(args, 1)?);
        let epid = Epid(epid.map_err(|_| "an endpoint id has 16 bits")?);
        let given = |key| entry(args, 2, key).unwrap_or("");
        let address: Ipv4Addr = parsed("dest_addr", given("dest_addr"), "an IPv4 address")?;
        let port: u16 = parsed("dest_port", given("dest_port"), "a UDP port, 1 to 65535")?;
        if port == 0 {
            return Err("dest_port=0 is not a UDP port, 1 to 65535".to_owned());
        }
        let raw = match given("stream_mode").to_ascii_lowercase().as_str() {
            "raw_payload" => true,
            "full_packet" => false,
            mode => {
                return Err(format!("stream_mode={mode} is neither raw_payload nor full_packet"));
            }
        };
        // The network of this machine knows the way to an address itself.
        let mac = given("dest_mac_addr");
        if !(mac.is_empty() || is_mac(mac)) {
            return Err(format!("dest_mac_addr={mac} is not of the form AA:BB:CC:DD:EE:FF"));
        }
        let to = HostAddress { link, socket: SocketAddrV4::new(address, port), raw };
        self.order(DeviceCommand::Route(RemoteRoute { epid, to }));
        Ok(match self.caller.generation().rpc {
            RpcKind::Msgpack => Value::from(link as u64),
            RpcKind::Grpc => Value::from(true),
        })
    }

    /// Returns the names of the adapters, with the numbers of their links.
    fn adapter_names(&self) -> impl Iterator<Item = (String, usize)> + use<> {
        let links =
            if self.identity.personality.has_adapters { self.identity.chdr.len() } else { 0 };
        (0..links).map(|link| (format!("sfp{link}"), link))
    }
}

fn parsed<T: std::str::FromStr>(key: &str, value: &str, what: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{key}={value} is not {what}"))
}

/// Returns whether a text is the address of a network card.
fn is_mac(text: &str) -> bool {
    let is_byte = |part: &str| part.len() == 2 && u8::from_str_radix(part, 16).is_ok();
    text.split(':').count() == 6 && text.split(':').all(is_byte)
}

#[cfg(test)]
mod tests {
    use super::super::methods::tests::claimed_as;
    use super::*;
    use crate::DeviceKind;

    fn route_args(pairs: &[(&str, &str)]) -> Value {
        Value::Map(pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect())
    }

    #[test]
    fn a_route_names_an_adapter_an_endpoint_and_where_its_packets_go() {
        let (mut mpm, inbox, token) = claimed_as(DeviceKind::E320, false, 1);
        let adapters =
            mpm.call("get_chdr_xport_adapters", std::slice::from_ref(&token), 1).unwrap();
        let want = string_map([("ta_inst", "0"), ("rx_routing", "1"), ("rx_hdr_removal", "1")]);
        assert_eq!(adapters, Value::Map(vec![("sfp0".into(), want)]));
        let mut add = |adapter: &str, epid: u64, pairs: &[(&str, &str)]| {
            let args = [token.clone(), adapter.into(), epid.into(), route_args(pairs)];
            mpm.call("add_remote_chdr_route", &args, 1)
        };
        let good =
            [("dest_addr", "10.0.0.9"), ("dest_port", "1234"), ("stream_mode", "raw_payload")];
        for (mode, raw) in [("raw_payload", true), ("FULL_PACKET", false)] {
            let pairs = [good[0], good[1], ("stream_mode", mode), ("adapter", "x")];
            assert_eq!(add("sfp0", 7, &pairs), Ok(Value::from(0)));
            let socket = "10.0.0.9:1234".parse().unwrap();
            let to = HostAddress { link: 0, socket, raw };
            let last = inbox.try_iter().last();
            assert_eq!(last, Some(DeviceCommand::Route(RemoteRoute { epid: Epid(7), to })));
        }
        assert!(add("sfp1", 7, &good).unwrap_err().ends_with("there are: sfp0"));
        assert!(add("sfp0", 1 << 16, &good).unwrap_err().contains("16 bits"));
        for (bad, part) in [
            (("dest_addr", "::1"), "dest_addr=::1 is not an IPv4 address"),
            (("dest_port", "0"), "dest_port=0"),
            (("dest_port", "70000"), "dest_port=70000"),
            (("stream_mode", "raw"), "neither raw_payload nor full_packet"),
            (("dest_mac_addr", "1:2:3"), "AA:BB:CC:DD:EE:FF"),
        ] {
            let pairs: Vec<_> = [bad].into_iter().chain(good).collect();
            let error = add("sfp0", 7, &pairs).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(inbox.try_iter().count(), 0, "nothing that was refused has an effect");
    }

    #[test]
    fn a_device_without_ports_of_its_own_has_no_adapters() {
        let (mut mpm, _inbox, token) = claimed_as(DeviceKind::E310, false, 1);
        let adapters = mpm.call("get_chdr_xport_adapters", &[token], 1);
        assert_eq!(adapters, Ok(Value::Map(Vec::new())));
    }
}
