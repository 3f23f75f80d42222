//! Packets that came before their turn: a network may change the order of a few.

/// Packets that wait for an earlier one at most. More, and that one is given up.
pub(super) const WINDOW: usize = 4;

/// Copies of packets whose turn has not come.
#[derive(Debug)]
pub(super) struct Aside {
    bytes: Box<[u8]>,
    frame_bytes: usize,
    waiting: [Option<Waiting>; WINDOW],
    count: usize,
    /// What they wait for does not come: they go on without it.
    pub given_up: bool,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    seq: u16,
    length: usize,
    flow_bytes: usize,
}

impl Aside {
    /// Room for packets of up to `frame_bytes`.
    pub fn new(frame_bytes: usize) -> Self {
        let bytes = vec![0; WINDOW * frame_bytes].into_boxed_slice();
        Self { bytes, frame_bytes, waiting: [None; WINDOW], count: 0, given_up: false }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there is room for a packet that long.
    pub fn takes(&self, packet: &[u8]) -> bool {
        packet.len() <= self.frame_bytes
    }

    /// What those that wait count in flow control: packets and bytes.
    pub fn flow(&self) -> (u64, u64) {
        let bytes = self.waiting.iter().flatten().map(|waiting| waiting.flow_bytes as u64).sum();
        (self.count as u64, bytes)
    }

    /// Keeps a copy of a packet that there is room for, and that counts as `flow_bytes`; false for
    /// one that waits already. The last free place makes them all go.
    pub fn put(&mut self, seq: u16, packet: &[u8], flow_bytes: usize) -> bool {
        if self.waiting.iter().flatten().any(|waiting| waiting.seq == seq) {
            return false;
        }
        if let Some(place) = self.waiting.iter().position(Option::is_none) {
            let length = packet.len();
            self.bytes[place * self.frame_bytes..][..length].copy_from_slice(packet);
            self.waiting[place] = Some(Waiting { seq, length, flow_bytes });
            self.count += 1;
        }
        self.given_up |= self.count == WINDOW;
        true
    }

    /// The place of the packet whose turn it is when `next_seq` is due.
    pub fn turn(&self, next_seq: u16) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let ahead = |place: &usize| self.waiting[*place].map(|w| w.seq.wrapping_sub(next_seq));
        let first = (0..WINDOW).filter(|place| ahead(place).is_some()).min_by_key(ahead)?;
        (self.given_up || ahead(&first) == Some(0)).then_some(first)
    }

    /// The packet at a place.
    pub fn packet(&self, place: usize) -> &[u8] {
        let length = self.waiting[place].map_or(0, |waiting| waiting.length);
        &self.bytes[place * self.frame_bytes..][..length]
    }

    /// Lets the packet at a place go.
    pub fn free(&mut self, place: usize) {
        self.count -= usize::from(self.waiting[place].take().is_some());
        self.given_up &= !self.is_empty();
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        (self.waiting, self.count, self.given_up) = ([None; WINDOW], 0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_wait_for_their_turn_across_the_wrap() {
        let mut aside = Aside::new(8);
        for seq in [1, u16::MAX, 0] {
            assert!(aside.put(seq, &seq.to_le_bytes(), 8));
        }
        assert!(!aside.put(0, &[], 8), "it waits already");
        assert_eq!(aside.flow(), (3, 24));
        assert!(aside.takes(&[0; 8]) && !aside.takes(&[0; 9]));
        assert_eq!(aside.turn(u16::MAX - 1), None);
        for seq in [u16::MAX, 0, 1] {
            let place = aside.turn(seq).unwrap();
            assert_eq!(aside.packet(place), seq.to_le_bytes());
            aside.free(place);
        }
        assert!(aside.is_empty() && !aside.given_up);
    }

    #[test]
    fn a_full_window_goes_in_order() {
        let mut aside = Aside::new(8);
        for seq in [4, 2, 5, 7] {
            assert!(!aside.given_up);
            assert!(aside.put(seq, &seq.to_le_bytes(), 8));
        }
        for (next_seq, seq) in [(1, 2u16), (3, 4), (5, 5), (6, 7)] {
            let place = aside.turn(next_seq).unwrap();
            assert_eq!(aside.packet(place), seq.to_le_bytes());
            aside.free(place);
        }
        assert!(aside.is_empty() && !aside.given_up);
    }
}
