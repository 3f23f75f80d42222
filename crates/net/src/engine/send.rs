//! The transmit direction: the users' datagrams and the stack's own frames.

use std::io;
use std::net::SocketAddrV4;

use millstream_link::frame::{Frame, FrameLink};
use millstream_wire::udp;

use crate::port::{Departure, bump};
use crate::stack::{DueFrame, EmitError, ReceivedDatagram, Stack, Unreachable};

use super::deliver::Served;
use super::pieces::{PARTS_MAX, Pieces};

/// The most datagrams that wait for the Ethernet address of their next hop, of all ports together;
/// the kernel queues about as many for each neighbour.
const WAITING_MAX: usize = 128;

/// The most of these from one port to one address; further ones stay in the port's ring for a
/// while.
const WAITING_ALIKE_MAX: usize = 64;

/// The longest that a port is delayed for that: a neighbour that exists answers much sooner, and
/// one that does not must not prevent others from being reached.
const HOLD_NS: u64 = 100_000_000;

/// The shortest Ethernet frame without its checksum, bytes (IEEE 802.3, 4.2.3.3).
const FRAME_BYTES_MIN: usize = 60;

/// The offset of the checksum in the UDP header (RFC 768).
const UDP_CHECKSUM_AT: u8 = 6;

/// A datagram whose next hop is being resolved.
struct UnresolvedDatagram {
    from: SocketAddrV4,
    to: SocketAddrV4,
    parts: Vec<Frame>,
    since_ns: u64,
}

/// The transmit direction of a link.
pub(super) struct Sending {
    /// Frames with headers, in their order of leaving.
    ready: Vec<Frame>,
    /// The parts of one datagram.
    whole: Vec<Frame>,
    back: Vec<Frame>,
    free: Vec<Frame>,
    waiting: Vec<UnresolvedDatagram>,
    /// Memory for the parts of datagrams that will wait.
    spare: Vec<Vec<Frame>>,
    /// The stack's generation when the waiting datagrams were last tried.
    tried: u64,
    /// The buffer for an answer that may be longer than one part.
    scratch: Vec<u8>,
    /// The port that comes first in the next step.
    first: usize,
    batch: usize,
    /// There were fewer free frames than users may have.
    short: bool,
}

impl Sending {
    /// Creates it for batches of `batch` frames, and answers of `scratch_bytes` bytes if one part
    /// may be too short for them.
    pub fn new(batch: usize, scratch_bytes: usize) -> Self {
        Self {
            ready: Vec::with_capacity(2 * batch),
            whole: Vec::with_capacity(PARTS_MAX),
            back: Vec::with_capacity(batch),
            free: Vec::with_capacity(2048),
            waiting: Vec::with_capacity(WAITING_MAX),
            spare: (0..WAITING_MAX).map(|_| Vec::with_capacity(PARTS_MAX)).collect(),
            tried: 0,
            scratch: vec![0; scratch_bytes],
            first: 0,
            batch,
            short: false,
        }
    }

    /// Takes the users' datagrams and hands them to the link, a batch at most. Returns the number
    /// of frames that the users gave or the link took.
    pub fn step(
        &mut self,
        link: &mut dyn FrameLink,
        served: &mut Served,
        now_ns: u64,
    ) -> io::Result<usize> {
        self.retry(link, served, now_ns);
        let mut taken = 0;
        let ports = served.lanes().len();
        // Frames that the link did not take before come first; users wait meanwhile.
        for turn in 0..ports {
            let index = (self.first + turn) % ports;
            let share = (self.batch / ports).max(1);
            let end = self.batch.min(self.ready.len() + share);
            while self.ready.len() < end
                && !self.is_held(served.lanes_mut()[index].local.port(), now_ns)
                && self.depart(link, served, index, now_ns)
            {
                taken += 1;
            }
        }
        self.first = self.first.wrapping_add(1);
        if !self.back.is_empty() {
            served.hand_over(&mut self.back);
            link.give_back(&mut self.back);
        }
        if taken == 0 && self.ready.is_empty() && !self.short {
            return Ok(0);
        }
        let mut sent = 0;
        while !self.ready.is_empty() {
            match link.transmit(&mut self.ready)? {
                0 => break,
                count => sent += count,
            }
        }
        link.flush()?;
        self.supply(link, served);
        Ok(taken + sent)
    }

