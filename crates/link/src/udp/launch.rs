//! Datagrams with launch times, and the refusals that come back on the socket's error queue
//! (socket(7), `linux/errqueue.h`).

use std::io;
use std::mem;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_host::socket::{send_messages, set};

use super::PAYLOAD_BYTES_MAX;
use super::gso::{ControlBuffer, LaunchRefusal};
use super::tx::{MESSAGES, describe, patiently, raw_address, timed_out};
use crate::launch::{LaunchClock, LaunchRefusals, LaunchTx};

/// Requests launch times from the kernel, with reports of refusals.
pub(super) fn enable(socket: impl AsFd, clock: LaunchClock) -> io::Result<()> {
    let request = libc::sock_txtime { clockid: clock.id(), flags: libc::SOF_TXTIME_REPORT_ERRORS };
    set(socket, libc::SOL_SOCKET, libc::SO_TXTIME, &request)
}

/// The refusals of a socket, which both halves of a port may read off the kernel.
#[derive(Debug)]
pub(super) struct RefusalReader {
    socket: Arc<OwnedFd>,
    invalid: AtomicU64,
    missed: AtomicU64,
}

impl RefusalReader {
    pub fn new(socket: Arc<OwnedFd>) -> Self {
        Self { socket, invalid: AtomicU64::new(0), missed: AtomicU64::new(0) }
    }

    /// Empties the error queue. As long as it holds a message, no wait for datagrams sleeps.
    pub fn read(&self) {
        while let Some(refusal) = self.next() {
            let count = match refusal {
                Some(LaunchRefusal::Invalid) => &self.invalid,
                Some(LaunchRefusal::Missed) => &self.missed,
                // An answer to an earlier datagram.
                None => continue,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counts(&self) -> LaunchRefusals {
        let [invalid, missed] =
            [&self.invalid, &self.missed].map(|count| count.load(Ordering::Relaxed));
        LaunchRefusals { invalid, missed }
    }

    /// Takes one message off the error queue; `None` when it is empty.
    fn next(&self) -> Option<Option<LaunchRefusal>> {
        let mut control = ControlBuffer::default();
        // SAFETY: a plain C structure for which all-zero bytes are a valid value.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_control = control.as_mut_ptr();
        header.msg_controllen = ControlBuffer::BYTES as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: the header has no room for a payload, and names the live control buffer with its
        // true length.
        let got = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, flags) };
        (got >= 0).then(|| control.refusal(header.msg_controllen as _))
    }
}

/// The part of a kernel UDP port that sends at set times.
pub(super) struct UdpLaunch {
    pub refused: Arc<RefusalReader>,
    pub clock: LaunchClock,
}

impl UdpLaunch {
    /// Sends the head of `train`, up to [`MESSAGES`] datagrams; returns the bytes that left.
    fn send_some(
        &self,
        train: &[u8],
        segment_bytes: usize,
        to: &libc::sockaddr_in,
        at_ns: u64,
        gap_ns: u64,
    ) -> io::Result<usize> {
        // SAFETY: both are plain C structures for which all-zero bytes are a valid value.
        let (mut vectors, mut heads): ([libc::iovec; MESSAGES], [libc::mmsghdr; MESSAGES]) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        let mut controls = [ControlBuffer::default(); MESSAGES];
        let mut count = 0;
        let parts = vectors.iter_mut().zip(&mut heads).zip(&mut controls);
        for (message, ((vector, head), control)) in train.chunks(segment_bytes).zip(parts) {
            describe(head, vector, message, to);
            let bytes;
            (*control, bytes) = ControlBuffer::launch(at_ns + count as u64 * gap_ns);
            head.msg_hdr.msg_control = control.as_mut_ptr();
            head.msg_hdr.msg_controllen = bytes as _;
            count += 1;
        }
        // SAFETY: the first `count` headers point to parts of `train`, to `to` and to `controls`,
        // with their true lengths; all live through the call, and the kernel only reads them.
        let sent = unsafe { send_messages(&self.refused.socket, &mut heads[..count], 0) }?;
        Ok((sent * segment_bytes).min(train.len()))
    }
}

impl LaunchTx for UdpLaunch {
    fn clock(&self) -> LaunchClock {
        self.clock
    }

    fn send_spaced(
        &mut self,
        train: &[u8],
        segment_bytes: usize,
        to: SocketAddrV4,
        at_ns: u64,
        gap_ns: u64,
    ) -> io::Result<()> {
        if segment_bytes == 0 || segment_bytes > PAYLOAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Reports take room of the socket's receive queue, which may have no other reader.
        self.refused.read();
        let (to, mut done) = (raw_address(to), 0);
        while done < train.len() {
            let at_ns = at_ns + (done / segment_bytes) as u64 * gap_ns;
            let send = || self.send_some(&train[done..], segment_bytes, &to, at_ns, gap_ns);
            done += patiently(send).map_err(timed_out)?;
        }
        Ok(())
    }

    fn refusals(&mut self) -> LaunchRefusals {
        self.refused.read();
        self.refused.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
    use std::time::Duration;

    fn bound() -> UdpSocket {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    }

    fn launch(socket: UdpSocket) -> UdpLaunch {
        enable(&socket, LaunchClock::Monotonic).unwrap();
        let refused = Arc::new(RefusalReader::new(Arc::new(socket.into())));
        UdpLaunch { refused, clock: LaunchClock::Monotonic }
    }

    #[test]
    fn more_than_a_call_takes_arrives_whole_and_in_order() {
        let (mut tx, receiver) = (launch(bound()), bound());
        let SocketAddr::V4(to) = receiver.local_addr().unwrap() else { unreachable!() };
        let train: Vec<u8> = (0..=199).collect();
        let at_ns = tx.clock().now_ns();
        tx.send_spaced(&train, 7, to, at_ns, 1000).unwrap();
        let mut got = Vec::new();
        let mut bytes = [0; 100];
        while got.len() < 29 {
            let count = receiver.recv(&mut bytes).unwrap();
            got.push(bytes[..count].to_vec());
        }
        assert!(got.iter().map(|bytes| &bytes[..]).eq(train.chunks(7)));
        assert_eq!(tx.refusals(), LaunchRefusals::default());
    }

    #[test]
    fn a_train_of_nothing_or_of_giants_is_refused() {
        let mut tx = launch(bound());
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);
        for segment_bytes in [0, PAYLOAD_BYTES_MAX + 1] {
            let error = tx.send_spaced(b"x", segment_bytes, to, 0, 0).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        tx.send_spaced(&[], 10, to, 0, 0).unwrap();
    }

    #[test]
    fn an_answer_on_the_error_queue_is_taken_off_and_is_no_refusal() {
        let (socket, closed) = (bound(), bound());
        set(&socket, libc::IPPROTO_IP, libc::IP_RECVERR, &1).unwrap();
        let SocketAddr::V4(to) = closed.local_addr().unwrap() else { unreachable!() };
        // It takes datagrams of another socket only, so this one gets an ICMP answer; and nobody
        // else gets its port meanwhile.
        let other = bound();
        closed.connect(other.local_addr().unwrap()).unwrap();
        let mut tx = launch(socket);
        tx.send_spaced(b"to nobody", 9, to, 0, 0).unwrap();
        let mut watched =
            [rustix::event::PollFd::new(&*tx.refused.socket, rustix::event::PollFlags::empty())];
        let patience = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
        let came = rustix::event::poll(&mut watched, Some(&patience)).unwrap();
        assert_eq!(came, 1, "the answer");
        assert_eq!(tx.refusals(), LaunchRefusals::default());
        assert!(tx.refused.next().is_none(), "the error queue is empty");
    }
}
