//! Items in UDP datagrams, with their memory layout (little-endian) and without a header.

mod sink;
mod source;

pub use sink::UdpSink;
pub use source::UdpSource;

use crate::Made;
use millstream_flow::blocks::RehearsedBlock;
use millstream_flow::registry::{BlockType, ParameterKind, Parameters, discard};
use millstream_flow::{BlockError, Registry, for_item};
use std::net::SocketAddrV4;
use std::time::Duration;

const ITEMS: &[&str] = &["sc16", "cf32", "f32", "u8"];

fn address(parameters: &Parameters, name: &str) -> Result<SocketAddrV4, BlockError> {
    let expected = "an IPv4 address and a port, such as 127.0.0.1:4000";
    parameters.text(name).parse().map_err(|_| parameters.wrong(name, expected))
}

/// Makes the source that takes the place of `udp_source` in a rehearsal. The rate of the datagrams
/// is not known: it is as fast as the graph.
fn silence(parameters: &Parameters) -> Made {
    for_item!(parameters, T: sc16 | cf32 | f32 | u8 => RehearsedBlock::<T>::source())
}

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        BlockType::declare("udp_source", "Receives items from UDP datagrams.")
            .required(
                "bind",
                ParameterKind::Text,
                "local address or multicast group, and port: 0.0.0.0:4000",
            )
            .choice("item", ITEMS, crate::ITEM)
            .optional("idle_s", 0.0, "end after this time without a datagram, seconds; 0: never")
            .optional("link", "udp", "link and options, such as udp:gro=off")
            .example("bind = \"127.0.0.1:4000\"")
            .incidental("bind")
            .live(silence, |parameters| {
                let bind = address(parameters, "bind")?;
                let idle = Duration::try_from_secs_f64(parameters.number("idle_s"))
                    .map_err(|_| parameters.wrong("idle_s", "seconds, zero or more"))?;
                let link = parameters.text("link");
                for_item!(parameters, T: sc16 | cf32 | f32 | u8 => {
                    UdpSource::<T>::open(link, bind, Some(idle).filter(|idle| !idle.is_zero()))?
                })
            }),
    );
    registry.register(
        BlockType::declare("udp_sink", "Sends items in UDP datagrams.")
            .required("to", ParameterKind::Text, "address and port to send to: 127.0.0.1:4000")
            .choice("item", ITEMS, crate::ITEM)
            .optional("payload_bytes", 1472i64, "size of a datagram, 64 to 65507 bytes")
            .optional("link", "udp", "link and options, such as udp:gso=off")
            .example("to = \"127.0.0.1:4000\"")
            .incidental("to")
            .writes(discard, |parameters| {
                let to = address(parameters, "to")?;
                let payload_bytes = match parameters.integer("payload_bytes") {
                    bytes @ 64..=65_507 => bytes as usize,
                    _ => return Err(parameters.wrong("payload_bytes", "64 to 65507")),
                };
                let link = parameters.text("link");
                for_item!(parameters, T: sc16 | cf32 | f32 | u8 => {
                    UdpSink::<T>::open(link, to, payload_bytes)?
                })
            }),
    );
}
