//! Shots: a few contiguous items of a stream, which its thread copies when the server asks for
//! them. A shot goes to the stream empty and comes back full; without one on its way the stream
//! looks at one number for each batch.

use crate::behind::{BehindMeter, Delays};
use millstream_flow::{Complex, Item, OutputTap, SC16_SCALE, Tag, TagTime, TagValue, keys};
use millstream_ring::spsc::{Receiver, Sender, channel};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// Tags that wait for the server; further ones are counted, not kept.
const TAGS_MAX: usize = 4096;

/// How items are shown.
pub(crate) struct Show<T> {
    /// Values of an item.
    pub values: usize,
    /// Appends the values of an item; full scale is amplitude 1.
    pub append: fn(&T, &mut Vec<Complex<f32>>),
}

impl Show<Complex<f32>> {
    /// Complex samples as they are.
    pub const FC32: Self = Self { values: 1, append: |item, values| values.push(*item) };
}

impl Show<[i16; 2]> {
    /// Complex samples of 16 bits.
    pub const SC16: Self = Self {
        values: 1,
        append: |item, values| {
            let [re, im] = item.map(|part| f32::from(part) * SC16_SCALE);
            values.push(Complex::new(re, im));
        },
    };
}

/// Items on their way.
struct Shot<T> {
    items: Vec<T>,
    wanted: usize,
    first: u64,
    /// A known time: of the item with that number.
    anchor: Option<(u64, TagTime)>,
    /// The frequency in their middle, if it was changed.
    centre_hz: Option<f64>,
    taken: SystemTime,
}

/// The end of a stream at its block: see [`OutputTap`].
pub(crate) struct ShotTap<T: Item> {
    requests: Receiver<Box<Shot<T>>>,
    answers: Sender<Box<Shot<T>>>,
    tags: Sender<Tag>,
    current: Option<Box<Shot<T>>>,
    /// The last two known times: one may be ahead of the items so far.
    anchors: [Option<(u64, TagTime)>; 2],
    /// The last two frequencies, with the numbers of their first items.
    centres: [Option<(u64, f64)>; 2],
    /// The first and the last break that no item has passed yet: a loss, a start of the stream, or
    /// a change of its frequency. No shot has items of between.
    breaks: Option<(u64, u64)>,
    behind: BehindMeter,
}

/// The end of a stream at the server.
pub(crate) struct ShotSource<T: Item> {
    requests: Sender<Box<Shot<T>>>,
    answers: Receiver<Box<Shot<T>>>,
    tags: Receiver<Tag>,
    /// The shot while it is here.
    here: Option<Box<Shot<T>>>,
    show: Show<T>,
    /// What values are multiplied by.
    gain: f32,
}

/// What a shot has brought.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    pub values: Vec<Complex<f32>>,
    /// Items of the stream before the first.
    pub first: u64,
    /// A known time, of the item with that number.
    pub anchor: Option<(u64, TagTime)>,
    /// The frequency in their middle, if it was changed since the start.
    pub centre_hz: Option<f64>,
    /// When they were taken, seconds of the wall clock.
    pub unix_s: f64,
}

/// A stream as the server sees it.
pub(crate) trait SampleSource: Send {
    /// Asks for this many values of contiguous items; false while an earlier question is open.
    fn ask(&mut self, wanted: usize) -> bool;
    /// Takes the answer into `samples`; false if there is none yet.
    fn answer(&mut self, samples: &mut Samples) -> bool;
    /// Takes the next tag of the stream.
    fn tag(&mut self) -> Option<Tag>;
}

/// Makes both ends of a stream of `rate_hz` items a second, whose values are multiplied by `gain`,
/// and its delays.
pub(crate) fn shots<T: Item>(
    rate_hz: Option<f64>,
    (show, gain): (Show<T>, f32),
) -> (ShotTap<T>, ShotSource<T>, Arc<Delays>) {
    let (ask, requests) = channel(1);
    let (answers, receive) = channel(1);
    let (tag, tags) = channel(TAGS_MAX);
    let behind = Arc::new(Delays::default());
    let tap = ShotTap {
        requests,
        answers,
        tags: tag,
        current: None,
        anchors: [None; 2],
        centres: [None; 2],
        breaks: None,
        behind: BehindMeter::new(rate_hz, Arc::clone(&behind)),
    };
    let empty = Shot {
        items: Vec::new(),
        wanted: 0,
        first: 0,
        anchor: None,
        centre_hz: None,
        taken: SystemTime::UNIX_EPOCH,
    };
    let here = Some(Box::new(empty));
    let source = ShotSource { requests: ask, answers: receive, tags, here, show, gain };
    (tap, source, behind)
}

