//! The sink of items in datagrams.

use millstream_flow::{Block, BlockError, BlockFacts, Context, Counter, In, Item, Ports, Work};
use millstream_link::port::{PortOptions, PortTx};
use millstream_link::udp::is_loss;
use millstream_link::{LinkError, open};
use rustix::io::Errno;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Bytes handed to the port at a time.
const TRAIN_BYTES: usize = 60_000;

/// Sends items of type `T` in datagrams of one size; at the end a shorter one takes the rest.
///
/// Ports: `in`. The block waits for a whole datagram: if delay matters, pace the graph or use small
/// datagrams.
///
/// # Metrics
/// `datagrams` sent; `lost`, datagrams that the system refused (the port is closed, there is no
/// room, or no way to the destination at the moment).
#[derive(Ports)]
pub struct UdpSink<T: Item> {
    /// Items.
    pub input: In<T>,
    port: Box<dyn PortTx>,
    to: SocketAddrV4,
    /// Items of a datagram.
    items: usize,
    datagrams: Counter,
    lost: Counter,
}

impl<T: Item + bytemuck::Pod> UdpSink<T> {
    /// Creates a sink that sends to `to` over a link, whole items in at most `payload_bytes` bytes
    /// a datagram.
    ///
    /// # Errors
    /// [`LinkError`], which names the next step.
    pub fn open(link: &str, to: SocketAddrV4, payload_bytes: usize) -> Result<Self, LinkError> {
        // The loopback address for a destination on this machine, any address for others.
        let from = if to.ip().is_loopback() { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
        let options = PortOptions { datagram_bytes_max: payload_bytes, ..Default::default() };
        let port = open(link, SocketAddrV4::new(from, 0), &options)?;
        let items = (payload_bytes / size_of::<T>()).max(1);
        let (datagrams, lost) = (Counter::new(), Counter::new());
        let input = In::with_min_items(items);
        Ok(Self { input, port: port.tx, to, items, datagrams, lost })
    }

    /// Sends some items; returns their number.
    fn send(&mut self) -> Result<usize, BlockError> {
        let items = self.input.slice();
        let train = (TRAIN_BYTES / size_of::<T>() / self.items).max(1) * self.items;
        let count = match items.len() {
            few if few < self.items && !self.input.is_ended() => 0,
            few if few < self.items => few,
            many => (many - many % self.items).min(train),
        };
        if count == 0 {
            return Ok(0);
        }
        let bytes = bytemuck::cast_slice(&items[..count]);
        let sent = self.port.send_train(bytes, self.items * size_of::<T>(), self.to);
        let datagrams = count.div_ceil(self.items) as u64;
        match sent {
            Ok(()) => self.datagrams.add(datagrams),
            Err(error) if is_loss(&error) => self.lost.add(datagrams),
            Err(error) => {
                let bytes = self.items * size_of::<T>();
                let next = match Errno::from_io_error(&error) {
                    Some(Errno::MSGSIZE) => {
                        "the interface takes no such length: give a smaller \
                                             payload_bytes"
                    }
                    Some(Errno::ACCESS | Errno::PERM) => {
                        "a firewall or the kernel forbids this \
                                                         destination: check `to`"
                    }
                    _ => "check `to`",
                };
                let text = format!(
                    "cannot send datagrams of {bytes} bytes to {}: {error}; {next}",
                    self.to
                );
                return Err(text.into());
            }
        }
        Ok(count)
    }
}

impl<T: Item + bytemuck::Pod> Block for UdpSink<T> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        loop {
            let items = self.send()?;
            self.input.consume(items);
            if items == 0 {
                return Ok(Work::Continue);
            }
        }
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.metric("datagrams", &self.datagrams).metric("lost", &self.lost);
    }
}
