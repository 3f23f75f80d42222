//! The link: queues, pool and program behind the frame interface.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use millstream_host::mapping::Mapping;

use super::bpf::{self, ProgramCounts};
use super::outgoing::Outgoing;
use super::pool::FramePool;
use super::queue::Queue;
use super::watchdog::{RingStall, Watchdog};
use crate::LinkError;
use crate::coarse;
use crate::frame::{
    ETHERNET_BYTES_MAX, Frame, FrameCounts, FrameLink, FrameMemory, LinkCounters, LinkInfo, Mode,
    Steer,
};
use crate::rights::Rights;

/// The interval of the watchdog's checks.
const LOOK: Duration = Duration::from_millis(5);
/// The interval at which an idle link checks that its interface still exists.
const ASK: Duration = Duration::from_millis(50);

/// An open AF_XDP link.
pub struct XdpLink {
    pub(super) info: LinkInfo,
    pub(super) memory: Arc<FrameMemory>,
    pub(super) pool: FramePool,
    pub(super) queues: Vec<Queue>,
    /// The transmit direction, over the first queues.
    pub(super) outgoing: Outgoing,
    pub(super) watchdogs: Vec<Watchdog>,
    /// A descriptor that is readable when any of the sockets is.
    pub(super) poll: OwnedFd,
    /// The program's mapped counters, and the number of processors with rows in them.
    pub(super) counted: (Mapping, u32),
    /// The ports, in the order of their rows of counters, and the counts to subtract from these.
    pub(super) ports: Vec<(u16, ProgramCounts)>,
    /// Whether idle calls drive the device (preferred busy polling).
    pub(super) busy_poll: bool,
    pub(super) state: State,
    pub(super) rights: Box<dyn Rights>,
    pub(super) _attached: Attachment,
}

/// The program on the interface, until this is dropped.
pub(super) struct Attachment(pub OwnedFd);

impl Drop for Attachment {
    fn drop(&mut self) {
        // Where detaching is refused, closing the link's last descriptor does it.
        let _ = bpf::detach(self.0.as_fd());
    }
}

/// The state that changes from call to call.
#[derive(Debug, Default)]
pub(super) struct State {
    counters: LinkCounters,
    /// The queue that is polled first.
    turn: usize,
    /// Some queue has fewer buffers than it should have.
    hungry: bool,
    next_look: Duration,
    next_ask: Duration,
    /// The most ports served at once.
    ports_max: usize,
    /// The error of the interface when it was last checked.
    down: Option<io::ErrorKind>,
}

impl XdpLink {
    /// Returns the program's counts for a UDP port since it is steered here, or (`None`) for all
    /// other wanted frames.
    #[must_use]
    pub fn counts(&self, port: Option<u16>) -> Option<ProgramCounts> {
        let Some(port) = port else { return Some(self.row(0)) };
        let at = self.ports.iter().position(|(served, _)| *served == port)?;
        Some(self.row(1 + at).less(self.ports[at].1))
    }

    /// Assigns new rows of counters to the ports; ports that stay keep their counts.
    fn move_counts(&mut self, ports: &[u16]) {
        // After the change: a frame that came since is counted wrongly, but none is counted twice.
        let moved = (1..).zip(ports).map(|(row, port)| {
            let so_far = self.counts(Some(*port)).unwrap_or_default();
            (*port, self.row(row).less(so_far))
        });
        self.ports = moved.collect();
        self.state.ports_max = self.state.ports_max.max(self.ports.len());
    }

    /// Returns wanted frames on queues that were not watched at the time: queue and frames.
    #[must_use]
    pub fn unwatched(&self) -> Vec<(u32, u64)> {
        let (mapping, cpus) = &self.counted;
        // SAFETY: the mapping is the counters' value for that many processors (`open`).
        unsafe { bpf::read_unwatched(mapping.base(), *cpus) }
    }

