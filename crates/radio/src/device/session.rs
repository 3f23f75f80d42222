//! The RPC side of an open device.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::{Duration, Instant};

use millstream_wire::ctrl::Protocol;
use millstream_wire::{Epid, Width};
use rmpv::Value;

use crate::deadline::{OpenDeadline, deadline};
use crate::generation::{MpmGeneration, protocol_of};
use crate::rpc::{
    ClaimLoss, DeviceClaim, INIT_TIMEOUT, Map, RpcError, as_map, as_maps, as_u64, as_version,
};
use crate::{DeviceArgs, RadioError};

/// The id that this host gives to a device: one host drives one device per crossbar.
pub const DEVICE_ID: u16 = 1;

/// The interval of claim attempts while another program holds the device.
const CLAIM_AGAIN: Duration = Duration::from_millis(200);

/// The ids of endpoints that a session can begin with: behind each there are more than a device has
/// ports.
const FIRST_EPIDS: u64 = 0xF000;

/// Link rate of 1 Gb/s Ethernet, bytes per second.
const RATE_1G: u64 = 125_000_000;

/// A device's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionInfo {
    /// `get_device_info`: `type`, `product`, `serial`, `name` and more.
    pub device: Map,
    /// Its clocks by name, in Hz as text.
    pub clocks: Vec<Map>,
    /// The version of its MPM, major and minor.
    pub mpm: (u64, u64),
    /// The version of the RFNoC protocol of its image, major and minor.
    pub protocol: (u8, u8),
}

impl SessionInfo {
    /// Returns the type, such as `e3xx`; empty when not reported.
    pub fn device_type(&self) -> &str {
        self.device.get("type").map_or("", String::as_str)
    }

    /// Returns the product, such as `e320`; empty when not reported.
    pub fn product(&self) -> &str {
        self.device.get("product").map_or("", String::as_str)
    }

    /// Returns the serial number; empty when not reported.
    pub fn serial(&self) -> &str {
        self.device.get("serial").map_or("", String::as_str)
    }

    /// Frequency of a clock, Hz.
    pub fn clock_hz(&self, name: &str) -> Option<f64> {
        let clock =
            self.clocks.iter().find(|clock| clock.get("name").is_some_and(|n| n == name))?;
        clock.get("freq")?.parse().ok().filter(is_rate)
    }

    /// Decodes a device's description of itself.
    ///
    /// # Errors
    /// The method whose answer has the wrong kind, and the fault.
    pub fn from_answers(
        device_info: &Value,
        clocks: &Value,
    ) -> Result<Self, (&'static str, &'static str)> {
        let device = as_map(device_info).ok_or(("get_device_info", "no map"))?;
        let clocks = as_maps(clocks).ok_or(("get_clocks", "no list of maps"))?;
        Ok(Self { device, clocks, ..Self::default() })
    }
}

/// Returns whether a number is plausible as a rate, Hz. Quantities that follow from a larger or
/// smaller one, such as the time of a packet, do not fit any clock.
pub(super) fn is_rate(rate_hz: &f64) -> bool {
    (1.0..=1e11).contains(rate_hz)
}

/// The address and rate of the device's CHDR link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChdrLink {
    /// The destination of its packets.
    pub address: SocketAddrV4,
    /// Whether the device reports a link of 1 Gb/s.
    pub is_1g: bool,
}

impl ChdrLink {
    /// Returns the device's link to the address that the user named, or else its first link.
    ///
    /// # Errors
    /// The kind of the answer when it is not a list of links.
    pub fn from_answer(answer: &Value, addr: Ipv4Addr) -> Result<Self, &'static str> {
        let links = as_maps(answer).ok_or("no list of maps")?;
        let ip = |link: &Map| link.get("ipv4").and_then(|ip| ip.parse::<Ipv4Addr>().ok());
        let usable = |link: &&Map| ip(link).is_some();
        let link = links
            .iter()
            .find(|link| ip(link) == Some(addr))
            .or_else(|| links.iter().find(usable))
            .ok_or("no link with an IPv4 address")?;
        Self::of(link).ok_or("a link without a port")
    }

    /// Returns the device's link with this address; `None` without one.
    pub fn at(answer: &Value, addr: Ipv4Addr) -> Option<Self> {
        let links = as_maps(answer)?;
        links.iter().filter_map(Self::of).find(|link| *link.address.ip() == addr)
    }

    /// Returns a link by its description; `None` without address or port.
    fn of(link: &Map) -> Option<Self> {
        let ip = link.get("ipv4")?.parse().ok()?;
        let port = link.get("port")?.parse().ok().filter(|port| *port != 0)?;
        let rate = link.get("link_rate").and_then(|rate| rate.parse::<u64>().ok());
        Some(Self { address: SocketAddrV4::new(ip, port), is_1g: rate == Some(RATE_1G) })
    }
}

