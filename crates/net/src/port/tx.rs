//! The transmit half: payloads copied once, or written in place, behind room for their headers.

use std::any::Any;
use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millstream_link::frame::Frame;
use millstream_link::port::{Capabilities, FrameLoan, PortTx};

use super::lane::{Departure, TxEnd};
use super::{FrameLayout, Patience, Poller};

/// The longest that one send waits for a frame, as long as a socket waits for room in its queue.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// The transmit half of a port on a frame link.
pub(super) struct EngineTx {
    // The rings are dropped before the registration, so that the driver finds all frames that were
    // given back.
    end: TxEnd,
    /// Free frames of this half.
    stock: Vec<Frame>,
    /// Written parts that are not yet handed over.
    staged: Vec<Departure>,
    /// The datagram that is being written: each part, and the payload offset at which it begins.
    lent: Vec<(Frame, usize)>,
    /// Its largest possible length, bytes.
    lent_bytes: usize,
    unused: FrameLoan,
    capabilities: Capabilities,
    shape: FrameLayout,
    drive: Arc<dyn Poller>,
    _registration: Arc<dyn Any + Send + Sync>,
}

impl EngineTx {
    pub fn new(
        end: TxEnd,
        capabilities: Capabilities,
        shape: FrameLayout,
        drive: Arc<dyn Poller>,
        registration: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        let frames = end.frames;
        Self {
            end,
            stock: Vec::with_capacity(frames),
            staged: Vec::with_capacity(frames),
            lent: Vec::with_capacity(shape.parts_max() + 1),
            lent_bytes: 0,
            unused: FrameLoan::default(),
            capabilities,
            shape,
            drive,
            _registration: registration,
        }
    }

