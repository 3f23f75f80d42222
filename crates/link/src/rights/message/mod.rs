//! The messages between a link and its broker: one message per packet of a Unix socket.
//!
//! A message is a kind (one byte) and its fields, integers little-endian. Its length follows from
//! its fields, and any other length is refused. Descriptors are sent with it. A link sends
//! requests, the broker answers each once, in order; the first request is [`BrokerRequest::Hello`].

mod fields;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use fields::Fields;

use super::{Attach, BusyPoll, Hook};
use crate::frame::Steer;

/// The version of the protocol. Others are refused: both ends are one program.
///
/// 2: [`BrokerRequest::Ports`]. 3: a link is named by its text.
pub const VERSION: u16 = 3;

/// The longest message, bytes. Longer ones are refused.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// The most ports in one request.
pub const PORTS_MAX: usize = 4096;

/// The most addresses, and the most Ethernet types, in one request.
pub const ADDRESSES_MAX: usize = 64;

/// The most ranges of ports in one answer.
pub const RANGES_MAX: usize = 1024;

/// The longest name of an interface, bytes (IFNAMSIZ less its end), and of a link.
pub const NAME_BYTES_MAX: usize = 15;

/// The longest text for people, bytes.
const REASON_BYTES_MAX: usize = 1024;

/// A request of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerRequest {
    /// The first request: the link and the interface.
    Hello {
        /// [`VERSION`] of the client.
        version: u16,
        /// The link's name.
        link: String,
        /// The interface's name.
        interface: String,
    },
    /// Open a socket.
    Socket,
    /// Allow more locked memory.
    AllowLocked {
        /// The number of further bytes.
        bytes: u64,
    },
    /// Make a socket (which is sent along) poll its device.
    BusyPoll(BusyPoll),
    /// Attach the XDP program.
    Attach(Attach),
    /// Send frames of a queue to a socket (which is sent along).
    Watch {
        /// The queue.
        queue: u32,
    },
    /// Select other frames.
    Steer(Steer),
    /// Set the number of queues of the interface.
    Channels {
        /// The number.
        count: u32,
    },
    /// List the UDP ports that may be steered.
    Ports,
}

/// An answer of the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerReply {
    /// Success; `value` is the result where there is one, else 0.
    Done {
        /// The hook of [`BrokerRequest::Attach`], or the previous number of queues of
        /// [`BrokerRequest::Channels`].
        value: u32,
        /// A note for people, such as why the driver refused; mostly empty.
        note: String,
    },
    /// The answer to [`BrokerRequest::Ports`].
    Ports(Vec<RangeInclusive<u16>>),
    /// Refused, or failed.
    Refused {
        /// The errno of the step that failed.
        errno: i32,
        /// The reason, and what to do.
        reason: String,
    },
}

/// The reason why bytes are not a message.
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
    /// Encodes the request; lists are cut to the limits of a message, which [`fits`] checks before.
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

    /// Decodes untrusted bytes.
    ///
    /// # Errors
    /// [`Malformed`]: no part of the bytes may be used.
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
    /// Encodes the answer; a reason that is too long is cut, and so are ranges beyond
    /// [`RANGES_MAX`].
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

    /// Decodes untrusted bytes.
    ///
    /// # Errors
    /// [`Malformed`]: no part of the bytes may be used.
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

/// Returns the client's protocol version from the bytes of its first request. It has the same place
/// in every version.
#[must_use]
pub fn version_of(bytes: &[u8]) -> Option<u16> {
    match bytes {
        [1, low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    }
}

/// Returns the number of a hook in a message.
#[must_use]
pub fn hook_number(hook: Hook) -> u32 {
    match hook {
        Hook::Auto => 0,
        Hook::Driver => 1,
        Hook::Generic => 2,
    }
}

/// Returns the hook of a number.
#[must_use]
pub fn hook_of(number: u32) -> Option<Hook> {
    [Hook::Auto, Hook::Driver, Hook::Generic].into_iter().find(|hook| hook_number(*hook) == number)
}

/// Whether the selection fits into a message.
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
    // 802.1Q numbers have 12 bits: the value above them all stands for `None`.
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