    fn row(&self, row: usize) -> ProgramCounts {
        let (mapping, cpus) = &self.counted;
        // SAFETY: the mapping is the counters' value for that many processors (`open`).
        unsafe { bpf::read_counts(mapping.base(), *cpus, row) }
    }

    /// Returns the frames that left on each transmit queue: queue and frames.
    pub fn sent(&self) -> impl Iterator<Item = (u32, u64)> {
        let transmit = &self.queues[..self.outgoing.queues()];
        transmit.iter().map(|queue| (queue.number, queue.sent))
    }

    /// Returns the last stalls that the watchdog saw, at most one for each queue.
    pub fn stalls(&self) -> impl Iterator<Item = RingStall> {
        self.watchdogs.iter().filter_map(Watchdog::last)
    }

    /// Does the maintenance that is due from time to time, independent of traffic.
    fn maintain(&mut self, idle: bool) -> io::Result<()> {
        let now = coarse::now();
        if now >= self.state.next_look {
            self.state.next_look = now + LOOK;
            self.watch(now);
        }
        if !idle {
            self.state.down = None;
        } else if now >= self.state.next_ask {
            let told = self.queues[0].kick_receiver(&mut self.state.counters);
            self.state.next_ask = now + if told.is_ok() { ASK } else { LOOK };
            self.state.down = told.as_ref().err().map(io::Error::kind);
            told?;
        }
        match self.state.down {
            Some(kind) => Err(kind.into()),
            None => Ok(()),
        }
    }

    fn watch(&mut self, now: Duration) {
        let Self { queues, watchdogs, pool, state, .. } = self;
        let mut recoveries = 0;
        for (queue, dog) in queues.iter_mut().zip(watchdogs) {
            queue.wake_receiver(&mut state.counters);
            if dog.look(now, queue.seen()) {
                queue.refill(pool, &mut state.counters);
                // A link that is down returns its error where its state is checked.
                let _ = queue.flush(pool, &mut state.counters);
            }
            recoveries += dog.recoveries();
        }
        state.counters.recoveries = recoveries;
    }

    /// Supplies the queues that lack buffers, if there are free ones again. There may be no
    /// `receive` before a frame comes, and no frame comes without buffers, so every method that
    /// frees buffers ends with this.
    fn refill(&mut self) {
        if !self.state.hungry {
            return;
        }
        let Self { queues, pool, state, .. } = self;
        state.hungry = false;
        for queue in queues {
            state.hungry |= queue.refill(pool, &mut state.counters);
        }
    }

    /// Gives back parts longer than any frame of the interface: unsplit trains, which generic
    /// mode receives whole. The kernel drops those that are too long for it.
    fn drop_trains(&mut self, frames: &mut Vec<Frame>, first: usize) {
        let longest = self.info.mtu + ETHERNET_BYTES_MAX;
        let (mut begin, mut at, mut bytes) = (first, first, 0);
        while at < frames.len() {
            bytes += frames[at].len();
            at += 1;
            if frames[at - 1].continues() {
                continue;
            }
            if bytes > longest {
                for frame in frames.drain(begin..at) {
                    self.pool.put(&self.memory, frame);
                }
                let counters = &mut self.state.counters;
                counters.rx_frames -= 1;
                counters.rx_bytes -= bytes as u64;
                counters.rx_dropped += 1;
                at = begin;
            }
            (begin, bytes) = (at, 0);
        }
        self.refill();
    }

    fn harvest(&mut self) {
        let transmit = self.outgoing.queues();
        for queue in &mut self.queues[..transmit] {
            queue.harvest(&mut self.pool);
        }
    }
}

impl FrameLink for XdpLink {
    fn info(&self) -> &LinkInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<FrameMemory> {
        &self.memory
    }

    fn steer(&mut self, steer: &Steer) -> Result<(), LinkError> {
        let wrong = |source| LinkError::Setup { what: "steer frames to the socket", source };
        self.rights.steer(steer).map_err(wrong)?;
        self.move_counts(&steer.udp_ports);
        Ok(())
    }

