//! The link: a port, and which of its buffers are where.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use millstream_dpdk::{Carrier, FlowRule, Part, Port};

use crate::coarse;
use crate::frame::{ETHERNET_BYTES_MAX, Frame, FrameMemory, LinkCounters, LinkInfo};
use crate::packet::check_interface;

/// In a frame's tag: it came from `reserve`. The other bits are the buffer, in units of 64 bytes.
const RESERVED: u32 = 1 << 31;

/// How often a link that is up lets drivers' interrupts run, and asks how the port is.
const ASK: Duration = Duration::from_millis(50);
/// How often one that is down does: at each tick of the coarse clock.
const ASK_DOWN: Duration = Duration::from_millis(1);
/// How often it looks for a peer that is not there.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// How long a connection that was begun may take. One that is given up sooner, before the other
/// side has seen it, ends that side's process: DPDK 22.11's memif server closes its descriptor and
/// goes on waiting for it.
pub(super) const CONNECT: Duration = Duration::from_secs(1);
/// How long two ends of a cable may take to agree on a rate.
const AGREE: Duration = Duration::from_secs(5);
/// How long a full ring in memory holds frames up: a receiver that has not looked for so long is
/// not about to. Two ticks of the coarse clock.
const PATIENCE: Duration = Duration::from_millis(8);

/// An open link. See the [module](super).
pub(super) struct DpdkLink {
    pub info: LinkInfo,
    pub memory: Arc<FrameMemory>,
    /// Declared behind the memory: its buffers are in there.
    pub port: Port,
    /// Buffers in all: to receive into, to transmit from.
    pub buffers: (usize, usize),
    /// Those lent to the user.
    pub lent: (usize, usize),
    /// A frame that finds the ring full for long is lost: in memory nobody else could lose it.
    pub drops: bool,
    /// Since when it is full.
    pub full_since: Option<Duration>,
    /// Parts that one call of the driver's takes: AF_XDP has the kernel send no more.
    pub burst_max: usize,
    /// The driver leaves frames behind that the kernel had no time for.
    pub reminds: bool,
    /// The driver connects once, when it is started, and somebody has to start it again.
    pub reconnects: bool,
    /// The kernel's interface below, by a socket in its network namespace and its number.
    pub below: Option<(OwnedFd, u32)>,
    /// The queue that is looked at first; all frames leave by queue 0.
    pub turn: u16,
    pub parts: Vec<Part>,
    pub counters: LinkCounters,
    pub rules: Vec<FlowRule>,
    pub unsteered: usize,
    pub down: Option<io::ErrorKind>,
    pub next_ask: Duration,
    pub next_restart: Duration,
}

impl DpdkLink {
    /// Takes what has come, from each queue in turn, a batch at most.
    pub fn poll(&mut self, frames: &mut Vec<Frame>) -> usize {
        let queues = self.info.queues as u16;
        let mut count = 0;
        for _ in 0..queues {
            let queue = self.turn;
            self.turn = if queue + 1 < queues { queue + 1 } else { 0 };
            let room = self.info.batch_max - count;
            let lost = &mut self.counters.rx_dropped;
            let taken = self.port.receive(queue, &mut self.parts[..room], lost);
            self.lend(taken, frames);
            count += taken;
            if count == self.info.batch_max {
                break;
            }
        }
        count
    }

    fn lend(&mut self, count: usize, frames: &mut Vec<Frame>) {
        let (base, counters) = (self.memory.base() as usize, &mut self.counters);
        for part in &self.parts[..count] {
            // SAFETY: the port has just handed this buffer over, so no frame covers it.
            let mut frame = unsafe { lend(&self.memory, base, part, 0) };
            frame.note(part.vlan(), part.checksum_trusted());
            frame.set_continues(part.continues());
            counters.rx_frames += u64::from(!part.continues());
            counters.rx_bytes += u64::from(part.bytes());
            frames.push(frame);
        }
        self.lent.0 += count;
    }

    /// Lends free buffers, as many as `parts` holds at most; how many.
    pub fn reserve_some(&mut self, frames: &mut Vec<Frame>, most: usize) -> usize {
        let most = most.min(self.parts.len());
        let count = self.port.reserve(&mut self.parts[..most]);
        let base = self.memory.base() as usize;
        for part in &self.parts[..count] {
            // SAFETY: the pool has just handed this buffer over, so no frame covers it.
            frames.push(unsafe { lend(&self.memory, base, part, RESERVED) });
        }
        self.lent.1 += count;
        count
    }

    /// Frees frames.
    pub fn free(&mut self, frames: impl Iterator<Item = Frame>) {
        let Self { memory, lent, port, .. } = self;
        // SAFETY: the frames are ours, and end here.
        unsafe { port.release(frames.map(|frame| returned(memory, lent, &frame))) };
    }

