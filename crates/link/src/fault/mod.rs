//! Fault injection: middleware that wraps either half of any port, or any frame link, and loses,
//! repeats, delays or damages the datagrams or frames that rules select.
//!
//! A [`FaultSwitch`] holds the rules of one direction. Rules are added and removed while traffic
//! flows, from any thread. While no rule can act, a wrapped half costs two relaxed loads per call
//! and copies nothing; otherwise only datagrams that a rule changes or delays are copied. Of a
//! frame link only duplicates are copied, because frames are delayed in place.
//!
//! ```
//! use millstream_link::fault::{FaultEffect, FaultRule, FaultSwitch, Select};
//! use millstream_link::{open, port::PortOptions};
//! use std::net::{Ipv4Addr, SocketAddrV4};
//! use std::time::{Duration, Instant};
//!
//! let start = Instant::now();
//! let switch = FaultSwitch::new(move || start.elapsed().as_nanos() as u64);
//! let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
//! let mut port = open("udp", any, &PortOptions::default())?;
//! port.tx = switch.wrap_tx(port.tx);
//! let rule = FaultRule::new(|bytes| bytes.starts_with(b"a"), FaultEffect::Lose);
//! let id = switch.add(rule.select(Select { count: Some(1), ..Select::default() }))?;
//! for payload in [b"a1", b"b1", b"a2"] {
//!     port.tx.send(payload, port.local)?;
//! }
//! assert_eq!(port.rx.recv_batch(Duration::from_secs(1))?, 2);
//! assert_eq!(switch.tally(id).unwrap().hit, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | `rule` | which datagrams, and the effect on them: a pure calculation, time is an argument |
//! | `switch` | the rules of one direction, shared with the halves |
//! | `held` | the delayed items, bounded |
//! | `rx`, `tx` | the wrapped halves of a port |
//! | `side`, `link` | a direction of a frame link, and the link |
//! | `text`, `option` | faults as text, and `fault=` in link strings |

mod held;
mod link;
mod option;
mod rule;
mod rx;
mod side;
mod switch;
pub mod text;
mod tx;

pub use held::{HELD_MAX, REORDER_NS_MAX};
pub use option::OPTION;
pub(crate) use option::{check, frames, port};
pub use rule::{FaultEffect, FaultRule, Predicate, RuleCounts, Select};
pub use switch::{FaultSwitch, RULES_MAX, RuleId, TooManyRules};

#[cfg(test)]
mod tests;
