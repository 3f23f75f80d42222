//! The tap of a link's thread for a capture: it copies packets into a ring, or counts them.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use millstream_ring::{Reader, RingOptions, Writer, ring};

use crate::pcapng::{self, FrameDirection, FrameStamp};

/// The most bytes of packets that wait for the disk.
const BUFFER_BYTES: usize = 16 << 20;

/// Counts for the file's statistics.
#[derive(Debug, Default)]
pub(super) struct CaptureCounts {
    pub received: AtomicU64,
    pub lost: AtomicU64,
    pub uncaptured: AtomicU64,
    /// The reason why the file ended before its link.
    pub failure: OnceLock<io::Error>,
}

impl CaptureCounts {
    /// Returns the problem of the file, for people.
    pub fn explain(&self, path: &str) -> Option<String> {
        let (error, missing) = (self.failure.get()?, self.uncaptured.load(Ordering::Relaxed));
        Some(format!(
            "the capture {path} is not complete: {missing} packets are missing ({error}). Free \
             some space, or capture to another disk"
        ))
    }
}

/// One thread's writer into a capture.
pub(super) struct CaptureWriter {
    ring: Writer<u8>,
    /// Bytes written that are not visible to the file yet.
    staged: usize,
    /// The same for packets for which there was no room.
    missed: u64,
    counts: Arc<CaptureCounts>,
}

/// The position of a [`CaptureWriter`] after a packet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CapturePosition {
    staged: usize,
    missed: u64,
}

impl CaptureWriter {
    /// Creates a tap, and the end from which the file reads.
    pub fn new(counts: &Arc<CaptureCounts>) -> io::Result<(Self, Reader<u8>)> {
        let made = ring(&RingOptions::items(BUFFER_BYTES)).map_err(io::Error::other)?;
        let (ring, mut readers) = made;
        let reader = readers.pop().ok_or(io::ErrorKind::Other)?;
        Ok((Self { ring, staged: 0, missed: 0, counts: Arc::clone(counts) }, reader))
    }

    /// Copies a packet of `bytes` bytes, given in pieces, unless the disk is too far behind.
    pub fn stage<'a>(
        &mut self,
        at_ns: u64,
        direction: FrameDirection,
        bytes: usize,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) -> CapturePosition {
        let room = &mut self.ring.slice_mut()[self.staged..];
        let total = pcapng::packet_bytes(bytes);
        if total <= room.len() {
            let of = FrameStamp { interface: 0, at_ns, direction, whole_bytes: bytes };
            pcapng::packet(room, of, bytes, pieces);
            self.staged += total;
        } else {
            self.missed += 1;
        }
        CapturePosition { staged: self.staged, missed: self.missed }
    }

    /// Publishes the staged packets up to a mark to the file, and discards the rest.
    pub fn commit(&mut self, up_to: CapturePosition) {
        self.ring.produce(up_to.staged);
        if up_to.missed > 0 {
            self.counts.uncaptured.fetch_add(up_to.missed, Ordering::Relaxed);
        }
        (self.staged, self.missed) = (0, 0);
    }
}
