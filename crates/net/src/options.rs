//! The engine's options in a link string, taken out before the link reads the rest.

use std::net::Ipv4Addr;

use millstream_link::options::{BadOption, Options, Parsed, Words, maybe, number, otherwise};
use millstream_link::{LinkError, Spec, options};
use millstream_ring::Wait;
use serde::{Deserialize, Serialize};

use crate::stack::{ChecksumPolicy, Subnet};

/// The driver of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IoMode {
    /// A thread that owns the link.
    #[default]
    Thread,
    /// The users of the link's ports.
    Inline,
}

/// The place where checksums of sent datagrams are computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UdpChecksum {
    /// The stack.
    #[default]
    On,
    /// None, as IPv4 allows (RFC 768).
    Off,
    /// The link, where it can; else the stack.
    Offload,
}

/// The default wait mode of threads and users.
const ADAPTIVE: &str = "adaptive";

const WAITS: Words<Wait> =
    Words(&[("spin", Wait::Spin), (ADAPTIVE, Wait::Adaptive), ("park", Wait::Park)]);

/// The kernel shows 15 bytes of a thread's name, of which `ms-io-` takes 6.
const THREAD: Parsed<String> = Parsed {
    looks: "NAME",
    wants: "wants a name of 1 to 9 characters",
    read: |name| {
        let fits = (1..=9).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| name.to_owned())
    },
    write: String::clone,
};

const SUBNET: Parsed<Subnet> = Parsed {
    looks: "IP/PREFIX",
    wants: "wants an IPv4 address and its network, such as 10.0.0.2/24",
    read: |text| text.parse().ok(),
    write: Subnet::to_string,
};

const ADDRESS: Parsed<Ipv4Addr> = Parsed {
    looks: "IP",
    wants: "wants an IPv4 address such as 10.0.0.2",
    read: |text| text.parse().ok(),
    write: Ipv4Addr::to_string,
};

options! {
    /// The options of a frame link's string besides the link's own; `None` where an option is not
    /// given.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EngineOptions {
        /// thread that polls the link: a separate I/O thread, or each thread that uses its ports
        io: Option<IoMode> = None,
            otherwise(Words(&[("thread", IoMode::Thread), ("inline", IoMode::Inline)]), "thread");
        /// name of the I/O thread; links with the same name share one thread
        thread: Option<String> = None, maybe(THREAD);
        /// CPU of the I/O thread
        cpu: Option<usize> = None, maybe(number("a CPU number", 0..=1023));
        /// real-time priority of the I/O thread (SCHED_FIFO)
        priority: Option<u8> = None, maybe(number("a priority", 1..=99));
        /// how the I/O thread waits for packets
        wait: Option<Wait> = None, otherwise(WAITS, ADAPTIVE);
        /// how a thread that uses a port waits for packets
        user_wait: Option<Wait> = None, otherwise(WAITS, ADAPTIVE);
        /// own IP address of the link, which the kernel does not use
        address: Option<Subnet> = None, maybe(SUBNET);
        /// default router; needs address=
        gateway: Option<Ipv4Addr> = None, maybe(ADDRESS);
        /// VLAN number of the link's packets
        vlan: Option<u16> = None, maybe(number("an identifier", 1..=4094));
        /// whether checksums of received packets are checked
        checksum: Option<ChecksumPolicy> = None, otherwise(
            Words(&[
                ("verify", ChecksumPolicy::AcceptPartial),
                ("ignore", ChecksumPolicy::Ignore),
            ]),
            "verify"
        );
        /// UDP checksums of sent datagrams: by our stack, none, or by the card if it can
        udp_checksum: Option<UdpChecksum> = None, otherwise(
            Words(&[
                ("on", UdpChecksum::On),
                ("off", UdpChecksum::Off),
                ("offload", UdpChecksum::Offload),
            ]),
            "on"
        );
        /// most datagrams in the receive queue of a port
        queue: Option<usize> = None, maybe(number("datagrams", 16..=1 << 20));
    }
}

