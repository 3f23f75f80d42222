//! The messages between a link and its broker: one message per packet of a Unix socket.
//!
//! A message is one line of JSON, as `encode` writes it: any other text, even one of the same
//! meaning, is refused. Descriptors are sent with it. A link sends requests, the broker answers
//! each once, in order; the first request is [`BrokerRequest::Hello`].

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};

use super::{Attach, BusyPoll, Hook};
use crate::frame::Steer;

/// The version of the protocol. Others are refused: both ends are one program.
///
/// 2: [`BrokerRequest::Ports`]. 3: a link is named by its text. 4: JSON.
pub const VERSION: u16 = 4;

/// The longest message, bytes. Longer ones are refused.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// The most ranges of ports in one answer, so that it fits a message.
pub const RANGES_MAX: usize = 1024;

/// The longest name of an interface, bytes (IFNAMSIZ less its end), and of a link.
pub const NAME_BYTES_MAX: usize = 15;

/// The longest text for people, bytes.
const REASON_BYTES_MAX: usize = 1024;

/// A request of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BrokerReply {
    /// Success.
    Done,
    /// The answer to [`BrokerRequest::Attach`].
    Attached {
        /// The place where the program runs.
        hook: Hook,
        /// Why the driver refused it; mostly empty.
        #[serde(serialize_with = "cut")]
        refused: String,
    },
    /// The answer to [`BrokerRequest::Channels`]: the previous number of queues.
    Queues(u32),
    /// The answer to [`BrokerRequest::Ports`].
    Ports(Vec<RangeInclusive<u16>>),
    /// Refused, or failed.
    Refused {
        /// The errno of the step that failed.
        errno: i32,
        /// The reason, and what to do.
        #[serde(serialize_with = "cut")]
        reason: String,
    },
}

/// The reason why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// They are not what `encode` writes.
    #[error("the bytes are no message of this protocol")]
    Form,
    /// A field has a value that it cannot have.
    #[error("{0} cannot have this value")]
    Value(&'static str),
}

impl BrokerRequest {
    /// Encodes the request.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Decodes untrusted bytes.
    ///
    /// # Errors
    /// [`Malformed`]: no part of the bytes may be used.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let request = decode(bytes)?;
        match &request {
            Self::Hello { link, .. } if link.len() > NAME_BYTES_MAX => {
                Err(Malformed::Value("link"))
            }
            Self::Hello { interface, .. } if !is_interface(interface) => {
                Err(Malformed::Value("interface"))
            }
            // 802.1Q numbers have 12 bits.
            Self::Steer(Steer { vlan: Some(4096..), .. }) => Err(Malformed::Value("vlan")),
            _ => Ok(request),
        }
    }
}

impl BrokerReply {
    /// Encodes the answer; a text that is too long is cut.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Decodes untrusted bytes.
    ///
    /// # Errors
    /// [`Malformed`]: no part of the bytes may be used.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        match decode(bytes)? {
            Self::Ports(ranges) if ranges.iter().any(RangeInclusive::is_empty) => {
                Err(Malformed::Value("range of ports"))
            }
            reply => Ok(reply),
        }
    }
}

fn encode(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("a message holds numbers, texts and lists")
}

fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<T, Malformed> {
    let message = serde_json::from_slice(bytes).map_err(|_| Malformed::Form)?;
    // One meaning has one text: no unknown, repeated or missing field, and no byte behind the end.
    if encode(&message) == bytes { Ok(message) } else { Err(Malformed::Form) }
}

/// Returns the client's protocol version from the bytes of its first request. It has the same place
/// in every version from 4 on.
#[must_use]
pub fn version_of(bytes: &[u8]) -> Option<u16> {
    let message: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    message["Hello"]["version"].as_u64()?.try_into().ok()
}

/// Whether the kernel accepts a name for an interface: no space, no `/`, nothing unprintable.
fn is_interface(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b':';
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && !matches!(name, "." | "..")
        && name.bytes().all(good)
}

fn cut<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    let end = (0..=text.len().min(REASON_BYTES_MAX)).rev().find(|&at| text.is_char_boundary(at));
    to.serialize_str(&text[..end.unwrap_or(0)])
}
