//! The options of a link string that are the engine's, taken out before the link sees the rest.

use std::net::Ipv4Addr;

use millstream_link::{Field, LinkError, Spec};
use millstream_ring::Wait;

use crate::stack::{ChecksumPolicy, Route, Subnet};

/// What the link string of a frame link may say beside the link's own options.
pub const OPTIONS_HELP: &str = "io=thread|inline (who drives the link), thread=NAME (links that \
     name the same thread share it), cpu=N, priority=1..99 (SCHED_FIFO), \
     wait=spin|adaptive|park (the I/O thread), user_wait=spin|adaptive|park (the port's user), \
     address=IP/PREFIX (an address that the kernel does not have), gateway=IP, vlan=1..4094, \
     checksum=verify|ignore (of received datagrams), udp_checksum=on|off|offload (of sent ones), \
     queue=N (datagrams that the receive queue should hold)";

/// Who drives a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Io {
    /// A thread that owns it.
    #[default]
    Thread,
    /// The users of its ports.
    Inline,
}

/// What a link string asks for; `None` where it says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The link's name, what it works on, and its own options.
    pub link: Option<Spec>,
    pub io: Option<Io>,
    pub thread: Option<String>,
    pub cpu: Option<usize>,
    pub priority: Option<u8>,
    pub wait: Option<Wait>,
    pub user_wait: Option<Wait>,
    pub address: Option<Subnet>,
    pub gateway: Option<Ipv4Addr>,
    pub vlan: Option<u16>,
    pub checksum: Option<ChecksumPolicy>,
    pub udp_checksum: Option<UdpChecksum>,
    pub queue: Option<usize>,
}

/// Who sums up what is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum UdpChecksum {
    /// The stack.
    #[default]
    On,
    /// Nobody, as IPv4 allows (RFC 768).
    Off,
    /// The link, where it can; else the stack.
    Offload,
}

impl UdpChecksum {
    const NAMES: [(&str, Self); 3] =
        [("on", Self::On), ("off", Self::Off), ("offload", Self::Offload)];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, one)| *one == self).map_or("", |(name, _)| name)
    }
}

