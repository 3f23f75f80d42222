//! The keys of text that open a radio.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use millstream_emulator::scene::Scene;
use millstream_emulator::{DeviceKind, RadioConfig};
use millstream_radio::DeviceArgs;

use crate::error::ClientError;

/// Keys of the connection, which [`DeviceArgs`] knows.
const CONNECTION: [&str; 11] = [
    "addr",
    "serial",
    "type",
    "product",
    "master_clock_rate",
    "clock_source",
    "time_source",
    "discovery_port",
    "rpc_port",
    "recv_queue_bytes",
    "claim_wait_s",
];

/// Keys of the emulated radio.
const EMULATED: [&str; 9] = [
    "antenna",
    "scene",
    "device",
    "fault",
    "mtu",
    "rx_buffer_samples",
    "tx_buffer_samples",
    "tx_out",
    "time_scale",
];

/// Keys that found radios carry, and that select none.
const IGNORED: [&str; 5] = ["driver", "label", "name", "description", "version"];

/// The beginnings of keys that clients add for themselves.
const OF_CLIENTS: [&str; 2] = ["soapy", "remote"];

/// The value of `type` by which SoapyUHD selects itself, and which it passes on: no type of radio.
const SOAPY_UHD: (&str, &str) = ("type", "soapy");

/// The keys that open a radio.
///
/// | key | what it says |
/// | --- | --- |
/// | `addr` | the address of a radio |
/// | `serial`, `type`, `product` | the radio that answers a search with these |
/// | `link` | the link that carries samples, such as `udp:gro=off` |
/// | `master_clock_rate`, `clock_source`, `time_source` | the radio's clock |
/// | `recv_queue_bytes`, `claim_wait_s`, `discovery_port`, `rpc_port` | as for `millstream rx` |
/// | `radio=emulated` | an emulated radio in this process, with the keys below |
/// | `device` | a device of `millstream sim radio`; `e320` unless there is an `antenna` |
/// | `antenna` | the source of the received samples, in place of a scene |
/// | `scene` | a scene file |
/// | `fault` | faults from the start |
/// | `tx_out` | a file for the samples of transmit channel 0 |
/// | `mtu`, `rx_buffer_samples`, `tx_buffer_samples`, `time_scale` | as in `millstream sim radio` |
///
/// In values of `antenna`, `fault` and `link` a semicolon may stand for a comma, which many clients
/// use to separate keys; `fault` separates faults by `+`. `type=soapy`, by which UHD selects
/// SoapyUHD, selects no radio.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientArgs {
    keys: BTreeMap<String, String>,
    unknown: Vec<String>,
}

impl ClientArgs {
    /// Takes keys with values. Those that nobody knows are kept in [`ClientArgs::unknown`].
    pub fn from_pairs<K, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<String>,
    {
        let mut args = Self::default();
        for (key, value) in pairs {
            let (key, value) = (key.into(), value.into());
            if (&*key, &*value) == SOAPY_UHD {
                continue;
            }
            let known = CONNECTION.contains(&&*key)
                || EMULATED.contains(&&*key)
                || matches!(&*key, "link" | "radio");
            if known {
                args.keys.insert(key, value);
            } else if !IGNORED.contains(&&*key) && !OF_CLIENTS.iter().any(|of| key.starts_with(of))
            {
                args.unknown.push(key);
            }
        }
        args
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    /// Returns the keys with their values.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.keys.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Returns the keys that are not known.
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Returns whether they name an emulated radio in this process.
    ///
    /// # Errors
    /// [`ClientError::Argument`] for another kind of radio.
    pub fn is_emulated(&self) -> Result<bool, ClientError> {
        match self.get("radio") {
            None => Ok(false),
            Some("emulated") => Ok(true),
            Some(other) => Err(bad("radio", other, "emulated, or addr=IPV4 in its place")),
        }
    }

    /// Returns the arguments of the connection.
    pub(crate) fn device_args(&self) -> Result<DeviceArgs, ClientError> {
        let of_emulated = EMULATED.iter().find(|key| self.keys.contains_key(**key));
        if let (Some(key), false) = (of_emulated, self.is_emulated()?) {
            let value = self.get(key).unwrap_or_default();
            return Err(bad(key, value, "it together with radio=emulated only"));
        }
        let named = CONNECTION.iter().filter_map(|key| Some((key, self.get(key)?)));
        let text: Vec<String> = named.map(|(key, value)| format!("{key}={value}")).collect();
        let mut args: DeviceArgs = text.join(",").parse()?;
        if let Some(link) = self.get("link") {
            args.link = link.replace(';', ",");
        }
        Ok(args)
    }

    /// Returns the configuration of the emulated radio, if they name it.
    pub(crate) fn emulated(&self) -> Result<Option<RadioConfig>, ClientError> {
        if !self.is_emulated()? {
            return Ok(None);
        }
        let mut config = RadioConfig {
            device: DeviceKind::E320,
            discovery_port: 0,
            rpc_port: 0,
            chdr_port: 0,
            // The process shares its processors with the radio.
            rx_buffer_samples: 1 << 22,
            ..RadioConfig::default()
        };
        if let Some(antenna) = self.get("antenna") {
            config.rx_antennas = vec![antenna.replace(';', ",")];
            config.device = DeviceKind::E320Radio;
        }
        if let Some(scene) = self.get("scene") {
            config.scene = Some(Scene::load(&PathBuf::from(scene))?);
        }
        if let Some(name) = self.get("device") {
            let found = DeviceKind::named(name);
            let names = DeviceKind::ALL.map(DeviceKind::name).join(" or ");
            config.device = found.ok_or_else(|| bad("device", name, &names))?;
            if !matches!(config.device, DeviceKind::E320 | DeviceKind::E320Radio) {
                config.rates = config.device.rates();
                config.master_clock_rate_hz = config.device.default_rate_hz();
            }
        }
        if let Some(serial) = self.get("serial") {
            config.serial = serial.to_owned();
        }
        if let Some(faults) = self.get("fault") {
            let all = faults.split('+').map(|fault| fault.trim().replace(';', ","));
            config.faults = all.filter(|fault| !fault.is_empty()).collect();
        }
        if let Some(file) = self.get("tx_out") {
            config.tx_out = vec![PathBuf::from(file)];
        }
        self.number("mtu", &mut config.mtu)?;
        self.number("rx_buffer_samples", &mut config.rx_buffer_samples)?;
        self.number("tx_buffer_samples", &mut config.tx_buffer_samples)?;
        self.number("time_scale", &mut config.time_scale)?;
        Ok(Some(config))
    }

    fn number<N: FromStr>(&self, key: &str, number: &mut N) -> Result<(), ClientError> {
        if let Some(value) = self.get(key) {
            *number = value.parse().map_err(|_| bad(key, value, "a number"))?;
        }
        Ok(())
    }
}

impl FromStr for ClientArgs {
    type Err = ClientError;

