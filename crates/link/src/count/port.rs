//! The halves of a port whose datagrams are counted.

use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use super::DirectionCounter;
use crate::port::{Capabilities, Datagram, FrameLoan, PortRx, PortTx};

pub(super) struct CountRx {
    pub inner: Box<dyn PortRx>,
    pub way: Arc<DirectionCounter>,
}

impl PortRx for CountRx {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
        let count = self.inner.recv_batch(timeout)?;
        (0..count).for_each(|index| self.way.note(self.inner.datagram(index).payload.len()));
        Ok(count)
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        self.inner.datagram(index)
    }

    fn queue_drops(&self) -> u64 {
        self.inner.queue_drops()
    }
}

pub(super) struct CountTx {
    pub inner: Box<dyn PortTx>,
    pub way: Arc<DirectionCounter>,
    pub loan: FrameLoan,
}

impl PortTx for CountTx {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.inner.send(payload, to)?;
        self.way.note(payload.len());
        Ok(())
    }

    fn try_send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.inner.try_send(payload, to)?;
        self.way.note(payload.len());
        Ok(())
    }

    fn send_train(
        &mut self,
        train: &[u8],
        segment_bytes: usize,
        to: SocketAddrV4,
    ) -> io::Result<()> {
        self.inner.send_train(train, segment_bytes, to)?;
        train.chunks(segment_bytes.max(1)).for_each(|datagram| self.way.note(datagram.len()));
        Ok(())
    }

    fn loan(&mut self) -> &mut FrameLoan {
        &mut self.loan
    }

    fn release(&mut self) -> Option<Duration> {
        self.inner.release()
    }
}
