//! The frame link: a receive ring, a transmit direction, and the memory both share.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use super::ring::{FrameNote, ReceiveRing, VIRTIO_BYTES};
use super::segmented::SegmentedBatch;
use super::tx_batch::Batch;
use super::wake::{Wake, WakeReason};
use super::{filter, socket};
use crate::LinkError;
use crate::buffers::Buffers;
use crate::coarse;
use crate::frame::{
    ETHERNET_BYTES_MAX, Frame, FrameCounts, FrameLink, FrameMemory, LinkCounters, LinkInfo, Steer,
};

/// The number of empty polls of the ring between two reads of the clock, for the check below.
const LOOKS_PER_CLOCK: u32 = 1024;

/// The least interval of an idle link's checks that its interface exists.
const ASK: Duration = Duration::from_millis(50);

/// The result of a transmission.
#[derive(Debug, Default)]
pub(super) struct SendResult {
    pub frames: u64,
    pub bytes: u64,
    pub dropped: u64,
    pub invalid: u64,
    pub syscalls: u64,
}

/// A link on one interface. See the [module](super).
pub(super) struct PacketLink {
    pub info: LinkInfo,
    pub memory: Arc<FrameMemory>,
    pub index: u32,
    /// Declared before the socket that it watches.
    pub wake: Wake,
    pub socket: OwnedFd,
    pub ring: ReceiveRing,
    pub transmit: Batch,
    pub sent: SendResult,
    /// Buffers to transmit from, and to split trains into.
    pub buffers: Buffers,
    pub segments: Buffers,
    pub train: Option<SegmentedBatch>,
    /// The buffer for a frame that was too long for its slot; `None` while one is in it.
    pub scratch: Option<Frame>,
    pub counters: LinkCounters,
    /// Frames whose transmission has ended. Its capacity is fixed.
    pub done: Vec<Frame>,
    pub down: bool,
    pub idle: u32,
    /// The time at which an idle link may next check that its interface exists.
    pub next_ask: Duration,
}

impl PacketLink {
    /// Returns the longest frame of the interface, bytes.
    pub fn longest(&self) -> usize {
        self.info.part_bytes_max
    }

    /// Appends the frames of the ring, up to a batch.
    pub fn take(&mut self, frames: &mut Vec<Frame>) -> usize {
        let before = frames.len();
        while frames.len() - before < self.info.batch_max {
            if self.train.is_some() {
                match self.take_segment() {
                    Some(frame) => frames.push(frame),
                    None if self.train.is_some() => break,
                    None => {}
                }
                continue;
            }
            let Some((mut frame, note)) = self.ring.next() else { break };
            if note.is_train() || note.whole_bytes as usize > self.longest() {
                self.take_long(frame, note);
                continue;
            }
            frame.note(note.vlan(), note.checksum_trusted());
            self.counters.rx_bytes += frame.len() as u64;
            frames.push(frame);
        }
        let count = frames.len() - before;
        self.counters.rx_frames += count as u64;
        count
    }

    /// Returns the next segment of the train; at its end the batch's buffer is returned.
    fn take_segment(&mut self) -> Option<Frame> {
        let train = self.train.as_mut()?;
        if train.is_over() {
            let SegmentedBatch { frame, .. } = self.train.take()?;
            self.put_train(frame);
            return None;
        }
        let frame = train.next(&self.memory, &mut self.segments)?;
        self.counters.rx_bytes += frame.len() as u64;
        Some(frame)
    }

    /// Processes a frame longer than the interface's can be: a train, whole in the ring or
    /// truncated and queued at the socket (`PACKET_COPY_THRESH`).
    fn take_long(&mut self, frame: Frame, note: FrameNote) {
        let (frame, virtio) = if note.status & libc::TP_STATUS_COPY != 0 {
            self.put(frame);
            let Some(queued) = self.read_queued() else {
                self.counters.rx_dropped += 1;
                return;
            };
            queued
        } else {
            (frame, note.virtio)
        };
        let cut = frame.len() != note.whole_bytes as usize;
        let begun = if cut { Err(frame) } else { self.begin_train(frame, virtio, note) };
        if let Err(frame) = begun {
            self.counters.rx_dropped += 1;
            self.put_train(frame);
        }
    }

