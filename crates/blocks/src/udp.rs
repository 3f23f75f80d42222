//! Items in UDP datagrams, with their memory layout (little-endian) and without a header.

mod sink;
mod source;

pub use sink::UdpSink;
pub use source::UdpSource;

use millstream_flow::Item;
use millstream_flow::blocks::RehearsedBlock;
use millstream_flow::registry::BlockParameters;
use millstream_link::LinkError;
use std::net::SocketAddrV4;
use std::time::Duration;

/// Receives items from UDP datagrams.
#[derive(BlockParameters)]
#[block(udp_source, live, items(sc16, cf32, f32, u8), example = "bind = \"127.0.0.1:4000\"")]
struct SourceParameters {
    /// local address or multicast group, and port: 0.0.0.0:4000
    #[parameter(incidental)]
    bind: SocketAddrV4,
    /// end after this time without a datagram, seconds; 0: never
    #[parameter(least = 0, most = 1e9)]
    idle_s: Option<f64>,
    /// link and options, such as udp:gro=off
    #[parameter(default = "udp")]
    link: String,
}

impl SourceParameters {
    fn make<T: Item + bytemuck::Pod>(self) -> Result<UdpSource<T>, LinkError> {
        let idle = self.idle_s.map(Duration::from_secs_f64);
        UdpSource::open(&self.link, self.bind, idle)
    }

    fn rehearse<T: Item>(self) -> RehearsedBlock<T> {
        RehearsedBlock::source()
    }
}

/// Sends items in UDP datagrams.
#[derive(BlockParameters)]
#[block(udp_sink, writes(discard), items(sc16, cf32, f32, u8), example = "to = \"127.0.0.1:4000\"")]
struct SinkParameters {
    /// address and port to send to: 127.0.0.1:4000
    #[parameter(incidental)]
    to: SocketAddrV4,
    /// size of a datagram, bytes
    #[parameter(default = 1472, least = 64, most = 65_507)]
    payload_bytes: usize,
    /// link and options, such as udp:gso=off
    #[parameter(default = "udp")]
    link: String,
}

impl SinkParameters {
    fn make<T: Item + bytemuck::Pod>(self) -> Result<UdpSink<T>, LinkError> {
        UdpSink::open(&self.link, self.to, self.payload_bytes)
    }
}