impl Asked {
    /// Takes a link string apart.
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        let mut spec = Spec::parse(text, OPTIONS_HELP)?;
        let mut asked = Self::default();
        let mut own = vec![];
        for field in spec.fields(OPTIONS_HELP) {
            own.push(asked.take(&field)?);
        }
        let mut own = own.into_iter();
        spec.options.retain(|_| own.next() == Some(false));
        asked.link = Some(spec);
        asked.check()?;
        Ok(asked)
    }

    /// Takes one option; false if it is not ours.
    fn take(&mut self, field: &Field<'_>) -> Result<bool, LinkError> {
        match field.name {
            "io" => {
                self.io = Some(field.one_of(&[("thread", Io::Thread), ("inline", Io::Inline)])?);
            }
            "thread" => self.thread = Some(thread_name(field)?),
            "cpu" => self.cpu = Some(field.number("a CPU number", 0..=1023)?),
            "priority" => self.priority = Some(field.number("a priority", 1..=99)?),
            "wait" => self.wait = Some(wait(field)?),
            "user_wait" => self.user_wait = Some(wait(field)?),
            "address" => self.address = Some(subnet(field)?),
            "gateway" => self.gateway = Some(address(field, field.value)?),
            "vlan" => self.vlan = Some(field.number("an identifier", 1..=4094)?),
            "checksum" => {
                let choices = &[
                    ("verify", ChecksumPolicy::AcceptPartial),
                    ("ignore", ChecksumPolicy::Ignore),
                ];
                self.checksum = Some(field.one_of(choices)?);
            }
            "udp_checksum" => self.udp_checksum = Some(field.one_of(&UdpChecksum::NAMES)?),
            "queue" => self.queue = Some(field.number("datagrams", 16..=1 << 20)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// That the options go together.
    fn check(&self) -> Result<(), LinkError> {
        let refuse = |option: String, reason: &str| Err(bad(option, reason));
        if self.io == Some(Io::Inline) {
            let thread = [
                ("thread", self.thread.clone()),
                ("cpu", self.cpu.map(|cpu| cpu.to_string())),
                ("priority", self.priority.map(|priority| priority.to_string())),
                ("wait", self.wait.map(|wait| wait.name().to_owned())),
            ];
            for (name, value) in thread {
                if let Some(value) = value {
                    let reason = "is about the I/O thread, and io=inline has none: set the \
                                  calling thread's own, and user_wait=";
                    return refuse(format!("{name}={value}"), reason);
                }
            }
        }
        match (self.address, self.gateway) {
            (None, Some(gateway)) => refuse(
                format!("gateway={gateway}"),
                "goes with address=IP/PREFIX; with the kernel's addresses its routes are used",
            ),
            _ => Ok(()),
        }
    }

    /// The link string without our options.
    pub fn link_text(&self) -> String {
        self.link.as_ref().map(Spec::to_string).unwrap_or_default()
    }

    /// An option that is not ours.
    pub fn left_over(&self) -> Option<&(String, String)> {
        self.link.as_ref().and_then(|link| link.options.first())
    }

    /// The routes that were asked for.
    pub fn routes(&self) -> Vec<Route> {
        self.gateway.map(Route::default_via).into_iter().collect()
    }

    /// The first thing asked for here that an open link with the options `open` does otherwise.
    pub fn contradiction(&self, open: &Self) -> Option<Contradiction> {
        let mut found = self.engine_contradiction(open);
        if let (Some(here), Some(there)) = (&self.link, &open.link) {
            if here.name != there.name {
                let link = |spec: &Spec| spec.name.clone();
                found = found.or(Some(Contradiction::new("link", link(here), link(there))));
            }
            for (name, value) in &here.options {
                let same = there.options.iter().find(|(other, _)| other == name);
                let given = same.map_or("its default", |(_, given)| given);
                if given != value {
                    found = found.or(Some(Contradiction::new(name, value.clone(), given)));
                }
            }
        }
        found
    }

    fn engine_contradiction(&self, open: &Self) -> Option<Contradiction> {
        let io = |io: Io| if io == Io::Inline { "inline" } else { "thread" };
        let subnet = |subnet: Subnet| format!("{}/{}", subnet.address, subnet.prefix);
        let checksum = |policy: ChecksumPolicy| match policy {
            ChecksumPolicy::Ignore => "ignore",
            _ => "verify",
        };
        // These have a default that can be named.
        let (here_io, there_io) = (self.io.map(io), Some(io(open.io.unwrap_or_default())));
        let there_wait = open.wait.unwrap_or(Wait::Adaptive).name();
        let there_sum = checksum(open.checksum.unwrap_or_default());
        let there_udp = open.udp_checksum.unwrap_or_default().name();
        Contradiction::between("io", here_io, there_io)
            .or_else(|| {
                Contradiction::between("thread", self.thread.as_ref(), open.thread.as_ref())
            })
            .or_else(|| Contradiction::between("cpu", self.cpu, open.cpu))
            .or_else(|| Contradiction::between("priority", self.priority, open.priority))
            .or_else(|| Contradiction::between("wait", self.wait.map(Wait::name), Some(there_wait)))
            .or_else(|| {
                let (here, there) = (self.address.map(subnet), open.address.map(subnet));
                Contradiction::between("address", here, there)
            })
            .or_else(|| Contradiction::between("gateway", self.gateway, open.gateway))
            .or_else(|| Contradiction::between("vlan", self.vlan, open.vlan))
            .or_else(|| {
                let here = self.checksum.map(checksum);
                Contradiction::between("checksum", here, Some(there_sum))
            })
            .or_else(|| {
                let here = self.udp_checksum.map(UdpChecksum::name);
                Contradiction::between("udp_checksum", here, Some(there_udp))
            })
    }
}

/// An option that two opens of one link give different values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contradiction {
    pub option: String,
    pub here: String,
    pub there: String,
}

impl Contradiction {
    fn new(option: impl Into<String>, here: impl Into<String>, there: impl Into<String>) -> Self {
        Self { option: option.into(), here: here.into(), there: there.into() }
    }

    /// What was asked for, if it is not what there is.
    pub fn between<T: PartialEq + ToString>(
        option: &str,
        here: Option<T>,
        there: Option<T>,
    ) -> Option<Self> {
        let differs = here.is_some() && here != there;
        let text = |value: Option<T>| value.map_or_else(|| "its default".into(), |v| v.to_string());
        differs.then(|| Self::new(option, text(here), text(there)))
    }

    /// The error about a link that is open as `what`.
    pub fn error(&self, what: &str) -> LinkError {
        let reason = format!(
            "contradicts the port that is open on {what} already, where it is {}: give the same \
             or leave it out",
            self.there
        );
        bad(format!("{}={}", self.option, self.here), &reason)
    }
}

/// An error about an option of the engine.
pub(crate) fn bad(option: String, reason: &str) -> LinkError {
    LinkError::BadOption { option, reason: reason.to_owned(), help: OPTIONS_HELP }
}

fn wait(field: &Field<'_>) -> Result<Wait, LinkError> {
    field.one_of(&Wait::ALL.map(|wait| (wait.name(), wait)))
}

/// The kernel shows 15 bytes of a thread's name, of which `ms-io-` takes 6.
fn thread_name(field: &Field<'_>) -> Result<String, LinkError> {
    let name = field.value;
    let fits = (1..=9).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic());
    if fits { Ok(name.to_owned()) } else { Err(field.refuse("wants a name of 1 to 9 characters")) }
}

