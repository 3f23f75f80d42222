//! Shared memory and an interrupt for a guest: the server's part of `ivshmem-doorbell`
//! (QEMU, docs/specs/ivshmem-spec.rst), over a socket that QEMU inherits.
//!
//! The server's messages are 64-bit numbers, some with a descriptor: protocol version, the guest's
//! number, the shared memory (-1), and an eventfd for each interrupt vector of each peer. There is
//! one guest with one vector; the process with the other end of its eventfd acts as the device.

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Version of the protocol.
const VERSION: i64 = 0;
/// The guest's number among its peers.
const GUEST: i64 = 1;
/// Announces the shared memory.
const MEMORY: i64 = -1;
/// The device's slot on the guest's bus.
const SLOT: &str = "05";

/// The shared memory of a guest; QEMU reads the messages from the socket when it starts.
#[derive(Debug)]
pub struct SharedWindow {
    /// The server's end: without it the guest would lose its device.
    _server: OwnedFd,
    guest: Arc<OwnedFd>,
}

impl SharedWindow {
    /// Announces `memory`, whose size is a power of two, and `line`, an eventfd that interrupts.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(memory: BorrowedFd<'_>, line: BorrowedFd<'_>) -> io::Result<Self> {
        let (server, guest) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        send(server.as_fd(), VERSION, None)?;
        send(server.as_fd(), GUEST, None)?;
        send(server.as_fd(), MEMORY, Some(memory))?;
        send(server.as_fd(), GUEST, Some(line))?;
        Ok(Self { _server: server, guest: Arc::new(guest) })
    }

    /// Returns the descriptor that QEMU inherits.
    #[must_use]
    pub fn socket(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.guest)
    }

    /// Returns QEMU's arguments for the device; VFIO needs an [IOMMU](crate::iommu) in front of it.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let socket = self.guest.as_raw_fd();
        let all = [
            "-chardev",
            &format!("socket,id=window,fd={socket}"),
            "-device",
            &format!("ivshmem-doorbell,chardev=window,vectors=1,addr={SLOT}.0"),
        ];
        all.map(str::to_owned).to_vec()
    }

    /// Returns the settings by which vfio-pci gets the device.
    #[must_use]
    pub fn settings() -> [(String, String); 2] {
        let name = format!("0000:00:{SLOT}.0");
        let driver = format!("/sys/bus/pci/devices/{name}/driver_override");
        [(driver, "vfio-pci".to_owned()), ("/sys/bus/pci/drivers_probe".to_owned(), name)]
    }
}

fn send(socket: BorrowedFd<'_>, number: i64, along: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let along: Vec<_> = along.into_iter().collect();
    if !along.is_empty() {
        // The space is for one descriptor.
        ancillary.push(SendAncillaryMessage::ScmRights(&along));
    }
    let bytes = number.to_le_bytes();
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    use std::io::{IoSliceMut, Read, Write};

    /// Receives a message like QEMU: eight bytes, and perhaps a descriptor.
    fn receive(socket: BorrowedFd<'_>) -> (i64, Option<OwnedFd>) {
        let mut bytes = [0; 8];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got =
            recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags).unwrap();
        assert_eq!(got.bytes, 8);
        let along = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut all) => all.next(),
            _ => None,
        });
        (i64::from_le_bytes(bytes), along)
    }

    #[test]
    fn a_guest_is_told_everything_in_the_order_of_the_protocol() {
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(b"shared").unwrap();
        let (line, other) = std::io::pipe().unwrap();
        let window = SharedWindow::new(file.as_fd(), other.as_fd()).unwrap();
        drop(other);
        let socket = window.socket();
        let numbers = [(VERSION, false), (GUEST, false), (MEMORY, true), (GUEST, true)];
        let mut along = Vec::new();
        for (number, brings) in numbers {
            let (got, descriptor) = receive(socket.as_fd());
            assert_eq!((got, descriptor.is_some()), (number, brings));
            along.extend(descriptor);
        }
        drop(window);
        let mut raised = std::fs::File::from(along.pop().unwrap());
        raised.write_all(&1u64.to_ne_bytes()).unwrap();
        let mut count = [0; 8];
        (&line).read_exact(&mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1);
    }
}
