//! Messages and descriptors over a Unix socket that preserves message boundaries (SOCK_SEQPACKET).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::message::MESSAGE_BYTES_MAX;

/// The most descriptors of one message.
pub const DESCRIPTORS_MAX: usize = 2;

/// A received message with its descriptors.
#[derive(Debug)]
pub struct ReceivedMessage {
    /// The message: untrusted.
    pub bytes: Vec<u8>,
    /// The descriptors that came with it.
    pub descriptors: Vec<OwnedFd>,
}

/// Sends a message whole, without waiting and without SIGPIPE.
///
/// # Errors
/// `WouldBlock` when the other side does not read; `BrokenPipe` when it has gone.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], along: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !along.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(along)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags)?;
    Ok(())
}

/// Receives the next message; `None` when the other side has gone. Waits only if the socket does.
///
/// # Errors
/// `InvalidData` when the message or its descriptors were truncated; otherwise the error of
/// recvmsg(2).
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<ReceivedMessage>> {
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let descriptors: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|one| match one {
            RecvAncillaryMessage::ScmRights(rights) => Some(rights),
            _ => None,
        })
        .flatten()
        .collect();
    if message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    if message.bytes == 0 {
        return Ok(None);
    }
    bytes.truncate(message.bytes);
    Ok(Some(ReceivedMessage { bytes, descriptors }))
}

/// Returns a connected pair.
#[cfg(test)]
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    let kind = SocketType::SEQPACKET;
    Ok(socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
}

/// Whether a descriptor is a socket of a family, such as `AF_XDP`.
#[must_use]
pub fn is_socket_of(descriptor: &impl AsFd, family: i32) -> bool {
    use rustix::net::sockopt::socket_domain;
    socket_domain(descriptor).is_ok_and(|found| i32::from(found.as_raw()) == family)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_borders_and_carry_descriptors() {
        let (here, there) = pair().unwrap();
        send(here.as_fd(), b"one", &[there.as_fd()]).unwrap();
        send(here.as_fd(), b"two", &[]).unwrap();
        let one = receive(there.as_fd()).unwrap().unwrap();
        assert_eq!((one.bytes.as_slice(), one.descriptors.len()), (&b"one"[..], 1));
        assert!(is_socket_of(&one.descriptors[0], libc::AF_UNIX));
        assert!(!is_socket_of(&one.descriptors[0], libc::AF_XDP));
        let two = receive(there.as_fd()).unwrap().unwrap();
        assert_eq!((two.bytes.as_slice(), two.descriptors.len()), (&b"two"[..], 0));
    }

    #[test]
    fn a_side_that_has_gone_is_told_from_a_side_that_is_silent() {
        let (here, there) = pair().unwrap();
        rustix::io::ioctl_fionbio(&there, true).unwrap();
        assert_eq!(receive(there.as_fd()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(here);
        assert!(receive(there.as_fd()).unwrap().is_none());
        assert_eq!(send(there.as_fd(), b"?", &[]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn too_much_is_refused() {
        let (here, there) = pair().unwrap();
        rustix::net::send(&here, &[0; MESSAGE_BYTES_MAX + 1], SendFlags::empty()).unwrap();
        assert_eq!(receive(there.as_fd()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let (read, write) = rustix::pipe::pipe().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(9))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let many = [write.as_fd(); 9];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&many)));
        sendmsg(&here, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::empty()).unwrap();
        drop(write);
        assert_eq!(receive(there.as_fd()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        // The read sees the end of the pipe and does not wait for ever: all received descriptors
        // are closed.
        assert_eq!(rustix::io::read(&read, &mut [0; 1]), Ok(0));
    }

    #[test]
    fn a_side_that_does_not_read_does_not_stop_the_other() {
        let (here, _there) = pair().unwrap();
        let mut sent = 0;
        let full = loop {
            match send(here.as_fd(), &[0; 1000], &[]) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
            assert!(sent < 1_000_000);
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    }
}