/// Returns the last one that is not behind an item.
fn at_item<V: Copy>(known: &[Option<(u64, V)>; 2], item: u64) -> Option<(u64, V)> {
    known.iter().rev().flatten().find(|(offset, _)| *offset <= item).copied()
}

impl<T: Item> ShotTap<T> {
    fn break_at(&mut self, offset: u64) {
        let first = self.breaks.map_or(offset, |(first, _)| first);
        self.breaks = Some((first, offset));
    }
}

impl<T: Item> OutputTap<T> for ShotTap<T> {
    fn tagged(&mut self, tag: &Tag) {
        match (tag.key, tag.value) {
            (keys::RX_TIME, TagValue::Time(time)) => {
                self.anchors = [self.anchors[1], Some((tag.offset, time))];
                self.behind.anchor(tag.offset, time);
            }
            (keys::LOSS_CAUSE, cause) => {
                self.break_at(tag.offset);
                self.behind.lost(cause.as_text().unwrap_or_default());
            }
            (keys::CLOCK_SPEED, _) => self.behind.turn_off(),
            (keys::RX_RATE_HZ, rate_hz) => {
                // Samples before it and behind it are of two streams.
                self.break_at(tag.offset);
                self.behind.begin_anew(rate_hz.as_f64().filter(|rate_hz| *rate_hz > 0.0));
            }
            (keys::RX_FREQ_HZ, hz) => {
                // No line is of two frequencies.
                self.break_at(tag.offset);
                self.centres = [self.centres[1], hz.as_f64().map(|hz| (tag.offset, hz))];
            }
            _ => (),
        }
        // If nobody takes them, events are missing, but no sample.
        let _ = self.tags.push(*tag);
    }

    fn produced(&mut self, position: u64, items: &[T]) {
        let end = position + items.len() as u64;
        if self.behind.is_on() {
            self.behind.note(end, Instant::now());
        }
        if self.current.is_none() {
            self.current = self.requests.pop();
        }
        let Some(shot) = &mut self.current else { return };
        let mut skipped = 0;
        if let Some((_, last)) = self.breaks.filter(|(first, _)| *first < end) {
            shot.items.clear();
            if last >= end {
                return;
            }
            skipped = last.saturating_sub(position) as usize;
            self.breaks = None;
        }
        if shot.items.is_empty() {
            shot.first = position + skipped as u64;
            shot.anchor = at_item(&self.anchors, shot.first);
            shot.centre_hz = at_item(&self.centres, shot.first).map(|(_, hz)| hz);
        }
        let taken = (shot.wanted - shot.items.len()).min(items.len() - skipped);
        // Within the capacity that the server has reserved.
        shot.items.extend_from_slice(&items[skipped..skipped + taken]);
        if shot.items.len() != shot.wanted {
            return;
        }
        if let Some(mut shot) = self.current.take() {
            shot.taken = SystemTime::now();
            // There is room: one shot is on its way at most.
            let _ = self.answers.push(shot);
        }
    }
}

impl<T: Item> SampleSource for ShotSource<T> {
    fn ask(&mut self, wanted: usize) -> bool {
        let Some(mut shot) = self.here.take() else { return false };
        shot.items.clear();
        shot.wanted = wanted.div_ceil(self.show.values).max(1);
        shot.items.reserve(shot.wanted);
        match self.requests.push(shot) {
            Ok(()) => true,
            Err(shot) => {
                self.here = Some(shot);
                false
            }
        }
    }

    fn answer(&mut self, samples: &mut Samples) -> bool {
        let Some(shot) = self.answers.pop() else { return false };
        samples.values.clear();
        shot.items.iter().for_each(|item| (self.show.append)(item, &mut samples.values));
        if self.gain != 1.0 {
            samples.values.iter_mut().for_each(|value| *value *= self.gain);
        }
        (samples.first, samples.anchor) = (shot.first, shot.anchor);
        samples.centre_hz = shot.centre_hz;
        let since = shot.taken.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        samples.unix_s = since.as_secs_f64();
        self.here = Some(shot);
        true
    }

