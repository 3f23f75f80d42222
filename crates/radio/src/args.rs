//! The arguments that say how to reach a device.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use millstream_link::LinkError;
use millstream_link::port::{Port, PortOptions};
use millstream_net::choice::{AUTO, Chosen, for_peer};
use millstream_net::open;
use millstream_wire::mpm;

use rmpv::Value;

use crate::RadioError;
use crate::discover::{DISCOVERY_TIMEOUT, DiscoveryTarget, discover};
use crate::identity::DeviceIdentity;
use crate::rpc::INIT_TIMEOUT;

/// The sign between the links of several addresses.
const LINKS_BETWEEN: char = ';';

/// Opens a port; the default is [`DeviceArgs::link`].
pub type OpenPort =
    Arc<dyn Fn(SocketAddrV4, &PortOptions) -> Result<Port, LinkError> + Send + Sync>;

/// The address of a device, its link, and the time limits.
#[derive(Clone)]
pub struct DeviceArgs {
    /// The device's address.
    pub addr: Ipv4Addr,
    /// The addresses of its further links, over which its streams are spread.
    pub further_addrs: Vec<Ipv4Addr>,
    /// UDP port of discovery and echo.
    pub discovery_port: u16,
    /// TCP port of its RPC server.
    pub rpc_port: u16,
    /// The time limit for the end of another program's claim.
    pub claim_wait: Duration,
    /// The device's `type`, `product` and `serial`, where the user names them.
    pub identity: DeviceIdentity,
    /// The source of its reference clock and of its PPS (`internal`, `external`); `None` for its
    /// own choice.
    pub clock_source: Option<String>,
    /// See `clock_source`.
    pub time_source: Option<String>,
    /// The master clock rate, Hz; `None` for the device's own, or one that suits the sample rate.
    pub master_clock_hz: Option<f64>,
    /// The longest time for all steps of opening together, after the claim.
    pub open_max: Duration,
    /// The link that carries CHDR, see [`millstream_net::open`]; with further addresses one for
    /// all, or one for each with `;` between them.
    pub link: String,
    /// The name under which the device is claimed.
    pub session: String,
    /// The receive queue of a stream, bytes, unless the stream's arguments set it. The credit
    /// window follows from it.
    pub recv_queue_bytes: usize,
    /// The streams of each link share one port of this host, in place of a port each. The receive
    /// queue is shared by the receive channels then, so streams set no size of their own. Where
    /// it overflows while several streams lose samples, `host_queue_drop` and `network_loss` cannot
    /// be told apart.
    pub one_port: bool,
    /// The silence after which a stream asks whether the device is alive.
    pub silence_max: Duration,
    /// Opens ports in place of `link`; for middleware and tests.
    pub open_port: Option<OpenPort>,
}

/// Types of devices that have no RFNoC or no management server for it.
const OTHER_TYPES: [&str; 6] = ["b100", "b200", "octoclock", "usrp1", "usrp2", "x300"];

/// What is wrong with them.
const OTHER_RADIO: &str = "is of a radio that is not supported: the E310 to E320 (type=e3xx), \
     N300 to N321 (type=n3xx) and X410 (type=x4xx) are";

/// The arguments that [`DeviceArgs::from_str`] knows.
const KNOWN: &str = "addr=IPV4, second_addr=IPV4, third_addr=IPV4, fourth_addr=IPV4, \
     type=TYPE, product=PRODUCT, serial=SERIAL, master_clock_rate=HZ, clock_source=SOURCE, \
     time_source=SOURCE, discovery_port=N, rpc_port=N, recv_queue_bytes=N, claim_wait_s=N, \
     open_max_s=N, one_port=yes|no, link=LINK (must come last)";

impl DeviceArgs {
    /// Returns the device at `addr` with the usual ports, over the link that was measured as the
    /// best for the path to it; kernel UDP where none was measured.
    pub fn new(addr: Ipv4Addr) -> Self {
        Self {
            addr,
            further_addrs: Vec::new(),
            discovery_port: mpm::DISCOVERY_PORT,
            rpc_port: mpm::RPC_PORT,
            link: AUTO.to_owned(),
            claim_wait: Duration::ZERO,
            identity: DeviceIdentity::default(),
            clock_source: None,
            time_source: None,
            master_clock_hz: None,
            // Its longest step is `init`, which programs clocks and converters.
            open_max: INIT_TIMEOUT + Duration::from_secs(30),
            session: format!("millstream (process {})", std::process::id()),
            recv_queue_bytes: 8 << 20,
            one_port: false,
            silence_max: Duration::from_millis(500),
            open_port: None,
        }
    }

    /// Returns the link that `auto` selects for the path to the device, and the reason.
    #[must_use]
    pub fn chosen(&self) -> Chosen {
        for_peer(self.addr)
    }