/// A claimed device, with its RPC connection.
#[derive(Debug)]
pub struct DeviceSession {
    claim: DeviceClaim,
    info: SessionInfo,
}

impl DeviceSession {
    /// Returns the first of the endpoint ids of this session, which follow from its token.
    ///
    /// A device remembers 64 ids, those of earlier sessions too, and forgets the one that came
    /// first. So each session has ids of its own: an old one would keep its place, and the next
    /// new one could push it out.
    pub(super) fn first_epid(&self) -> Epid {
        let mut hasher = DefaultHasher::new();
        self.claim.token().hash(&mut hasher);
        Epid(1 + (hasher.finish() % FIRST_EPIDS) as u16)
    }

    /// Claims and initialises the device. All steps of opening must end by the deadline.
    pub(super) fn open(args: &DeviceArgs) -> Result<(Self, OpenDeadline), RadioError> {
        let claim = claim(args)?;
        let deadline = OpenDeadline::new(args.open_max);
        let mut session = Self { claim, info: SessionInfo::default() };
        let mpm = session.mpm_version()?;
        MpmGeneration::of(mpm)?;
        let info = session.claim.call_open("get_device_info")?;
        let described = as_map(&info).unwrap_or_default();
        if !args.identity.fits(|name| described.get(name).map_or("", String::as_str)) {
            let reason = format!("it is not the one that was named ({})", args.identity);
            return Err(RadioError::Unusable { address: args.addr, reason });
        }
        for (what, source) in [("clock", &args.clock_source), ("time", &args.time_source)] {
            source.as_ref().map_or(Ok(()), |source| session.check_source(what, source))?;
        }
        session.claim.call("set_device_id", &[DEVICE_ID.into()])?;
        deadline.check(args.addr)?;
        let init_timeout = deadline.left().min(INIT_TIMEOUT);
        session.claim.call_within("init", &[args.init_map()], init_timeout)?;
        let clocks = session.claim.call("get_clocks", &[])?;
        session.info = SessionInfo::from_answers(&info, &clocks)
            .map_err(|(method, what)| session.protocol(method, what))?;
        session.info.mpm = mpm;
        deadline.check(args.addr)?;
        Ok((session, deadline))
    }

    fn mpm_version(&self) -> Result<(u64, u64), RadioError> {
        let method = "get_mpm_compat_num";
        let answer = self.claim.call_open(method)?;
        Ok(as_version(&answer).ok_or_else(|| self.protocol(method, "no version pair"))?)
    }

    /// Asks which RFNoC protocol the device's image speaks. This has to be known before the first
    /// control packet: nobody answers one in the layout of another version.
    pub(super) fn control_protocol(&mut self) -> Result<Protocol, RadioError> {
        let method = "get_proto_ver";
        let version = as_u64(&self.claim.call_open(method)?).and_then(|one| one.try_into().ok());
        let version: u16 = version.ok_or_else(|| self.protocol(method, "no version number"))?;
        let [major, minor] = version.to_be_bytes();
        self.info.protocol = (major, minor);
        protocol_of(version, self.info.mpm)
    }

    /// Returns the CHDR links to the addresses that the user named; for the first address it may
    /// be another one.
    pub(super) fn chdr_links(&self, args: &DeviceArgs) -> Result<Vec<ChdrLink>, RadioError> {
        let method = "get_chdr_link_options";
        let answer = self.claim.call(method, &["udp".into()])?;
        let first = ChdrLink::from_answer(&answer, args.addr);
        let mut links = vec![first.map_err(|what| self.protocol(method, what))?];
        for &addr in &args.further_addrs {
            let reason = || {
                let all = as_maps(&answer).unwrap_or_default();
                let all: Vec<_> = all.iter().filter_map(ChdrLink::of).collect();
                let all: Vec<_> = all.iter().map(|link| link.address.ip().to_string()).collect();
                format!(
                    "it has no link with the address {addr}; the addresses of its links are {}",
                    all.join(", ")
                )
            };
            let link = ChdrLink::at(&answer, addr);
            links.push(
                link.ok_or_else(|| RadioError::Unusable { address: args.addr, reason: reason() })?,
            );
        }
        Ok(links)
    }

