//! Sets up a device-to-host stream.

use std::net::SocketAddrV4;

use millstream_link::port::Port;
use millstream_wire::{Epid, Width};

use super::credit::Credit;
use super::opening::RxOpening;
use super::rate::StreamRate;
use crate::topology::Endpoint;
use crate::{Clock, RadioError, opening};

/// The source and destination of a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamPath {
    /// The device's CHDR address.
    pub device: SocketAddrV4,
    /// Its CHDR width.
    pub width: Width,
    /// The largest packet on the path, bytes.
    pub frame_bytes: usize,
    /// The crossbar port towards this host.
    pub entry_port: u16,
    /// The device's endpoint that sends the samples.
    pub endpoint: Endpoint,
    /// The endpoint of this stream's port.
    pub epid: Epid,
    /// The rates of its samples and of the radio's time.
    pub rate: StreamRate,
    /// The clock of the stream.
    pub clock: Clock,
}

/// Routes the stream to `port` and opens it. Afterwards both sides count from zero.
pub(crate) fn open(
    port: &mut Port,
    path: &StreamPath,
    credit: &mut Credit,
) -> Result<(), RadioError> {
    let (_, opened) = opening::run(port, path, RxOpening::new(*path, credit.clone()))?;
    *credit = opened;
    Ok(())
}