    /// Opens a port on any free local address, for the device's link of this number.
    ///
    /// It is bound to all local addresses; datagrams from other senders are ignored.
    pub(crate) fn port(&self, number: usize, options: &PortOptions) -> Result<Port, LinkError> {
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        if let Some(open_port) = &self.open_port {
            return open_port(any, options);
        }
        let mut links = self.link.split(LINKS_BETWEEN);
        match links.nth(number).or(self.link.split(LINKS_BETWEEN).next()) {
            None | Some(AUTO) => {
                let further = number.checked_sub(1).and_then(|index| self.further_addrs.get(index));
                open(&for_peer(*further.unwrap_or(&self.addr)).link, any, options)
            }
            Some(link) => open(link, any, options),
        }
    }
}

impl fmt::Debug for DeviceArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { addr, discovery_port, rpc_port, link, .. } = self;
        write!(f, "addr={addr},discovery_port={discovery_port},rpc_port={rpc_port},link={link}")
    }
}

impl FromStr for DeviceArgs {
    type Err = RadioError;

    /// Reads `addr=192.168.10.2,rpc_port=49601,link=udp:gro=off`. An address may stand alone.
    /// Without one the device is searched when it is opened: the only one of this `type`, `product`
    /// or `serial`, or the only one of all. `link` comes last because its own options have commas.
    fn from_str(text: &str) -> Result<Self, RadioError> {
        let mut args = Self::new(Ipv4Addr::UNSPECIFIED);
        let mut rest = text.trim();
        while !rest.is_empty() {
            if let Some(link) = rest.strip_prefix("link=") {
                if let Some(ours) = link.split(',').find(|option| is_ours(option)) {
                    return Err(bad(
                        ours.trim(),
                        "must come before link=, which must be the last argument",
                    ));
                }
                args.link = link.to_owned();
                break;
            }
            let (argument, tail) = rest.split_once(',').unwrap_or((rest, ""));
            args.set(argument)?;
            rest = tail.trim_start();
        }
        let links = args.link.split(LINKS_BETWEEN).count();
        if links > 1 && links != 1 + args.further_addrs.len() {
            let reason = "link= must name one link for all addresses, or one for each with a ; \
                          between them";
            return Err(bad(&args.link, reason));
        }
        Ok(args)
    }
}

impl DeviceArgs {
    /// Searches for the device where the user named no address.
    pub(crate) fn find(&mut self) -> Result<(), RadioError> {
        if !self.addr.is_unspecified() {
            return Ok(());
        }
        let all = discover(DiscoveryTarget::Broadcast, self.discovery_port, DISCOVERY_TIMEOUT)?;
        self.addr = self.identity.only_of(&all)?;
        Ok(())
    }

    /// Returns the argument of the device's `init`: text, as UHD sends it.
    pub(crate) fn init_map(&self) -> Value {
        let text = |name: &str, value: String| (name.into(), value.into());
        let clock = self.master_clock_hz.map(|hz| text("master_clock_rate", hz.to_string()));
        let sources = [("clock_source", &self.clock_source), ("time_source", &self.time_source)];
        let sources = sources
            .into_iter()
            .filter_map(|(name, source)| source.as_ref().map(|source| text(name, source.clone())));
        Value::Map(clock.into_iter().chain(sources).collect())
    }

    fn set(&mut self, argument: &str) -> Result<(), RadioError> {
        if let Ok(addr) = argument.parse() {
            self.addr = addr;
            return Ok(());
        }
        let (name, value) = argument
            .split_once('=')
            .ok_or_else(|| bad(argument, "is not written as name=value"))?;
        let port = || value.parse().map_err(|_| bad(argument, "wants a port number"));
        match name {
            "addr" => {
                self.addr = value.parse().map_err(|_| bad(argument, "wants an IPv4 address"))?;
            }
            "second_addr" | "third_addr" | "fourth_addr" => {
                let further = value.parse().map_err(|_| bad(argument, "wants an IPv4 address"))?;
                self.further_addrs.push(further);
            }
            "discovery_port" => self.discovery_port = port()?,
            "rpc_port" => self.rpc_port = port()?,
            "claim_wait_s" | "open_max_s" => {
                let wait = value.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
                let wait = wait.ok_or_else(|| bad(argument, "wants seconds"))?;
                let claim = name == "claim_wait_s";
                *if claim { &mut self.claim_wait } else { &mut self.open_max } = wait;
            }
            "recv_queue_bytes" => {
                self.recv_queue_bytes =
                    value.parse().map_err(|_| bad(argument, "must be a number of bytes"))?;
            }
            "one_port" => {
                self.one_port = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(bad(argument, "wants yes or no")),
                }
            }
            "type" if OTHER_TYPES.contains(&value) => return Err(bad(argument, OTHER_RADIO)),
            "driver" => return Err(bad(argument, OTHER_RADIO)),
            "type" => self.identity.device_type = Some(value.to_owned()),
            "product" => self.identity.product = Some(value.to_owned()),
            "serial" => self.identity.serial = Some(value.to_owned()),
            "clock_source" => self.clock_source = Some(value.to_owned()),
            "time_source" => self.time_source = Some(value.to_owned()),
            "master_clock_rate" => {
                let hz = value.parse().ok().filter(|hz: &f64| hz.is_finite() && *hz > 0.0);
                self.master_clock_hz = Some(hz.ok_or_else(|| bad(argument, "wants a rate in Hz"))?);
            }
            _ => return Err(bad(argument, "is not known")),
        }
        Ok(())
    }
}