    pub(super) fn chdr_width(&self) -> Result<Width, RadioError> {
        let method = "get_chdr_width";
        let bits = as_u64(&self.claim.call_open(method)?);
        let width = bits.and_then(Width::from_bits);
        Ok(width.ok_or_else(|| self.protocol(method, "no CHDR width"))?)
    }

    /// Returns the possible sources of its clock or time; none if it does not report them.
    pub(super) fn sources(&self, what: &str) -> Vec<String> {
        let answer = self.claim.call(&format!("get_{what}_sources"), &[]);
        let all = answer.ok().and_then(|answer| Some(answer.as_array()?.clone()));
        let all = all.unwrap_or_default();
        all.iter().filter_map(|source| source.as_str().map(str::to_owned)).collect()
    }

    /// Checks that it has a source, if it reports them.
    pub(super) fn check_source(&self, what: &'static str, source: &str) -> Result<(), RadioError> {
        let known = self.sources(what);
        if known.is_empty() || known.iter().any(|one| one == source) {
            return Ok(());
        }
        let (source_name, known) = (source.to_owned(), known.join(", "));
        Err(RadioError::NoSuchSource { what, source_name, known })
    }

    /// Sets the device's tick period, in nanoseconds times 2³².
    pub(super) fn set_tick_period(&self, rate_hz: f64) -> Result<(), RpcError> {
        let period = (1e9 / rate_hz * (1u64 << 32) as f64).round() as u64;
        self.claim.call("set_tick_period", &[0.into(), period.into()]).map(drop)
    }

    /// Reads the time of the only timekeeper, ticks.
    pub(super) fn time_ticks(&self) -> Result<u64, RadioError> {
        self.timekeeper_ticks(false)
    }

    /// Reads its time at the latest PPS edge, ticks.
    pub(super) fn last_pps_ticks(&self) -> Result<u64, RadioError> {
        self.timekeeper_ticks(true)
    }

    fn timekeeper_ticks(&self, at_last_pps: bool) -> Result<u64, RadioError> {
        let method = "get_timekeeper_time";
        let answer = self.claim.call(method, &[0.into(), at_last_pps.into()])?;
        Ok(as_u64(&answer).ok_or_else(|| self.protocol(method, "no number"))?)
    }

    /// Sets its time, at once or at the next PPS edge.
    pub(super) fn set_time(&self, ticks: u64, at_next_pps: bool) -> Result<(), RadioError> {
        let arguments = [0.into(), ticks.into(), at_next_pps.into()];
        Ok(self.claim.call("set_timekeeper_time", &arguments).map(drop)?)
    }

    /// Returns the device's description of itself.
    pub fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// Calls a method with the claim's token before `arguments`.
    ///
    /// # Errors
    /// [`RpcError`].
    pub fn call(&self, method: &str, arguments: &[Value]) -> Result<Value, RpcError> {
        self.claim.call(method, arguments)
    }

    /// Returns the reason if the claim is lost: another program may then claim the device.
    pub fn lost(&self) -> Option<String> {
        self.claim.lost()
    }

    /// Returns the same for owners that outlive the session.
    pub(super) fn claim_loss(&self) -> ClaimLoss {
        self.claim.loss()
    }

    pub(super) fn protocol(&self, method: &str, what: &str) -> RpcError {
        self.claim.protocol(method, what)
    }
}

/// Claims the device; while another program holds it, waits as long as the arguments allow.
fn claim(args: &DeviceArgs) -> Result<DeviceClaim, RpcError> {
    let until = deadline(args.claim_wait);
    loop {
        match DeviceClaim::new(SocketAddrV4::new(args.addr, args.rpc_port), &args.session) {
            Err(RpcError::Remote { .. }) if Instant::now() < until => thread::sleep(CLAIM_AGAIN),
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_found_by_name() {
        let clock = |name: &str, freq: &str| {
            Map::from([("name".into(), name.into()), ("freq".into(), freq.into())])
        };
        let clocks = vec![clock("bus_clk", "200e6"), clock("radio_clk", "16e6"), clock("x", "-1")];
        assert!(["inf", "nan", "1e300", "0.5", "0"].iter().all(|freq| {
            let clocks = vec![clock("radio_clk", freq)];
            SessionInfo { clocks, ..SessionInfo::default() }.clock_hz("radio_clk").is_none()
        }));
        let info = SessionInfo { clocks, ..SessionInfo::default() };
        assert_eq!(info.clock_hz("radio_clk"), Some(16e6));
        assert_eq!(info.clock_hz("x"), None);
        assert_eq!(info.clock_hz("y"), None);
        assert_eq!(info.product(), "");
    }
}
