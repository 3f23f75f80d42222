//! The configuration of an emulated radio.

use crate::faults;
use crate::personality::{ClockRates, DeviceKind, Image, ImageOptions, Personality};
use crate::scene::Scene;
use crate::{Error, UhdGeneration};
use millstream_wire::chdr::Width;
use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

/// The most channels of a device.
pub(crate) const CHANNELS_MAX: usize = 4;

/// A second link of a radio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondLink {
    /// The address of its ports, another one than that of the first link. Hosts that reach both
    /// from different addresses of their own use both.
    pub addr: Ipv4Addr,
    /// The link that carries CHDR, see [`RadioConfig::link`].
    pub link: String,
}

/// Configuration of an emulated radio.
#[derive(Debug, Clone)]
pub struct RadioConfig {
    /// The kind of device.
    pub device: DeviceKind,
    /// The version of UHD that its software and image belong to.
    pub uhd: UhdGeneration,
    /// Bits of a CHDR word; 64 in the stock images of all devices that there are.
    pub chdr_width: Width,
    /// The image also has a replay block, a generator of signals, and a null source and sink.
    pub extra_blocks: bool,
    /// Address of all its ports; one that belongs to this machine, for example 127.0.0.2.
    pub addr: Ipv4Addr,
    /// UDP port of discovery and echo.
    pub discovery_port: u16,
    /// TCP port of remote procedure calls.
    pub rpc_port: u16,
    /// UDP port of CHDR packets; 0 takes any free one, which RPC announces.
    pub chdr_port: u16,
    /// Serial number shown to hosts; empty for one from the address, see [`RadioConfig::serial`].
    pub serial: String,
    /// Name shown to hosts.
    pub name: String,
    /// Antenna of each receive channel, see [`crate::antenna::source`]. The last one is also used
    /// for further channels; an empty list means silence.
    pub rx_antennas: Vec<String>,
    /// What the antennas hear when [`RadioConfig::rx_antennas`] is empty: tuning then has its
    /// effects. Without one the stock image hears [`Scene::default`], and the bare radio nothing.
    pub scene: Option<Scene>,
    /// Take any frequency, gain and bandwidth, in place of the nearest that the hardware has.
    pub any_tuning: bool,
    /// File for everything that each transmit channel sends (sc16, with SigMF metadata); channels
    /// beyond the list have none. Its name is FILE.part until the radio has ended, and remains so
    /// if a part could not be written ([`crate::RunningRadio::tx_out_errors`]).
    pub tx_out: Vec<PathBuf>,
    /// Whether those files may replace old ones of their names.
    pub overwrite: bool,
    /// Seconds of device time per second of wall time; below 1 the radio runs slower.
    pub time_scale: f64,
    /// Master clock rate after a claim, Hz.
    pub master_clock_rate_hz: f64,
    /// Master clock rates that a host may set: another one becomes the nearest of them, as on the
    /// hardware. Within [`ClockRates::ANY`]; the hardware's are [`DeviceKind::rates`].
    pub rates: ClockRates,
    /// Samples per channel that wait without credit of the host, before an overrun.
    pub rx_buffer_samples: u64,
    /// Size of each channel's transmit packet buffer in samples of four bytes; packet headers take
    /// space too. The system must allow a receive queue of about 14 times that many bytes, or the
    /// host is granted less.
    pub tx_buffer_samples: u64,
    /// Largest IP packet of the radio's network, bytes: echoes of longer ones are not returned, so
    /// hosts detect the limit.
    pub mtu: usize,
    /// The link that carries CHDR, see `millstream_net::open`. Discovery and remote procedure calls
    /// always use the kernel's sockets.
    pub link: String,
    /// A second link, for devices that have two.
    pub second_link: Option<SecondLink>,
    /// Faults from the start, see [`crate::faults`].
    pub faults: Vec<String>,
    /// The address of the control channel (TCP), if there is to be one; port 0 takes any free one.
    pub control: Option<SocketAddrV4>,
}

impl Default for RadioConfig {
    fn default() -> Self {
        Self {
            device: DeviceKind::default(),
            uhd: UhdGeneration::default(),
            chdr_width: Width::W64,
            extra_blocks: false,
            addr: Ipv4Addr::LOCALHOST,
            discovery_port: 49600,
            rpc_port: 49601,
            chdr_port: 49153,
            serial: String::new(),
            name: "millstream".to_owned(),
            rx_antennas: Vec::new(),
            scene: None,
            any_tuning: false,
            tx_out: Vec::new(),
            overwrite: false,
            time_scale: 1.0,
            master_clock_rate_hz: 16e6,
            rates: ClockRates::ANY,
            rx_buffer_samples: 64 * 1024,
            tx_buffer_samples: 64 * 1024,
            mtu: 9000,
            link: "udp".to_owned(),
            second_link: None,
            faults: Vec::new(),
            control: None,
        }
    }
}

