//! One queue of an interface: an AF_XDP socket with its four rings.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XdpStatistics, XdpUmemReg,
    XdpUmemRegFlags,
};

use super::pool::{FramePool, Geometry, METADATA_BYTES};
use super::ring::{CONTINUES, Descriptor, InRing, OutRing, RingMapping};
use crate::frame::{Frame, FrameMemory, LinkCounters};

/// The `SOL_XDP` option by which one call may transmit more than 32 frames in copy mode
/// (`XDP_MAX_TX_SKB_BUDGET`, Linux 6.18).
const MAX_TX_SKB_BUDGET: i32 = 9;
/// The most frames that one such call may transmit.
const TX_BUDGET: u32 = 256;

/// `XDP_UMEM_TX_METADATA_LEN` (Linux 6.8): frames to transmit may have metadata in front.
const TX_METADATA_LEN: u32 = 1 << 2;

/// The longest that a bind waits for a queue whose last socket the kernel has not released yet. On
/// a machine with more work than CPUs the kernel takes more than half a second.
const BIND_PATIENCE: Duration = Duration::from_secs(2);
const BIND_PAUSE: Duration = Duration::from_millis(2);

/// Entries of the rings of one queue, powers of two.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub receive: u32,
    /// Chunks that the kernel still has to receive into when the receive ring is full, so that it
    /// counts losses as those of a full ring.
    pub spare: u32,
    pub transmit: u32,
}

impl Sizes {
    /// Returns the most chunks that a queue can have in use for receiving.
    pub fn receiving_max(self) -> u32 {
        self.receive + self.spare
    }

    fn fill(self) -> u32 {
        self.receiving_max().next_power_of_two()
    }
}

/// The queue that a socket is bound to, and the mode.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    pub interface: u32,
    pub queue: u32,
    pub flags: SocketAddrXdpFlags,
}

/// An open queue.
#[derive(Debug)]
pub struct Queue {
    pub number: u32,
    /// Frames that left on this queue.
    pub sent: u64,
    pub(super) socket: OwnedFd,
    fill: OutRing<u64>,
    pub(super) completion: InRing<u64>,
    rx: InRing<Descriptor>,
    pub(super) tx: OutRing<Descriptor>,
    pub(super) staged: Staged,
    /// Chunks in the fill and receive rings together.
    receiving: u32,
    sizes: Sizes,
    pub(super) wakeup: bool,
}

/// Written transmit descriptors that are not yet handed over.
#[derive(Debug, Default)]
pub(super) struct Staged {
    pub count: u32,
    /// The last descriptor, if its frame continues.
    pub open: Option<Descriptor>,
}

/// Makes `memory` the frame memory of a socket; returns whether frames to transmit may have
/// metadata.
pub fn register(
    socket: BorrowedFd<'_>,
    memory: &FrameMemory,
    geometry: Geometry,
) -> io::Result<bool> {
    let unaligned = XdpUmemRegFlags::XDP_UMEM_UNALIGNED_CHUNK_FLAG;
    let wanted = |metadata: bool| XdpUmemReg {
        addr: memory.base() as u64,
        len: memory.len() as u64,
        chunk_size: geometry.chunk,
        headroom: 0,
        tx_metadata_len: if metadata { METADATA_BYTES } else { 0 },
        flags: if geometry.unaligned { unaligned } else { XdpUmemRegFlags::empty() }
            | XdpUmemRegFlags::from_bits_retain(if metadata { TX_METADATA_LEN } else { 0 }),
    };
    match sockopt::set_xdp_umem_reg(socket, wanted(true)) {
        // Kernels before 6.8 do not know the flag.
        Err(rustix::io::Errno::INVAL) => {
            sockopt::set_xdp_umem_reg(socket, wanted(false))?;
            Ok(false)
        }
        done => Ok(done.map(|()| true)?),
    }
}