    /// Whether the link can carry a frame of these parts.
    pub fn fits(&self, parts: &[Frame]) -> bool {
        let bytes: usize = parts.iter().map(Frame::len).sum();
        let gathers = self.port.offloads().2;
        parts.last().is_some_and(|last| !last.continues())
            && (14..=self.info.mtu + ETHERNET_BYTES_MAX).contains(&bytes)
            && (parts.len() == 1 || gathers)
            && parts.len() <= self.info.batch_max
    }

    /// Hands the first `count` frames, which are whole, to the port; how many parts it took, or
    /// (`None`) that it could not be asked.
    pub fn push(&mut self, frames: &[Frame]) -> Option<usize> {
        let base = self.memory.base() as usize;
        let completes = self.info.completes_checksums;
        for (place, frame) in self.parts.iter_mut().zip(frames) {
            assert!(self.memory.owns(frame), "a frame of another link");
            let mbuf = base + (frame.tag() & !RESERVED) as usize * 64;
            let mut part = Part::new(mbuf, base + frame.at() as usize, frame.len() as u32);
            part.set_continues(frame.continues());
            if completes && let Some((start, _)) = frame.checksum_at() {
                part.complete_checksum(start.into());
            }
            *place = part;
        }
        // SAFETY: the frames are of this link (above), and those taken are forgotten by the caller.
        unsafe { self.port.transmit(0, &self.parts[..frames.len()]) }
    }

    /// Frames that were handed over are not the user's any more.
    pub fn forget(&mut self, frames: impl Iterator<Item = Frame>) {
        for frame in frames {
            self.counters.tx_frames += u64::from(!frame.continues());
            self.counters.tx_bytes += frame.len() as u64;
            returned(&self.memory, &mut self.lent, &frame);
        }
    }

    /// What has to be done now and then.
    pub fn tend(&mut self) -> io::Result<()> {
        let now = coarse::now();
        if now >= self.next_ask {
            self.ask(now);
        }
        match self.down {
            Some(kind) => Err(kind.into()),
            None => Ok(()),
        }
    }

    fn ask(&mut self, now: Duration) {
        self.port.let_interrupts_run();
        let was = self.down;
        self.down = match self.port.carrier() {
            Carrier::Up => None,
            Carrier::Down => Some(io::ErrorKind::NetworkDown),
            Carrier::Gone => Some(io::ErrorKind::NotFound),
        };
        if let Some((socket, index)) = &self.below {
            self.counters.syscalls += 2;
            self.down = check_interface(socket.as_fd(), *index).err().map(|error| error.kind());
        }
        if self.down.is_some() && self.reconnects && now >= self.next_restart {
            // Nobody there yet: the next try may find somebody.
            let begun = self.port.restart();
            self.next_restart = now + if begun { CONNECT } else { LOOK };
        }
        self.counters.recoveries += u64::from(was.is_some() && self.down.is_none());
        self.next_ask = now + if self.down.is_some() { ASK_DOWN } else { ASK };
    }
}

impl DpdkLink {
    /// Whether a ring in memory has been full for so long that frames are lost.
    pub fn is_stuck(&mut self) -> bool {
        let now = coarse::now();
        self.drops && now >= *self.full_since.get_or_insert(now) + PATIENCE
    }

    /// Waits until a connection that was begun is there, or cannot be any more.
    pub fn settle(&mut self) {
        let until = self.next_restart.min(coarse::now() + CONNECT / 2);
        while self.reconnects
            && self.port.is_started()
            && self.port.carrier() == Carrier::Down
            && coarse::now() < until
        {
            self.port.let_interrupts_run();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl DpdkLink {
    /// Waits until a card and the other end of its cable have agreed on a rate, which they begin
    /// when it is opened; not for ever, as the cable may not be in.
    pub fn await_carrier(&mut self) {
        let until = coarse::now() + AGREE;
        while self.port.carrier() == Carrier::Down && coarse::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for DpdkLink {
    fn drop(&mut self) {
        self.settle();
        self.rules.drain(..).for_each(|rule| self.port.unsteer(rule));
    }
}

/// A frame is not the user's any more: the address of its buffer.
fn returned(memory: &FrameMemory, lent: &mut (usize, usize), frame: &Frame) -> usize {
    assert!(memory.owns(frame), "a frame of another link");
    let tag = frame.tag();
    match tag & RESERVED {
        0 => lent.0 -= 1,
        _ => lent.1 -= 1,
    }
    memory.base() as usize + (tag & !RESERVED) as usize * 64
}

/// A frame over a buffer.
///
/// # Safety
/// The buffer lies in the memory and is nobody's else.
unsafe fn lend(memory: &FrameMemory, base: usize, part: &Part, flag: u32) -> Frame {
    let (at, tag) = (part.data() - base, ((part.mbuf() - base) / 64) as u32);
    // SAFETY: the caller's promise.
    unsafe { Frame::new(memory, at as u64, part.bytes(), part.room(), tag | flag) }
}
