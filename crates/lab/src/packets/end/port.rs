//! The whole path: a port as applications open it, over any link.

use std::io;
use std::net::SocketAddrV4;
use std::time::Duration;

use millstream_link::frame::Copies;
use millstream_link::port::{Datagram, Port, PortOptions, PortTx};
use millstream_net::engine::{LinkReport, PortReport, inventory};

use super::super::budget::PacketCopies;
use super::{
    BATCH, EchoMode, EndAddress, LOAD, Look, PathEnd, SLEEP_MS, link_events, load, nowhere, number,
};

/// Bytes of a train that a link segments itself: several of the kernel's messages, so that the
/// last one, which is shorter, costs little, and still within a core's second-level cache.
const TRAIN_BYTES: usize = 512 << 10;

/// A port of `net::open`.
pub struct PortEnd {
    port: Port,
    payload_bytes: usize,
    /// Packets in a train.
    batch: usize,
    /// Whether the port lends frames of a link, so that packets are written in place.
    lends: bool,
    /// A batch of load, back to back.
    train: Vec<u8>,
    /// Datagrams to return.
    back: Vec<u8>,
    peer: SocketAddrV4,
}

impl PortEnd {
    /// Opens a port on `link` for payloads of `payload_bytes`.
    ///
    /// # Errors
    /// The link's, with the remedy.
    pub fn open(link: &str, local: SocketAddrV4, payload_bytes: usize) -> Result<Self, String> {
        let datagram_bytes_max = payload_bytes.max(1472);
        let sizes = PortOptions { datagram_bytes_max, ..PortOptions::default() };
        let port = millstream_net::open(link, local, &sizes).map_err(|error| error.to_string())?;
        let batches = if port.tx.capabilities().segmentation {
            (TRAIN_BYTES / (BATCH * payload_bytes)).clamp(1, 4)
        } else {
            1
        };
        let batch = batches * BATCH;
        let train = load(batch, payload_bytes);
        let room = port.rx.capabilities().batch_max.max(BATCH) * payload_bytes;
        let back = Vec::with_capacity(room);
        let lends = millstream_link::registry::carries_frames(link);
        Ok(Self { port, payload_bytes, batch, lends, train, back, peer: nowhere() })
    }

    /// Sends packets of load from frames of the link; as with bare frames, writes only their
    /// beginning.
    fn send_lent(&mut self, count: usize) -> io::Result<usize> {
        let (tx, mut sent) = (&mut *self.port.tx, 0);
        while sent < count && not_full(tx.lend(self.payload_bytes))? {
            tx.lent(0)[..8].copy_from_slice(&LOAD.to_le_bytes());
            tx.commit(self.payload_bytes, self.peer)?;
            sent += 1;
        }
        tx.depart()?;
        Ok(sent)
    }

    /// The counts of the frame link below, and of the port on it; `None` for the kernel's sockets.
    fn report(&self) -> Option<(LinkReport, PortReport)> {
        let inventory = inventory();
        let threads = inventory.threads.into_iter().flat_map(|thread| thread.links);
        threads.chain(inventory.inline).find_map(|link| {
            let port = link.ports.iter().find(|port| port.local == self.port.local)?.clone();
            Some((link, port))
        })
    }

    fn receive(&mut self, look: Look) -> io::Result<usize> {
        let timeout = match look {
            Look::Glance => Duration::ZERO,
            Look::Sleep => Duration::from_millis(SLEEP_MS as u64),
        };
        self.port.rx.recv_batch(timeout)
    }
}

impl PathEnd for PortEnd {
    fn address(&self) -> EndAddress {
        EndAddress { mac: [0; 6], udp: self.port.local }
    }