    /// Takes one datagram of a port; returns false if it has none.
    fn depart(
        &mut self,
        link: &mut dyn FrameLink,
        served: &mut Served,
        index: usize,
        now_ns: u64,
    ) -> bool {
        let lane = &mut served.lanes_mut()[index];
        let from = lane.local;
        let Some(Departure { frame, to, payload_bytes }) = lane.next_departure() else {
            return false;
        };
        let mut more = frame.continues();
        self.whole.push(frame);
        while more {
            // All parts of a datagram are handed over in one step.
            let Some(part) = lane.next_departure() else { break };
            more = part.frame.continues();
            self.whole.push(part.frame);
        }
        let Some(to) = to else {
            self.back.append(&mut self.whole);
            return true;
        };
        if served.stack.is_ours(*to.ip()) {
            let start = served.stack.header_len();
            let payload = start..start + payload_bytes as usize;
            let datagram = ReceivedDatagram { payload, source: from, destination: to };
            served.deliver(&datagram, &mut self.whole, &mut self.back);
            served.hand_over(&mut self.back);
            return true;
        }
        if let Err(EmitError::Pending) = self.emit(link, served, from, to, now_ns) {
            self.wait(served, from, to, now_ns);
        }
        true
    }

    /// Writes the headers of the datagram in `whole`, which is ready then; a datagram whose next
    /// hop has yet to be resolved stays in `whole`.
    fn emit(
        &mut self,
        link: &dyn FrameLink,
        served: &mut Served,
        from: SocketAddrV4,
        to: SocketAddrV4,
        now_ns: u64,
    ) -> Result<(), EmitError> {
        let memory = link.memory();
        let Some((first, others)) = self.whole.split_first_mut() else { return Ok(()) };
        let pieces = Pieces::of(memory, others);
        let rest = pieces.as_slice();
        let written = served.stack.emit(from, to, memory.bytes_mut(first), rest, now_ns);
        match &written {
            Ok(()) => {
                if served.stack.config().checksum_offload {
                    // Ethernet, a tag perhaps, and IPv4 without options: 38 bytes at most.
                    let start = served.stack.header_len() - udp::HEADER_LEN;
                    first.complete_checksum(start as u8, UDP_CHECKSUM_AT);
                }
                if others.is_empty() && first.len() < FRAME_BYTES_MIN {
                    let len = first.len();
                    first.set_len(FRAME_BYTES_MIN);
                    memory.bytes_mut(first)[len..].fill(0);
                }
                self.ready.append(&mut self.whole);
                if let Some(lane) = served.lane_of(from.port()) {
                    bump(&lane.state.counters.sent, 1);
                }
            }
            Err(EmitError::Pending) => {}
            Err(error) => {
                served.fail_send(from.port(), errno(error));
                self.back.append(&mut self.whole);
            }
        }
        written
    }

    /// Stores the datagram in `whole` until its next hop is known; the oldest one makes room.
    fn wait(&mut self, served: &Served, from: SocketAddrV4, to: SocketAddrV4, since_ns: u64) {
        if self.waiting.len() == WAITING_MAX {
            let mut oldest = self.waiting.remove(0);
            self.back.append(&mut oldest.parts);
            self.spare.push(oldest.parts);
            if let Some(lane) = served.lane_of(oldest.from.port()) {
                bump(&lane.state.counters.unsent, 1);
            }
        }
        let mut parts = self.spare.pop().unwrap_or_default();
        parts.append(&mut self.whole);
        self.waiting.push(UnresolvedDatagram { from, to, parts, since_ns });
    }

    /// Whether a port's further datagrams stay in its ring, because enough of them wait.
    fn is_held(&self, port: u16, now_ns: u64) -> bool {
        let mut own = self.waiting.iter().filter(|waiting| waiting.from.port() == port);
        let Some(first) = own.next() else { return false };
        now_ns.saturating_sub(first.since_ns) < HOLD_NS
            && own.filter(|next| next.to.ip() == first.to.ip()).count() + 1 >= WAITING_ALIKE_MAX
    }

