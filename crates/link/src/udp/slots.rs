//! The receive arena: fixed slots for `recvmmsg`, allocated once.

use std::io;
use std::mem;
use std::os::fd::BorrowedFd;

use millstream_host::socket::receive_messages;

use super::PAYLOAD_BYTES_MAX;
use crate::udp::gso::{ControlBuffer, Notes};

/// The number and size of the buffers that a port receives into.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotLayout {
    /// The most messages that one `recvmmsg` may fill.
    pub slots: usize,
    /// Bytes of one slot.
    pub slot_bytes: usize,
    /// The most datagrams that one batch lends.
    pub datagrams: usize,
}

impl SlotLayout {
    /// A coalesced message may be as long as a UDP payload can be; without coalescing a slot holds
    /// one datagram. Up to 32 KiB per datagram both arenas stay within an L2 cache of 2 MiB.
    pub fn for_datagrams(datagram_bytes_max: usize, coalescing: bool) -> Self {
        if coalescing {
            Self { slots: 16, slot_bytes: PAYLOAD_BYTES_MAX.next_multiple_of(64), datagrams: 256 }
        } else {
            let slot_bytes = datagram_bytes_max.next_multiple_of(64);
            Self { slots: 64, slot_bytes, datagrams: 64 }
        }
    }
}

/// Slots, and the headers that describe them to the kernel.
pub(super) struct Slots {
    bytes: Box<[u8]>,
    slot_bytes: usize,
    names: Box<[libc::sockaddr_in]>,
    controls: Box<[ControlBuffer]>,
    vectors: Box<[libc::iovec]>,
    heads: Box<[libc::mmsghdr]>,
    /// The number of first headers to be written again.
    used: usize,
    /// The number of slots that the next call may fill.
    asked: usize,
}

// SAFETY: the raw pointers in `vectors` and `heads` point into the other fields, whose memory stays
// in place; only system calls of `receive`, which borrows the whole struct, follow them, so they
// are plain numbers to any thread.
unsafe impl Send for Slots {}

impl Slots {
    pub fn new(shape: SlotLayout) -> Self {
        // SAFETY: sockaddr_in, iovec and mmsghdr are plain C structures for which all-zero bytes
        // (null pointers, zero lengths) are a valid value.
        let (name, vector, head) = unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
        Self {
            bytes: vec![0; shape.slots * shape.slot_bytes].into(),
            slot_bytes: shape.slot_bytes,
            names: vec![name; shape.slots].into(),
            controls: vec![ControlBuffer::default(); shape.slots].into(),
            vectors: vec![vector; shape.slots].into(),
            heads: vec![head; shape.slots].into(),
            used: shape.slots,
            asked: shape.slots,
        }
    }

    /// Returns the number of slots.
    pub fn count(&self) -> usize {
        self.heads.len()
    }

    /// Makes the next call fill all slots, because datagrams are known to be waiting.
    pub fn ask_for_all(&mut self) {
        self.asked = self.heads.len();
    }

    /// Receives as many messages as are waiting and fit, without waiting for any.
    ///
    /// After a call that received nothing the next one requests a single message: a datagram that
    /// comes alone, as in a round trip, then costs no search for a second one.
    pub fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        self.arm();
        // SAFETY: every header points to a slot, a name and a control buffer of this struct with
        // their true lengths (`arm`, now or earlier), all of which outlive the call; no more
        // messages are requested than there are headers.
        let count =
            unsafe { receive_messages(fd, &mut self.heads[..self.asked], libc::MSG_DONTWAIT) };
        self.used = *count.as_ref().unwrap_or(&0).max(&1);
        self.asked = if count.is_ok() { self.heads.len() } else { 1 };
        count
    }

    /// Points every header at its slot. The kernel overwrites lengths only in those that it fills,
    /// so only these are written before each call: repeated polls that receive nothing write none.
    fn arm(&mut self) {
        let slots = self.bytes.chunks_exact_mut(self.slot_bytes).take(self.used);
        let parts = self.names.iter_mut().zip(self.controls.iter_mut());
        let heads = self.vectors.iter_mut().zip(self.heads.iter_mut());
        for ((slot, (name, control)), (vector, head)) in slots.zip(parts).zip(heads) {
            vector.iov_base = slot.as_mut_ptr().cast();
            vector.iov_len = slot.len();
            let header = &mut head.msg_hdr;
            header.msg_name = (&raw mut *name).cast();
            header.msg_namelen = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
            header.msg_iov = vector;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr();
            header.msg_controllen = ControlBuffer::BYTES as _;
            header.msg_flags = 0;
        }
    }

    /// Returns the bytes received into slot `index` by the last call.
    pub fn length(&self, index: usize) -> usize {
        (self.heads[index].msg_len as usize).min(self.slot_bytes)
    }

    /// Whether the message in slot `index` was longer than the slot.
    pub fn is_cut(&self, index: usize) -> bool {
        self.heads[index].msg_hdr.msg_flags & libc::MSG_TRUNC != 0
    }

    /// Returns the kernel's control messages of slot `index`.
    pub fn notes(&self, index: usize) -> Notes {
        self.controls[index].notes(self.heads[index].msg_hdr.msg_controllen as _)
    }

    /// Returns the sender of slot `index`.
    pub fn source(&self, index: usize) -> std::net::SocketAddrV4 {
        let name = &self.names[index];
        let ip = u32::from_be(name.sin_addr.s_addr);
        std::net::SocketAddrV4::new(ip.into(), u16::from_be(name.sin_port))
    }

    /// Returns `length` bytes of slot `index` from `offset` on.
    pub fn bytes(&self, index: usize, offset: usize, length: usize) -> &[u8] {
        &self.bytes[index * self.slot_bytes + offset..][..length]
    }
}
