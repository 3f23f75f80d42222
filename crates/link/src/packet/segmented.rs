//! Trains: when a sender on the same machine leaves segmentation to "hardware" (UDP GSO over a
//! veth pair), the kernel shows many datagrams as one frame. They are split here, into the frames
//! that a wire would have carried.

use millstream_wire::checksum::Sum;
use millstream_wire::{ethernet, ipv4, udp};

use crate::buffers::Buffers;
use crate::frame::{Frame, FrameMemory};

use super::ring::VIRTIO_BYTES;

/// `VIRTIO_NET_HDR_GSO_UDP_L4` of `linux/virtio_net.h`.
const UDP_SEGMENTS: u8 = 5;

/// A train that is being split.
#[derive(Debug)]
pub(super) struct SegmentedBatch {
    /// The frame of the whole batch.
    pub frame: Frame,
    headers: usize,
    segment: usize,
    /// The start of the next segment, and its number.
    at: usize,
    index: u16,
}

impl SegmentedBatch {
    /// Examines a frame longer than the interface's can be, and the `virtio_net_hdr` in front of it
    /// (native byte order). Returns the frame if it is not a train of datagrams.
    pub fn new(
        frame: Frame,
        memory: &FrameMemory,
        note: [u8; VIRTIO_BYTES],
    ) -> Result<Self, Frame> {
        let bytes = memory.bytes(&frame);
        let segment = usize::from(u16::from_ne_bytes([note[4], note[5]]));
        let Some(headers) = headers(bytes) else { return Err(frame) };
        if note[1] != UDP_SEGMENTS || segment == 0 || bytes.len() <= headers {
            return Err(frame);
        }
        Ok(Self { frame, headers, segment, at: headers, index: 0 })
    }

    /// Returns the length of its longest frame, bytes.
    pub fn frame_bytes(&self) -> usize {
        self.headers + self.segment
    }

    /// Whether all segments have been taken.
    pub fn is_over(&self) -> bool {
        self.at >= self.frame.len()
    }

    /// Returns the next segment as a separate frame; `None` without a free buffer.
    pub fn next(&mut self, memory: &FrameMemory, buffers: &mut Buffers) -> Option<Frame> {
        let mut frame = buffers.take()?;
        let whole = memory.bytes(&self.frame);
        let end = (self.at + self.segment).min(whole.len());
        frame.set_len(self.headers + end - self.at);
        let bytes = memory.bytes_mut(&mut frame);
        bytes[..self.headers].copy_from_slice(&whole[..self.headers]);
        bytes[self.headers..].copy_from_slice(&whole[self.at..end]);
        address(bytes, self.headers, self.index);
        (self.at, self.index) = (end, self.index.wrapping_add(1));
        frame.note(self.frame.vlan(), true);
        Some(frame)
    }
}

/// Returns the bytes before the payload of an untagged IPv4 UDP datagram.
fn headers(bytes: &[u8]) -> Option<usize> {
    let frame = ethernet::Frame::parse(bytes).ok()?;
    let untagged = frame.tag().is_none() && frame.ether_type() == ethernet::ether_type::IPV4;
    let ip = ipv4::Header::parse(bytes.get(ethernet::HEADER_LEN..)?).ok()?;
    let is_udp = untagged && ip.protocol() == ipv4::protocol::UDP;
    is_udp.then_some(ethernet::HEADER_LEN + ip.header_len() + udp::HEADER_LEN)
}