/// Options of one port, not of the link.
const OF_PORT: [&str; 2] = ["user_wait", "queue"];

/// The requests of a link string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The link's name, its target, and its own options.
    pub link: Spec,
    /// The engine's options.
    pub engine: EngineOptions,
}

impl Asked {
    /// Splits a link string.
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        let spec = Spec::parse(text)?;
        let (engine, link) = spec.split().map_err(|error| error.see(&spec.name))?;
        let asked = Self { link, engine };
        asked.check()?;
        Ok(asked)
    }

    /// Checks that the options go together.
    fn check(&self) -> Result<(), LinkError> {
        let refuse = |option: String, reason: &str| Err(bad(option, reason));
        if self.engine.io == Some(IoMode::Inline) {
            let of_thread = ["thread", "cpu", "priority", "wait"];
            let mut said = self.engine.written().into_iter();
            if let Some((name, value)) = said.find(|(name, _)| of_thread.contains(name)) {
                let reason = "configures the I/O thread, and io=inline has none: configure the \
                     calling thread, and use user_wait=";
                return refuse(format!("{name}={value}"), reason);
            }
        }
        match (self.engine.address, self.engine.gateway) {
            (None, Some(gateway)) => refuse(
                format!("gateway={gateway}"),
                "goes with address=IP/PREFIX; with the kernel's addresses its routes are used",
            ),
            _ => Ok(()),
        }
    }

    /// Returns the first request that an open link with the options `open` does not meet.
    pub fn contradiction(&self, open: &Self) -> Option<Contradiction> {
        let of_link = |name: &str| !OF_PORT.contains(&name);
        self.engine.contradiction(&open.engine, of_link).or_else(|| {
            let (here, there) = (&self.link, &open.link);
            if here.name != there.name {
                return Some(Contradiction::new("link", &here.name, &there.name));
            }
            here.options.iter().find_map(|(name, value)| {
                let same = there.options.iter().find(|(other, _)| other == name);
                let given = same.map_or(DEFAULT, |(_, given)| given);
                (given != value).then(|| Contradiction::new(name, value, given))
            })
        })
    }
}

impl EngineOptions {
    /// Returns the first of the `compared` options that is given here and different in `open`.
    pub(crate) fn contradiction(
        &self,
        open: &Self,
        compared: impl Fn(&str) -> bool,
    ) -> Option<Contradiction> {
        let (said, there) = (self.written(), open.written());
        said.into_iter().filter(|(name, _)| compared(name)).find_map(|(name, here)| {
            let given =
                there.iter().find(|(other, _)| *other == name).map(|(_, text)| text.clone());
            let default = || {
                let option = Self::describe().into_iter().find(|one| one.name == name);
                option.and_then(|option| option.default).unwrap_or_else(|| DEFAULT.to_owned())
            };
            let there = given.unwrap_or_else(default);
            (there != here).then(|| Contradiction::new(name, here, there))
        })
    }
}

/// The text of a default that has none of its own.
const DEFAULT: &str = "its default";

/// An option with different values in two opens of one link.
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

    /// Returns the error about a link that is open as `what`.
    pub fn error(&self, what: &str) -> LinkError {
        let reason = format!(
            "contradicts the port that is open on {what} already, where it is {}: give the same \
             or leave it out",
            self.there
        );
        bad(format!("{}={}", self.option, self.here), &reason)
    }
}

/// Returns an error about an option of the engine.
pub(crate) fn bad(option: String, reason: &str) -> LinkError {
    BadOption::new(option, reason).into()
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
        let (link, asked) = (asked.link, asked.engine);
        assert_eq!((link.name.as_str(), link.target.as_deref()), ("xdp", Some("veth0")));
        let left: Vec<_> = link.options.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(left, ["mode", "frames"]);
        let taken = (asked.io, asked.cpu, asked.queue, asked.wait);
        assert_eq!(taken, (Some(IoMode::Thread), Some(1), Some(64), Some(Wait::Spin)));
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
            ("loop:io=inline,cpu=1", "\"cpu=1\": configures the I/O thread"),
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
