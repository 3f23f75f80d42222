//! The source of items from datagrams.

use millstream_flow::{Block, BlockError, BlockFacts, Context, Counter, Item, Out, Ports, Work};
use millstream_link::port::{PortOptions, PortRx};
use millstream_link::udp::PAYLOAD_BYTES_MAX;
use millstream_link::{LinkError, open};
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

/// Receives items of type `T` from datagrams, in the order of arrival.
///
/// # Stream outputs
/// - `out`: whole items; bytes at the end of a datagram that are not a whole item are dropped.
///
/// # Metrics
/// `datagrams`; `queue_drops`, lost because this graph was too slow (losses in the network are
/// unknown, because there is no header); `partial`, datagrams with bytes left over.
#[derive(Ports)]
pub struct UdpSource<T: Item> {
    /// Items.
    pub output: Out<T>,
    port: Box<dyn PortRx>,
    local: SocketAddrV4,
    /// The number of datagrams currently lent, the next of them, and its processed bytes.
    lent: usize,
    next: usize,
    done: usize,
    idle: Option<Duration>,
    last: Option<Instant>,
    datagrams: Counter,
    queue_drops: Counter,
    partial: Counter,
}

impl<T: Item + bytemuck::Pod> UdpSource<T> {
    /// Creates a source that receives at `bind` over a link, and ends after `idle` without a
    /// datagram. It joins the group if `bind` is the address of a multicast group.
    ///
    /// # Errors
    /// [`LinkError`], which names the next step.
    pub fn open(link: &str, bind: SocketAddrV4, idle: Option<Duration>) -> Result<Self, LinkError> {
        let options = PortOptions { datagram_bytes_max: PAYLOAD_BYTES_MAX, ..Default::default() };
        let port = open(link, bind, &options)?;
        Ok(Self {
            output: Out::new(),
            port: port.rx,
            local: port.local,
            lent: 0,
            next: 0,
            done: 0,
            idle,
            last: None,
            datagrams: Counter::new(),
            queue_drops: Counter::new(),
            partial: Counter::new(),
        })
    }

    /// Returns the address of the source, with the actual port.
    #[must_use]
    pub fn local(&self) -> SocketAddrV4 {
        self.local
    }

    /// Copies items from lent datagrams as far as there is room.
    fn unload(&mut self) {
        let out: &mut [u8] = bytemuck::cast_slice_mut(self.output.slice_mut());
        let mut made = 0;
        while self.next < self.lent {
            let payload = self.port.datagram(self.next).payload;
            let whole = payload.len() / size_of::<T>() * size_of::<T>();
            let bytes = (whole - self.done).min(out.len() - made);
            out[made..made + bytes].copy_from_slice(&payload[self.done..self.done + bytes]);
            made += bytes;
            self.done += bytes;
            if self.done < whole {
                break;
            }
            self.partial.add(u64::from(whole < payload.len()));
            (self.next, self.done) = (self.next + 1, 0);
        }
        self.output.produce(made / size_of::<T>());
    }
}

impl<T: Item + bytemuck::Pod> Block for UdpSource<T> {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        if self.next == self.lent {
            self.lent = self.port.recv_batch(context.may_block)?;
            (self.next, self.done) = (0, 0);
            self.datagrams.add(self.lent as u64);
            let new = self.port.queue_drops().saturating_sub(self.queue_drops.get());
            self.queue_drops.add(new);
            let last = self.last.get_or_insert(context.now);
            if self.lent > 0 {
                *last = context.now;
            } else if self
                .idle
                .is_some_and(|idle| context.now.saturating_duration_since(*last) >= idle)
            {
                return Ok(Work::Finished);
            }
        }
        self.unload();
        Ok(Work::Again(Duration::ZERO))
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts
            .metric("datagrams", &self.datagrams)
            .metric("queue_drops", &self.queue_drops)
            .metric("partial", &self.partial);
    }
}