/// Adapts the copied headers to this segment: lengths, identification, header checksum (RFC 791).
/// The UDP checksum is left out (RFC 768), as there was none yet.
fn address(frame: &mut [u8], headers: usize, index: u16) {
    let (ip_at, udp_at) = (ethernet::HEADER_LEN, headers - udp::HEADER_LEN);
    let [ip_bytes, udp_bytes] = [ip_at, udp_at].map(|at| (frame.len() - at) as u16);
    let (ip, rest) = frame[ip_at..].split_at_mut(udp_at - ip_at);
    ip[2..4].copy_from_slice(&ip_bytes.to_be_bytes());
    let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(index);
    ip[4..6].copy_from_slice(&id.to_be_bytes());
    ip[10..12].fill(0);
    let sum = Sum::new().bytes(ip).checksum();
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    rest[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
    rest[6..8].fill(0);
}

/// Takes any bytes as a `virtio_net_hdr` and a frame behind it, for a fuzz target and a test. If
/// they are a train, its frames contain its bytes, each once.
#[cfg(any(test, fuzzing))]
pub fn exercise(bytes: &[u8]) {
    const FRAME_MAX: usize = 1 << 16;
    const BUFFER: u32 = 2048;
    let Some((note, bytes)) = bytes.split_first_chunk::<VIRTIO_BYTES>() else { return };
    let bytes = &bytes[..bytes.len().min(FRAME_MAX)];
    let memory = FrameMemory::anonymous(FRAME_MAX + BUFFER as usize, rustix::mm::MapFlags::empty());
    let memory = std::sync::Arc::new(memory.expect("there is memory"));
    // SAFETY: nothing else uses this memory; the buffer lies behind the frame.
    let (mut frame, mut buffers) = unsafe {
        let frame = Frame::new(&memory, 0, bytes.len() as u32, FRAME_MAX as u32, 0);
        (frame, Buffers::new(std::sync::Arc::clone(&memory), FRAME_MAX as u64, BUFFER, 1))
    };
    memory.bytes_mut(&mut frame).copy_from_slice(bytes);
    let Ok(mut train) = SegmentedBatch::new(frame, &memory, *note) else { return };
    if train.frame_bytes() > BUFFER as usize {
        // The link leaves such a frame unchanged.
        return;
    }
    let mut payload = Vec::new();
    while !train.is_over() {
        let part = train.next(&memory, &mut buffers).expect("the buffer is free");
        assert!(part.len() > train.headers && part.len() <= train.frame_bytes());
        let part_bytes = memory.bytes(&part);
        assert_eq!(part_bytes[..ethernet::HEADER_LEN], bytes[..ethernet::HEADER_LEN]);
        payload.extend_from_slice(&part_bytes[train.headers..]);
        buffers.put(part);
    }
    assert_eq!(payload, bytes[train.headers..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustix::mm::MapFlags;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn no_bytes_do_any_harm(
            kind in prop_oneof![Just(UDP_SEGMENTS), any::<u8>()],
            segment in 0..2100u16,
            version in prop_oneof![Just(0x45u8), any::<u8>()],
            rest in proptest::collection::vec(any::<u8>(), 0..4000),
        ) {
            let mut bytes = note(kind, segment).to_vec();
            let frame = bytes.len();
            bytes.extend(rest);
            for (at, byte) in [(12, 8), (13, 0), (14, version), (23, 17)] {
                if let Some(place) = bytes.get_mut(frame + at) {
                    *place = byte;
                }
            }
            exercise(&bytes);
        }
    }

    fn note(kind: u8, segment: u16) -> [u8; VIRTIO_BYTES] {
        let mut note = [0; VIRTIO_BYTES];
        note[1] = kind;
        note[4..6].copy_from_slice(&segment.to_ne_bytes());
        note
    }

    /// Returns a memory with a super-frame of `payload` bytes at its beginning, and buffers behind
    /// it.
    fn setup(payload: usize) -> (Arc<FrameMemory>, Frame, Buffers) {
        let memory = Arc::new(FrameMemory::anonymous(1 << 17, MapFlags::empty()).unwrap());
        let length = (42 + payload) as u32;
        // SAFETY: nothing else uses this memory; the buffers lie behind the frame.
        let (mut frame, buffers) = unsafe {
            let frame = Frame::new(&memory, 0, length, length, 0);
            (frame, Buffers::new(Arc::clone(&memory), 1 << 16, 2048, 4))
        };
        let bytes = memory.bytes_mut(&mut frame);
        bytes[12] = 8;
        bytes[14..24].copy_from_slice(&[0x45, 0, 0xff, 0xff, 0xff, 0xff, 0x40, 0, 64, 17]);
        bytes[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        bytes[42..].iter_mut().zip(0..).for_each(|(byte, at): (_, usize)| *byte = at as u8);
        (memory, frame, buffers)
    }

    #[test]
    fn a_train_becomes_the_frames_that_a_wire_would_have_carried() {
        let (memory, frame, mut buffers) = setup(2500);
        let mut train = SegmentedBatch::new(frame, &memory, note(UDP_SEGMENTS, 1000)).unwrap();
        assert_eq!(train.frame_bytes(), 1042);
        let mut payload = Vec::new();
        for (index, length) in [1042, 1042, 542].into_iter().enumerate() {
            assert!(!train.is_over());
            let frame = train.next(&memory, &mut buffers).unwrap();
            let bytes = memory.bytes(&frame);
            assert_eq!(bytes.len(), length);
            assert_eq!(bytes[16..18], ((length - 14) as u16).to_be_bytes());
            assert_eq!(bytes[18..20], (0xffff_u16.wrapping_add(index as u16)).to_be_bytes());
            assert_eq!(bytes[38..40], ((length - 34) as u16).to_be_bytes());
            assert_eq!(bytes[40..42], [0, 0]);
            let sum: u32 = bytes[14..34]
                .chunks(2)
                .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
                .sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "header checksum");
            assert!(frame.checksum_trusted());
            payload.extend_from_slice(&bytes[42..]);
        }
        assert!(train.is_over());
        assert!(payload.iter().zip(0..).all(|(byte, at): (_, usize)| *byte == at as u8));
    }

    #[test]
    fn it_waits_for_buffers() {
        let (memory, frame, mut buffers) = setup(5000);
        let mut train = SegmentedBatch::new(frame, &memory, note(UDP_SEGMENTS, 1000)).unwrap();
        let mut frames: Vec<_> = (0..4).map(|_| train.next(&memory, &mut buffers)).collect();
        assert!(train.next(&memory, &mut buffers).is_none() && !train.is_over());
        buffers.put(frames.pop().flatten().unwrap());
        assert!(train.next(&memory, &mut buffers).is_some() && train.is_over());
    }

    #[test]
    fn what_is_no_train_of_datagrams_is_refused() {
        for (kind, segment, at, byte) in [
            (1, 1000, 0, 0),
            (UDP_SEGMENTS, 0, 0, 0),
            (UDP_SEGMENTS, 1000, 12, 9),
            (UDP_SEGMENTS, 1000, 14, 0x44),
            (UDP_SEGMENTS, 1000, 23, 6),
        ] {
            let (memory, mut frame, _) = setup(2500);
            memory.bytes_mut(&mut frame)[at] = byte;
            assert!(SegmentedBatch::new(frame, &memory, note(kind, segment)).is_err());
        }
    }
}
