//! The transmit half: single datagrams, and trains by `UDP_SEGMENT` or `sendmmsg`.

use std::io;
use std::mem;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use millstream_host::socket::send_messages;

use super::PAYLOAD_BYTES_MAX;
use super::gso::ControlBuffer;
use super::launch::UdpLaunch;
use crate::launch::LaunchTx;
use crate::port::{Capabilities, FrameLoan, PortTx};

/// The most messages of one `sendmmsg`.
pub(super) const MESSAGES: usize = 16;

/// The most segments in one message: what every kernel with `UDP_SEGMENT` takes.
const SEGMENTS: usize = 64;

/// The transmit half of a kernel UDP port.
pub(super) struct UdpTx {
    socket: Arc<OwnedFd>,
    capabilities: Capabilities,
    loan: FrameLoan,
    launch: Option<UdpLaunch>,
}

impl UdpTx {
    pub fn new(
        socket: Arc<OwnedFd>,
        capabilities: Capabilities,
        launch: Option<UdpLaunch>,
    ) -> Self {
        Self { socket, capabilities, loan: FrameLoan::default(), launch }
    }

    /// Sends the head of `train` as up to [`MESSAGES`] messages of `message_bytes` each, split into
    /// segments if `segment` is given. Returns the bytes that left.
    fn send_messages(
        &self,
        train: &[u8],
        message_bytes: usize,
        segment: Option<u16>,
        to: &libc::sockaddr_in,
    ) -> io::Result<usize> {
        let (mut control, control_bytes) =
            segment.map_or_else(Default::default, ControlBuffer::segment);
        // SAFETY: both are plain C structures for which all-zero bytes are a valid value.
        let (mut vectors, mut heads): ([libc::iovec; MESSAGES], [libc::mmsghdr; MESSAGES]) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        let mut count = 0;
        for (message, (vector, head)) in
            train.chunks(message_bytes).zip(vectors.iter_mut().zip(&mut heads))
        {
            describe(head, vector, message, to);
            if control_bytes > 0 && message.len() > usize::from(segment.unwrap_or(0)) {
                head.msg_hdr.msg_control = control.as_mut_ptr();
                head.msg_hdr.msg_controllen = control_bytes as _;
            }
            count += 1;
        }
        // SAFETY: the first `count` headers point to parts of `train`, to `to` and to `control`,
        // with their true lengths; all live through the call, and the kernel only reads them.
        let sent = unsafe { send_messages(&self.socket, &mut heads[..count], 0) }?;
        Ok((sent * message_bytes).min(train.len()))
    }

    /// Sends a single datagram, which may be empty, without headers to describe it.
    fn send_one(&self, payload: &[u8], to: &libc::sockaddr_in, flags: i32) -> io::Result<()> {
        // SAFETY: the payload and the address are live, with their true lengths, and the kernel
        // only reads them.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                payload.as_ptr().cast(),
                payload.len(),
                flags,
                (&raw const *to).cast(),
                mem::size_of::<libc::sockaddr_in>() as libc::socklen_t,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Makes a header of zeros describe a message without control messages.
pub(super) fn describe(
    head: &mut libc::mmsghdr,
    vector: &mut libc::iovec,
    message: &[u8],
    to: &libc::sockaddr_in,
) {
    vector.iov_base = message.as_ptr().cast_mut().cast();
    vector.iov_len = message.len();
    let header = &mut head.msg_hdr;
    header.msg_name = (&raw const *to).cast_mut().cast();
    header.msg_namelen = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
    header.msg_iov = vector;
    header.msg_iovlen = 1;
}

/// Repeats a send after errors of the system that are not failures.
pub(super) fn patiently<T>(mut send: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut refused = false;
    loop {
        let error = match send() {
            Ok(sent) => return Ok(sent),
            Err(error) => error,
        };
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            // An ICMP answer to an earlier datagram; reading it has cleared it.
            Some(libc::ECONNREFUSED) if !refused => refused = true,
            _ => return Err(error),
        }
    }
}

/// Converts the error of a waiting call whose socket timeout has expired.
pub(super) fn timed_out(error: io::Error) -> io::Error {
    let ran_out = error.kind() == io::ErrorKind::WouldBlock;
    if ran_out { io::ErrorKind::TimedOut.into() } else { error }
}

impl PortTx for UdpTx {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn loan(&mut self) -> &mut FrameLoan {
        &mut self.loan
    }