impl RadioConfig {
    /// Checks every field that can be checked without the system.
    ///
    /// # Errors
    /// [`Error::Config`] for the first one out of range.
    pub fn check(&self) -> Result<(), Error> {
        let check = |field, holds: bool, value: &dyn Display, expected| match holds {
            true => Ok(()),
            false => Err(Error::Config { field, value: value.to_string(), expected }),
        };
        let is_one = |addr: Ipv4Addr| !addr.is_unspecified() && !addr.is_multicast();
        // Hosts receive this address, and send to it.
        let expected = "one address of this machine, such as `ip -4 addr` lists, or 127.0.0.2";
        check("addr", is_one(self.addr), &self.addr, expected)?;
        if let Some(SecondLink { addr, .. }) = &self.second_link {
            let check = |holds, expected| check("second_link", holds, addr, expected);
            check(is_one(*addr), "one address of this machine")?;
            check(*addr != self.addr, "another address than that of the first link")?;
            let expected = "none, as this device has one link only";
            check(self.device.links_max() >= 2, expected)?;
        }
        let (scale, is_scale) = (self.time_scale, (1e-6..=1e6).contains(&self.time_scale));
        let expected = "a factor from 0.000001 to 1000000";
        check("time_scale", is_scale, &format!("{scale:?}"), expected)?;
        let possible = |rate_hz: &f64| ClockRates::ANY.nearest(*rate_hz) == *rate_hz;
        let sound = match self.rates {
            ClockRates::Range(low_hz, high_hz) => {
                low_hz <= high_hz && [low_hz, high_hz].iter().all(possible)
            }
            ClockRates::List(list) => !list.is_empty() && list.iter().all(possible),
        };
        check("rates", sound, &format!("{:?}", self.rates), "rates from 1 kHz to 2 GHz")?;
        let rate_hz = self.master_clock_rate_hz;
        let expected = "one of the rates, from 1 kHz to 2 GHz";
        check("master_clock_rate_hz", self.rates.nearest(rate_hz) == rate_hz, &rate_hz, expected)?;
        let (rx, tx) = (self.rx_buffer_samples, self.tx_buffer_samples);
        check("rx_buffer_samples", (1024..=1 << 32).contains(&rx), &rx, "1024 samples to 2^32")?;
        check("tx_buffer_samples", (4096..=1 << 26).contains(&tx), &tx, "4096 samples to 2^26")?;
        let is_mtu = (576..=65_535).contains(&self.mtu);
        check("mtu", is_mtu, &self.mtu, "576 to 65535 bytes")?;
        let (channels, antennas) = (self.device.channels(), self.rx_antennas.len());
        let expected = "at most one antenna per channel of the device";
        check("rx_antennas", antennas <= channels, &antennas, expected)?;
        if self.scene.is_some() {
            let expected = "no scene, as the tuning of this device has no effect";
            let has_effects = self.personality().front_end.has_effects();
            check("scene", has_effects, &"a list of stations", expected)?;
            let (given, expected) = (self.rx_antennas.join(" "), "either a scene or antennas");
            check("rx_antennas", self.rx_antennas.is_empty(), &given, expected)?;
        }
        let files = self.tx_out.len();
        let expected = "at most one file per channel of the device";
        check("tx_out", files <= channels, &files, expected)?;
        for (at, path) in self.tx_out.iter().enumerate() {
            let stem = |path: &PathBuf| path.with_extension("");
            let is_new = self.tx_out[..at].iter().all(|one| stem(one) != stem(path));
            let expected = "another name for each channel, as their metadata lie beside them";
            check("tx_out", is_new, &path.display(), expected)?;
        }
        let cable = self.rx_antennas.iter().any(|spec| spec.starts_with("loopback:"));
        let stored = cable || self.has_scene() || self.personality().has_dsp;
        let expected =
            "at most 2^26 samples with a loopback, scene or DDC, which keep them in memory";
        check("rx_buffer_samples", !stored || rx <= 1 << 26, &rx, expected)?;
        for (field, value) in [("serial", &self.serial()), ("name", &self.name)] {
            // They appear in `key=value;` lists and in device address strings.
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let is_plain = (1..=32).contains(&value.len()) && value.chars().all(plain);
            check(field, is_plain, value, "1 to 32 of A-Z a-z 0-9 - _ .")?;
        }
        self.faults.iter().try_for_each(|fault| faults::check(fault))?;
        Ok(())
    }

    /// Returns the default configuration of a device, with the master clock rates of its hardware.
    pub fn of(device: DeviceKind) -> Self {
        let (rates, master_clock_rate_hz) = (device.rates(), device.default_rate_hz());
        Self { device, rates, master_clock_rate_hz, ..Self::default() }
    }

    /// Returns the serial number shown to hosts. UHD compares serial numbers as hexadecimal numbers
    /// below 2^31; the address without its first bit is such a number, and radios of one network
    /// differ.
    pub fn serial(&self) -> String {
        if self.serial.is_empty() {
            format!("{:08X}", u32::from(self.addr) & 0x7fff_ffff)
        } else {
            self.serial.clone()
        }
    }

    /// Returns whether its antennas hear a scene.
    pub fn has_scene(&self) -> bool {
        let front_end = self.personality().front_end;
        let stock = self.device != DeviceKind::E320Radio && front_end.has_effects();
        self.scene.is_some() || (stock && self.rx_antennas.is_empty())
    }

