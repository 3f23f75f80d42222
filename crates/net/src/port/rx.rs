//! The receive half: datagrams lent out of the frame memory.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use millstream_link::frame::Frame;
use millstream_link::port::{Capabilities, Datagram, PortRx};

use super::lane::{Arrival, RxEnd};
use super::{FrameLayout, Poller, bump};

/// The place of a lent datagram.
#[derive(Debug, Clone, Copy)]
struct BufferSlot {
    /// Its first part among the taken ones.
    first: u32,
    /// Its start among the joined bytes, if it came in several parts.
    joined_at: u32,
    bytes: u32,
}

/// The receive half of a port on a frame link.
pub(super) struct EngineRx {
    // The rings are dropped before the registration, so that the driver finds all frames that were
    // given back.
    end: RxEnd,
    /// The frames of the current batch.
    taken: Vec<Arrival>,
    lent: Vec<BufferSlot>,
    /// Datagrams of the current batch that came in several parts, copied together.
    joined: Vec<u8>,
    returning: Vec<Frame>,
    capabilities: Capabilities,
    drive: Arc<dyn Poller>,
    _registration: Arc<dyn Any + Send + Sync>,
}

impl EngineRx {
    pub fn new(
        end: RxEnd,
        capabilities: Capabilities,
        shape: FrameLayout,
        drive: Arc<dyn Poller>,
        registration: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        // All parts but one of the last datagram may exceed the batch.
        let parts = capabilities.batch_max + shape.parts_max() - 1;
        let joined_bytes = if shape.parts_max() > 1 { parts * shape.part_bytes_max } else { 0 };
        Self {
            end,
            taken: Vec::with_capacity(parts),
            lent: Vec::with_capacity(capabilities.batch_max),
            joined: Vec::with_capacity(joined_bytes),
            returning: Vec::with_capacity(parts),
            capabilities,
            drive,
            _registration: registration,
        }
    }

    /// Gives the current batch's frames back.
    fn give_back(&mut self) {
        self.lent.clear();
        self.joined.clear();
        if !self.taken.is_empty() {
            self.returning.extend(self.taken.drain(..).map(|arrival| arrival.frame));
            self.end.returns.push_batch(&mut self.returning);
            // The ring has room for this port's share, so frames remain only after the driver has
            // ended.
            self.returning.clear();
        }
    }

    /// Takes the arrived datagrams, at most a batch, and returns their number.
    fn take(&mut self) -> usize {
        if self.end.arrivals.pop_batch(&mut self.taken, self.capabilities.batch_max) == 0 {
            return 0;
        }
        while self.taken.last().is_some_and(|last| last.frame.continues()) {
            // All parts of a datagram arrive in one step.
            let Some(part) = self.end.arrivals.pop() else { break };
            self.taken.push(part);
        }
        let mut first = 0;
        while first < self.taken.len() {
            first = self.lend(first);
        }
        self.lent.len()
    }

    /// Lends the datagram whose first part is `first`; returns the index of the part behind it.
    fn lend(&mut self, first: usize) -> usize {
        let joined_at = self.joined.len();
        let mut place = BufferSlot {
            first: first as u32,
            joined_at: joined_at as u32,
            bytes: self.taken[first].bytes,
        };
        let mut next = first + 1;
        if self.taken[first].frame.continues() {
            let continued = |part: &Arrival| part.frame.continues();
            next += self.taken[first..].iter().take_while(|part| continued(part)).count();
            next = next.min(self.taken.len());
            for part in &self.taken[first..next] {
                self.joined.extend_from_slice(payload(&self.end, part));
            }
            place.bytes = (self.joined.len() - joined_at) as u32;
            bump(&self.end.state.counters.joined, 1);
        }
        self.lent.push(place);
        next
    }
}

/// Returns the payload in one part.
fn payload<'a>(end: &'a RxEnd, part: &'a Arrival) -> &'a [u8] {
    let from = part.offset as usize;
    &end.memory.bytes(&part.frame)[from..from + part.bytes as usize]
}

impl PortRx for EngineRx {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
        self.give_back();
        let count = self.take();
        if count > 0 {
            return Ok(count);
        }
        let start = Instant::now();
        loop {
            self.drive.look();
            let count = self.take();
            if count > 0 {
                self.drive.found();
                return Ok(count);
            }
            if let Err(error) = self.end.state.check_alive() {
                // Datagrams that came before the end still count.
                return match self.take() {
                    0 => Err(error),
                    count => Ok(count),
                };
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(0);
            }
            self.drive.wait(&self.end.state.rx_waiter, left);
        }
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        let place = self.lent[index];
        let first = &self.taken[place.first as usize];
        let payload = if first.frame.continues() {
            &self.joined[place.joined_at as usize..][..place.bytes as usize]
        } else {
            payload(&self.end, first)
        };
        Datagram { payload, source: first.source }
    }

    fn queue_drops(&self) -> u64 {
        self.end.state.counters.queue_drops.load(Ordering::Relaxed)
    }
}

impl Drop for EngineRx {
    fn drop(&mut self) {
        self.give_back();
    }
}
