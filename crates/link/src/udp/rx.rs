//! The receive half: `recvmmsg` into the arena, coalesced messages lent one datagram at a time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use millstream_ring::Wait;
use millstream_ring::governor::{Governor, Idle, WaitLimits};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::launch::RefusalReader;
use super::slots::{SlotLayout, Slots};
use crate::port::{Capabilities, Datagram, PortRx};

/// The number of system calls of a spinning wait between two reads of the clock.
const SPINS_PER_CLOCK_READ: u32 = 4;

/// The place of one lent datagram.
#[derive(Debug, Clone, Copy)]
struct BufferSlot {
    slot: u32,
    offset: u32,
    length: u32,
}

/// The receive half of a kernel UDP port.
pub(super) struct UdpRx {
    socket: Arc<OwnedFd>,
    slots: Slots,
    capabilities: Capabilities,
    /// The datagrams lent now. The capacity is fixed: it never grows.
    lent: Vec<BufferSlot>,
    /// Messages received by the last system call.
    filled: usize,
    /// The next message to split, and the position in it.
    cursor: (usize, usize),
    drops: u64,
    /// Datagrams longer than the port accepts.
    too_long: u64,
    /// The kernel's counter has been read since the last datagram came. An empty queue does not
    /// overflow, so the counter cannot have changed.
    drops_asked: bool,
    /// The queue was recently empty: waiting first saves a call that would receive nothing.
    wait_first: bool,
    /// How waits pass.
    wait: Wait,
    /// What an adaptive wait has learnt.
    governor: Governor,
    /// Reads the refusals of launch times, which would end every wait.
    refused: Option<Arc<RefusalReader>>,
}

impl UdpRx {
    pub fn new(
        socket: Arc<OwnedFd>,
        shape: SlotLayout,
        capabilities: Capabilities,
        wait: Wait,
        refused: Option<Arc<RefusalReader>>,
    ) -> Self {
        Self {
            socket,
            slots: Slots::new(shape),
            capabilities,
            lent: Vec::with_capacity(shape.datagrams),
            filled: 0,
            cursor: (0, 0),
            drops: 0,
            too_long: 0,
            drops_asked: false,
            wait_first: false,
            wait,
            governor: Governor::new(WaitLimits::default()),
            refused,
        }
    }

    /// Lends the rest of the received messages, up to the size of a batch.
    fn split(&mut self) {
        let room = self.capabilities.batch_max;
        let datagram_bytes_max = self.capabilities.datagram_bytes_max;
        let (mut slot, mut offset) = self.cursor;
        while slot < self.filled && self.lent.len() < room {
            let total = self.slots.length(slot);
            let notes = self.slots.notes(slot);
            if let Some(drops) = notes.drops.filter(|_| offset == 0) {
                self.note_drops(drops);
            }
            let step = notes.segment_bytes.unwrap_or(total).min(total - offset);
            if step > datagram_bytes_max || self.slots.is_cut(slot) {
                self.too_long += 1;
            } else {
                let (slot, offset, length) = (slot as u32, offset as u32, step as u32);
                self.lent.push(BufferSlot { slot, offset, length });
            }
            offset += step;
            if offset >= total {
                (slot, offset) = (slot + 1, 0);
            }
        }
        self.cursor = (slot, offset);
    }

    /// Adds the growth of the kernel's counter, which has 32 bits and never decreases.
    fn note_drops(&mut self, counter: u32) {
        let grown = counter.wrapping_sub(self.drops as u32);
        if grown < 1 << 31 {
            self.drops += u64::from(grown);
        }
    }

    /// Reads the kernel's drop counter, because no queued datagram carries it.
    fn ask_for_drops(&mut self) {
        if self.drops_asked {
            return;
        }
        if let Ok(drops) = millstream_host::socket::drops(&*self.socket) {
            self.note_drops(drops);
            self.drops_asked = true;
        }
    }