    fn tag(&mut self) -> Option<Tag> {
        self.tags.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: (Show<f32>, f32) =
        (Show { values: 1, append: |item, values| values.push(Complex::new(*item, 0.0)) }, 1.0);

    #[test]
    fn a_shot_holds_contiguous_items_and_never_those_around_a_loss() {
        let (mut tap, mut source, _) = shots(None, REAL);
        let mut samples = Samples::default();
        tap.produced(0, &[0.0; 10]);
        assert!(source.ask(6) && !source.ask(6));
        assert!(!source.answer(&mut samples));
        tap.produced(10, &[10.0, 11.0, 12.0, 13.0]);
        // Two of the six are missing still when a loss comes, at the second item of a batch.
        let tag = |offset, key, value| Tag { offset, key, value };
        tap.tagged(&tag(15, keys::LOSS_CAUSE, TagValue::text("late")));
        tap.tagged(&tag(15, keys::RX_TIME, TagValue::Time(TagTime { seconds: 3, fraction: 0 })));
        tap.produced(14, &[14.0, 15.0, 16.0, 17.0, 18.0]);
        assert!(!source.answer(&mut samples), "four so far");
        tap.produced(19, &[19.0, 20.0, 21.0]);
        assert!(source.answer(&mut samples));
        let values: Vec<_> = samples.values.iter().map(|value| value.re).collect();
        assert_eq!((samples.first, values), (15, vec![15.0, 16.0, 17.0, 18.0, 19.0, 20.0]));
        assert_eq!(samples.anchor.unwrap().0, 15);
        assert_eq!(source.tag().unwrap().key, keys::LOSS_CAUSE);
        assert!(source.ask(3));
    }

    #[test]
    fn no_shot_spans_one_of_several_losses_that_are_told_at_once() {
        let (mut tap, mut source, _) = shots(None, REAL);
        let mut samples = Samples::default();
        assert!(source.ask(3));
        tap.produced(0, &[0.0, 1.0]);
        for offset in [3, 6, 9] {
            let value = TagValue::text("late");
            tap.tagged(&Tag { offset, key: keys::LOSS_CAUSE, value });
        }
        for position in [2, 4, 6, 8, 10] {
            tap.produced(position, &[position as f32, position as f32 + 1.0]);
        }
        assert!(source.answer(&mut samples));
        assert_eq!(samples.first, 9);
    }

    #[test]
    fn a_shot_is_of_one_frequency_and_knows_it() {
        let (mut tap, mut source, _) = shots(None, REAL);
        let mut samples = Samples::default();
        let tune = |tap: &mut ShotTap<f32>, offset, hz: f64| {
            tap.tagged(&Tag { offset, key: keys::RX_FREQ_HZ, value: hz.into() });
        };
        assert!(source.ask(3));
        tap.produced(0, &[0.0, 1.0]);
        // It has two of its three items when those of another frequency come, in a batch.
        tune(&mut tap, 3, 88e6);
        tap.produced(2, &[2.0, 3.0, 4.0, 5.0]);
        assert!(source.answer(&mut samples));
        assert_eq!((samples.first, samples.centre_hz), (3, Some(88e6)));
        // A frequency that is still ahead is not that of the items before it.
        assert!(source.ask(2));
        tune(&mut tap, 9, 99e6);
        tap.produced(6, &[6.0, 7.0]);
        assert!(source.answer(&mut samples));
        assert_eq!((samples.first, samples.centre_hz), (6, Some(88e6)));
    }

    #[test]
    fn a_time_ahead_of_the_first_item_is_not_its_time() {
        let (mut tap, mut source, _) = shots(None, REAL);
        let mut samples = Samples::default();
        let time = |offset| Tag {
            offset,
            key: keys::RX_TIME,
            value: TagValue::Time(TagTime { seconds: offset, fraction: 0 }),
        };
        tap.tagged(&time(0));
        assert!(source.ask(2));
        tap.tagged(&time(3));
        tap.produced(0, &[0.0; 4]);
        assert!(source.answer(&mut samples));
        assert_eq!(samples.anchor.unwrap().0, 0);
    }

    #[test]
    fn nobody_at_the_server_is_no_trouble() {
        let (mut tap, source, _) = shots(Some(1e6), (Show::SC16, 0.5));
        drop(source);
        for n in 0..10_000 {
            let value = TagValue::Time(TagTime { seconds: 1, fraction: n });
            tap.tagged(&Tag { offset: n, key: keys::RX_TIME, value });
            tap.produced(n, &[[1, 2]]);
        }
        let mut values = Vec::new();
        (Show::SC16.append)(&[32767, -32767], &mut values);
        assert_eq!(values, [Complex::new(1.0, -1.0)], "as in every other place");
    }
}
