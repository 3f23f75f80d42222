//! What a link and its broker say to each other: one message per packet of a Unix socket.
//!
//! A message is a kind (one byte) and its fields, integers little-endian; its length is known from
//! its fields, and anything else is refused whole. Descriptors travel beside it. A link asks, the
//! broker answers each request once, in order; the first request is [`BrokerRequest::Hello`].

mod fields;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use fields::Fields;

use super::{Attach, BusyPoll, Hook};
use crate::frame::Steer;

/// The version of what is said here. Others are refused: both ends are one program.
///
/// 2: [`BrokerRequest::Ports`]. 3: a link is named by its text.
pub const VERSION: u16 = 3;

/// Longest message, bytes. Longer ones are refused.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// Most ports in one request.
pub const PORTS_MAX: usize = 4096;

/// Most addresses, and most Ethernet types, in one request.
pub const ADDRESSES_MAX: usize = 64;

/// Most ranges of ports in one answer.
pub const RANGES_MAX: usize = 1024;

/// Longest name of an interface, bytes (IFNAMSIZ less its end), and of a link.
pub const NAME_BYTES_MAX: usize = 15;

/// Longest text for people, bytes.
const REASON_BYTES_MAX: usize = 1024;

/// What a link asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerRequest {
    /// Who asks for what: which link on which interface.
    Hello {
        /// [`VERSION`] of the asker.
        version: u16,
        /// The link's name.
        link: String,
        /// The interface's name.
        interface: String,
    },
    /// A socket.
    Socket,
    /// To lock more memory.
    AllowLocked {
        /// How much more.
        bytes: u64,
    },
    /// That a socket (which comes along) polls its device.
    BusyPoll(BusyPoll),
    /// The XDP program.
    Attach(Attach),
    /// Frames of a queue for a socket (which comes along).
    Watch {
        /// The queue.
        queue: u32,
    },
    /// Other frames.
    Steer(Steer),
    /// So many queues of the interface.
    Channels {
        /// The number.
        count: u32,
    },
    /// Which UDP ports may be steered.
    Ports,
}

/// What the broker answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerReply {
    /// Done; `value` is the answer where there is one, else 0.
    Done {
        /// The hook of [`BrokerRequest::Attach`], the queues that there were before
        /// [`BrokerRequest::Channels`].
        value: u32,
        /// What to tell people, such as why the driver refused; mostly empty.
        note: String,
    },
    /// The answer to [`BrokerRequest::Ports`].
    Ports(Vec<RangeInclusive<u16>>),
    /// Refused, or tried in vain.
    Refused {
        /// The errno of the step that failed.
        errno: i32,
        /// Why, and what to do.
        reason: String,
    },
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It ends too early.
    #[error("the message ends too early")]
    Short,
    /// Bytes follow its end.
    #[error("{0} bytes follow the message")]
    Long(usize),
    /// A kind that does not exist.
    #[error("there is no message of kind {0}")]
    Kind(u8),
    /// A field has a value that it cannot have.
    #[error("{0} cannot have this value")]
    Value(&'static str),
}

impl BrokerRequest {
    /// Its bytes; lists are cut at what a message may hold, which [`fits`] tells before.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Hello { version, link, interface } => {
                out.push(1);
                out.extend(version.to_le_bytes());
                text(&mut out, link, NAME_BYTES_MAX);
                text(&mut out, interface, NAME_BYTES_MAX);
            }
            Self::Socket => out.push(2),
            Self::AllowLocked { bytes } => {
                out.push(3);
                out.extend(bytes.to_le_bytes());
            }
            Self::BusyPoll(how) => {
                out.push(4);
                out.extend(how.busy_poll_us.to_le_bytes());
                out.extend(how.budget.to_le_bytes());
            }
            Self::Attach(wanted) => {
                out.push(5);
                out.extend([hook_number(wanted.hook) as u8, u8::from(wanted.parts)]);
                out.extend(wanted.rate_max_hz.to_le_bytes());
            }
            Self::Watch { queue } => {
                out.push(6);
                out.extend(queue.to_le_bytes());
            }
            Self::Steer(steer) => {
                out.push(7);
                encode_steer(&mut out, steer);
            }
            Self::Channels { count } => {
                out.push(8);
                out.extend(count.to_le_bytes());
            }
            Self::Ports => out.push(9),
        }
        out
    }

    /// Reads one from untrusted bytes.
    ///
    /// # Errors
    /// [`Malformed`]: nothing of it may be used.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        let request = match fields.u8()? {
            1 => {
                let version = fields.u16()?;
                let link = fields.text(NAME_BYTES_MAX, "link")?;
                Self::Hello { version, link, interface: fields.name()? }
            }
            2 => Self::Socket,
            3 => Self::AllowLocked { bytes: fields.u64()? },
            4 => Self::BusyPoll(BusyPoll { busy_poll_us: fields.u32()?, budget: fields.u32()? }),
            5 => {
                let hook = hook_of(u32::from(fields.u8()?)).ok_or(Malformed::Value("hook"))?;
                let parts = fields.flag("parts")?;
                Self::Attach(Attach { hook, parts, rate_max_hz: fields.u32()? })
            }
            6 => Self::Watch { queue: fields.u32()? },
            7 => Self::Steer(fields.steer()?),
            8 => Self::Channels { count: fields.u32()? },
            9 => Self::Ports,
            other => return Err(Malformed::Kind(other)),
        };
        fields.end()?;
        Ok(request)
    }
}

