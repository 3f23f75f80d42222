//! The halves of a port whose datagrams are captured, with headers as they would be on a wire.

use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use millstream_wire::checksum::Sum;

use super::file::Writing;
use super::now_ns;
use super::tap::{CaptureCounts, CapturePosition, CaptureWriter};
use crate::pcapng::FrameDirection;
use crate::port::{Capabilities, Datagram, FrameLoan, PortRx, PortTx};

/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 14 + 20 + 8;

/// Returns headers for a payload; Ethernet addresses and the UDP checksum are left out.
fn headers(payload: usize, from: SocketAddrV4, to: SocketAddrV4) -> [u8; HEADERS] {
    let mut bytes = [0; HEADERS];
    let [ip, udp] = [28, 8].map(|extra| ((payload + extra) as u16).to_be_bytes());
    bytes[12..24].copy_from_slice(&[8, 0, 0x45, 0, ip[0], ip[1], 0, 0, 0x40, 0, 64, 17]);
    bytes[26..30].copy_from_slice(&from.ip().octets());
    bytes[30..34].copy_from_slice(&to.ip().octets());
    let sum = Sum::new().bytes(&bytes[14..34]).checksum();
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes[34..36].copy_from_slice(&from.port().to_be_bytes());
    bytes[36..38].copy_from_slice(&to.port().to_be_bytes());
    bytes[38..40].copy_from_slice(&udp);
    bytes
}

/// The receive half. The order of the fields is the order of dropping: the file ends after its
/// taps.
pub(super) struct CaptureRx {
    pub tap: CaptureWriter,
    pub local: SocketAddrV4,
    pub counts: Arc<CaptureCounts>,
    pub inner: Box<dyn PortRx>,
    pub _writing: Arc<Writing>,
}

impl PortRx for CaptureRx {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
        let count = self.inner.recv_batch(timeout)?;
        if count > 0 {
            let (now_ns, mut mark) = (now_ns(), CapturePosition::default());
            for index in 0..count {
                let Datagram { payload, source } = self.inner.datagram(index);
                let headers = headers(payload.len(), source, self.local);
                let pieces = [&headers[..], payload].into_iter();
                mark = self.tap.stage(now_ns, FrameDirection::In, HEADERS + payload.len(), pieces);
            }
            self.tap.commit(mark);
            self.counts.received.fetch_add(count as u64, Ordering::Relaxed);
        }
        self.counts.lost.store(self.inner.queue_drops(), Ordering::Relaxed);
        Ok(count)
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        self.inner.datagram(index)
    }

    fn queue_drops(&self) -> u64 {
        self.inner.queue_drops()
    }

    fn too_long(&self) -> u64 {
        self.inner.too_long()
    }
}

/// The transmit half.
pub(super) struct CaptureTx {
    pub tap: CaptureWriter,
    pub local: SocketAddrV4,
    pub inner: Box<dyn PortTx>,
    pub loan: FrameLoan,
    pub _writing: Arc<Writing>,
}

impl CaptureTx {
    fn note(&mut self, payloads: impl Iterator<Item = impl AsRef<[u8]>>, to: SocketAddrV4) {
        let (now_ns, mut mark) = (now_ns(), CapturePosition::default());
        for payload in payloads {
            let payload = payload.as_ref();
            let headers = headers(payload.len(), self.local, to);
            let pieces = [&headers[..], payload].into_iter();
            mark = self.tap.stage(now_ns, FrameDirection::Out, HEADERS + payload.len(), pieces);
        }
        self.tap.commit(mark);
    }
}

impl PortTx for CaptureTx {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.inner.send(payload, to)?;
        self.note(std::iter::once(payload), to);
        Ok(())
    }

    fn try_send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.inner.try_send(payload, to)?;
        self.note(std::iter::once(payload), to);
        Ok(())
    }

    fn send_train(
        &mut self,
        train: &[u8],
        segment_bytes: usize,
        to: SocketAddrV4,
    ) -> io::Result<()> {
        self.inner.send_train(train, segment_bytes, to)?;
        self.note(train.chunks(segment_bytes.max(1)), to);
        Ok(())
    }

    fn loan(&mut self) -> &mut FrameLoan {
        &mut self.loan
    }

    fn release(&mut self) -> Option<Duration> {
        self.inner.release()
    }
}
