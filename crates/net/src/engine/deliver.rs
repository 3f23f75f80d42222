//! The distribution of received frames: to the stack, to the ports, or back to the link.

use std::io;
use std::sync::Arc;

use millstream_link::frame::{Frame, FrameLink, FrameMemory};

use crate::port::{Arrival, Lane, bump};
use crate::stack::{Inbound, ReceivedDatagram, ReceivedFrame, Stack};

use super::pieces::{PARTS_MAX, Pieces};
use super::send::Sending;

/// The stack, and the ports registered with it.
pub(super) struct Served {
    pub stack: Stack,
    lanes: Vec<Lane>,
    /// For every UDP port the number of its lane plus one, or 0.
    by_port: Box<[u16]>,
}

impl Served {
    pub fn new(stack: Stack) -> Self {
        Self { stack, lanes: Vec::new(), by_port: vec![0; 1 << 16].into() }
    }

    pub fn add(&mut self, lane: Lane) {
        self.stack.open_port(lane.local.port());
        self.lanes.push(lane);
        self.index_ports();
    }

    pub fn remove(&mut self, index: usize) -> Lane {
        let lane = self.lanes.remove(index);
        self.stack.close_port(lane.local.port());
        self.by_port[usize::from(lane.local.port())] = 0;
        self.index_ports();
        lane
    }

    fn index_ports(&mut self) {
        for (index, lane) in self.lanes.iter().enumerate() {
            self.by_port[usize::from(lane.local.port())] = index as u16 + 1;
        }
    }

    pub fn index_of(&self, port: u16) -> Option<usize> {
        usize::from(self.by_port[usize::from(port)]).checked_sub(1)
    }

    pub fn lanes(&self) -> std::slice::Iter<'_, Lane> {
        self.lanes.iter()
    }

    pub fn lane_of(&self, port: u16) -> Option<&Lane> {
        self.index_of(port).map(|index| &self.lanes[index])
    }

    /// Stores an error for the next send of a port, and counts the datagram that caused it.
    pub fn fail_send(&self, port: u16, errno: i32) {
        if let Some(lane) = self.lane_of(port) {
            lane.state.fail_send(errno);
            bump(&lane.state.counters.unsent, 1);
        }
    }

    pub fn lanes_mut(&mut self) -> &mut [Lane] {
        &mut self.lanes
    }

    /// Puts a datagram that lies in `frames` (which it empties) into its port's ring. Without room
    /// there, or without such a port, the frames go to `back`.
    pub fn deliver(
        &mut self,
        datagram: &ReceivedDatagram,
        frames: &mut Vec<Frame>,
        back: &mut Vec<Frame>,
    ) {
        let Some(index) = self.index_of(datagram.destination.port()) else {
            return back.append(frames);
        };
        let lane = &mut self.lanes[index];
        let to = datagram.destination.ip();
        if to != lane.local.ip() && self.stack.is_ours(*to) {
            // The datagram is for an address of ours other than the port's.
            return back.append(frames);
        }
        if !lane.has_room(frames.len()) {
            bump(&lane.state.counters.queue_drops, 1);
            return back.append(frames);
        }
        bump(&lane.state.counters.delivered, 1);
        let (mut at, mut end) = (datagram.payload.start, datagram.payload.end);
        let last = frames.len() - 1;
        for (index, mut frame) in frames.drain(..).enumerate() {
            let offset = at.min(frame.len());
            let bytes = end.min(frame.len()) - offset;
            (at, end) = (at.saturating_sub(frame.len()), end.saturating_sub(frame.len()));
            frame.set_continues(index < last);
            let (offset, bytes) = (offset as u32, bytes as u32);
            lane.stage(Arrival { frame, offset, bytes, source: datagram.source });
        }
    }

    /// Hands the delivered datagrams to the users.
    pub fn hand_over(&mut self, back: &mut Vec<Frame>) {
        self.lanes.iter_mut().for_each(|lane| lane.hand_over(back));
    }
}

/// The receive direction of a link.
pub(super) struct Receiving {
    /// The link's memory, because the link is borrowed while a frame is examined.
    memory: Arc<FrameMemory>,
    received: Vec<Frame>,
    /// The parts of one frame.
    whole: Vec<Frame>,
    back: Vec<Frame>,
    batch: usize,
}

impl Receiving {
    /// Creates it for batches of `batch` frames in `memory`.
    pub fn new(memory: Arc<FrameMemory>, batch: usize) -> Self {
        Self {
            memory,
            received: Vec::with_capacity(batch),
            whole: Vec::with_capacity(batch),
            // The frames of one port on top of almost a batch, or a batch that no port takes.
            back: Vec::with_capacity(3 * batch),
            batch,
        }
    }

    /// Receives one batch, and gives back the frames that users have returned. Returns the number
    /// of received frames.
    pub fn take(
        &mut self,
        link: &mut dyn FrameLink,
        served: &mut Served,
        sending: &mut Sending,
        now_ns: u64,
    ) -> io::Result<usize> {
        for lane in served.lanes_mut() {
            lane.take_returns(&mut self.back, self.batch);
            if self.back.len() >= self.batch {
                link.give_back(&mut self.back);
            }
        }
        let result = link.receive(&mut self.received);
        let mut received = std::mem::take(&mut self.received);
        for frame in received.drain(..) {
            let more = frame.continues();
            self.whole.push(frame);
            if !more {
                self.frame(link, served, sending, now_ns);
            }
        }
        self.received = received;
        // The end of the frame is missing.
        self.back.append(&mut self.whole);
        served.hand_over(&mut self.back);
        if !self.back.is_empty() {
            link.give_back(&mut self.back);
        }
        result
    }

    /// Processes one frame, whose parts are in `whole`.
    fn frame(
        &mut self,
        link: &mut dyn FrameLink,
        served: &mut Served,
        sending: &mut Sending,
        now_ns: u64,
    ) {
        if self.whole.len() > PARTS_MAX {
            served.stack.note_too_many_parts();
            return self.back.append(&mut self.whole);
        }
        let first = &self.whole[0];
        let (vlan, checksum_trusted) = (first.vlan(), first.checksum_trusted());
        let pieces = Pieces::of(&self.memory, &self.whole);
        let parts = pieces.as_slice();
        let frame = ReceivedFrame { parts, vlan, checksum_trusted };
        match served.stack.receive(frame, now_ns) {
            Inbound::Udp(datagram) => {
                served.deliver(&datagram, &mut self.whole, &mut self.back);
            }
            Inbound::Answer(message) => {
                sending.answer(link, &mut served.stack, &message, parts);
                self.back.append(&mut self.whole);
            }
            Inbound::Done => self.back.append(&mut self.whole),
        }
    }
}
