//! One port for several streams: packets go to the stream of their endpoint.
//!
//! ```text
//!              ┌ SharedPort ───────────────┐    ┌ Port of stream A
//! datagrams ─▶ │ port ─▶ endpoint ─▶ inbox │ ─▶ ┤ Port of stream B
//!              └────────────── others: counted  └ …
//! ```
//!
//! Whichever stream waits first polls the port, for all of them. A datagram is copied once, to the
//! inbox of its stream, so a stream on a port of its own is faster. What a stream does not fetch
//! waits in its inbox up to its share of the receive queue, which bounds its credit as well.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddrV4;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use millstream_link::port::{Capabilities, Datagram, FrameLoan, Port, PortRx, PortTx};
use millstream_wire::chdr::Packet;
use millstream_wire::{Epid, Width};

use crate::deadline::deadline_after;

/// The part of the receive queue, in eighths, that the streams share which receive samples.
const QUEUE_EIGHTHS: usize = 7;

/// A UDP port that several streams share.
pub struct SharedPort {
    shared: Arc<Shared>,
}

struct Shared {
    local: SocketAddrV4,
    width: Width,
    /// Those of each stream.
    capabilities: Capabilities,
    /// The receive half: locked by the stream that polls.
    rx: Mutex<Box<dyn PortRx>>,
    tx: Mutex<Box<dyn PortTx>>,
    inboxes: Mutex<Inboxes>,
    /// Something has come, or nobody polls any more.
    changed: Condvar,
}

#[derive(Default)]
struct Inboxes {
    all: Vec<Inbox>,
    /// A stream polls the port.
    polled: bool,
    /// Datagrams that the port's queue dropped.
    queue_drops: u64,
    /// Datagrams that were too long for the port.
    too_long: u64,
    /// Datagrams to no stream.
    strays: u64,
}

/// What has come for a stream.
struct Inbox {
    epid: Epid,
    waiting: VecDeque<Letter>,
    waiting_bytes: usize,
    /// Buffers for further datagrams.
    spare: Vec<Vec<u8>>,
    /// Datagrams that found it full.
    drops: u64,
}

/// A datagram with its source.
struct Letter {
    payload: Vec<u8>,
    source: SocketAddrV4,
}

impl SharedPort {
    /// Shares `port` among streams, of which up to `receivers` receive samples.
    pub fn new(port: Port, width: Width, receivers: usize) -> Self {
        let mut capabilities = port.rx.capabilities();
        let share = |whole: &mut usize| *whole = *whole / 8 * QUEUE_EIGHTHS / receivers.max(1);
        share(&mut capabilities.recv_queue_bytes);
        capabilities.recv_queue_datagrams.as_mut().map(share);
        Self {
            shared: Arc::new(Shared {
                local: port.local,
                width,
                capabilities,
                rx: Mutex::new(port.rx),
                tx: Mutex::new(port.tx),
                inboxes: Mutex::default(),
                changed: Condvar::new(),
            }),
        }
    }

    /// Returns a port for the stream with this host's endpoint `epid`, which no other stream of the
    /// port has. Datagrams to it that came before are strays.
    pub fn port(&self, epid: Epid) -> Port {
        let shared = &self.shared;
        let (queue_drops, too_long) = {
            let mut inboxes = shared.inboxes();
            inboxes.all.push(Inbox {
                epid,
                waiting: VecDeque::new(),
                waiting_bytes: 0,
                spare: Vec::new(),
                drops: 0,
            });
            (inboxes.queue_drops, inboxes.too_long)
        };
        let rx = ConnectedRx {
            shared: Arc::clone(shared),
            epid,
            lent: Vec::new(),
            dropped_before: queue_drops,
            dropped: 0,
            too_long: (too_long, 0),
        };
        let tx = ConnectedTx { shared: Arc::clone(shared), loan: FrameLoan::default() };
        Port { local: shared.local, rx: Box::new(rx), tx: Box::new(tx) }
    }

    /// Returns the number of streams.
    pub fn streams(&self) -> usize {
        self.shared.inboxes().all.len()
    }

    /// Returns the datagrams that were for none of the streams: of streams that have ended, damaged
    /// ones, and those of other programs.
    pub fn strays(&self) -> u64 {
        self.shared.inboxes().strays
    }
}

impl std::fmt::Debug for SharedPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "port that {} streams share, at {}", self.streams(), self.shared.local)
    }
}

impl Shared {
    fn inboxes(&self) -> MutexGuard<'_, Inboxes> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for datagrams and distributes them. Only one stream does this at a time.
    fn poll(&self, timeout: Duration) -> io::Result<()> {
        let mut rx = self.rx.lock().unwrap_or_else(PoisonError::into_inner);
        let count = rx.recv_batch(timeout);
        let mut inboxes = self.inboxes();
        (inboxes.queue_drops, inboxes.too_long) = (rx.queue_drops(), rx.too_long());
        for index in 0..*count.as_ref().unwrap_or(&0) {
            inboxes.deliver(rx.datagram(index), self.width, &self.capabilities);
        }
        count.map(drop)
    }

