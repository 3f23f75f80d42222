//! Sinks that publish what a graph decodes: packets, tags, events and metrics.
//!
//! [`register`] adds `jsonl_sink` (a file of JSON Lines), `nats_sink` and `mqtt_sink` (brokers) to
//! a registry, and `zenoh_sink` with the feature `zenoh`. All are one block, [`PublishSink`], with
//! another [`Outlet`]. The block writes messages into a bounded queue and never waits. A thread of
//! its own, the courier, takes them from there to the outlet, keeps each until it is acknowledged,
//! and connects again after an outage. So a broker that is away costs messages, each counted with
//! its cause, and never samples.
//!
//! [`PublishLedger`] is the account of a sink: offered = acknowledged + dropped by cause.

mod clock;
mod courier;
mod delivery;
mod document;
mod foreign;
mod jsonl;
mod ledger;
mod mqtt;
mod nats;
mod outlet;
mod publications;
mod queue;
mod receiver;
mod sink;
mod vita49_sink;
mod wire_stream;
#[cfg(feature = "zenoh")]
mod zenoh;

pub use jsonl::JsonlOutlet;
pub use ledger::{DropCause, PublishLedger};
pub use mqtt::{MqttLogin, MqttOutlet};
pub use nats::{NatsLogin, NatsOutlet};
pub use outlet::{Outcomes, Outlet, OutletError};
pub use publications::Publications;
pub use receiver::{DatagramOutlet, ReceiverAddress};
pub use sink::{PublishOptions, PublishSink};
pub use vita49_sink::{Vita49Options, Vita49Sink};
#[cfg(feature = "zenoh")]
pub use zenoh::{ZenohNetwork, ZenohOutlet};

use millstream_flow::Registry;

/// Adds the sinks to a registry, and returns the list of those that it will make.
///
/// # Panics
/// If the registry has them already.
pub fn register(registry: &mut Registry) -> Publications {
    registry.register_crate(module_path!());
    registry.shared()
}