    fn receive(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        let before = frames.len();
        let Self { queues, pool, memory, state, .. } = self;
        let batch = self.info.batch_max as u32;
        let mut left = batch;
        let count = queues.len();
        for turn in 0..count {
            let index = (state.turn + turn) % count;
            let queue = &mut queues[index];
            let taken = queue.receive(memory, pool, frames, left, &mut state.counters);
            if taken > 0 {
                state.hungry |= queue.refill(pool, &mut state.counters);
                left -= taken;
            }
            // The rest of a batch may be too short for the next frame's parts.
            if left < batch / 2 {
                state.turn = (index + 1) % count;
                break;
            }
        }
        if pool.transmitting() > 0 {
            self.harvest();
            self.refill();
        }
        if self.info.mode == Mode::Generic {
            self.drop_trains(frames, before);
        }
        let taken = frames.len() - before;
        if taken == 0 && self.busy_poll {
            let Self { queues, state, .. } = self;
            queues.iter().try_for_each(|queue| queue.kick_receiver(&mut state.counters))?;
        }
        self.maintain(taken == 0)?;
        Ok(taken)
    }

    fn give_back(&mut self, frames: &mut Vec<Frame>) {
        for frame in frames.drain(..) {
            self.pool.put(&self.memory, frame);
        }
        self.refill();
    }

    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize {
        if self.pool.transmit_short(count) {
            self.harvest();
        }
        self.pool.reserve(&self.memory, frames, count)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        let Self { queues, outgoing, pool, memory, state, .. } = self;
        let wanted = frames.len();
        let taken = outgoing.transmit(queues, memory, pool, frames, &mut state.counters);
        if taken == 0 && wanted > 0 {
            state.counters.tx_ring_full += 1;
            self.harvest();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        let Self { queues, outgoing, pool, state, .. } = self;
        let mut done = Ok(());
        for queue in &mut queues[..outgoing.queues()] {
            done = done.and(queue.flush(pool, &mut state.counters));
        }
        self.refill();
        done
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poll.as_fd())
    }

    fn explain(&mut self) -> Option<String> {
        let watched: Vec<_> = self.queues.iter().map(|queue| queue.number).collect();
        let mut unwatched = self.unwatched();
        // The unwatched frames of a queue that is now watched came before its socket.
        unwatched.retain(|(queue, _)| !watched.contains(queue));
        let interface = self.info.interface.as_deref().unwrap_or_default();
        let astray = crate::queues::explain(interface, &unwatched, &watched);
        let too_long = self.counters().rx_dropped;
        match super::advice::trains(&self.info, too_long) {
            Some(trains) => Some(astray.into_iter().chain([trains]).collect::<Vec<_>>().join("; ")),
            None => astray,
        }
    }

    fn counters(&mut self) -> LinkCounters {
        let mut counters = self.state.counters;
        for queue in &self.queues {
            let Ok(kernel) = queue.statistics() else { continue };
            let starved = kernel.rx_fill_ring_empty_descs.unwrap_or(0);
            counters.rx_ring_full += kernel.rx_ring_full.unwrap_or(0);
            counters.rx_starved += starved;
            // In copy modes the kernel counts a frame without a buffer as dropped, too (and a frame
            // in parts for which there are too few buffers only so).
            let twice = if self.info.mode == Mode::ZeroCopy { 0 } else { starved };
            counters.rx_dropped += kernel.rx_dropped.saturating_sub(twice);
            counters.tx_invalid += kernel.tx_invalid_descs;
        }
        for row in 0..=self.state.ports_max {
            let counts = self.row(row);
            counters.unwatched += counts.unwatched;
            counters.rate_limited += counts.limited;
        }
        counters
    }

    fn census(&self) -> FrameCounts {
        FrameCounts {
            pool: self.pool.free(),
            receiving: self.queues.iter().map(Queue::receiving).sum(),
            transmitting: self.pool.transmitting(),
            lent: self.pool.lent(),
        }
    }
}