impl Queue {
    /// Gives a socket its rings. It carries no frames before [`Queue::bind`].
    pub fn new(socket: OwnedFd, number: u32, sizes: Sizes) -> io::Result<Self> {
        let fd = socket.as_fd();
        sockopt::set_xdp_umem_fill_ring_size(fd, sizes.fill())?;
        sockopt::set_xdp_umem_completion_ring_size(fd, sizes.transmit)?;
        sockopt::set_xdp_rx_ring_size(fd, sizes.receive)?;
        sockopt::set_xdp_tx_ring_size(fd, sizes.transmit)?;
        // Kernels without the option continue with 32 frames a call.
        let budget = TX_BUDGET.min(sizes.transmit);
        let _ = millstream_host::socket::set(fd, libc::SOL_XDP, MAX_TX_SKB_BUDGET, &budget);
        let offsets = sockopt::xdp_mmap_offsets(fd)?;
        let place = |page_offset, offsets, entries| RingMapping { page_offset, offsets, entries };
        let Sizes { receive, transmit, .. } = sizes;
        let fill = place(libc::XDP_UMEM_PGOFF_FILL_RING, offsets.fr, sizes.fill());
        let completion = place(libc::XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, transmit);
        let rx = place(libc::XDP_PGOFF_RX_RING as u64, offsets.rx, receive);
        let tx = place(libc::XDP_PGOFF_TX_RING as u64, offsets.tx, transmit);
        Ok(Self {
            number,
            sent: 0,
            staged: Staged::default(),
            fill: OutRing::map(fd, fill)?,
            completion: InRing::map(fd, completion)?,
            rx: InRing::map(fd, rx)?,
            tx: OutRing::map(fd, tx)?,
            socket,
            receiving: 0,
            sizes,
            wakeup: false,
        })
    }

    /// Binds to a queue of an interface, with the frame memory of `shared` if it has none.
    pub fn bind(&mut self, to: Binding, shared: Option<&Self>) -> io::Result<()> {
        let mut waited = Duration::ZERO;
        self.wakeup = to.flags.contains(SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP);
        loop {
            let done = match shared {
                None => {
                    let address = SocketAddrXdp::new(to.flags, to.interface, to.queue);
                    rustix::net::bind(&self.socket, &address)
                }
                Some(first) => {
                    // All other settings are those of the memory's first socket.
                    let flags = SocketAddrXdpFlags::XDP_SHARED_UMEM;
                    let addr = SocketAddrXdp::new(flags, to.interface, to.queue);
                    let shared_umem_fd = first.socket.as_fd();
                    self.wakeup = first.wakeup;
                    let address = SocketAddrXdpWithSharedUmem { addr, shared_umem_fd };
                    rustix::net::bind(&self.socket, &address)
                }
            };
            match done {
                // The kernel releases a queue shortly after its socket is closed.
                Err(rustix::io::Errno::BUSY) if waited < BIND_PATIENCE => {
                    std::thread::sleep(BIND_PAUSE);
                    waited += BIND_PAUSE;
                }
                done => return Ok(done?),
            }
        }
    }

    /// Returns the kernel's own counts of this socket.
    pub fn statistics(&self) -> io::Result<XdpStatistics> {
        Ok(sockopt::xdp_statistics(&self.socket)?)
    }

