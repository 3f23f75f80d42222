//! Ports without a network: packets go to a device in this process at once.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use millstream_link::port::{Capabilities, Datagram, FrameLoan, Port, PortRx, PortTx};

pub const DEVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4900);

/// The simulated time, ns: it advances only where the host waits in vain.
static PASSED_NS: AtomicU64 = AtomicU64::new(0);

/// Returns the time of all histories.
pub fn now() -> Instant {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    *BEGIN + Duration::from_nanos(PASSED_NS.load(Ordering::Relaxed))
}

/// Passes `time`.
pub fn pass(time: Duration) {
    PASSED_NS.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
}

/// The packets in flight to the host.
#[derive(Clone, Default)]
pub struct Air(Arc<Mutex<Vec<Vec<u8>>>>);

impl Air {
    pub fn put(&self, datagram: Vec<u8>) {
        self.0.lock().unwrap().push(datagram);
    }

    /// Takes all packets.
    fn take(&self, into: &mut Vec<Vec<u8>>) {
        into.append(&mut self.0.lock().unwrap());
    }
}

/// The receiver of the host's packets.
pub trait Device: Send {
    fn hear(&mut self, datagram: &[u8]);

    /// Notifies that the host polls while no packet is in flight to it.
    fn is_listened_to(&mut self) {}
}

struct Rx<D> {
    air: Air,
    device: Arc<Mutex<D>>,
    lent: Vec<Vec<u8>>,
}

struct Tx<D>(Arc<Mutex<D>>, FrameLoan);

/// Returns a port to `device`, which answers over `air`. A wait advances only the time of [`now`].
pub fn port<D: Device + 'static>(device: &Arc<Mutex<D>>, air: &Air) -> Port {
    let device = Arc::clone(device);
    let rx = Rx { air: air.clone(), device: Arc::clone(&device), lent: Vec::new() };
    let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4000);
    Port { local, rx: Box::new(rx), tx: Box::new(Tx(device, FrameLoan::default())) }
}

fn capabilities() -> Capabilities {
    let mut capabilities = Capabilities::new(9000, 64);
    capabilities.recv_queue_datagrams = Some(64);
    capabilities
}

impl<D: Device> PortRx for Rx<D> {
    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
        self.lent.clear();
        self.air.take(&mut self.lent);
        if self.lent.is_empty() {
            self.device.lock().unwrap().is_listened_to();
            self.air.take(&mut self.lent);
        }
        if self.lent.is_empty() {
            pass(timeout);
        }
        Ok(self.lent.len())
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        Datagram { payload: &self.lent[index], source: DEVICE }
    }

    fn queue_drops(&self) -> u64 {
        0
    }
}

impl<D: Device> PortTx for Tx<D> {
    fn loan(&mut self) -> &mut FrameLoan {
        &mut self.1
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn send(&mut self, payload: &[u8], _: SocketAddrV4) -> io::Result<()> {
        self.0.lock().unwrap().hear(payload);
        Ok(())
    }

    fn send_train(&mut self, train: &[u8], segment: usize, to: SocketAddrV4) -> io::Result<()> {
        train.chunks(segment).try_for_each(|datagram| self.send(datagram, to))
    }
}
