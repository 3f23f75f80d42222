//! Counters of any link: packets, bytes and packet lengths in both directions. Any thread can read
//! them while traffic flows.
//!
//! ```
//! use millstream_link::frame::{FrameLink, FrameOptions};
//! use millstream_link::{count, open_frames};
//! use std::time::Duration;
//!
//! let (mut link, counts) = count::frames(open_frames("null", &FrameOptions::default())?);
//! let before = counts.sent();
//! let mut frames = Vec::new();
//! link.reserve(&mut frames, 3);
//! frames.iter_mut().for_each(|frame| frame.set_len(1514));
//! link.transmit(&mut frames)?;
//! let rate = counts.sent().rate_since(&before, Duration::from_millis(1));
//! assert_eq!((rate.packets_hz, rate.bits_hz), (3000.0, 3.0 * 1514.0 * 8.0 * 1000.0));
//! assert_eq!(counts.sent().sizes().collect::<Vec<_>>(), [(1024..2048, 3)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod link;
mod port;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::frame::FrameLink;
use crate::port::Port;

/// Size classes: each twice as long as the one before, up to 64 KiB.
const CLASSES: usize = 18;

/// The counts of one direction at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirectionCounts {
    /// Frames of a frame link, datagrams of a port.
    pub packets: u64,
    /// Their bytes: whole frames, or payloads.
    pub bytes: u64,
    classes: [u64; CLASSES],
}

/// The rate of packets and bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketRate {
    /// Packets per second.
    pub packets_hz: f64,
    /// Bits per second.
    pub bits_hz: f64,
}

impl DirectionCounts {
    /// Returns the numbers of packets by length in bytes, without the empty classes.
    pub fn sizes(&self) -> impl Iterator<Item = (Range<usize>, u64)> {
        let classes = self.classes.into_iter().enumerate().filter(|(_, count)| *count > 0);
        classes.map(|(class, count)| (1 << class >> 1..1 << class, count))
    }

    /// Returns the rate between an earlier moment and this one.
    #[must_use]
    pub fn rate_since(&self, earlier: &Self, elapsed: Duration) -> PacketRate {
        let per_s = |count: u64| count as f64 / elapsed.as_secs_f64();
        PacketRate {
            packets_hz: per_s(self.packets.wrapping_sub(earlier.packets)),
            bits_hz: 8.0 * per_s(self.bytes.wrapping_sub(earlier.bytes)),
        }
    }
}

/// The counter of one direction; written by one thread.
#[derive(Debug, Default)]
struct DirectionCounter {
    packets: AtomicU64,
    bytes: AtomicU64,
    classes: [AtomicU64; CLASSES],
}

impl DirectionCounter {
    fn note(&self, bytes: usize) {
        // There is one writer, so nothing is lost between the load and the store.
        let add = |count: &AtomicU64, more: u64| {
            count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        };
        add(&self.packets, 1);
        add(&self.bytes, bytes as u64);
        let class = (usize::BITS - bytes.leading_zeros()) as usize;
        add(&self.classes[class.min(CLASSES - 1)], 1);
    }

    fn tally(&self) -> DirectionCounts {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DirectionCounts {
            packets: count(&self.packets),
            bytes: count(&self.bytes),
            classes: std::array::from_fn(|class| count(&self.classes[class])),
        }
    }
}

/// The counts of one link or port.
#[derive(Debug, Clone, Default)]
pub struct PortCounts {
    received: Arc<DirectionCounter>,
    sent: Arc<DirectionCounter>,
}

impl PortCounts {
    /// Returns the counts of received packets so far.
    #[must_use]
    pub fn received(&self) -> DirectionCounts {
        self.received.tally()
    }

    /// Returns the counts of sent packets so far.
    #[must_use]
    pub fn sent(&self) -> DirectionCounts {
        self.sent.tally()
    }
}

/// Counts the frames of a link.
#[must_use]
pub fn frames(inner: Box<dyn FrameLink>) -> (Box<dyn FrameLink>, PortCounts) {
    let counts = PortCounts::default();
    (Box::new(link::CountLink { inner, counts: counts.clone(), lengths: Vec::new() }), counts)
}

/// Counts the datagrams of a port.
#[must_use]
pub fn port(port: Port) -> (Port, PortCounts) {
    let counts = PortCounts::default();
    let Port { local, rx, tx } = port;
    let rx = Box::new(port::CountRx { inner: rx, way: Arc::clone(&counts.received) });
    let tx = Box::new(port::CountTx {
        inner: tx,
        way: Arc::clone(&counts.sent),
        loan: Default::default(),
    });
    (Port { local, rx, tx }, counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameOptions;
    use crate::port::PortOptions;
    use std::net::{Ipv4Addr, SocketAddrV4};

    #[test]
    fn sizes_fall_into_the_class_that_holds_them() {
        let way = DirectionCounter::default();
        [0, 1, 63, 64, 65, 127, 128, 65_535, 65_536, 1 << 20].into_iter().for_each(|b| way.note(b));
        let sizes: Vec<_> = way.tally().sizes().collect();
        let wanted = [
            (0..1, 1),
            (1..2, 1),
            (32..64, 1),
            (64..128, 3),
            (128..256, 1),
            (32_768..65_536, 1),
            (65_536..131_072, 2),
        ];
        assert_eq!(sizes, wanted, "longer ones count with the longest");
    }

    #[test]
    fn frames_count_once_whatever_their_parts_and_only_if_they_were_taken() {
        let text = "loop:mtu=1500,part_bytes=512,full=wait";
        let sizes = FrameOptions { receive_frames: 4, transmit_frames: 8 };
        let (mut link, counts) = frames(crate::open_frames(text, &sizes).unwrap());
        let mut frames = Vec::new();
        link.reserve(&mut frames, 6);
        for (index, frame) in frames.iter_mut().enumerate() {
            frame.set_len(500);
            frame.set_continues(index % 2 == 0);
        }
        assert_eq!(link.transmit(&mut frames).unwrap(), 4);
        assert_eq!((counts.sent().packets, counts.sent().bytes), (2, 2000));
        let mut got = Vec::new();
        link.receive(&mut got).unwrap();
        assert_eq!(counts.received(), counts.sent());
        frames.append(&mut got);
        link.give_back(&mut frames);
        assert_eq!(link.census().lent, 0);
    }

    #[test]
    fn datagrams_of_a_train_count_one_by_one() {
        let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let opened = crate::open("udp", local, &PortOptions::default()).unwrap();
        let (mut port, counts) = port(opened);
        port.tx.send_train(&[0; 250], 100, port.local).unwrap();
        while counts.received().packets < 3 {
            assert_ne!(port.rx.recv_batch(Duration::from_secs(5)).unwrap(), 0);
        }
        assert_eq!(counts.received(), counts.sent());
        assert_eq!(counts.sent().bytes, 250);
    }
}