    /// Returns the description of the device.
    pub(crate) fn personality(&self) -> &'static Personality {
        self.device.personality_in(self.uhd.row())
    }

    /// Returns the FPGA image of the device.
    pub(crate) fn image(&self) -> Image {
        let options = ImageOptions {
            width: self.chdr_width,
            links: self.links().len() as u16,
            extra_blocks: self.extra_blocks,
            generation: self.uhd.row(),
        };
        Image::new(self.personality(), options)
    }

    /// Returns the address and the link of each port for CHDR packets.
    pub(crate) fn links(&self) -> Vec<(Ipv4Addr, &str)> {
        let second = self.second_link.as_ref().map(|second| (second.addr, second.link.as_str()));
        [(self.addr, self.link.as_str())].into_iter().chain(second).collect()
    }

    /// Returns the antenna specification of `channel`; `None` is silence.
    pub fn rx_antenna(&self, channel: usize) -> Option<&str> {
        self.rx_antennas.get(channel).or(self.rx_antennas.last()).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid() {
        RadioConfig::default().check().unwrap();
        DeviceKind::ALL.into_iter().for_each(|kind| RadioConfig::of(kind).check().unwrap());
    }

    #[test]
    fn a_bad_field_is_named_with_what_is_accepted() {
        let base = RadioConfig::default;
        let x410 = || RadioConfig::of(DeviceKind::X410);
        let second_link = |kind, last| {
            let addr = Ipv4Addr::new(127, 0, 0, last);
            let second = SecondLink { addr, link: "udp".to_owned() };
            RadioConfig { second_link: Some(second), ..RadioConfig::of(kind) }
        };
        let cases = [
            (
                RadioConfig { addr: Ipv4Addr::UNSPECIFIED, ..base() },
                "addr is 0.0.0.0: give one address",
            ),
            (RadioConfig { addr: Ipv4Addr::new(224, 0, 0, 1), ..base() }, "addr is 224.0.0.1"),
            (RadioConfig { time_scale: 0.0, ..base() }, "time_scale is 0.0: give a factor"),
            (RadioConfig { time_scale: 1e99, ..base() }, "time_scale is 1e99: give a factor"),
            (RadioConfig { time_scale: f64::NAN, ..base() }, "time_scale is NaN"),
            (RadioConfig { master_clock_rate_hz: 1.0, ..base() }, "1 kHz to 2 GHz"),
            (
                RadioConfig { rates: ClockRates::Range(1.0, 2.0), ..base() },
                "rates is Range(1.0, 2.0)",
            ),
            (RadioConfig { rates: ClockRates::Range(2e6, 1e6), ..base() }, "give rates from 1 kHz"),
            (RadioConfig { rates: ClockRates::List(&[]), ..base() }, "rates is List([])"),
            (RadioConfig { rates: ClockRates::List(&[1e6]), ..base() }, "master_clock_rate_hz is"),
            (RadioConfig { rx_buffer_samples: 1, ..base() }, "rx_buffer_samples is 1"),
            (RadioConfig { tx_buffer_samples: 1 << 27, ..base() }, "4096 samples to 2^26"),
            (RadioConfig { tx_out: vec!["a.x".into(), "a.y".into()], ..base() }, "another name"),
            (RadioConfig { mtu: 575, ..base() }, "mtu is 575: give 576 to 65535 bytes"),
            (RadioConfig { name: "a;b=c".into(), ..base() }, "name is a;b=c: give 1 to 32"),
            (RadioConfig { rx_antennas: vec!["ramp".into(); 3], ..base() }, "rx_antennas is 3"),
            (RadioConfig { scene: Some(Scene::default()), ..x410() }, "give no scene"),
            (second_link(DeviceKind::E320, 3), "as this device has one link only"),
            (second_link(DeviceKind::N320, 1), "another address than that of the first"),
        ];
        for (config, text) in cases {
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    /// UHD 4.3 cannot find a device by a serial number that is not hexadecimal or takes over 31
    /// bits.
    #[test]
    fn the_default_serial_is_the_addresss_and_a_number_for_uhd() {
        let serial = |addr| RadioConfig { addr, ..RadioConfig::default() }.serial();
        assert_eq!(serial(Ipv4Addr::new(127, 0, 0, 2)), "7F000002");
        let mut seen = std::collections::HashSet::new();
        for addr in [[127, 0, 0, 3], [192, 168, 10, 2], [192, 168, 20, 2], [255, 1, 2, 3]] {
            let serial = serial(Ipv4Addr::from(addr));
            assert!(i32::from_str_radix(&serial, 16).is_ok(), "{serial}");
            assert!(seen.insert(serial), "{addr:?}");
        }
        let named = RadioConfig { serial: "31A5E83".to_owned(), ..RadioConfig::default() };
        assert_eq!(named.serial(), "31A5E83");
    }

    #[test]
    fn the_last_antenna_serves_the_channels_behind_it() {
        let config = RadioConfig { rx_antennas: vec!["ramp".into()], ..Default::default() };
        assert_eq!(config.rx_antenna(1), Some("ramp"));
        assert_eq!(RadioConfig::default().rx_antenna(0), None);
    }
}
