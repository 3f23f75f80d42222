//! The choice of the transmit queue of a frame: the frames of one flow use one queue, in order.

use millstream_wire::ethernet::{self, ether_type};
use millstream_wire::ipv4::{self, protocol};
use millstream_wire::udp;

use super::pool::FramePool;
use super::queue::Queue;
use crate::frame::{Frame, FrameMemory, LinkCounters};

/// Frames to transmit on the first queues of a link.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The queue of each examined part.
    chosen: Vec<u8>,
    /// Free descriptors of each queue.
    rooms: Vec<usize>,
}

impl Outgoing {
    /// Creates it for `queues` queues and batches of `batch` parts.
    pub fn new(queues: usize, batch: usize) -> Self {
        Self { chosen: Vec::with_capacity(batch), rooms: vec![0; queues] }
    }

    /// Returns the number of transmit queues.
    pub fn queues(&self) -> usize {
        self.rooms.len()
    }

    /// Queues parts of whole frames off the front of `frames`, as far as each one's queue has room;
    /// returns their number.
    pub fn transmit(
        &mut self,
        queues: &mut [Queue],
        memory: &FrameMemory,
        pool: &mut FramePool,
        frames: &mut Vec<Frame>,
        counters: &mut LinkCounters,
    ) -> usize {
        let count = self.queues();
        if let [queue] = &mut queues[..count] {
            let mut fit = frames.len().min(queue.room(frames.len()));
            // A frame that does not fit as a whole waits.
            while fit > 0 && frames[fit - 1].continues() {
                fit -= 1;
            }
            frames.drain(..fit).for_each(|frame| queue.stage(memory, pool, frame, counters));
            queue.commit();
            return fit;
        }
        let want = frames.len();
        for (room, queue) in self.rooms.iter_mut().zip(&mut *queues) {
            *room = queue.room(want);
        }
        self.choose(memory, frames);
        for (frame, queue) in frames.drain(..self.chosen.len()).zip(&self.chosen) {
            queues[usize::from(*queue)].stage(memory, pool, frame, counters);
        }
        queues[..count].iter_mut().for_each(Queue::commit);
        self.chosen.len()
    }

    /// Determines the queue of each part, up to the first frame for which there is no room.
    fn choose(&mut self, memory: &FrameMemory, frames: &[Frame]) {
        let count = self.rooms.len() as u64;
        self.chosen.clear();
        while let Some(first) = frames.get(self.chosen.len()) {
            let rest = &frames[self.chosen.len()..];
            let last = rest.iter().position(|part| !part.continues());
            let Some(parts) = last.map(|last| last + 1) else { return };
            let queue = ((u64::from(flow(memory.bytes(first))) * count) >> 32) as u8;
            let Some(left) = self.rooms[usize::from(queue)].checked_sub(parts) else { return };
            self.rooms[usize::from(queue)] = left;
            self.chosen.extend(std::iter::repeat_n(queue, parts));
        }
    }
}

/// Returns a number that is the same for all frames of a flow: by addresses and, for whole UDP
/// datagrams, ports. 0, which stands for the first queue, if the frame is not IPv4.
fn flow(frame: &[u8]) -> u32 {
    let Ok(frame) = ethernet::Frame::parse(frame) else { return 0 };
    if frame.ether_type() != ether_type::IPV4 {
        return 0;
    }
    let Ok(packet) = ipv4::Header::parse(frame.payload()) else { return 0 };
    let addresses = u32::from(packet.source()).rotate_left(16) ^ u32::from(packet.destination());
    let ports = match packet.protocol() {
        protocol::UDP if !packet.is_fragment() => {
            let bytes = frame.payload().get(packet.header_len()..).unwrap_or_default();
            udp::Header::parse(bytes).map_or(0, |header| {
                u32::from(header.source_port()) << 16 | u32::from(header.destination_port())
            })
        }
        _ => 0,
    };
    // Fibonacci hashing of both words (Knuth, volume 3, 6.4): the upper bits are well mixed.
    let word = u64::from(addresses) << 32 | u64::from(ports);
    (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a UDP frame from one port to another, with `payload` bytes of payload.
    fn frame(from: u16, to: u16, payload: usize) -> Vec<u8> {
        let mut bytes = vec![0; 42 + payload];
        bytes[12..14].copy_from_slice(&[8, 0]);
        let length = ((28 + payload) as u16).to_be_bytes();
        bytes[14..24].copy_from_slice(&[0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, 17]);
        bytes[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        bytes[34..36].copy_from_slice(&from.to_be_bytes());
        bytes[36..38].copy_from_slice(&to.to_be_bytes());
        bytes[38..40].copy_from_slice(&((8 + payload) as u16).to_be_bytes());
        bytes
    }

    #[test]
    fn a_flow_is_one_number_and_flows_are_spread() {
        assert_eq!(flow(&frame(1, 2, 10)), flow(&frame(1, 2, 1000)));
        assert_eq!(flow(&frame(1, 2, 8000)[..1800]), flow(&frame(1, 2, 10)), "its first part");
        let mut counts = [0; 4];
        for port in 0..1000 {
            counts[(flow(&frame(49_152 + port, 5000, 0)) >> 30) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (150..350).contains(count)), "{counts:?}");
    }

    #[test]
    fn what_is_no_datagram_is_one_flow_or_that_of_its_addresses() {
        for length in 0..42 {
            let short = &frame(7, 9, 0)[..length];
            assert!(flow(short) == 0 || flow(short) == flow(&frame(0, 0, 0)), "{length} bytes");
        }
        let mut fragment = frame(7, 9, 100);
        fragment[20] = 0x20;
        assert_eq!(flow(&fragment), flow(&frame(0, 0, 0)));
    }
}