impl BrokerReply {
    /// Its bytes; a reason that is too long is cut, and so are ranges beyond [`RANGES_MAX`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Done { value, note } => {
                out.push(0);
                out.extend(value.to_le_bytes());
                text(&mut out, note, REASON_BYTES_MAX);
            }
            Self::Refused { errno, reason } => {
                out.push(1);
                out.extend(errno.to_le_bytes());
                text(&mut out, reason, REASON_BYTES_MAX);
            }
            Self::Ports(ranges) => {
                out.push(2);
                let ranges = &ranges[..ranges.len().min(RANGES_MAX)];
                out.extend((ranges.len() as u16).to_le_bytes());
                let ends = ranges.iter().flat_map(|range| [*range.start(), *range.end()]);
                out.extend(ends.flat_map(u16::to_le_bytes));
            }
        }
        out
    }

    /// Reads one from untrusted bytes.
    ///
    /// # Errors
    /// [`Malformed`]: nothing of it may be used.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        let reply = match fields.u8()? {
            0 => {
                let value = fields.u32()?;
                Self::Done { value, note: fields.text(REASON_BYTES_MAX, "note")? }
            }
            1 => {
                let errno = fields.u32()?.cast_signed();
                let reason = fields.text(REASON_BYTES_MAX, "reason")?;
                Self::Refused { errno, reason }
            }
            2 => Self::Ports(fields.ranges()?),
            other => return Err(Malformed::Kind(other)),
        };
        fields.end()?;
        Ok(reply)
    }
}

/// The version that a client speaks, of its first request as bytes. It has the same place in every
/// version.
#[must_use]
pub fn version_of(bytes: &[u8]) -> Option<u16> {
    match bytes {
        [1, low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    }
}

/// The number of a hook in a message.
#[must_use]
pub fn hook_number(hook: Hook) -> u32 {
    match hook {
        Hook::Auto => 0,
        Hook::Driver => 1,
        Hook::Generic => 2,
    }
}

/// The hook of a number.
#[must_use]
pub fn hook_of(number: u32) -> Option<Hook> {
    [Hook::Auto, Hook::Driver, Hook::Generic].into_iter().find(|hook| hook_number(*hook) == number)
}

/// Whether a message can hold it.
#[must_use]
pub fn fits(steer: &Steer) -> bool {
    steer.udp_ports.len() <= PORTS_MAX
        && steer.addresses.len().max(steer.ethertypes.len()) <= ADDRESSES_MAX
}

fn text(out: &mut Vec<u8>, text: &str, bytes_max: usize) {
    let end = (0..=text.len().min(bytes_max)).rev().find(|&at| text.is_char_boundary(at));
    let bytes = &text.as_bytes()[..end.unwrap_or(0)];
    out.extend((bytes.len() as u16).to_le_bytes());
    out.extend(bytes);
}

fn encode_steer(out: &mut Vec<u8>, steer: &Steer) {
    out.extend([u8::from(steer.everything), u8::from(steer.own_addresses)]);
    // 802.1Q numbers have 12 bits: the value above them all stands for none.
    out.extend(steer.vlan.unwrap_or(u16::MAX).to_le_bytes());
    let addresses = &steer.addresses[..steer.addresses.len().min(ADDRESSES_MAX)];
    out.extend((addresses.len() as u16).to_le_bytes());
    out.extend(addresses.iter().flat_map(Ipv4Addr::octets));
    for (list, most) in [(&steer.udp_ports, PORTS_MAX), (&steer.ethertypes, ADDRESSES_MAX)] {
        let list = &list[..list.len().min(most)];
        out.extend((list.len() as u16).to_le_bytes());
        out.extend(list.iter().flat_map(|number| number.to_le_bytes()));
    }
}