    fn begin_train(
        &mut self,
        mut frame: Frame,
        virtio: [u8; VIRTIO_BYTES],
        note: FrameNote,
    ) -> Result<(), Frame> {
        frame.note(note.vlan(), true);
        let train = SegmentedBatch::new(frame, &self.memory, virtio)?;
        if train.frame_bytes() > self.longest() {
            return Err(train.frame);
        }
        self.train = Some(train);
        Ok(())
    }

    /// Reads the frame that the kernel queued because it did not fit into its slot.
    fn read_queued(&mut self) -> Option<(Frame, [u8; VIRTIO_BYTES])> {
        let mut frame = self.scratch.take()?;
        let mut virtio = [0; VIRTIO_BYTES];
        frame.set_len(frame.room());
        let mut parts = [
            io::IoSliceMut::new(&mut virtio),
            io::IoSliceMut::new(self.memory.bytes_mut(&mut frame)),
        ];
        let mut control = rustix::net::RecvAncillaryBuffer::default();
        let flags = rustix::net::RecvFlags::DONTWAIT;
        let mut got = Err(rustix::io::Errno::INTR);
        // Read again after an error: it is the interface's (it went down), reported in place of the
        // frame. The frame must not remain queued, or it would be taken for the next one.
        for _ in 0..2 {
            self.counters.syscalls += 1;
            got = rustix::net::recvmsg(&self.socket, &mut parts, &mut control, flags);
            match got {
                Ok(_) | Err(rustix::io::Errno::AGAIN) => break,
                Err(error) => self.down |= error != rustix::io::Errno::INTR,
            }
        }
        match got {
            Ok(got) if got.bytes >= VIRTIO_BYTES => {
                frame.set_len((got.bytes - VIRTIO_BYTES).min(frame.room()));
                Some((frame, virtio))
            }
            _ => {
                self.scratch = Some(frame);
                None
            }
        }
    }

    /// Returns the buffer of a train to its owner.
    fn put_train(&mut self, frame: Frame) {
        if self.scratch_is_train() {
            self.scratch = Some(frame);
        } else {
            self.put(frame);
        }
    }

    /// Returns a frame to its owner.
    ///
    /// # Panics
    /// If it belongs to another link.
    pub fn put(&mut self, frame: Frame) {
        assert!(self.memory.owns(&frame), "a frame of another link");
        if self.buffers.owns(&frame) {
            self.buffers.put(frame);
        } else if self.segments.owns(&frame) {
            self.segments.put(frame);
        } else {
            self.ring.give_back(&frame);
        }
    }

    /// Checks that the interface still exists; returns an error if not.
    pub fn look_for_trouble(&mut self) -> io::Result<()> {
        self.counters.syscalls += 1;
        if socket::pending_error(self.socket.as_fd()).is_ok() {
            return Ok(());
        }
        self.down = true;
        self.check_up()
    }

    /// Returns an error while the interface is down or gone.
    pub fn check_up(&mut self) -> io::Result<()> {
        if self.down {
            self.counters.syscalls += 2;
            socket::check_interface(self.socket.as_fd(), self.index)?;
            self.down = false;
            self.counters.recoveries += 1;
        }
        Ok(())
    }

    /// Queues whole frames off the front of `frames`, up to one that cannot be sent, which is
    /// dropped. Returns the parts taken, and whether there may be more.
    pub fn queue_run(&mut self, frames: &mut Vec<Frame>) -> (usize, bool) {
        let (mut at, mut invalid) = (0, 0);
        while at < frames.len() {
            let whole = frames[at..].iter().position(|part| !part.continues());
            let parts = whole.map_or(frames.len() - at, |last| last + 1);
            if !self.is_valid(&frames[at..at + parts]) {
                (invalid, self.sent.invalid) = (parts, self.sent.invalid + 1);
                break;
            }
            if !self.transmit.has_room(at + parts) {
                self.counters.tx_ring_full += 1;
                break;
            }
            at += parts;
        }
        self.transmit.push(frames.drain(..at));
        self.done.extend(frames.drain(..invalid));
        self.put_done();
        (at + invalid, invalid > 0)
    }