    /// Receives waiting datagrams; returns zero when there are none, or none that the port accepts.
    fn poll_socket(&mut self) -> io::Result<usize> {
        loop {
            match self.slots.receive(self.socket.as_fd()) {
                Ok(count) => {
                    self.filled = count;
                    self.cursor = (0, 0);
                    self.drops_asked = false;
                    self.split();
                    return Ok(self.lent.len());
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(0),
                    // An ICMP error answers some earlier send. It does not concern receiving, and
                    // reading it has cleared it.
                    Some(libc::EINTR | libc::ECONNREFUSED | libc::EHOSTUNREACH) => {}
                    _ => return Err(error),
                },
            }
        }
    }

    /// Polls until something arrives or the time is up.
    fn spin(&mut self, timeout: Duration) -> io::Result<usize> {
        let started = Instant::now();
        loop {
            for _ in 0..SPINS_PER_CLOCK_READ {
                let count = self.poll_socket()?;
                if count > 0 {
                    return Ok(count);
                }
            }
            if started.elapsed() >= timeout {
                self.ask_for_drops();
                return Ok(0);
            }
        }
    }

    /// Polls, yields or sleeps, as the governor says, until something arrives or the time is up.
    fn adapt(&mut self, timeout: Duration) -> io::Result<usize> {
        let started = Instant::now();
        let deadline = started.checked_add(timeout);
        let mut passed = Duration::ZERO;
        let found = loop {
            match self.governor.idle(nanoseconds(passed)) {
                Idle::Spin => {}
                Idle::Yield => std::thread::yield_now(),
                Idle::Sleep => match self.sleep(deadline) {
                    Ok(true) => self.slots.ask_for_all(),
                    Ok(false) => break Ok(0),
                    Err(error) => break Err(error),
                },
            }
            let polled = self.poll_socket();
            passed = started.elapsed();
            if !matches!(polled, Ok(0)) || passed >= timeout {
                break polled;
            }
        };
        self.governor.busy(nanoseconds(started.elapsed()));
        if matches!(found, Ok(0)) {
            self.ask_for_drops();
        }
        found
    }

    /// Sleeps until something arrives or the time is up; returns false on a timeout.
    fn sleep(&self, deadline: Option<Instant>) -> io::Result<bool> {
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let timeout = left.map(|left| Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            });
            let mut fds = [PollFd::new(&*self.socket, PollFlags::IN)];
            match rustix::event::poll(&mut fds, timeout.as_ref()) {
                Ok(0) => return Ok(false),
                Ok(_) => {
                    let failed = fds[0].revents().contains(PollFlags::ERR);
                    if let Some(refused) = self.refused.as_ref().filter(|_| failed) {
                        refused.read();
                    }
                    return Ok(true);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl PortRx for UdpRx {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
        self.lent.clear();
        if self.cursor.0 < self.filled {
            self.split();
            if !self.lent.is_empty() {
                return Ok(self.lent.len());
            }
        }
        match self.wait {
            Wait::Spin if !timeout.is_zero() => return self.spin(timeout),
            Wait::Adaptive if !timeout.is_zero() => return self.adapt(timeout),
            _ => {}
        }
        if timeout.is_zero() || !self.wait_first {
            let count = self.poll_socket()?;
            if count > 0 || timeout.is_zero() {
                return Ok(count);
            }
        }
        // A time too long for the clock is treated as no deadline.
        let deadline = Instant::now().checked_add(timeout);
        self.wait_first = true;
        while self.sleep(deadline)? {
            self.slots.ask_for_all();
            let count = self.poll_socket()?;
            if count > 0 {
                // All slots are full: more is waiting, and the next call need not wait for it.
                self.wait_first = self.filled < self.slots.count();
                return Ok(count);
            }
            // The received datagrams were too long, and more of them may follow.
            if deadline.is_some_and(|at| Instant::now() >= at) {
                break;
            }
        }
        self.ask_for_drops();
        Ok(0)
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        let BufferSlot { slot, offset, length } = self.lent[index];
        Datagram {
            payload: self.slots.bytes(slot as usize, offset as usize, length as usize),
            source: self.slots.source(slot as usize),
        }
    }

    fn queue_drops(&self) -> u64 {
        self.drops
    }

    fn too_long(&self) -> u64 {
        self.too_long
    }
}
