//! A port that loses, repeats, delays and invents packets.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millstream_link::open;
use millstream_link::port::{Capabilities, Datagram, FrameLoan, Port, PortOptions, PortRx, PortTx};
use millstream_radio::OpenPort;

/// The fault of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Pass,
    Drop,
    Twice,
    /// It comes after this number of later packets.
    Later(usize),
    /// These bytes come in place of the packet, from the same source.
    Replace(Vec<u8>),
    /// These bytes come before the packet, from the same source.
    Before(Vec<u8>),
    /// The send fails with this error. For lack of space, even a sender that can wait has waited in
    /// vain.
    Fail(io::ErrorKind),
}

/// The endpoint ids of a host with a device of two endpoints: its own one, those of the device, and
/// two for the streams of each endpoint.
#[derive(Clone, Default)]
pub struct HostIds(Arc<AtomicU16>);

impl HostIds {
    /// Takes a packet that comes to the host: blocks answer to the first of its ids.
    pub fn note(&self, packet: &[u8]) {
        if packet.len() >= 16 && packet[6] >> 5 == 4 {
            self.0.store(u16::from_le_bytes([packet[0], packet[1]]), Ordering::Relaxed);
        }
    }

    /// Returns the channel of the stream whose id is at this place of a packet.
    pub fn channel(&self, packet: &[u8], place: usize) -> Option<usize> {
        let id = packet.get(place..place + 2)?;
        let first = self.0.load(Ordering::Relaxed) + 3;
        Some(usize::from(u16::from_le_bytes([id[0], id[1]]).checked_sub(first)? / 2))
    }
}

type Script = Box<dyn FnMut(&[u8]) -> Action + Send>;

/// Decides the faults of packets in both directions.
#[derive(Clone)]
pub struct Meddler {
    received: Arc<Mutex<Script>>,
    sent: Arc<Mutex<Script>>,
    claim_queue_bytes: Option<usize>,
    link: &'static str,
}

impl Meddler {
    /// Returns a meddler that calls `received` for every datagram that arrives.
    pub fn new(received: impl FnMut(&[u8]) -> Action + Send + 'static) -> Self {
        Self {
            received: Arc::new(Mutex::new(Box::new(received))),
            sent: Arc::new(Mutex::new(Box::new(|_| Action::Pass))),
            claim_queue_bytes: None,
            link: "udp",
        }
    }

    /// Sets the function for every datagram that is sent; only `Drop` and `Fail` have an effect. A
    /// train fails with its first packet that does.
    pub fn sent(mut self, sent: impl FnMut(&[u8]) -> Action + Send + 'static) -> Self {
        self.sent = Arc::new(Mutex::new(Box::new(sent)));
        self
    }

    /// Lets ports report a larger receive queue than they have.
    pub fn claim_queue_bytes(mut self, bytes: usize) -> Self {
        self.claim_queue_bytes = Some(bytes);
        self
    }

    pub fn link(mut self, link: &'static str) -> Self {
        self.link = link;
        self
    }

    /// Returns a meddler that calls `script` only for data packets (types 6 and 7), by their number
    /// from 0.
    pub fn data(mut script: impl FnMut(u64, &[u8]) -> Action + Send + 'static) -> Self {
        let mut count = 0;
        Self::new(move |packet| {
            if !is_data(packet) {
                return Action::Pass;
            }
            count += 1;
            script(count - 1, packet)
        })
    }

    /// Puts the faults of received packets before a receive half.
    pub fn wrap_rx(self, inner: Box<dyn PortRx>) -> Box<dyn PortRx> {
        let capabilities = inner.capabilities();
        let (script, lent, later) = (self.received, Vec::new(), VecDeque::new());
        Box::new(MeddledRx { inner, script, capabilities, lent, later })
    }

