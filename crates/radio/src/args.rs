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
use crate::rpc::INIT_TIMEOUT;

/// Opens a port; the default is [`DeviceArgs::link`].
pub type OpenPort =
    Arc<dyn Fn(SocketAddrV4, &PortOptions) -> Result<Port, LinkError> + Send + Sync>;

/// The address of a device, its link, and the time limits.
#[derive(Clone)]
pub struct DeviceArgs {
    /// The device's address.
    pub addr: Ipv4Addr,
    /// UDP port of discovery and echo.
    pub discovery_port: u16,
    /// TCP port of its RPC server.
    pub rpc_port: u16,
    /// The time limit for the end of another program's claim.
    pub claim_wait: Duration,
    /// The master clock rate, Hz; `None` for the device's own, or one that suits the sample rate.
    pub master_clock_hz: Option<f64>,
    /// The longest time for all steps of opening together, after the claim.
    pub open_max: Duration,
    /// The link that carries CHDR, see [`millstream_net::open`].
    pub link: String,
    /// The name under which the device is claimed.
    pub session: String,
    /// The receive queue of a stream, bytes, unless the stream's arguments set it. The credit
    /// window follows from it.
    pub recv_queue_bytes: usize,
    /// The silence after which a stream asks whether the device is alive.
    pub silence_max: Duration,
    /// Opens ports in place of `link`; for middleware and tests.
    pub open_port: Option<OpenPort>,
}

/// The arguments that [`DeviceArgs::from_str`] knows.
const KNOWN: &str = "addr=IPV4, discovery_port=N, rpc_port=N, recv_queue_bytes=N, \
     claim_wait_s=N, open_max_s=N, master_clock_rate=HZ, link=LINK (must come last)";

impl DeviceArgs {
    /// Returns the device at `addr` with the usual ports, over the link that was measured as the
    /// best for the path to it; kernel UDP where none was measured.
    pub fn new(addr: Ipv4Addr) -> Self {
        Self {
            addr,
            discovery_port: mpm::DISCOVERY_PORT,
            rpc_port: mpm::RPC_PORT,
            link: AUTO.to_owned(),
            claim_wait: Duration::ZERO,
            master_clock_hz: None,
            // Its longest step is `init`, which programs clocks and converters.
            open_max: INIT_TIMEOUT + Duration::from_secs(30),
            session: format!("millstream (process {})", std::process::id()),
            recv_queue_bytes: 8 << 20,
            silence_max: Duration::from_millis(500),
            open_port: None,
        }
    }

    /// Returns the link that `auto` selects for the path to the device, and the reason.
    #[must_use]
    pub fn chosen(&self) -> Chosen {
        for_peer(self.addr)
    }

    /// Opens a port on any free local address.
    ///
    /// It is bound to all local addresses; datagrams from other senders are ignored.
    pub(crate) fn port(&self, options: &PortOptions) -> Result<Port, LinkError> {
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        match &self.open_port {
            Some(open_port) => open_port(any, options),
            None if self.link == AUTO => open(&self.chosen().link, any, options),
            None => open(&self.link, any, options),
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

    /// Reads `addr=192.168.10.2,rpc_port=49601,link=udp:gro=off`. Only `addr` is required; `link`
    /// comes last because its own options have commas.
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
        if args.addr.is_unspecified() {
            return Err(bad(text, "says no addr"));
        }
        Ok(args)
    }
}

impl DeviceArgs {
    /// Returns the argument of the device's `init`: text, as UHD sends it (facts page on blocks,
    /// section 1.6).
    pub(crate) fn init_map(&self) -> Value {
        let text = |name: &str, value: String| (name.into(), value.into());
        let clock = self.master_clock_hz.map(|hz| text("master_clock_rate", hz.to_string()));
        Value::Map(clock.into_iter().collect())
    }

    fn set(&mut self, argument: &str) -> Result<(), RadioError> {
        let (name, value) = argument
            .split_once('=')
            .ok_or_else(|| bad(argument, "is not written as name=value"))?;
        let port = || value.parse().map_err(|_| bad(argument, "wants a port number"));
        match name {
            "addr" => {
                self.addr = value.parse().map_err(|_| bad(argument, "wants an IPv4 address"))?;
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
    const OURS: [&str; 7] = [
        "addr",
        "discovery_port",
        "rpc_port",
        "claim_wait_s",
        "open_max_s",
        "recv_queue_bytes",
        "master_clock_rate",
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
    fn bad_arguments_name_themselves() {
        for (text, part) in [
            ("rpc_port=1", "says no addr"),
            ("addr=::1", "\"addr=::1\": wants an IPv4 address"),
            ("addr", "name=value"),
            ("addr=1.2.3.4,rpc_port=99999", "wants a port number"),
            ("addr=1.2.3.4,recv_queue_bytes=8M", "must be a number of bytes"),
            ("addr=1.2.3.4,claim_wait_s=-1", "wants seconds"),
            ("addr=1.2.3.4,open_max_s=soon", "wants seconds"),
            ("addr=1.2.3.4,link=xdp:eth1,claim_wait_s=9", "must come before link="),
            ("addr=1.2.3.4,speed=9", "\"speed=9\": is not known; the known arguments are: addr="),
        ] {
            let error = text.parse::<DeviceArgs>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