    fn aim(&mut self, peer: &EndAddress) {
        self.peer = peer.udp;
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn send(&mut self, count: usize) -> io::Result<usize> {
        let count = count.min(self.batch);
        if self.lends {
            return self.send_lent(count);
        }
        let train = &self.train[..count * self.payload_bytes];
        let sent = self.port.tx.send_train(train, self.payload_bytes, self.peer);
        Ok(if not_full(sent)? { count } else { 0 })
    }

    fn send_numbered(&mut self, number: u64) -> io::Result<bool> {
        self.train[..8].copy_from_slice(&number.to_le_bytes());
        let sent = self.port.tx.send(&self.train[..self.payload_bytes], self.peer);
        self.train[..8].copy_from_slice(&LOAD.to_le_bytes());
        not_full(sent)
    }

    fn take(&mut self, look: Look) -> io::Result<usize> {
        self.receive(look)
    }

    fn take_numbers(&mut self, look: Look, numbers: &mut Vec<u64>) -> io::Result<usize> {
        let count = self.receive(look)?;
        let rx = &self.port.rx;
        numbers.extend((0..count).filter_map(|index| number(rx.datagram(index).payload)));
        Ok(count)
    }

    fn echo(&mut self, look: Look, which: EchoMode) -> io::Result<(usize, usize)> {
        let count = self.receive(look)?;
        let mut turned = 0;
        let mut to = nowhere();
        for index in 0..count {
            let datagram = self.port.rx.datagram(index);
            let numbered = number(datagram.payload).is_some();
            if datagram.payload.len() != self.payload_bytes
                || which == EchoMode::Numbered && !numbered
            {
                continue;
            }
            if self.lends {
                turned += usize::from(put(&mut *self.port.tx, datagram)?);
                continue;
            }
            if datagram.source != to && !self.back.is_empty() {
                turned += send_back(&mut *self.port.tx, &mut self.back, self.payload_bytes, to)?;
            }
            to = datagram.source;
            self.back.extend_from_slice(datagram.payload);
        }
        turned += send_back(&mut *self.port.tx, &mut self.back, self.payload_bytes, to)?;
        self.port.tx.depart()?;
        Ok((count, turned))
    }

    fn calls(&mut self) -> Option<u64> {
        None
    }

    fn copies(&mut self) -> PacketCopies {
        match self.report() {
            Some((link, port)) => PacketCopies::new(link.info.copies, port.joined, port.delivered),
            None => PacketCopies::new(Copies::ONCE, 0, 0),
        }
    }

    fn events(&mut self) -> Vec<(String, u64)> {
        let mut events = Vec::new();
        let mut note = |name: &str, count| {
            if count > 0 {
                events.push((name.to_owned(), count));
            }
        };
        note("port_queue_full", self.port.rx.queue_drops());
        note("port_too_long", self.port.rx.too_long());
        // The I/O thread of a frame link reports its own losses.
        if let Some((link, port)) = self.report() {
            note("unsent", port.unsent);
            events.extend(link_events(&link.link));
        }
        events
    }
}

/// Writes a datagram back to its sender; returns false if the link is full for now.
fn put(tx: &mut dyn PortTx, datagram: Datagram<'_>) -> io::Result<bool> {
    let Datagram { payload, source } = datagram;
    if !not_full(tx.lend(payload.len()))? {
        return Ok(false);
    }
    let mut rest = payload;
    while !rest.is_empty() {
        let room = tx.lent(payload.len() - rest.len());
        let here;
        (here, rest) = rest.split_at(rest.len().min(room.len()));
        room[..here.len()].copy_from_slice(here);
    }
    tx.commit(payload.len(), source)?;
    Ok(true)
}

/// Sends a train and clears it; returns how many datagrams left.
fn send_back(
    tx: &mut dyn PortTx,
    train: &mut Vec<u8>,
    payload_bytes: usize,
    to: SocketAddrV4,
) -> io::Result<usize> {
    let count = train.len() / payload_bytes;
    let sent = match count {
        0 => return Ok(0),
        1 => tx.send(train, to),
        _ => tx.send_train(train, payload_bytes, to),
    };
    train.clear();
    Ok(if not_full(sent)? { count } else { 0 })
}

/// Maps a full link to `false`, not an error.
fn not_full(sent: io::Result<()>) -> io::Result<bool> {
    match sent {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
