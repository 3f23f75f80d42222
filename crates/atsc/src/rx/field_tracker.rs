//! The position of every segment in its field.

use crate::Sample;
use crate::field::{MIDDLE_PN63_START, PN63, PN511, PN511_LEVELS, PN511_START, Parity, field_sync};
use crate::params::{FIELD_DATA_SEGMENTS, SYNC_LEVEL};
use crate::segment::{SegmentKind, WholeSegment};
use millstream_dsp::chunks::Chunks;
use millstream_dsp::{multiversion, simd::madd};
use std::ops::Range;

/// Least correlation of a field sync with the long sequence, relative to nominal: data alone has a
/// deviation of 0.04 in each part. The magnitude counts, because the strongest path need not be in
/// phase with the pilot. Symbols above their nominal level are compared with their own level,
/// because after silence the gain may be far too high for a while.
const THRESHOLD: f32 = 0.4;

/// Parallel partial sums of products.
const LANES: usize = 32;

/// Consecutive field syncs that may be missed before the lock is lost.
const MAX_MISSES: u32 = 3;

/// The classification of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldStep {
    /// No field sync has been found yet.
    Unlocked,
    /// A segment at a known position.
    Placed(SegmentKind),
    /// A field sync that begins a new lock.
    Locked(Parity),
    /// Too many field syncs were missed; the lock is lost.
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
    /// Creates a tracker without lock.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the position of the next segment is known.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// Returns whether the segment being filled needs its quadrature: while field syncs may be
    /// anywhere, and around the expected one. Elsewhere a field sync in phase is found without it.
    #[must_use]
    pub fn wants_whole(&self) -> bool {
        self.lock.is_none_or(|lock| lock.misses > 0 || lock.since + 1 >= FIELD_DATA_SEGMENTS)
    }

    /// Returns whether the segment just placed is a field sync by its position only.
    fn is_presumed(&self) -> bool {
        self.lock.is_some_and(|lock| lock.since == 0 && lock.misses > 0)
    }

    /// Takes the next segment.
    pub fn step(&mut self, whole: &WholeSegment) -> FieldStep {
        let seen = if whole.segment.held() { None } else { detect(whole) };
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
            // A field sync at another position: the stream was interrupted, and continues here.
            (_, Some(parity)) => {
                self.lock = Some(Lock { since: 0, parity, misses: 0 });
                FieldStep::Locked(parity)
            }
        }
    }

    /// Takes the next segment like [`step`](Self::step), and writes the position into it; also
    /// returns whether to pass it on.
    pub fn place(&mut self, whole: &mut WholeSegment) -> (FieldStep, bool) {
        let step = self.step(whole);
        let (kind, restart) = match step {
            FieldStep::Placed(kind) => (kind, false),
            FieldStep::Locked(parity) => (SegmentKind::FieldSync(parity), true),
            FieldStep::Unlocked | FieldStep::Lost => return (step, false),
        };
        whole.segment.set_place(kind, restart);
        whole.segment.set_presumed(self.is_presumed());
        (step, true)
    }
}

impl Lock {
    fn next_field(&mut self, parity: Parity) -> FieldStep {
        (self.since, self.parity) = (0, parity);
        FieldStep::Placed(SegmentKind::FieldSync(parity))
    }
}

/// Returns the parity of a field sync, if the segment is one.
fn detect(whole: &WholeSegment) -> Option<Parity> {
    let long = PN511_START..PN511_START + PN511;
    let power = correlate(whole, long.clone(), &*PN511_LEVELS).norm_sqr();
    let least = |level: f32| (THRESHOLD * SYNC_LEVEL * level * PN511 as f32).powi(2);
    // A segment with NaN is not a field sync: a comparison with NaN is false.
    let stands_out = power >= least(SYNC_LEVEL) && {
        let received = &whole.segment.symbols[long.clone()];
        power >= least((dot(received, received) / PN511 as f32).sqrt())
    };
    if !stands_out {
        return None;
    }
    let sum = correlate(whole, long, &*PN511_LEVELS);
    let middle = MIDDLE_PN63_START..MIDDLE_PN63_START + PN63;
    let upright = correlate(whole, middle.clone(), &field_sync(Parity::First)[middle]);
    let in_phase = (upright * sum.conj()).re;
    Some(if in_phase > 0.0 { Parity::First } else { Parity::Second })
}

fn correlate(whole: &WholeSegment, place: Range<usize>, levels: &[f32]) -> Sample {
    let [re, im] =
        [&whole.segment.symbols, &whole.quadrature].map(|x| dot(&x[place.clone()], levels));
    Sample::new(re, im)
}

multiversion! {
    /// Returns the sum of the products.
    fn dot(a: &[f32], b: &[f32]) -> f32 = dot_body, avx512;
}

