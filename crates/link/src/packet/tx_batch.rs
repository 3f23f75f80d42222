//! Transmission by `sendmmsg` out of the frame memory: the kernel copies each frame once.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::link::SendResult;
use millstream_host::socket::send_messages;
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::frame::{Frame, FrameMemory};

/// The most frames of one `sendmmsg`.
const MESSAGES: usize = 64;

/// The most parts of the frames of one `sendmmsg`.
const PARTS: usize = 128;

pub(super) struct Batch {
    socket: OwnedFd,
    memory: Arc<FrameMemory>,
    /// Whole frames that wait for the next flush, in parts.
    queued: Vec<Frame>,
    parts_max: usize,
    vectors: Box<[libc::iovec; PARTS]>,
    heads: Box<[libc::mmsghdr; MESSAGES]>,
}

// SAFETY: the vectors and headers hold addresses only during a call, which fills them anew.
unsafe impl Send for Batch {}

impl Batch {
    pub fn new(socket: OwnedFd, memory: Arc<FrameMemory>, parts_max: usize) -> Self {
        // SAFETY: both are plain C structures for which all-zero bytes are a valid value.
        let (vectors, heads) =
            unsafe { (Box::new(mem::zeroed::<[_; PARTS]>()), Box::new(mem::zeroed())) };
        let queued = Vec::with_capacity(parts_max);
        Self { socket, memory, queued, parts_max, vectors, heads }
    }

    /// Queues frames for which there is room.
    pub fn push(&mut self, parts: impl ExactSizeIterator<Item = Frame>) {
        self.queued.extend(parts);
    }

    /// Whether there is room for a frame of `parts` parts.
    pub fn has_room(&self, parts: usize) -> bool {
        self.queued.len() + parts <= self.parts_max
    }

    /// Returns the number of waiting parts.
    pub fn queued(&self) -> usize {
        self.queued.len()
    }

    /// Sends the waiting frames, as far as the socket takes them; finished frames go to `done`.
    pub fn flush(&mut self, sent: &mut SendResult, done: &mut Vec<Frame>) -> io::Result<()> {
        while !self.queued.is_empty() {
            sent.syscalls += 1;
            match self.send() {
                Ok(taken) => self.account(taken, sent, done),
                Err(Errno::INTR) => {}
                // The kernel holds as much of this socket as it may: the next flush continues.
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::NOBUFS | Errno::NOMEM) => sent.dropped += self.forget_first(done),
                Err(Errno::MSGSIZE | Errno::INVAL) => sent.invalid += self.forget_first(done),
                Err(error) => {
                    // These frames are of no use when the interface comes back.
                    while !self.queued.is_empty() {
                        sent.dropped += self.forget_first(done);
                    }
                    return Err(super::socket::plain(error.into()));
                }
            }
        }
        Ok(())
    }

    /// Counts the first `taken` frames, which have left.
    fn account(&mut self, taken: usize, sent: &mut SendResult, done: &mut Vec<Frame>) {
        let mut parts = 0;
        for head in &self.heads[..taken] {
            sent.frames += 1;
            sent.bytes += u64::from(head.msg_len);
            let vectors: usize = head.msg_hdr.msg_iovlen as _;
            parts += vectors;
        }
        done.extend(self.queued.drain(..parts));
    }

    /// Has the kernel send the next frames; returns how many it took.
    fn send(&mut self) -> rustix::io::Result<usize> {
        if let [frame] = &self.queued[..] {
            if !frame.continues() {
                // Described by headers, one frame would make the shortest round trip a twentieth
                // longer, and with a call that may end the thread (pthreads(7)), a hundredth.
                let bytes = self.memory.bytes(frame);
                self.heads[0].msg_len = bytes.len() as libc::c_uint;
                self.heads[0].msg_hdr.msg_iovlen = 1;
                return rustix::net::send(&self.socket, bytes, SendFlags::DONTWAIT).map(|_| 1);
            }
        }
        let messages = self.prepare();
        // SAFETY: the first `messages` headers point at vectors of this struct, and those at bytes
        // of frames that this struct holds; the kernel only reads them.
        let sent =
            unsafe { send_messages(&self.socket, &mut self.heads[..messages], libc::MSG_DONTWAIT) };
        sent.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// Describes the next frames to the kernel; returns their number.
    fn prepare(&mut self) -> usize {
        let (mut messages, mut first) = (0, 0);
        for (index, part) in self.queued.iter().take(PARTS).enumerate() {
            let bytes = self.memory.bytes(part);
            self.vectors[index] =
                libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            if part.continues() {
                continue;
            }
            let header = &mut self.heads[messages].msg_hdr;
            header.msg_iov = &raw mut self.vectors[first];
            header.msg_iovlen = (index + 1 - first) as _;
            (messages, first) = (messages + 1, index + 1);
            if messages == MESSAGES {
                break;
            }
        }
        messages
    }

    /// Drops the first waiting frame.
    fn forget_first(&mut self, done: &mut Vec<Frame>) -> u64 {
        let last = self.queued.iter().position(|part| !part.continues());
        let parts = last.map_or(self.queued.len(), |last| last + 1);
        done.extend(self.queued.drain(..parts));
        1
    }
}