    fn launch(&mut self) -> Option<&mut dyn LaunchTx> {
        self.launch.as_mut().map(|launch| launch as _)
    }

    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        patiently(|| self.send_one(payload, &raw_address(to), 0)).map_err(timed_out)
    }

    fn try_send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        patiently(|| self.send_one(payload, &raw_address(to), libc::MSG_DONTWAIT))
    }

    fn send_train(
        &mut self,
        train: &[u8],
        segment_bytes: usize,
        to: SocketAddrV4,
    ) -> io::Result<()> {
        // The kernel refuses port 0 too, but with the error of missing segmentation.
        if segment_bytes == 0 || segment_bytes > PAYLOAD_BYTES_MAX || to.port() == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let to = raw_address(to);
        let mut rest = train;
        while !rest.is_empty() {
            let segments = (PAYLOAD_BYTES_MAX / segment_bytes).min(SEGMENTS);
            let join = self.capabilities.segmentation && segments > 1;
            let (message_bytes, segment) = if join {
                (segments * segment_bytes, Some(segment_bytes as u16))
            } else {
                (segment_bytes, None)
            };
            match patiently(|| self.send_messages(rest, message_bytes, segment, &to)) {
                Ok(sent) => rest = &rest[sent..],
                // The path cannot segment (no checksum offload, or segments longer than its MTU):
                // from now on every datagram is sent separately.
                Err(error)
                    if join && matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO)) =>
                {
                    self.capabilities.segmentation = false;
                }
                Err(error) => return Err(timed_out(error)),
            }
        }
        Ok(())
    }
}

pub(super) fn raw_address(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
    use std::time::Duration;

    #[test]
    fn a_path_that_cannot_segment_is_served_one_by_one() {
        let (sender, receiver) = (bound(), bound());
        let SocketAddr::V4(to) = receiver.local_addr().unwrap() else { unreachable!() };
        // The kernel refuses to segment (EINVAL) where it may not compute checksums.
        millstream_host::socket::set(&sender, libc::SOL_SOCKET, libc::SO_NO_CHECK, &1i32).unwrap();
        let capabilities =
            Capabilities { segmentation: true, ..Capabilities::new(PAYLOAD_BYTES_MAX, 1) };
        let mut tx = UdpTx::new(Arc::new(sender.into()), capabilities, None);
        let train: Vec<u8> = (0..100u8).collect();
        tx.send_train(&train, 7, to).unwrap();
        assert!(!tx.capabilities().segmentation, "it fell back");
        let mut got = Vec::new();
        for _ in 0..train.len().div_ceil(7) {
            let mut bytes = [0; 64];
            let count = receiver.recv(&mut bytes).unwrap();
            got.push(bytes[..count].to_vec());
        }
        assert!(got.iter().map(|bytes| &bytes[..]).eq(train.chunks(7)));
    }

    #[test]
    fn a_train_of_nothing_or_of_giants_is_refused() {
        let mut tx = UdpTx::new(Arc::new(bound().into()), Capabilities::new(100, 1), None);
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);
        for segment_bytes in [0, PAYLOAD_BYTES_MAX + 1] {
            let error = tx.send_train(b"x", segment_bytes, to).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        tx.send_train(&[], 10, to).unwrap();
    }

    #[test]
    fn an_impossible_destination_does_not_end_segmentation() {
        let capabilities =
            Capabilities { segmentation: true, ..Capabilities::new(PAYLOAD_BYTES_MAX, 1) };
        let mut tx = UdpTx::new(Arc::new(bound().into()), capabilities, None);
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        assert!(tx.send_train(&[0; 100], 10, to).is_err());
        assert!(tx.capabilities().segmentation);
    }

    fn bound() -> UdpSocket {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket
    }
}
