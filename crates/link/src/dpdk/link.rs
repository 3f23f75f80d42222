//! The link: a port, and the place of each of its buffers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use millstream_dpdk::{FlowRule, LinkState, Part, Port};

use crate::coarse;
use crate::frame::{ETHERNET_BYTES_MAX, Frame, FrameMemory, LinkCounters, LinkInfo};

/// The bit in a frame's tag that marks it as from `reserve`. The other bits are the buffer, in
/// units of 64 bytes.
const RESERVED: u32 = 1 << 31;

/// The interval at which a link that is up lets drivers' interrupts run, and reads the port's
/// state.
const ASK: Duration = Duration::from_millis(50);
/// The same for a link that is down: each tick of the coarse clock.
const ASK_DOWN: Duration = Duration::from_millis(1);
/// The interval of checks for an absent peer.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// The longest duration of a connection attempt. Giving up sooner, before the other side has seen
/// it, ends that side's process: DPDK 22.11's memif server closes its descriptor and goes on
/// waiting for it.
pub(super) const CONNECT: Duration = Duration::from_secs(1);
/// The longest that two ends of a cable may take to agree on a rate.
const AGREE: Duration = Duration::from_secs(5);
/// The longest that a full ring in memory delays frames: a receiver that has not polled for this
/// long will not do so soon. Two ticks of the coarse clock.
const PATIENCE: Duration = Duration::from_millis(8);

/// The most parts in one call of the driver.
pub(super) const BURST: usize = 64;

/// An open link. See the [module](super).
pub(super) struct DpdkLink {
    pub info: LinkInfo,
    pub memory: Arc<FrameMemory>,
    /// Declared behind the memory, in which its buffers lie.
    pub port: Port,
    /// The number of all buffers: to receive into, to transmit from.
    pub buffers: (usize, usize),
    /// The number of those lent to the user.
    pub lent: (usize, usize),
    /// A frame that finds the ring full for long is dropped: in memory only the sender can drop it.
    pub drops: bool,
    /// The time since when the ring is full.
    pub full_since: Option<Duration>,
    /// The driver connects only when it is started, and has to be started again.
    pub reconnects: bool,
    /// The queue that is polled first; all frames leave by queue 0.
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
    /// Takes the received frames, from the queues in rotation, a batch at most.
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

    /// Lends free buffers, at most the capacity of `parts`; returns their number.
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
        // SAFETY: the frames belong to this link, and end here.
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

    /// Hands the first `count` frames, which are whole, to the port. Returns how many parts it
    /// took, or `None` when the port could not be called.
    pub fn push(&mut self, frames: &[Frame]) -> Option<usize> {
        let base = self.memory.base() as usize;
        let completes = self.info.completes_checksums;
        for (place, frame) in self.parts.iter_mut().zip(frames) {
            assert!(self.memory.owns(frame), "a frame of another link");
            let mbuf = base + (frame.tag() & !RESERVED) as usize * 64;
            let mut part = Part::new(mbuf, base + frame.at() as usize, frame.len() as u32);
            part.set_continues(frame.continues());
            if let Some((start, _)) = frame.checksum_at().filter(|_| completes) {
                part.complete_checksum(start.into());
            }
            *place = part;
        }
        // SAFETY: the frames are of this link (above), and those taken are forgotten by the caller.
        unsafe { self.port.transmit(0, &self.parts[..frames.len()]) }
    }

    /// Counts frames that were handed over, which the user does not have any more.
    pub fn forget(&mut self, frames: impl Iterator<Item = Frame>) {
        for frame in frames {
            self.counters.tx_frames += u64::from(!frame.continues());
            self.counters.tx_bytes += frame.len() as u64;
            returned(&self.memory, &mut self.lent, &frame);
        }
    }

    /// Does the maintenance that is due from time to time.
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
            LinkState::Up => None,
            LinkState::Down => Some(io::ErrorKind::NetworkDown),
            LinkState::Gone => Some(io::ErrorKind::NotFound),
        };
        if self.down.is_some() && self.reconnects && now >= self.next_restart {
            // There is no peer yet; the next attempt may find one.
            let begun = self.port.restart();
            self.next_restart = now + if begun { CONNECT } else { LOOK };
        }
        self.counters.recoveries += u64::from(was.is_some() && self.down.is_none());
        self.next_ask = now + if self.down.is_some() { ASK_DOWN } else { ASK };
    }
}

impl DpdkLink {
    /// Whether a ring in memory has been full for so long that frames are dropped.
    pub fn is_stuck(&mut self) -> bool {
        let now = coarse::now();
        self.drops && now >= *self.full_since.get_or_insert(now) + PATIENCE
    }

    /// Waits until a connection attempt has succeeded or failed.
    pub fn settle(&mut self) {
        let until = self.next_restart.min(coarse::now() + CONNECT / 2);
        while self.reconnects
            && self.port.is_started()
            && self.port.carrier() == LinkState::Down
            && coarse::now() < until
        {
            self.port.let_interrupts_run();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl DpdkLink {
    /// Waits until a card and the other end of its cable have agreed on a rate, which they begin
    /// when it is opened. The wait is limited, because the cable may be unplugged.
    pub fn await_carrier(&mut self) {
        let until = coarse::now() + AGREE;
        while self.port.carrier() == LinkState::Down && coarse::now() < until {
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

/// Removes a frame from the user's; returns the address of its buffer.
fn returned(memory: &FrameMemory, lent: &mut (usize, usize), frame: &Frame) -> usize {
    assert!(memory.owns(frame), "a frame of another link");
    let tag = frame.tag();
    match tag & RESERVED {
        0 => lent.0 -= 1,
        _ => lent.1 -= 1,
    }
    memory.base() as usize + (tag & !RESERVED) as usize * 64
}

/// Returns a frame over a buffer.
///
/// # Safety
/// The buffer lies in the memory and has no other owner.
unsafe fn lend(memory: &FrameMemory, base: usize, part: &Part, flag: u32) -> Frame {
    let (at, tag) = (part.data() - base, ((part.mbuf() - base) / 64) as u32);
    // SAFETY: the caller promises it.
    unsafe { Frame::new(memory, at as u64, part.bytes(), part.room(), tag | flag) }
}