fn address(field: &Field<'_>, text: &str) -> Result<Ipv4Addr, LinkError> {
    text.parse().map_err(|_| field.refuse("wants an IPv4 address such as 10.0.0.2"))
}

fn subnet(field: &Field<'_>) -> Result<Subnet, LinkError> {
    let refuse = || field.refuse("wants an IPv4 address and its network, such as 10.0.0.2/24");
    let (ip, prefix) = field.value.split_once('/').ok_or_else(refuse)?;
    let prefix = prefix.parse().ok().filter(|bits| *bits <= 32).ok_or_else(refuse)?;
    Ok(Subnet { address: ip.parse().map_err(|_| refuse())?, prefix })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Asked {
        Asked::parse(text).unwrap()
    }

    fn refused(text: &str) -> String {
        Asked::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_ours_is_left_to_the_link() {
        let asked = parse("xdp:veth0,mode=generic,io=thread,cpu=1,queue=64,frames=7,wait=spin");
        let link = asked.link.unwrap();
        assert_eq!((link.name.as_str(), link.target.as_deref()), ("xdp", Some("veth0")));
        let left: Vec<_> = link.options.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(left, ["mode", "frames"]);
        let taken = (asked.io, asked.cpu, asked.queue, asked.wait);
        assert_eq!(taken, (Some(Io::Thread), Some(1), Some(64), Some(Wait::Spin)));
    }

    #[test]
    fn an_unusable_value_is_named_and_what_would_do() {
        for (text, reason) in [
            ("loop:io=both", "\"io=both\": wants one of: thread, inline"),
            ("loop:wait=nap", "\"wait=nap\": wants one of: spin, adaptive, park"),
            ("loop:priority=100", "wants a priority from 1 to 99"),
            ("loop:thread=much-too-long", "wants a name of 1 to 9 characters"),
            ("loop:address=10.0.0.2", "such as 10.0.0.2/24"),
            ("loop:address=10.0.0.2/33", "such as 10.0.0.2/24"),
            ("loop:vlan=4095", "wants an identifier from 1 to 4094"),
            ("loop:gateway=10.0.0.1", "goes with address=IP/PREFIX"),
            ("loop:io=inline,cpu=1", "\"cpu=1\": is about the I/O thread"),
        ] {
            let error = refused(text);
            assert!(error.contains(reason), "{text}: {error}");
            assert!(!error.contains("options of this link"), "{text}: {error}");
        }
    }

    #[test]
    fn a_later_open_may_say_less_or_the_same_and_nothing_else() {
        let open = parse("xdp:veth0,mode=generic,cpu=1,address=10.0.0.2/24");
        for text in ["xdp:veth0", "xdp:veth0,cpu=1", "xdp:veth0,mode=generic,user_wait=spin"] {
            assert_eq!(parse(text).contradiction(&open), None, "{text}");
        }
        for (text, option, here, there) in [
            ("xdp:veth0,cpu=0", "cpu", "0", "1"),
            ("xdp:veth0,mode=native", "mode", "native", "generic"),
            ("xdp:veth0,wait=spin", "wait", "spin", "adaptive"),
            ("packet:veth0", "link", "packet", "xdp"),
            ("xdp:veth0,address=10.0.0.3/24", "address", "10.0.0.3/24", "10.0.0.2/24"),
        ] {
            let found = parse(text).contradiction(&open);
            assert_eq!(found, Some(Contradiction::new(option, here, there)), "{text}");
        }
        let error = parse("xdp:veth0,cpu=0").contradiction(&open).unwrap().error("veth0");
        let start = "link option \"cpu=0\": contradicts the port that is open on veth0 already, \
                     where it is 1: give the same or leave it out";
        assert!(error.to_string().starts_with(start), "{error}");
    }
}