#[inline(always)]
fn dot_body<const FMA: bool>(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.in_chunks::<LANES>();
    let (b, b_rest) = b.in_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] = madd::<FMA>(a[lane], b[lane], lanes[lane]);
        }
    }
    // The remainder is padded with zeros to a vector.
    let (mut a, mut b) = ([0.0; LANES], [0.0; LANES]);
    a[..a_rest.len()].copy_from_slice(a_rest);
    b[..b_rest.len()].copy_from_slice(b_rest);
    for lane in 0..LANES {
        lanes[lane] = madd::<FMA>(a[lane], b[lane], lanes[lane]);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{DATA_POWER, SEGMENT_SYMBOLS};
    use crate::segment::Segment;
    use millstream_testkit::cost;

    /// Returns a segment of these levels after a path that rotates them.
    fn turned(levels: [f32; SEGMENT_SYMBOLS]) -> WholeSegment {
        let [re, im] = [-0.3, 0.8].map(|part| levels.map(|x| part * x));
        let segment = Segment::new(SegmentKind::Data(0), false, &re);
        WholeSegment { segment, quadrature: im }
    }

    fn levels(n: usize) -> [f32; SEGMENT_SYMBOLS] {
        std::array::from_fn(|k| {
            let hash = ((n * SEGMENT_SYMBOLS + k) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (hash >> 61) as f32 * 2.0 - 7.0
        })
    }

    fn data(n: usize) -> WholeSegment {
        turned(levels(n))
    }

    fn sync(parity: Parity) -> WholeSegment {
        turned(*field_sync(parity))
    }

    fn run(tracker: &mut FieldTracker, segments: usize) -> Vec<FieldStep> {
        (0..segments).map(|n| tracker.step(&data(n))).collect()
    }

    #[test]
    fn data_is_never_a_field_sync() {
        let deviation = (DATA_POWER / PN511 as f32).sqrt() * SYNC_LEVEL;
        assert!(THRESHOLD * SYNC_LEVEL * SYNC_LEVEL > 9.0 * deviation);
        assert!(run(&mut FieldTracker::new(), 5000).iter().all(|s| *s == FieldStep::Unlocked));
        let loud = |n: usize| turned(levels(n).map(|x| x * 10.0));
        assert!((0..5000).all(|n| detect(&loud(n)).is_none()));
        assert_eq!(
            detect(&turned(field_sync(Parity::Second).map(|x| x * 10.0))),
            Some(Parity::Second)
        );
    }

    #[test]
    fn places_follow_the_field_sync_and_parities_alternate() {
        let mut tracker = FieldTracker::new();
        assert_eq!(tracker.step(&sync(Parity::Second)), FieldStep::Locked(Parity::Second));
        for (n, step) in run(&mut tracker, FIELD_DATA_SEGMENTS).iter().enumerate() {
            assert_eq!(*step, FieldStep::Placed(SegmentKind::Data(n)));
        }
        let first = SegmentKind::FieldSync(Parity::First);
        assert_eq!(tracker.step(&sync(Parity::First)), FieldStep::Placed(first));
    }

    #[test]
    fn missed_field_syncs_are_bridged_and_then_end_the_lock() {
        let mut tracker = FieldTracker::new();
        tracker.step(&sync(Parity::First));
        let steps = run(&mut tracker, 4 * (FIELD_DATA_SEGMENTS + 1));
        let bridged = FieldStep::Placed(SegmentKind::FieldSync(Parity::Second));
        assert_eq!(steps[FIELD_DATA_SEGMENTS], bridged);
        assert_eq!(steps.last(), Some(&FieldStep::Lost));
        assert_eq!(steps.iter().filter(|s| **s == FieldStep::Lost).count(), 1);
    }

    #[test]
    fn a_field_sync_out_of_place_begins_a_new_lock() {
        let mut tracker = FieldTracker::new();
        tracker.step(&sync(Parity::First));
        run(&mut tracker, 100);
        assert_eq!(tracker.step(&sync(Parity::First)), FieldStep::Locked(Parity::First));
        assert_eq!(run(&mut tracker, 1)[0], FieldStep::Placed(SegmentKind::Data(0)));
    }

    #[test]
    fn a_held_segment_is_no_field_sync() {
        let mut tracker = FieldTracker::new();
        let mut held = sync(Parity::First);
        held.segment.set_held(true);
        assert_eq!(tracker.step(&held), FieldStep::Unlocked);
    }

    #[test]
    fn what_is_no_number_is_no_field_sync() {
        for (place, found) in [(0, Some(Parity::First)), (PN511_START + 9, None)] {
            let mut whole = sync(Parity::First);
            whole.segment.symbols[place] = f32::NAN;
            assert_eq!(detect(&whole), found, "place {place}");
        }
    }

    #[test]
    fn the_fast_copy_agrees_with_the_plain_one() {
        let (a, b) = (levels(1), levels(2));
        let (a, b) = (&a[4..515], &b[4..515]);
        let exact: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        // Sums of 511 products of up to 49.
        let sums = [dot(a, b), dot_body::<false>(a, b)];
        assert!(sums.iter().all(|sum| (sum - exact).abs() < 0.02), "{sums:?} {exact}");
    }

    #[test]
    #[ignore = "counted by docs/evidence/arm64_cost.py"]
    fn cost_of_the_field_search() {
        let (a, b) = (levels(1), levels(2));
        let (a, b) = (&a[..PN511], &b[..PN511]);
        cost::repeat(
            || assert!(dot_body::<{ cost::FUSED }>(a, b) != 0.0),
            || assert!(dot(a, b) != 0.0),
        );
    }
}
