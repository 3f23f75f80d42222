//! The packets that come while a stream is set up, and are passed over.

use millstream_wire::chdr;

use super::arrival::Arrival;

/// The latest data packets that are searched for a second copy.
const REMEMBERED: usize = 64;

/// The most packets that are passed over behind a new set-up, because they are older. A wrong time
/// in one packet of the set-up must not cost all that follow.
const DELAYED_OVER_MAX: u16 = 64;

/// Packets of a stream that came during another wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SkippedPackets {
    /// The number of packets, without second copies.
    pub packets: u64,
    /// Their length in flow control, bytes.
    pub flow_bytes: u64,
    /// Samples in them, without second copies.
    pub samples: u64,
    /// Number and time of the packets that came last, and their count.
    recent: [Option<(u16, Option<u64>)>; REMEMBERED],
    data: usize,
    /// Number and time of the packet with the latest time.
    newest: Option<(u16, u64)>,
    /// Packets that came behind the set-up.
    delayed: u16,
}

impl Default for SkippedPackets {
    fn default() -> Self {
        let recent = [None; REMEMBERED];
        Self { packets: 0, flow_bytes: 0, samples: 0, recent, data: 0, newest: None, delayed: 0 }
    }
}

impl SkippedPackets {
    /// Counts a packet.
    pub fn note(&mut self, packet: &chdr::Packet<'_>) {
        if let Ok(data) = chdr::DataRepr::parse(packet)
            && !self.note_data(&Arrival::of(&data))
        {
            // The device does not count copies.
            return;
        }
        self.packets += 1;
        self.flow_bytes += packet.flow_len() as u64;
    }

    /// Counts the samples of a data packet. Returns false for a second copy.
    pub(super) fn note_data(&mut self, arrival: &Arrival) -> bool {
        let identity = Some((arrival.seq, arrival.ticks));
        if self.recent.contains(&identity) {
            return false;
        }
        self.recent[self.data % REMEMBERED] = identity;
        self.data += 1;
        self.samples += arrival.samples;
        let later = |newest: u64, ticks: u64| ticks.wrapping_sub(newest) < 1 << 63;
        if let Some(ticks) = arrival.ticks
            && self.newest.is_none_or(|(_, newest)| later(newest, ticks))
        {
            self.newest = Some((arrival.seq, ticks));
        }
        true
    }

    /// Returns whether a packet behind the set-up is older than one of these: it was delayed, and
    /// is passed over like them.
    pub(super) fn takes(&mut self, arrival: &Arrival) -> bool {
        let is_older = self.newest.zip(arrival.ticks).is_some_and(|((seq, newest), ticks)| {
            let before = seq.wrapping_sub(arrival.seq) < 0x8000;
            before && newest.wrapping_sub(ticks) < 1 << 63
        });
        let takes = is_older && self.delayed < DELAYED_OVER_MAX;
        self.delayed += u16::from(takes);
        takes
    }

    /// Returns the number behind that of the newest packet.
    pub(super) fn next_seq(&self) -> u16 {
        self.newest.map_or(0, |(seq, _)| seq.wrapping_add(1))
    }

    /// Takes packets and bytes in flow control: another count of them begins.
    pub fn take_flow(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.packets), std::mem::take(&mut self.flow_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_time_in_a_set_up_does_not_cost_all_that_follow() {
        let arrival = |seq, ticks| Arrival { seq, ticks: Some(ticks), samples: 100 };
        let mut skipped = SkippedPackets::default();
        assert!(skipped.note_data(&arrival(0x7fff, 1 << 62)));
        let taken = (0..1000).filter(|seq| skipped.takes(&arrival(*seq, 1000))).count();
        assert_eq!(taken, usize::from(DELAYED_OVER_MAX));
    }
}