/// Returns whether the option is about the device: no link has an option of such a name.
fn is_ours(option: &str) -> bool {
    const OURS: [&str; 16] = [
        "addr",
        "second_addr",
        "third_addr",
        "fourth_addr",
        "discovery_port",
        "rpc_port",
        "claim_wait_s",
        "open_max_s",
        "recv_queue_bytes",
        "one_port",
        "master_clock_rate",
        "type",
        "product",
        "serial",
        "clock_source",
        "time_source",
    ];
    option.split_once('=').is_some_and(|(name, _)| OURS.contains(&name.trim()))
}

fn bad(argument: &str, reason: &'static str) -> RadioError {
    RadioError::BadArgument { argument: argument.to_owned(), reason, known: KNOWN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_keeps_its_commas() {
        let args: DeviceArgs =
            "addr=127.0.0.1, rpc_port=7,link=udp:gro=off,busy_poll_us=5".parse().unwrap();
        assert_eq!(args.rpc_port, 7);
        assert_eq!(args.link, "udp:gro=off,busy_poll_us=5");
        assert_eq!(args.addr, Ipv4Addr::LOCALHOST);
    }

    #[test]
    fn every_address_may_have_its_link() {
        let two = |link: &str| format!("addr=10.0.0.2,second_addr=10.0.1.2,link={link}");
        let args: DeviceArgs = two("xdp:eth1,queues=2;udp:gro=off").parse().unwrap();
        assert_eq!(args.further_addrs, [Ipv4Addr::new(10, 0, 1, 2)]);
        assert!(two("udp").parse::<DeviceArgs>().is_ok());
        let error = two("udp;udp;udp").parse::<DeviceArgs>().unwrap_err().to_string();
        assert!(error.contains("one link for all addresses, or one for each"), "{error}");
        let error = "addr=1.2.3.4,second_addr=x".parse::<DeviceArgs>().unwrap_err().to_string();
        assert!(error.contains("wants an IPv4 address"), "{error}");
    }

    #[test]
    fn arguments_of_uhd_are_taken() {
        let args: DeviceArgs =
            "type=e3xx,product=e320,serial=EMU1,master_clock_rate=32e6,clock_source=external,\
             time_source=internal"
                .parse()
                .unwrap();
        assert!(args.addr.is_unspecified());
        assert_eq!(args.identity.to_string(), "type=e3xx,product=e320,serial=EMU1");
        let of = |serial| {
            move |name: &str| match name {
                "type" => "e3xx",
                "product" => "e320",
                _ => serial,
            }
        };
        assert!(args.identity.fits(of("EMU1")) && !args.identity.fits(of("EMU2")));
        let map = args.init_map().to_string();
        for part in ["master_clock_rate", "32000000", "external", "internal"] {
            assert!(map.contains(part), "{map}");
        }
        let alone: DeviceArgs = "127.0.0.9,rpc_port=7".parse().unwrap();
        assert_eq!((alone.addr, alone.rpc_port), (Ipv4Addr::new(127, 0, 0, 9), 7));
        assert!(alone.identity.is_empty() && alone.identity.fits(|_| ""));
        assert_eq!(alone.init_map(), Value::Map(Vec::new()));
    }

    #[test]
    fn bad_arguments_name_themselves() {
        for (text, part) in [
            ("addr=::1", "\"addr=::1\": wants an IPv4 address"),
            ("addr", "name=value"),
            ("addr=1.2.3.4,rpc_port=99999", "wants a port number"),
            ("addr=1.2.3.4,recv_queue_bytes=8M", "must be a number of bytes"),
            ("addr=1.2.3.4,claim_wait_s=-1", "wants seconds"),
            ("addr=1.2.3.4,one_port=1", "wants yes or no"),
            ("addr=1.2.3.4,open_max_s=soon", "wants seconds"),
            ("addr=1.2.3.4,link=xdp:eth1,claim_wait_s=9", "must come before link="),
            ("addr=1.2.3.4,master_clock_rate=fast", "wants a rate in Hz"),
            ("addr=1.2.3.4,link=xdp:eth1,serial=9", "must come before link="),
            ("type=b200", "\"type=b200\": is of a radio that is not supported: the E310 to E320"),
            ("driver=rtlsdr", "\"driver=rtlsdr\": is of a radio that is not supported"),
            ("addr=1.2.3.4,speed=9", "\"speed=9\": is not known; the known arguments are: addr="),
        ] {
            let error = text.parse::<DeviceArgs>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
