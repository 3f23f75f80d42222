//! The layout of the frame memory: chunk size by MTU, entries of the rings, memory.

use super::options::XdpOptions;
use super::pool::{Geometry, HEADROOM};
use super::queue::Sizes;
use crate::frame::{ETHERNET_BYTES_MAX, FrameOptions};

/// The largest MTU at which drivers accept a program that cannot handle parts: a page less the
/// space that they reserve before and behind the frame. Most drivers support up to 3498 to 3506
/// (ERANGE or EINVAL above).
pub const SINGLE_BUFFER_MTU_MAX: usize = 3498;

/// The most chunks to receive into, over all queues.
const RECEIVE_CHUNKS_MAX: u32 = 1 << 16;
/// The default size of the chunks of a full receive ring, bytes. The kernel takes chunks in the
/// order in which it got them, so all of them are used in rotation: 16 MB instead cost a third of
/// the throughput of frames of 1514 and 8042 bytes.
const RECEIVE_BYTES_MAX: u32 = 8 << 20;
const HUGE_PAGE_BYTES: usize = 2 << 20;
const PAGE_BYTES: usize = 4096;

/// The memory layout of one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UmemLayout {
    pub geometry: Geometry,
    /// Frames may come in several chunks.
    pub parts: bool,
    /// Chunks of the longest frame.
    pub parts_each: usize,
    /// Entries of the receive ring of each queue: the requested number of frames, as far as
    /// [`RECEIVE_BYTES_MAX`] allows. That many frames can wait only if they are not in parts.
    pub receive: u32,
    /// Chunks besides those of the receive ring, for frames that the user holds: together the
    /// requested number of frames. Those given back last are used first, so they cost nothing.
    kept: u32,
    /// Entries of the transmit and completion rings.
    pub transmit: u32,
    queues: u32,
    /// The number of these, the first ones, that transmit.
    transmit_queues: u32,
}

impl UmemLayout {
    pub fn new(options: &XdpOptions, mtu: usize, queues: usize, sizes: &FrameOptions) -> Self {
        let frame = mtu + ETHERNET_BYTES_MAX;
        let small = frame <= (2048 - HEADROOM) as usize;
        let chunk = options.chunk.unwrap_or(if small { 2048 } else { 4096 });
        let geometry = Geometry { chunk, unaligned: options.unaligned };
        let parts_each = frame.div_ceil(geometry.part_bytes() as usize);
        let queues = queues as u32;
        let entries = |chunks: usize| {
            chunks.clamp(64, RECEIVE_CHUNKS_MAX as usize).next_power_of_two() as u32
        };
        let most = (RECEIVE_CHUNKS_MAX / queues.next_power_of_two()).max(64);
        let wanted = entries(options.buffers.unwrap_or(sizes.receive_frames)).min(most);
        let hot = RECEIVE_BYTES_MAX / chunk.next_power_of_two();
        let receive = if options.buffers.is_some() { wanted } else { wanted.min(hot) };
        Self {
            geometry,
            parts: parts_each > 1 || mtu > SINGLE_BUFFER_MTU_MAX,
            parts_each,
            receive,
            kept: wanted - receive,
            transmit: entries(sizes.transmit_frames),
            queues,
            transmit_queues: options.tx_queues as u32,
        }
    }

    /// Returns the chunks of each queue beyond the receive ring.
    fn spare(&self) -> u32 {
        (self.receive / 4).max(32)
    }

    /// Returns the receive chunks of each queue, including those that the user holds.
    pub fn receiving(&self) -> usize {
        (self.receive + self.kept) as usize
    }

    /// Returns the chunks to transmit from.
    pub fn transmitting(&self) -> usize {
        (self.transmit * self.transmit_queues) as usize
    }

    /// Returns the number of all chunks.
    pub fn chunks(&self) -> usize {
        (self.receiving() + self.spare() as usize) * self.queues as usize + self.transmitting()
    }

    /// Returns the size of the frame memory, bytes in whole pages.
    pub fn bytes(&self, huge: bool) -> usize {
        let page = if huge { HUGE_PAGE_BYTES } else { PAGE_BYTES };
        (self.chunks() * self.geometry.chunk as usize).next_multiple_of(page)
    }