    /// Whether the interface can carry a frame: it is whole, has a header and is not too long.
    fn is_valid(&self, parts: &[Frame]) -> bool {
        let bytes: usize = parts.iter().map(Frame::len).sum();
        let tagged = || self.memory.bytes(&parts[0]).get(12..14) == Some(&[0x81, 0]);
        let untagged_max = self.longest() - (ETHERNET_BYTES_MAX - 14);
        parts.last().is_some_and(|last| !last.continues())
            && (14..=self.longest()).contains(&bytes)
            && (bytes <= untagged_max || tagged())
            && parts.len() <= self.info.batch_max
    }

    /// Returns the frames whose transmission has ended to their owners.
    pub fn put_done(&mut self) {
        while let Some(frame) = self.done.pop() {
            self.put(frame);
        }
    }

    /// Returns the number of frames in each place.
    pub fn count(&self) -> FrameCounts {
        let (slots, ring_lent) = self.ring.census();
        let in_train = usize::from(self.train.is_some() && !self.scratch_is_train());
        let transmitting = self.transmit.queued();
        let pool = self.buffers.free() + self.segments.free();
        let buffers = self.buffers.count() + self.segments.count();
        let lent = ring_lent - in_train + buffers - pool - transmitting;
        FrameCounts { pool, receiving: slots - ring_lent + in_train, transmitting, lent }
    }

    /// Whether the train lies in the scratch buffer, which is not a frame of the counts.
    fn scratch_is_train(&self) -> bool {
        self.scratch.is_none()
    }

    /// Whether a check is due; it is limited to an interval, however often the link is polled.
    fn is_time_to_ask(&mut self) -> bool {
        if self.idle % LOOKS_PER_CLOCK != 0 {
            return false;
        }
        let now = coarse::now();
        let due = now >= self.next_ask;
        if due {
            self.next_ask = now + ASK;
        }
        due
    }
}

impl FrameLink for PacketLink {
    fn info(&self) -> &LinkInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<FrameMemory> {
        &self.memory
    }

    fn steer(&mut self, steer: &Steer) -> Result<(), LinkError> {
        let attached = socket::attach(self.socket.as_fd(), &filter::program(steer));
        attached.map_err(|source| LinkError::Setup { what: "SO_ATTACH_FILTER", source })
    }

    fn receive(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        self.check_up()?;
        let count = self.take(frames);
        if count > 0 {
            self.idle = 0;
            return Ok(count);
        }
        self.idle = self.idle.wrapping_add(1);
        let news = self.wake.quiet(&mut self.counters.syscalls);
        if news == WakeReason::Trouble || self.is_time_to_ask() {
            self.look_for_trouble()?;
        }
        if news == WakeReason::Nothing {
            return Ok(0);
        }
        let count = self.take(frames);
        if count > 0 {
            self.counters.syscalls += 1;
            self.wake.again(self.socket.as_fd())?;
        }
        Ok(count)
    }

    fn give_back(&mut self, frames: &mut Vec<Frame>) {
        frames.drain(..).for_each(|frame| self.put(frame));
    }

    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize {
        self.buffers.reserve(frames, count)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        self.check_up()?;
        let mut taken = 0;
        loop {
            let (parts, more) = self.queue_run(frames);
            taken += parts;
            if !more {
                return Ok(taken);
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.transmit.flush(&mut self.sent, &mut self.done);
        self.put_done();
        self.down |= flushed.is_err();
        flushed
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.wake.poll_fd(self.socket.as_fd())
    }

    fn counters(&mut self) -> LinkCounters {
        self.counters.rx_ring_full += socket::drops(self.socket.as_fd()).unwrap_or(0);
        LinkCounters {
            tx_frames: self.sent.frames,
            tx_bytes: self.sent.bytes,
            tx_invalid: self.sent.invalid,
            tx_dropped: self.sent.dropped,
            syscalls: self.counters.syscalls + self.sent.syscalls,
            ..self.counters
        }
    }

    fn census(&self) -> FrameCounts {
        self.count()
    }
}
