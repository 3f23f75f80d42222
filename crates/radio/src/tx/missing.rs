//! The packets that the device has skipped: lost, unless they come late.

use std::collections::VecDeque;
use std::ops::Range;

use super::ledger::TxCause;
use super::record::Piece;

/// The most pieces that are stored.
const PIECES: usize = 1024;

/// The number of packets behind which a piece is too old to come late: a part of the range of
/// sequence numbers, and far more than any network delays.
const HORIZON: u64 = 1 << 13;

/// Skipped packets with their cause in the ledger, in the order of their numbers.
#[derive(Debug)]
pub(super) struct Missing {
    pieces: VecDeque<(Piece, TxCause)>,
    /// For packets before this one it is unknown which were skipped.
    floor: u64,
}

impl Missing {
    pub fn new() -> Self {
        Self { pieces: VecDeque::with_capacity(PIECES + 1), floor: 0 }
    }

    /// Returns the number of the first packet for which it is known whether it was skipped.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns whether no packet is stored.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Adds skipped packets behind all others.
    pub fn push(&mut self, piece: Piece, cause: TxCause) {
        self.forget(piece.first.saturating_sub(HORIZON));
        if let Some((last, last_cause)) = self.pieces.back_mut() {
            if (last.end(), last.samples, *last_cause) == (piece.first, piece.samples, cause) {
                last.packets += piece.packets;
                return;
            }
        }
        self.make_room();
        self.pieces.push_back((piece, cause));
    }

    /// Removes the skipped packets of `range`, which have come after all.
    pub fn take(&mut self, range: Range<u64>, mut found: impl FnMut(Piece, TxCause)) {
        let mut index = self.pieces.partition_point(|(piece, _)| piece.end() <= range.start);
        while let Some((piece, cause)) = self.pieces.get(index).copied() {
            if piece.first >= range.end {
                break;
            }
            let cut = |range: Range<u64>| Piece {
                first: range.start,
                packets: range.end.saturating_sub(range.start),
                ..piece
            };
            found(cut(piece.first.max(range.start)..piece.end().min(range.end)), cause);
            let left = cut(piece.first..range.start.max(piece.first));
            let right = cut(range.end.min(piece.end())..piece.end());
            match (left.packets > 0, right.packets > 0) {
                (false, false) => {
                    self.pieces.remove(index);
                }
                (true, false) => {
                    self.pieces[index].0 = left;
                    index += 1;
                }
                (false, true) => self.pieces[index].0 = right,
                (true, true) => {
                    self.pieces[index].0 = left;
                    self.pieces.insert(index + 1, (right, cause));
                    self.make_room();
                    break;
                }
            }
        }
    }

    /// Returns the samples of all pieces with the cause `cause`.
    pub fn samples(&self, cause: TxCause) -> u64 {
        let booked = self.pieces.iter().filter(|(_, other)| *other == cause);
        booked.map(|(piece, _)| piece.total()).sum()
    }

    /// Sets the cause of all pieces.
    pub fn rename(&mut self, cause: TxCause) {
        self.pieces.iter_mut().for_each(|piece| piece.1 = cause);
    }

    /// Records that it is unknown which packets before number `floor` were skipped. The pieces
    /// stay, as what may still come late.
    pub fn blur(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
    }

    /// Drops all pieces; packets before number `floor` are unknown from now on.
    pub fn clear(&mut self, floor: u64) {
        self.pieces.clear();
        self.blur(floor);
    }

    fn forget(&mut self, horizon: u64) {
        while self.pieces.front().is_some_and(|(piece, _)| piece.end() <= horizon) {
            self.drop_first();
        }
    }

    fn make_room(&mut self) {
        while self.pieces.len() >= PIECES {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some((piece, _)) = self.pieces.pop_front() {
            self.blur(piece.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSS: TxCause = TxCause::NetworkLoss;

    fn piece(first: u64, packets: u64) -> Piece {
        Piece { first, packets, flow_bytes: 416, samples: 100 }
    }

    fn take(missing: &mut Missing, range: Range<u64>) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        missing.take(range, |piece, _| found.push((piece.first, piece.packets)));
        found
    }

    #[test]
    fn what_comes_late_is_cut_out_wherever_it_lies() {
        let mut missing = Missing::new();
        for (first, packets) in [(5, 2), (7, 3), (20, 10), (40, 1)] {
            missing.push(piece(first, packets), LOSS);
        }
        assert_eq!((missing.pieces.len(), missing.samples(LOSS)), (3, 1600));
        let contains = |number| {
            let holds = |(piece, _): &(Piece, _)| (piece.first..piece.end()).contains(&number);
            missing.pieces.iter().any(holds)
        };
        let stored = [4, 5, 9, 10, 29, 30, 40, 41].map(contains);
        assert_eq!(stored, [false, true, true, false, true, false, true, false]);
        assert_eq!(take(&mut missing, 0..5), []);
        assert_eq!(take(&mut missing, 6..7), [(6, 1)]);
        assert_eq!(take(&mut missing, 9..22), [(9, 1), (20, 2)]);
        assert_eq!(take(&mut missing, 5..100), [(5, 1), (7, 2), (22, 8), (40, 1)]);
        assert_eq!((missing.pieces.len(), missing.floor()), (0, 0));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut missing = Missing::new();
        let capacity = missing.pieces.capacity();
        for index in 0..2 * PIECES as u64 {
            missing.push(piece(2 * index, 1), LOSS);
        }
        assert_eq!((missing.pieces.len(), missing.pieces.capacity()), (PIECES, capacity));
        assert_eq!(missing.floor(), 2 * PIECES as u64 - 1);
        assert_eq!(take(&mut missing, 0..2049), [(2048, 1)]);
        missing.push(piece(HORIZON + 3001, 1), LOSS);
        assert_eq!(missing.floor(), 3001);
        assert_eq!(take(&mut missing, 0..3003), [(3002, 1)]);
    }
}
