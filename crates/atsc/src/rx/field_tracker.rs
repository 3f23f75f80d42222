//! The place of every segment in its field.

use super::segment_sync::SegmentRows;
use crate::field::{MIDDLE_PN63_START, PN63, PN511, PN511_LEVELS, PN511_START, Parity, field_sync};
use crate::params::{FIELD_DATA_SEGMENTS, SEGMENT_SYMBOLS, SYNC_LEVEL};
use crate::segment::{Segment, SegmentKind};

/// Correlation with the long sequence, relative to nominal, that makes a field sync: data alone has
/// a deviation of 0.04. Symbols above their nominal level are measured against their own, because
/// after silence the gain may be far too high for a while.
const THRESHOLD: f32 = 0.4;

/// Field syncs in a row that may be missed before the lock is given up.
const MAX_MISSES: u32 = 3;

/// What a segment turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldStep {
    /// No field sync has been seen yet.
    Unlocked,
    /// A segment of a known place.
    Placed(SegmentKind),
    /// A field sync that begins a new lock.
    Locked(Parity),
    /// Field syncs failed to appear; the lock is given up.
    Lost,
}

/// Follows the fields through their sync segments, and through missed ones for a while.
#[derive(Clone, Debug, Default)]
pub struct FieldTracker {
    lock: Option<Lock>,
}

#[derive(Clone, Copy, Debug)]
struct Lock {
    /// Data segments since the field sync.
    since: usize,
    parity: Parity,
    misses: u32,
}

impl FieldTracker {
    /// Without lock.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next segment.
    pub fn step(&mut self, symbols: &[f32; SEGMENT_SYMBOLS]) -> FieldStep {
        let seen = detect(symbols);
        match (&mut self.lock, seen) {
            (None, None) => FieldStep::Unlocked,
            (Some(lock), None) if lock.since < FIELD_DATA_SEGMENTS => {
                lock.since += 1;
                FieldStep::Placed(SegmentKind::Data(lock.since - 1))
            }
            (Some(lock), None) if lock.misses == MAX_MISSES => {
                self.lock = None;
                FieldStep::Lost
            }
            (Some(lock), None) => {
                lock.misses += 1;
                lock.next_field(lock.parity.other())
            }
            (Some(lock), Some(parity)) if lock.since == FIELD_DATA_SEGMENTS => {
                lock.misses = 0;
                lock.next_field(parity)
            }
            // A field sync out of its place: the stream was broken, and goes on here.
            (_, Some(parity)) => {
                self.lock = Some(Lock { since: 0, parity, misses: 0 });
                FieldStep::Locked(parity)
            }
        }
    }

    /// The same, as a segment ready to pass on.
    pub fn place(&mut self, rows: SegmentRows<'_>) -> (FieldStep, Option<Segment>) {
        let step = self.step(rows.re);
        let (kind, restart) = match step {
            FieldStep::Placed(kind) => (kind, false),
            FieldStep::Locked(parity) => (SegmentKind::FieldSync(parity), true),
            FieldStep::Unlocked | FieldStep::Lost => return (step, None),
        };
        (step, Some(Segment::new(kind, restart, rows.re).with_quadrature(rows.im)))
    }
}

impl Lock {
    fn next_field(&mut self, parity: Parity) -> FieldStep {
        (self.since, self.parity) = (0, parity);
        FieldStep::Placed(SegmentKind::FieldSync(parity))
    }
}

/// The parity of a field sync, if the segment is one.
pub(super) fn detect(symbols: &[f32; SEGMENT_SYMBOLS]) -> Option<Parity> {
    let sequence = &symbols[PN511_START..PN511_START + PN511];
    let level = correlation(sequence, sequence).sqrt().max(SYNC_LEVEL);
    let long = correlation(sequence, &*PN511_LEVELS);
    if long < THRESHOLD * SYNC_LEVEL * level {
        return None;
    }
    let middle = MIDDLE_PN63_START..MIDDLE_PN63_START + PN63;
    let upright = correlation(&symbols[middle.clone()], &field_sync(Parity::First)[middle]);
    Some(if upright > 0.0 { Parity::First } else { Parity::Second })
}

/// The mean product, in eight partial sums.
fn correlation(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() / a.len() as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::DATA_POWER;

    fn data(n: usize) -> [f32; SEGMENT_SYMBOLS] {
        std::array::from_fn(|k| {
            let hash = ((n * SEGMENT_SYMBOLS + k) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (hash >> 61) as f32 * 2.0 - 7.0
        })
    }

    fn run(tracker: &mut FieldTracker, segments: usize) -> Vec<FieldStep> {
        (0..segments).map(|n| tracker.step(&data(n))).collect()
    }

    #[test]
    fn data_is_never_a_field_sync() {
        let deviation = (DATA_POWER / PN511 as f32).sqrt() * SYNC_LEVEL;
        assert!(THRESHOLD * SYNC_LEVEL * SYNC_LEVEL > 9.0 * deviation);
        assert!(run(&mut FieldTracker::new(), 5000).iter().all(|s| *s == FieldStep::Unlocked));
        let loud = |n: usize| data(n).map(|x| x * 10.0);
        assert!((0..5000).all(|n| detect(&loud(n)).is_none()));
        assert_eq!(detect(&field_sync(Parity::Second).map(|x| x * 10.0)), Some(Parity::Second));
    }

    #[test]
    fn places_follow_the_field_sync_and_parities_alternate() {
        let mut tracker = FieldTracker::new();
        assert_eq!(tracker.step(field_sync(Parity::Second)), FieldStep::Locked(Parity::Second));
        for (n, step) in run(&mut tracker, FIELD_DATA_SEGMENTS).iter().enumerate() {
            assert_eq!(*step, FieldStep::Placed(SegmentKind::Data(n)));
        }
        let first = SegmentKind::FieldSync(Parity::First);
        assert_eq!(tracker.step(field_sync(Parity::First)), FieldStep::Placed(first));
    }

    #[test]
    fn missed_field_syncs_are_bridged_and_then_end_the_lock() {
        let mut tracker = FieldTracker::new();
        tracker.step(field_sync(Parity::First));
        let steps = run(&mut tracker, 4 * (FIELD_DATA_SEGMENTS + 1));
        let bridged = FieldStep::Placed(SegmentKind::FieldSync(Parity::Second));
        assert_eq!(steps[FIELD_DATA_SEGMENTS], bridged);
        assert_eq!(steps.last(), Some(&FieldStep::Lost));
        assert_eq!(steps.iter().filter(|s| **s == FieldStep::Lost).count(), 1);
    }

    #[test]
    fn a_field_sync_out_of_place_begins_a_new_lock() {
        let mut tracker = FieldTracker::new();
        tracker.step(field_sync(Parity::First));
        run(&mut tracker, 100);
        assert_eq!(tracker.step(field_sync(Parity::First)), FieldStep::Locked(Parity::First));
        assert_eq!(run(&mut tracker, 1)[0], FieldStep::Placed(SegmentKind::Data(0)));
    }
}