    fn tx(&self) -> MutexGuard<'_, Box<dyn PortTx>> {
        self.tx.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inboxes {
    /// Puts a datagram into its inbox, which holds as much as `queue`.
    fn deliver(&mut self, datagram: Datagram<'_>, width: Width, queue: &Capabilities) {
        let epid =
            Packet::parse(datagram.payload, width).ok().map(|packet| packet.header().dst_epid);
        let Some(inbox) = self.all.iter_mut().find(|inbox| Some(inbox.epid) == epid) else {
            self.strays += 1;
            return;
        };
        let length = datagram.payload.len();
        let is_full = match queue.recv_queue_datagrams {
            Some(datagrams) => inbox.waiting.len() >= datagrams,
            None => inbox.waiting_bytes + length > queue.recv_queue_bytes,
        };
        if is_full {
            inbox.drops += 1;
            return;
        }
        let mut payload = inbox.spare.pop().unwrap_or_default();
        payload.clear();
        payload.extend_from_slice(datagram.payload);
        inbox.waiting_bytes += length;
        inbox.waiting.push_back(Letter { payload, source: datagram.source });
    }

    /// Returns the inbox of an endpoint.
    fn of(&mut self, epid: Epid) -> Option<&mut Inbox> {
        self.all.iter_mut().find(|inbox| inbox.epid == epid)
    }
}

/// The receive half of a stream's port.
struct ConnectedRx {
    shared: Arc<Shared>,
    epid: Epid,
    lent: Vec<Letter>,
    /// Drops of the port's queue before the stream, and all drops since.
    dropped_before: u64,
    dropped: u64,
    /// The same for datagrams that were too long: which stream they were for is not known.
    too_long: (u64, u64),
}

impl ConnectedRx {
    /// Takes what has come for the stream. Returns the number of datagrams.
    fn fetch(&mut self, inboxes: &mut Inboxes) -> usize {
        let of_queue = inboxes.queue_drops - self.dropped_before;
        self.too_long.1 = inboxes.too_long - self.too_long.0;
        let Some(inbox) = inboxes.of(self.epid) else { return 0 };
        self.dropped = of_queue + inbox.drops;
        let count = inbox.waiting.len().min(self.shared.capabilities.batch_max);
        self.lent.extend(inbox.waiting.drain(..count));
        inbox.waiting_bytes -= self.lent.iter().map(|letter| letter.payload.len()).sum::<usize>();
        count
    }
}

impl PortRx for ConnectedRx {
    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities
    }

    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
        let shared = Arc::clone(&self.shared);
        let mut inboxes = shared.inboxes();
        if let Some(inbox) = inboxes.of(self.epid) {
            inbox.spare.extend(self.lent.drain(..).map(|letter| letter.payload));
        }
        let until = deadline_after(Instant::now(), timeout);
        let mut has_polled = false;
        loop {
            let count = self.fetch(&mut inboxes);
            let left = until.saturating_duration_since(Instant::now());
            if count > 0 || left.is_zero() && has_polled {
                return Ok(count);
            }
            if inboxes.polled {
                // Another stream polls for this one, too.
                let waited = shared.changed.wait_timeout(inboxes, left);
                inboxes = waited.unwrap_or_else(PoisonError::into_inner).0;
                has_polled = true;
                continue;
            }
            inboxes.polled = true;
            drop(inboxes);
            let polled = shared.poll(left);
            inboxes = shared.inboxes();
            inboxes.polled = false;
            has_polled = true;
            shared.changed.notify_all();
            polled?;
        }
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        let Letter { payload, source } = &self.lent[index];
        Datagram { payload, source: *source }
    }

    fn queue_drops(&self) -> u64 {
        self.dropped
    }

    fn too_long(&self) -> u64 {
        self.too_long.1
    }
}

impl Drop for ConnectedRx {
    fn drop(&mut self) {
        self.shared.inboxes().all.retain(|inbox| inbox.epid != self.epid);
    }
}

/// The transmit half of a stream's port.
struct ConnectedTx {
    shared: Arc<Shared>,
    loan: FrameLoan,
}

impl PortTx for ConnectedTx {
    fn capabilities(&self) -> Capabilities {
        self.shared.tx().capabilities()
    }

    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.shared.tx().send(payload, to)
    }

    fn try_send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        match self.shared.tx.try_lock() {
            Ok(mut tx) => tx.try_send(payload, to),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().try_send(payload, to),
            // Another stream sends, and may wait for room.
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn send_train(&mut self, train: &[u8], segment: usize, to: SocketAddrV4) -> io::Result<()> {
        self.shared.tx().send_train(train, segment, to)
    }

    fn loan(&mut self) -> &mut FrameLoan {
        &mut self.loan
    }

    fn release(&mut self) -> Option<Duration> {
        self.shared.tx().release()
    }
}

#[cfg(test)]
#[path = "shared_port_tests.rs"]
mod tests;