    /// Checks that a payload of `bytes` bytes can be sent to `to` at all.
    fn check(&self, bytes: usize, to: SocketAddrV4, patience: Patience) -> io::Result<()> {
        if let Err(error) = self.end.state.check_send() {
            if error.raw_os_error() == Some(libc::ENETDOWN) {
                // There may be no other thread that checks whether it is up again.
                self.drive.kick(patience);
            }
            return Err(error);
        }
        if to.port() == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if bytes > self.shape.payload_bytes_max {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        if to.ip().is_loopback() || to.ip().is_unspecified() {
            return Err(io::Error::from_raw_os_error(libc::ENETUNREACH));
        }
        Ok(())
    }

    /// Makes sure that at least `frames` free frames are in stock; waits for them as far as
    /// `patience` allows.
    fn stock_up(&mut self, frames: usize, patience: Patience) -> io::Result<()> {
        let mut start = None;
        while self.stock.len() < frames {
            if self.end.free.pop_batch(&mut self.stock, usize::MAX) > 0 {
                continue;
            }
            if !self.staged.is_empty() {
                // Frames come back as these leave.
                self.hand_over(patience);
                continue;
            }
            self.end.state.check_send()?;
            if patience == Patience::None {
                // The driver of the link returns them.
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let elapsed = start.get_or_insert_with(Instant::now).elapsed();
            if elapsed >= SEND_TIMEOUT {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.drive.rest(&self.end.state.tx_waiter, SEND_TIMEOUT - elapsed);
        }
        Ok(())
    }

    /// Writes one datagram into free frames.
    fn write(&mut self, payload: &[u8], to: SocketAddrV4, patience: Patience) -> io::Result<()> {
        self.stock_up(self.shape.parts(payload.len()), patience)?;
        let (mut rest, mut offset) = (payload, self.shape.headroom);
        while let Some(mut frame) = self.stock.pop() {
            let here;
            (here, rest) = rest.split_at(rest.len().min(frame.room() - offset));
            frame.set_len(offset + here.len());
            frame.set_continues(!rest.is_empty());
            self.end.memory.bytes_mut(&mut frame)[offset..].copy_from_slice(here);
            let payload_bytes = payload.len() as u32;
            self.staged.push(Departure { frame, to: Some(to), payload_bytes });
            if rest.is_empty() {
                break;
            }
            offset = 0;
        }
        Ok(())
    }

    /// Returns the payload's offset in a part that begins at `start` of the payload.
    fn offset(&self, start: usize) -> usize {
        if start == 0 { self.shape.headroom } else { 0 }
    }

    /// Takes back the frames of the datagram that is being written.
    fn forget(&mut self) {
        self.stock.extend(self.lent.drain(..).map(|(frame, _)| frame));
        self.lent_bytes = 0;
    }

    /// Hands over the written parts.
    fn hand_over(&mut self, patience: Patience) {
        if !self.staged.is_empty() {
            self.end.departures.push_batch(&mut self.staged);
            // The ring has room for this port's share, so frames remain only after the driver has
            // ended.
            self.staged.clear();
            self.drive.kick(patience);
        }
    }

    /// Sends one datagram.
    fn send_one(&mut self, payload: &[u8], to: SocketAddrV4, patience: Patience) -> io::Result<()> {
        self.check(payload.len(), to, patience)?;
        self.write(payload, to, patience)?;
        self.hand_over(patience);
        Ok(())
    }
}

impl PortTx for EngineTx {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.send_one(payload, to, Patience::Full)
    }

    fn try_send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        self.send_one(payload, to, Patience::None)
    }

    fn send_train(
        &mut self,
        train: &[u8],
        segment_bytes: usize,
        to: SocketAddrV4,
    ) -> io::Result<()> {
        if segment_bytes == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.check(segment_bytes.min(train.len()), to, Patience::Full)?;
        let mut written = Ok(());
        for payload in train.chunks(segment_bytes) {
            written = self.write(payload, to, Patience::Full);
            if written.is_err() {
                break;
            }
        }
        self.hand_over(Patience::Full);
        written
    }

    fn lend(&mut self, bytes: usize) -> io::Result<()> {
        self.forget();
        if bytes > self.shape.payload_bytes_max {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        let mut start = 0;
        while start < bytes || self.lent.is_empty() {
            self.stock_up(1, Patience::Full)?;
            let Some(mut frame) = self.stock.pop() else { break };
            let offset = self.offset(start);
            let room = frame.room() - offset;
            // Each part but the last has whole words, so no sample is split.
            let here = if bytes - start > room { room & !7 } else { bytes - start };
            frame.set_len(offset + here);
            self.lent.push((frame, start));
            start += here;
        }
        self.lent_bytes = bytes;
        Ok(())
    }

    fn lent(&mut self, at: usize) -> &mut [u8] {
        assert!(at <= self.lent_bytes, "byte {at} of {} that were lent", self.lent_bytes);
        let part = self.lent.iter().rposition(|(_, start)| *start <= at);
        let Some(part) = part else { return &mut [] };
        let start = self.lent[part].1;
        let offset = self.offset(start);
        let (frame, _) = &mut self.lent[part];
        &mut self.end.memory.bytes_mut(frame)[offset + at - start..]
    }

    fn commit(&mut self, bytes: usize, to: SocketAddrV4) -> io::Result<()> {
        assert!(bytes <= self.lent_bytes, "{bytes} bytes where {} were lent", self.lent_bytes);
        if let Err(error) = self.check(bytes, to, Patience::Full) {
            self.forget();
            return Err(error);
        }
        // Parts that are not needed stay; the first one is used, whatever the length.
        while self.lent.last().is_some_and(|(_, start)| *start > 0 && *start >= bytes) {
            self.stock.extend(self.lent.pop().map(|(frame, _)| frame));
        }
        let parts = self.lent.len();
        let headroom = self.shape.headroom;
        for (index, (mut frame, start)) in self.lent.drain(..).enumerate() {
            let offset = if start == 0 { headroom } else { 0 };
            frame.set_len(frame.len().min(offset + bytes - start));
            frame.set_continues(index + 1 < parts);
            let payload_bytes = bytes as u32;
            self.staged.push(Departure { frame, to: Some(to), payload_bytes });
        }
        self.lent_bytes = 0;
        Ok(())
    }

    fn depart(&mut self) -> io::Result<()> {
        self.hand_over(Patience::Full);
        Ok(())
    }

    fn loan(&mut self) -> &mut FrameLoan {
        // Datagrams are lent in frames; this stays empty.
        &mut self.unused
    }
}

impl Drop for EngineTx {
    fn drop(&mut self) {
        self.forget();
        let unused = |frame| Departure { frame, to: None, payload_bytes: 0 };
        self.staged.extend(self.stock.drain(..).map(unused));
        self.hand_over(Patience::Full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::lane::{Lane, Shares};
    use millstream_link::frame::FrameLink;
    use millstream_link::loopback;
    use millstream_ring::Waiter;
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A poller without a driver: frames never come.
    #[derive(Default)]
    struct Nobody {
        rests: AtomicU32,
    }

    impl Poller for Nobody {
        fn kick(&self, _: Patience) {}

        fn look(&self) {}

        fn wait(&self, _: &Waiter, _: Duration) {}

        fn rest(&self, _: &Waiter, timeout: Duration) {
            assert!(timeout <= SEND_TIMEOUT);
            self.rests.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(timeout);
        }
    }

    #[test]
    fn a_send_that_may_not_wait_rests_for_no_frame() {
        let to = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4000);
        let (link, _) = loopback::single(&loopback::LoopOptions::default()).unwrap();
        let (lane, ends) = Lane::new(to, Shares { receive: 4, transmit: 4 }, link.memory());
        let shape = FrameLayout { headroom: 42, part_bytes_max: 1514, payload_bytes_max: 1472 };
        let drive = Arc::new(Nobody::default());
        let capabilities = Capabilities::new(1472, 1);
        let registration = Arc::new(());
        let mut tx = EngineTx::new(ends.tx, capabilities, shape, drive.clone(), registration);
        let error = tx.try_send(b"report", to).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(drive.rests.load(Ordering::Relaxed), 0, "nobody waited");
        let error = tx.send(b"request", to).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(drive.rests.load(Ordering::Relaxed) > 0);
        drop(lane);
        let error = tx.try_send(b"report", to).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "the link is gone");
    }
}
