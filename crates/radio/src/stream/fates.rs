//! The states of recent packets, by their numbers.

/// The number of packets behind, and before, the next one whose state is stored.
pub(super) const HISTORY: u16 = 4096;

const SIZE: usize = 2 * HISTORY as usize;

/// The state of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketFate {
    /// Nothing is known of it, or no longer.
    Unknown,
    /// It arrived.
    Arrived,
    /// It is in the ledger as missing.
    Missing,
    /// It came damaged.
    Damaged,
}

/// The states of packets around the next one. Numbers wrap every 65 536 packets, so states further
/// away are dropped.
#[derive(Debug, Clone)]
pub(super) struct Fates(Box<[PacketFate; SIZE]>);

impl Default for Fates {
    fn default() -> Self {
        Self(Box::new([PacketFate::Unknown; SIZE]))
    }
}

impl Fates {
    /// Returns the state of packet `seq` when `next_seq` is the next one.
    pub fn get(&self, seq: u16, next_seq: u16) -> PacketFate {
        let age = next_seq.wrapping_sub(seq);
        let near = age <= HISTORY || age.wrapping_neg() < HISTORY;
        if near { self.0[slot(seq)] } else { PacketFate::Unknown }
    }

    /// Stores the state of a near packet, see [`Fates::get`].
    pub fn set(&mut self, seq: u16, next_seq: u16, fate: PacketFate) {
        let age = next_seq.wrapping_sub(seq);
        if age <= HISTORY || age.wrapping_neg() < HISTORY {
            self.0[slot(seq)] = fate;
        }
    }

    /// Stores `packets` packets from `next_seq` on as missing. Returns how many of them came
    /// damaged.
    pub fn miss(&mut self, next_seq: u16, packets: u16) -> u64 {
        let mut damaged = 0;
        for step in 0..packets {
            let seq = next_seq.wrapping_add(step);
            self.0[slot(seq.wrapping_add(HISTORY))] = PacketFate::Unknown;
            match &mut self.0[slot(seq)] {
                PacketFate::Damaged => damaged += 1,
                fate => *fate = PacketFate::Missing,
            }
        }
        damaged
    }

    /// Stores packet `next_seq` as arrived.
    pub fn arrive(&mut self, next_seq: u16) {
        self.0[slot(next_seq.wrapping_add(HISTORY))] = PacketFate::Unknown;
        self.0[slot(next_seq)] = PacketFate::Arrived;
    }

    /// Clears all states.
    pub fn clear(&mut self) {
        self.0.fill(PacketFate::Unknown);
    }
}

fn slot(seq: u16) -> usize {
    usize::from(seq) % SIZE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_of_packets_goes_round_and_forgets() {
        let mut fates = Fates::default();
        let mut next = 65_000u16;
        fates.set(next.wrapping_add(2), next, PacketFate::Damaged);
        assert_eq!(fates.miss(next, 4), 1);
        next = next.wrapping_add(4);
        for _ in 0..HISTORY - 3 {
            fates.arrive(next);
            next = next.wrapping_add(1);
        }
        assert_eq!(fates.get(65_001, next), PacketFate::Missing);
        assert_eq!(fates.get(65_002, next), PacketFate::Damaged);
        assert_eq!(fates.get(65_004, next), PacketFate::Arrived);
        assert_eq!(fates.get(65_000, next), PacketFate::Unknown, "one too old");
        for _ in 0..2 * HISTORY {
            fates.arrive(next);
            next = next.wrapping_add(1);
        }
        assert_eq!(fates.get(next.wrapping_add(5), next), PacketFate::Unknown);
        assert_eq!(fates.get(next.wrapping_sub(5), next), PacketFate::Arrived);
    }
}