    /// Halves the rings until the frame memory fits into `bytes`; `None` if the rest would be too
    /// small to be useful.
    pub fn fit(mut self, bytes: usize) -> Option<Self> {
        const RECEIVE_MIN: u32 = 512;
        const TRANSMIT_MIN: u32 = 128;
        while self.bytes(false) > bytes {
            if self.transmit > TRANSMIT_MIN && self.transmit >= self.receive {
                self.transmit /= 2;
            } else if self.kept > 0 {
                self.kept = 0;
            } else {
                self.receive /= 2;
            }
            if self.receive * self.queues < RECEIVE_MIN {
                return None;
            }
        }
        Some(self)
    }

    /// Returns the entries of the rings of the queue at `index`.
    pub fn sizes(&self, index: usize) -> Sizes {
        let transmits = index < self.transmit_queues as usize;
        let transmit = if transmits { self.transmit } else { 2 };
        Sizes { receive: self.receive, spare: self.spare(), transmit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    fn plan(text: &str, mtu: usize, queues: usize) -> UmemLayout {
        let options = XdpOptions::from_spec(&Spec::parse(text).unwrap()).unwrap();
        let sizes = FrameOptions { receive_frames: 1000, transmit_frames: 100 };
        UmemLayout::new(&options, mtu, queues, &sizes)
    }

    #[test]
    fn the_mtu_decides_on_chunks_and_parts() {
        let shape = |mtu| {
            let plan = plan("xdp:veth0", mtu, 1);
            (plan.geometry.chunk, plan.parts, plan.parts_each)
        };
        assert_eq!(shape(1500), (2048, false, 1));
        assert_eq!(shape(1774), (2048, false, 1));
        assert_eq!(shape(1775), (4096, false, 1));
        assert_eq!(shape(3498), (4096, false, 1));
        assert_eq!(shape(3499), (4096, true, 1));
        assert_eq!(shape(9000), (4096, true, 3));
        let small = plan("xdp:veth0,chunk=2048", 3400, 1);
        assert_eq!((small.parts, small.parts_each), (true, 2));
    }

    #[test]
    fn chunks_that_take_turns_stay_in_the_caches_unless_more_are_asked_for() {
        let plan = |text: &str, mtu| {
            let options = XdpOptions::from_spec(&Spec::parse(text).unwrap()).unwrap();
            let sizes = FrameOptions { receive_frames: 16_384, transmit_frames: 100 };
            let plan = UmemLayout::new(&options, mtu, 1, &sizes);
            (plan.receive, plan.receiving())
        };
        assert_eq!(plan("xdp:veth0", 1500), (4096, 16_384));
        assert_eq!(plan("xdp:veth0", 9000), (2048, 16_384));
        assert_eq!(plan("xdp:veth0,chunk=3008,unaligned=on", 1500), (2048, 16_384));
        assert_eq!(plan("xdp:veth0,buffers=10000", 9000), (16_384, 16_384));
        assert_eq!(plan("xdp:veth0,buffers=500", 1500), (512, 512));
    }

    #[test]
    fn a_plan_is_halved_until_it_fits_or_is_of_no_use() {
        let jumbo = plan("xdp:veth0", 9000, 1);
        assert_eq!((jumbo.receive, jumbo.transmit), (1024, 128));
        let fitted = jumbo.fit(4 << 20).unwrap();
        assert!(fitted.bytes(false) <= 4 << 20);
        assert_eq!((fitted.receive, fitted.transmit), (512, 128));
        assert_eq!(jumbo.fit(2 << 20), None, "256 chunks would be left");
        assert_eq!(jumbo.fit(64 << 20), Some(jumbo));
    }

    #[test]
    fn rings_are_powers_of_two_of_chunks() {
        let one = plan("xdp:veth0", 1500, 1);
        assert_eq!((one.receive, one.transmit, one.chunks()), (1024, 128, 1408));
        let jumbo = plan("xdp:veth0", 9000, 4);
        assert_eq!((jumbo.receive, jumbo.transmit, jumbo.chunks()), (1024, 128, 5248));
        assert_eq!(plan("xdp:veth0,tx_queues=3", 9000, 4).chunks(), 5248 + 2 * 128);
        assert_eq!(plan("xdp:veth0", 9000, 128).receive, 512);
        assert_eq!(jumbo.bytes(false) % PAGE_BYTES, 0);
        assert_eq!(jumbo.bytes(true) % HUGE_PAGE_BYTES, 0);
        assert_eq!(plan("xdp:veth0,chunk=3008,unaligned=on", 1500, 1).bytes(false) % 4096, 0);
    }
}