    /// Reads `addr=192.168.10.2,link=udp:gro=off`. `link` comes last, because its options have
    /// commas.
    fn from_str(text: &str) -> Result<Self, ClientError> {
        let mut pairs = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            if let Some(link) = rest.strip_prefix("link=") {
                pairs.push(("link", link));
                break;
            }
            let (pair, tail) = rest.split_once(',').unwrap_or((rest, ""));
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| bad("argument", pair, "arguments of the form key=value"))?;
            pairs.push((key.trim(), value.trim()));
            rest = tail.trim_start();
        }
        let args = Self::from_pairs(pairs);
        match args.unknown.first() {
            None => Ok(args),
            Some(key) => {
                let known = [&CONNECTION[..], &["link", "radio"], &EMULATED].concat().join(", ");
                Err(bad("argument", key, &format!("one of {known}")))
            }
        }
    }
}

fn bad(key: &str, value: &str, expected: &str) -> ClientError {
    let (key, value, expected) = (key.to_owned(), value.to_owned(), expected.to_owned());
    ClientError::Argument { key, value, expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> ClientArgs {
        text.parse().unwrap()
    }

    #[test]
    fn keys_become_a_connection_or_an_emulated_radio() {
        let real = args("driver=millstream,addr=10.0.0.2,serial=7,link=udp:gro=off,busy_poll_us=5");
        assert!(real.emulated().unwrap().is_none());
        let device = real.device_args().unwrap();
        assert_eq!(device.addr.to_string(), "10.0.0.2");
        assert_eq!(device.link, "udp:gro=off,busy_poll_us=5");
        assert_eq!(device.identity.serial.as_deref(), Some("7"));
        let config = args("radio=emulated").emulated().unwrap().unwrap();
        assert!(config.device == DeviceKind::E320 && config.has_scene());
        let text =
            "radio=emulated,antenna=tone:1e6;0.5,fault=stall ms=5 + lose to_host data,mtu=1500";
        let config = args(text).emulated().unwrap().unwrap();
        assert_eq!(config.rx_antennas, ["tone:1e6,0.5"]);
        assert_eq!(config.faults, ["stall ms=5", "lose to_host data"]);
        assert_eq!((config.device, config.mtu), (DeviceKind::E320Radio, 1500));
    }

    #[test]
    fn what_selects_a_client_selects_no_radio() {
        for text in ["type=soapy", "soapy=0", "remote:driver=millstream", "driver=millstream"] {
            let both = args(&format!("addr=10.0.0.2,{text}"));
            assert_eq!(both, args("addr=10.0.0.2"), "{text}");
        }
        assert_eq!(args("addr=10.0.0.2,type=e3xx").get("type"), Some("e3xx"));
    }

    #[test]
    fn bad_keys_say_what_is_accepted() {
        let text = |text: &str| match text.parse::<ClientArgs>() {
            Ok(args) => match args.emulated() {
                Ok(_) => args.device_args().unwrap_err().to_string(),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        assert_eq!(
            text("radio=real"),
            "radio=real cannot be used: give emulated, or addr=IPV4 in its place"
        );
        assert_eq!(
            text("radio="),
            "radio= came without a value: give emulated, or addr=IPV4 in its place"
        );
        assert!(text("radio=emulated,device=x").contains("give e320-radio or e320"));
        assert!(text("radio=emulated,mtu=big").contains("mtu=big cannot be used: give a number"));
        assert!(text("adr=1.2.3.4").contains("one of addr, serial"));
        assert!(text("addr").contains("key=value"));
        assert!(text("addr=1.2.3.4,antenna=ramp").contains("radio=emulated"));
        let kept = ClientArgs::from_pairs([("adr", "0"), ("soapy", "0"), ("addr", "1.2.3.4")]);
        assert_eq!(kept.unknown(), ["adr"]);
    }
}