    /// Tries the waiting datagrams again, if the stack's generation has changed.
    fn retry(&mut self, link: &mut dyn FrameLink, served: &mut Served, now_ns: u64) {
        if self.waiting.is_empty() || served.stack.generation() == self.tried {
            return;
        }
        let mut next = 0;
        while next < self.waiting.len() {
            let UnresolvedDatagram { from, to, mut parts, since_ns } = self.waiting.remove(next);
            self.whole.append(&mut parts);
            if let Err(EmitError::Pending) = self.emit(link, served, from, to, now_ns) {
                parts.append(&mut self.whole);
                self.waiting.insert(next, UnresolvedDatagram { from, to, parts, since_ns });
                next += 1;
            } else {
                self.spare.push(parts);
            }
        }
        self.tried = served.stack.generation();
    }

    /// Gives users the free frames that they may have.
    pub fn supply(&mut self, link: &mut dyn FrameLink, served: &mut Served) {
        self.short = false;
        for lane in served.lanes_mut() {
            let wanted = lane.wants_free();
            if wanted > 0 {
                self.short |= link.reserve(&mut self.free, wanted) < wanted;
                lane.give_free(&mut self.free);
            }
        }
        link.give_back(&mut self.free);
    }

    /// Queues a frame of the stack; `request` is the frame that it answers. Without a free frame it
    /// is dropped, as if it had been lost on its way.
    pub fn answer(
        &mut self,
        link: &mut dyn FrameLink,
        stack: &mut Stack,
        message: &DueFrame,
        request: &[&[u8]],
    ) {
        let part_bytes = link.info().part_bytes_max;
        if self.ready.len() + PARTS_MAX > self.ready.capacity() {
            return;
        }
        let at = self.ready.len();
        if self.scratch.is_empty() {
            if link.reserve(&mut self.ready, 1) == 0 {
                return;
            }
            let frame = &mut self.ready[at];
            frame.set_len(part_bytes.min(frame.room()));
            let len = stack.write(message, request, link.memory().bytes_mut(frame));
            finish(link, frame, len);
        } else {
            let len = stack.write(message, request, &mut self.scratch);
            let parts = len.div_ceil(part_bytes);
            if link.reserve(&mut self.ready, parts) == parts {
                for (frame, bytes) in
                    self.ready[at..].iter_mut().zip(self.scratch[..len].chunks(part_bytes))
                {
                    frame.set_len(bytes.len());
                    link.memory().bytes_mut(frame).copy_from_slice(bytes);
                    frame.set_continues(true);
                }
                if let Some(last) = self.ready[at..].last_mut() {
                    last.set_continues(false);
                    if parts == 1 {
                        finish(link, last, len);
                    }
                }
                return;
            }
        }
        if self.ready[at..].iter().any(|frame| frame.is_empty()) {
            self.free.extend(self.ready.drain(at..));
            link.give_back(&mut self.free);
        }
    }

    /// Whether datagrams wait for the Ethernet address of their next hop.
    pub fn is_resolving(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether a datagram of this port waits for the Ethernet address of its next hop.
    pub fn is_resolving_for(&self, port: u16) -> bool {
        self.waiting.iter().any(|waiting| waiting.from.port() == port)
    }

    /// Whether the link has yet to take frames.
    pub fn is_backed_up(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether the link has yet to take frames, or to give free ones.
    pub fn is_unfinished(&self) -> bool {
        self.short || !self.ready.is_empty()
    }
}

/// Sets a frame's length to the written bytes, or to Ethernet's minimum.
fn finish(link: &dyn FrameLink, frame: &mut Frame, len: usize) {
    frame.set_len(len);
    if (1..FRAME_BYTES_MIN).contains(&len) {
        frame.set_len(FRAME_BYTES_MIN);
        link.memory().bytes_mut(frame)[len..].fill(0);
    }
}

/// Returns the error number that a socket would return.
fn errno(error: &EmitError) -> i32 {
    match error {
        EmitError::TooLong { .. } => libc::EMSGSIZE,
        EmitError::Unreachable { why, .. } => match why {
            Unreachable::NoAnswer | Unreachable::NoStation => libc::EHOSTUNREACH,
            Unreachable::NotOurs | Unreachable::AddressTaken => libc::EADDRNOTAVAIL,
            Unreachable::TableFull => libc::ENOBUFS,
            _ => libc::ENETUNREACH,
        },
        _ => libc::EIO,
    }
}
