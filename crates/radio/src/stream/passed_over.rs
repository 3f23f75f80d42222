//! The packets that come while a stream is set up, and are passed over.

use millstream_wire::chdr;

/// The latest data packets that are searched for a second copy.
const REMEMBERED: usize = 64;

/// Packets of a stream that came during another wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SkippedPackets {
    /// The number of packets, without second copies.
    pub packets: u64,
    /// Their length in flow control, bytes.
    pub flow_bytes: u64,
    /// Samples in them, without second copies.
    pub samples: u64,
    /// Number and time of the newest packets, and their count.
    recent: [Option<(u16, Option<u64>)>; REMEMBERED],
    data: usize,
}

impl Default for SkippedPackets {
    fn default() -> Self {
        let recent = [None; REMEMBERED];
        Self { packets: 0, flow_bytes: 0, samples: 0, recent, data: 0 }
    }
}

impl SkippedPackets {
    /// Counts a packet.
    pub fn note(&mut self, packet: &chdr::Packet<'_>) {
        if let Ok(data) = chdr::DataRepr::parse(packet) {
            let identity = Some((data.seq, data.timestamp));
            if self.recent.contains(&identity) {
                // The device does not count copies.
                return;
            }
            self.recent[self.data % REMEMBERED] = identity;
            self.data += 1;
            self.samples += (data.payload_len / chdr::SC16_LEN) as u64;
        }
        self.packets += 1;
        self.flow_bytes += packet.flow_len() as u64;
    }
}