    /// Whether the device itself reads and writes the frame memory.
    pub fn zero_copy(&self) -> io::Result<bool> {
        use rustix::net::xdp::XdpOptionsFlags;
        let options = sockopt::xdp_options(&self.socket)?;
        Ok(options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
    }

    /// Returns the chunks with the kernel to receive into, or received and not yet polled.
    pub fn receiving(&self) -> usize {
        self.receiving as usize
    }

    /// Lends received frames, up to `most` parts but whole frames only; returns the number of
    /// parts.
    #[inline]
    pub fn receive(
        &mut self,
        memory: &FrameMemory,
        pool: &mut FramePool,
        frames: &mut Vec<Frame>,
        most: u32,
        counters: &mut LinkCounters,
    ) -> u32 {
        let parts = self.rx.available(most).min(most);
        // Parts behind the last whole frame stay for the next call.
        let (mut whole, mut bytes) = (0, 0);
        for ahead in 0..parts {
            let descriptor = self.rx.get(ahead);
            let continues = descriptor.options & CONTINUES != 0;
            // SAFETY: the kernel has handed this descriptor over, and it is taken once.
            let mut frame = unsafe { pool.lend(memory, descriptor.address, descriptor.length) };
            frame.set_continues(continues);
            frames.push(frame);
            bytes += u64::from(descriptor.length);
            if !continues {
                whole = ahead + 1;
                counters.rx_frames += 1;
                counters.rx_bytes += std::mem::take(&mut bytes);
            }
        }
        pool.unlend(frames, (parts - whole) as usize);
        if whole > 0 {
            self.rx.advance(whole);
            self.receiving -= whole;
        }
        whole
    }

    /// Supplies the fill ring from the pool, in batches; returns whether the kernel still has too
    /// few.
    #[inline]
    pub fn refill(&mut self, pool: &mut FramePool, counters: &mut LinkCounters) -> bool {
        let missing = self.sizes.receiving_max() - self.receiving;
        if missing < REFILL.min(self.sizes.receive / 4) {
            return false;
        }
        let wanted = missing.min(u32::try_from(pool.to_receive()).unwrap_or(u32::MAX));
        // There is always room: the fill ring can hold all receive chunks of a queue.
        let count = wanted.min(self.fill.room(wanted));
        for ahead in 0..count {
            let Some(chunk) = pool.take() else { break };
            self.fill.put(ahead, chunk.base());
        }
        if count > 0 {
            self.fill.advance(count);
            self.receiving += count;
            self.wake_receiver(counters);
        }
        count < missing
    }

    /// Calls the kernel if it has stopped polling the fill ring. It may stop just after a refill
    /// has checked, so the check must be repeated.
    pub fn wake_receiver(&self, counters: &mut LinkCounters) {
        if self.wakeup && self.fill.needs_wakeup() {
            // A refusal shows at the next check of the interface.
            let _ = self.kick_receiver(counters);
        }
    }

    /// Calls the kernel to receive; returns an error when it cannot.
    pub fn kick_receiver(&self, counters: &mut LinkCounters) -> io::Result<()> {
        counters.syscalls += 1;
        let (fd, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
        let null = std::ptr::null_mut();
        // SAFETY: nothing is read or written: the length is 0 and there is no address.
        let done = unsafe { libc::recvfrom(fd, null, 0, flags, null.cast(), null.cast()) };
        kick_outcome(done)
    }

    /// Returns the positions of the rings.
    pub fn seen(&self) -> super::watchdog::RingPositions {
        super::watchdog::RingPositions {
            fill: self.fill.pending(),
            receive: self.rx.pending(),
            receive_entries: self.rx.entries(),
            transmit: self.tx.pending(),
            transmit_taken: self.tx.taken(),
            completion: self.completion.pending(),
            completion_entries: self.completion.entries(),
        }
    }
}

/// The least number of chunks for a refill.
const REFILL: u32 = 32;

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the outcome of the system call that kicks a queue, from its return value `done`. Nothing
/// to do, or a request to call again, is not an error.
pub(super) fn kick_outcome(done: isize) -> io::Result<()> {
    if done >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(()),
        Some(libc::ENXIO | libc::ENODEV | libc::EBADF) => {
            Err(io::Error::new(io::ErrorKind::NotFound, "the interface is gone"))
        }
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdp::XdpLink;
    use crate::{Spec, frame::FrameLink, frame::FrameOptions};
    use millstream_testkit::netns::{PairOptions, VethPair};
    use std::time::Instant;

    /// In copy mode the kernel never asks to be called; a driver with zero-copy may, right after a
    /// refill.
    #[test]
    fn a_driver_that_waits_to_be_called_is_called_on_whichever_queue() {
        let Some(pair) = VethPair::new(PairOptions { mtu: 1500, queues: 2 }) else { return };
        let spec = Spec::parse("xdp:veth0").unwrap();
        let open = || XdpLink::open(&spec, &FrameOptions::default());
        let mut link = pair.right.run(open).unwrap();
        link.queues[1].fill.ask_for_wakeup();
        let (began, before) = (Instant::now(), link.counters().syscalls);
        loop {
            assert_eq!(link.receive(&mut Vec::new()).unwrap(), 0);
            // An idle link also checks its interface, 20 times a second.
            let asked = 2 + began.elapsed().as_millis() as u64 / 50;
            if link.counters().syscalls - before > 2 * asked {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(10), "nobody called");
        }
    }
}
