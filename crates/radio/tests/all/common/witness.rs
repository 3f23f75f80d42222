//! A record of every data packet that passed a place of a port, in order.

use std::io;
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millstream_link::fault::FaultSwitch;
use millstream_link::open;
use millstream_link::port::{Capabilities, Datagram, Port, PortOptions, PortRx};
use millstream_radio::OpenPort;
use millstream_wire::Width;
use millstream_wire::chdr::{DataRepr, Header, Packet, SC16_LEN};

/// A data packet that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub seq: u16,
    /// The rest, if it was complete.
    pub whole: Option<Whole>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole {
    pub ticks: u64,
    pub samples: u64,
    pub eob: bool,
}

/// The packets that passed, shared with the test.
#[derive(Debug, Clone, Default)]
pub struct Witness(Arc<Mutex<Vec<Seen>>>);

impl Witness {
    /// Takes the packets recorded so far.
    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn see(&self, bytes: &[u8]) {
        let Ok(header) = Header::peek(bytes) else { return };
        if !header.kind.is_data() {
            return;
        }
        let data = Packet::parse(bytes, Width::W64).and_then(|packet| DataRepr::parse(&packet));
        // The radio sends time with all of them.
        let whole = data.ok().and_then(|data| {
            let samples = (data.payload_len / SC16_LEN) as u64;
            Some(Whole { ticks: data.timestamp?, samples, eob: data.eob })
        });
        self.0.lock().unwrap().push(Seen { seq: header.seq, whole });
    }
}

struct Watched(Box<dyn PortRx>, Witness);

impl PortRx for Watched {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
        let count = self.0.recv_batch(timeout)?;
        (0..count).for_each(|index| self.1.see(self.0.datagram(index).payload));
        Ok(count)
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        self.0.datagram(index)
    }

    fn queue_drops(&self) -> u64 {
        self.0.queue_drops()
    }
}

/// Returns ports with faults in both directions, and a witness on either side of the faults of the
/// radio's packets.
pub fn watched(
    sent: &Witness,
    arrived: &Witness,
    received: &FaultSwitch,
    given: &FaultSwitch,
) -> OpenPort {
    let (sent, arrived) = (sent.clone(), arrived.clone());
    let (received, given) = (received.clone(), given.clone());
    Arc::new(move |bind: SocketAddrV4, options: &PortOptions| {
        Ok(watch(open("udp", bind, options)?, &sent, &arrived, &received, &given))
    })
}

/// Returns the same around an open port.
pub fn watch(
    mut port: Port,
    sent: &Witness,
    arrived: &Witness,
    received: &FaultSwitch,
    given: &FaultSwitch,
) -> Port {
    port.rx = received.wrap_rx(Box::new(Watched(port.rx, sent.clone())));
    port.rx = Box::new(Watched(port.rx, arrived.clone()));
    port.tx = given.wrap_tx(port.tx);
    port
}