    pub fn open_port(self) -> OpenPort {
        Arc::new(move |bind: SocketAddrV4, options: &PortOptions| {
            let port = open(self.link, bind, options)?;
            let mut capabilities = port.rx.capabilities();
            if let Some(bytes) = self.claim_queue_bytes {
                capabilities.recv_queue_bytes = bytes;
            }
            Ok(Port {
                local: port.local,
                rx: Box::new(MeddledRx {
                    inner: port.rx,
                    script: Arc::clone(&self.received),
                    capabilities,
                    lent: Vec::new(),
                    later: VecDeque::new(),
                }),
                tx: Box::new(MeddledTx {
                    inner: port.tx,
                    script: Arc::clone(&self.sent),
                    loan: FrameLoan::default(),
                }),
            })
        })
    }
}

pub fn is_data(packet: &[u8]) -> bool {
    packet.len() >= 8 && matches!((packet[6] >> 5) & 7, 6 | 7)
}

struct MeddledRx {
    inner: Box<dyn PortRx>,
    script: Arc<Mutex<Script>>,
    capabilities: Capabilities,
    lent: Vec<(Vec<u8>, SocketAddrV4)>,
    later: VecDeque<(usize, Vec<u8>, SocketAddrV4)>,
}

impl MeddledRx {
    fn lend(&mut self, bytes: Vec<u8>, source: SocketAddrV4) {
        self.lent.push((bytes, source));
        for held in &mut self.later {
            held.0 = held.0.saturating_sub(1);
        }
        while self.later.front().is_some_and(|held| held.0 == 0) {
            let (_, bytes, source) = self.later.pop_front().unwrap();
            self.lent.push((bytes, source));
        }
    }
}

impl PortRx for MeddledRx {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
        self.lent.clear();
        let count = self.inner.recv_batch(timeout)?;
        for index in 0..count {
            let datagram = self.inner.datagram(index);
            let (bytes, source) = (datagram.payload.to_vec(), datagram.source);
            let action = (self.script.lock().unwrap())(&bytes);
            match action {
                Action::Pass => self.lend(bytes, source),
                Action::Drop | Action::Fail(_) => {}
                Action::Twice => {
                    self.lend(bytes.clone(), source);
                    self.lend(bytes, source);
                }
                Action::Later(packets) => self.later.push_back((packets, bytes, source)),
                Action::Replace(other) => self.lend(other, source),
                Action::Before(other) => {
                    self.lend(other, source);
                    self.lend(bytes, source);
                }
            }
        }
        Ok(self.lent.len())
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        let (payload, source) = &self.lent[index];
        Datagram { payload, source: *source }
    }

    fn queue_drops(&self) -> u64 {
        self.inner.queue_drops()
    }
}

struct MeddledTx {
    inner: Box<dyn PortTx>,
    script: Arc<Mutex<Script>>,
    loan: FrameLoan,
}

impl PortTx for MeddledTx {
    fn loan(&mut self) -> &mut FrameLoan {
        &mut self.loan
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        match (self.script.lock().unwrap())(payload) {
            Action::Drop => Ok(()),
            Action::Fail(io::ErrorKind::WouldBlock) => Err(io::ErrorKind::TimedOut.into()),
            Action::Fail(kind) => Err(kind.into()),
            _ => self.inner.send(payload, to),
        }
    }

    fn try_send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        match (self.script.lock().unwrap())(payload) {
            Action::Drop => Ok(()),
            Action::Fail(kind) => Err(kind.into()),
            _ => self.inner.try_send(payload, to),
        }
    }

    fn send_train(&mut self, train: &[u8], segment: usize, to: SocketAddrV4) -> io::Result<()> {
        let mut rest = train;
        let mut whole = true;
        for packet in train.chunks(segment) {
            let action = (self.script.lock().unwrap())(packet);
            if let Action::Fail(kind) = action {
                return Err(kind.into());
            }
            if action == Action::Drop {
                let before = packet.as_ptr().addr() - rest.as_ptr().addr();
                self.inner.send_train(&rest[..before], segment, to)?;
                rest = &rest[before + packet.len()..];
                whole = false;
            }
        }
        if whole || !rest.is_empty() { self.inner.send_train(rest, segment, to) } else { Ok(()) }
    }
}
