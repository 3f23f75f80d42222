//! What tags say stays true behind a block.

use super::{Key, Tag, TagTime, TagValue, keys};
use crate::rate::ItemRatio;

/// Moves tags from an input of a block to an output, by its [rate](crate::BlockFacts) and its
/// [delay](crate::BlockFacts), and changes the values that depend on them:
///
/// - A tag moves with the samples: to the output item in which those of its input item are, the
///   delay included. Tags of the first item stay on the first, because they hold for all before
///   them too.
/// - `rx_rate_hz` and `items_per_sample` are multiplied by the rate; `loss_items` too, to the
///   nearest item.
/// - `rx_time` and `rx_utc` become the time of the output item: that of the input samples in it.
///   Where the input's rate is not known (no tag `rx_rate_hz` yet), they stay.
/// - `rx_freq_hz` becomes lower by [the shift of the band](crate::BlockFacts).
///
/// When a message changes the rate, the delay or the band of a block, the first item behind it gets
/// tags with the new values, and the time where that is known.
///
/// The runtime does it for blocks that forward tags ([`TagRule::Forward`](crate::TagRule)). A block
/// that moves tags itself calls [`learn`](Self::learn) for all tags of an item, then
/// [`moved`](Self::moved) for each.
#[derive(Clone, Copy, Debug)]
pub struct TagShift {
    rate: ItemRatio,
    /// Items per second of the input, and of the input before its last change, which began at this
    /// item.
    rate_hz: Option<f64>,
    before_hz: Option<f64>,
    since: u64,
    /// The items of input and output from which on the rate holds.
    turn: (u64, u64),
}

/// The keys of the tags that must be sent again, with new values, when a running block changes its
/// rate, delay or band.
pub(crate) const FOLLOWED: [Key; 5] =
    [keys::RX_RATE_HZ, keys::ITEMS_PER_SAMPLE, keys::RX_FREQ_HZ, keys::RX_TIME, keys::RX_UTC];

/// A tag of each key in [`FOLLOWED`].
pub(crate) type Followed = [Option<Tag>; FOLLOWED.len()];

/// What a block does to the stream: its rate, its delay in items of the input, and the frequency
/// by which it shifts the band, Hz.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conversion {
    pub(crate) rate: ItemRatio,
    pub(crate) delay: f64,
    pub(crate) shift_hz: f64,
}

impl TagShift {
    /// Makes the rule of an input.
    #[must_use]
    pub const fn new(rate: ItemRatio) -> Self {
        Self { rate, rate_hz: None, before_hz: None, since: 0, turn: (0, 0) }
    }

    /// Takes the rate that holds from the items `at` of input and output on.
    pub(crate) fn turn(&mut self, rate: ItemRatio, at: (u64, u64)) {
        if self.rate != rate {
            (self.rate, self.turn) = (rate, at);
        }
    }

    /// Forgets what it has learnt.
    pub(crate) fn afresh(self) -> Self {
        Self { rate_hz: None, before_hz: None, since: 0, ..self }
    }

    /// Returns those of the tags `said` that say something else behind a block which `was` another,
    /// of an input whose last rate was learnt.
    pub(crate) fn outdated(
        &self,
        said: Followed,
        (was, now): (Conversion, Conversion),
    ) -> impl Iterator<Item = Tag> {
        let (is_rate, is_band) = (now.rate != was.rate, now.shift_hz != was.shift_hz);
        let is_late = is_rate || now.delay != was.delay;
        let (rate_hz, since) = (self.rate_hz, self.since);
        let is_outdated = [is_rate, is_rate, is_band, is_late, is_late];
        let said = said.into_iter().zip(is_outdated).filter(|(_, is_outdated)| *is_outdated);
        said.filter_map(|(tag, _)| tag).filter(move |tag| match tag.value {
            // The time of a later item is known only if the rate is.
            TagValue::Time(_) => rate_hz.is_some() && since <= tag.offset,
            _ => true,
        })
    }

    /// Takes the rate from a tag of the input. The tags of one item may come in any order.
    pub fn learn(&mut self, tag: &Tag) {
        if tag.key == keys::RX_RATE_HZ {
            (self.before_hz, self.since) = (self.rate_hz, tag.offset);
            self.rate_hz = tag.value.as_f64().filter(|hz| *hz > 0.0 && hz.is_finite());
        }
    }

    /// Returns the tag on the output.
    #[must_use]
    pub fn moved(&self, tag: Tag, delay: f64, shift_hz: f64) -> Tag {
        self.moved_behind(0, tag, delay, shift_hz)
    }

    /// As [`moved`](Self::moved), to item `first` of the output or a later one.
    pub(crate) fn moved_behind(&self, first: u64, tag: Tag, delay: f64, shift_hz: f64) -> Tag {
        let offset = if tag.offset == 0 { first } else { self.late(tag.offset, delay).max(first) };
        self.said_at(offset, tag, delay, shift_hz)
    }

    /// Returns the output item in which input item `item` is.
    fn late(&self, item: u64, delay: f64) -> u64 {
        let (read, written) = self.turn;
        let left = delay - read.saturating_sub(item) as f64;
        self.rate.map_late(item.saturating_sub(read), left).saturating_add(written)
    }

    /// Says on output item `offset` what `tag` says on the input.
    pub(crate) fn said_at(&self, offset: u64, tag: Tag, delay: f64, shift_hz: f64) -> Tag {
        let item = tag.offset;
        let number = |value: f64| Tag { offset, key: tag.key, value: TagValue::Number(value) };
        match (tag.key, tag.value) {
            (keys::RX_RATE_HZ | keys::ITEMS_PER_SAMPLE, value) => match value.as_f64() {
                Some(value) => {
                    let (up, down) = (self.rate.interpolation(), self.rate.decimation());
                    number(value * f64::from(up) / f64::from(down))
                }
                None => Tag { offset, ..tag },
            },
            (keys::RX_FREQ_HZ, value) if shift_hz != 0.0 => {
                value.as_f64().map_or(Tag { offset, ..tag }, |hz| number(hz - shift_hz))
            }
            (keys::LOSS_ITEMS, TagValue::Count(items)) => {
                Tag { offset, key: tag.key, value: TagValue::Count(self.nearest(items)) }
            }
            (keys::RX_TIME | keys::RX_UTC, TagValue::Time(time)) => {
                let timed = |offset| {
                    let value = TagValue::Time(self.time_at(time, (item, offset), delay)?);
                    Some(Tag { offset, key: tag.key, value })
                };
                // The time of the first item may lie before the epoch.
                let moved = timed(offset).or_else(|| timed(self.late(item, delay).max(offset)));
                moved.unwrap_or(Tag { offset, ..tag })
            }
            _ => Tag { offset, ..tag },
        }
    }

    /// Returns the time of output item `to`, by that of input item `from`.
    fn time_at(&self, time: TagTime, (from, to): (u64, u64), delay: f64) -> Option<TagTime> {
        let (up, down) = (self.rate.interpolation(), self.rate.decimation());
        let (from_turn, to_turn) =
            (i128::from(from) - i128::from(self.turn.0), i128::from(to) - i128::from(self.turn.1));
        let ahead = to_turn * i128::from(down) - from_turn * i128::from(up);
        let items = ahead as f64 / f64::from(up) - delay;
        if items == 0.0 {
            return Some(time);
        }
        let rate_hz = if from < self.since { self.before_hz } else { self.rate_hz };
        rate_hz.map_or(Some(time), |rate_hz| time.later(items / rate_hz))
    }

    /// Returns a number of items of the output, to the nearest.
    fn nearest(&self, items: u64) -> u64 {
        let (up, down) = (self.rate.interpolation(), self.rate.decimation());
        let (up, down) = (u128::from(up), u128::from(down));
        u64::try_from((2 * u128::from(items) * up + down) / (2 * down)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(offset: u64, key: crate::Key, value: impl Into<TagValue>) -> Tag {
        Tag { offset, key, value: value.into() }
    }

    fn at(ticks: u64, rate_hz: f64) -> TagTime {
        TagTime::from_ticks(ticks, rate_hz)
    }

    #[test]
    fn what_depends_on_the_rate_follows_it() {
        let mut shift = TagShift::new(ItemRatio::new(1, 4));
        let rate = tag(0, keys::RX_RATE_HZ, 2e6);
        shift.learn(&rate);
        assert_eq!(shift.moved(rate, 0.0, 0.0), tag(0, keys::RX_RATE_HZ, 5e5));
        let loss = shift.moved(tag(9, keys::LOSS_ITEMS, 10u64), 0.0, 0.0);
        assert_eq!(loss, tag(2, keys::LOSS_ITEMS, 3u64));
        let freq = shift.moved(tag(8, keys::RX_FREQ_HZ, 1e8), 0.0, 1e5);
        assert_eq!(freq, tag(2, keys::RX_FREQ_HZ, 1e8 - 1e5));
        let other = shift.moved(tag(8, keys::RX_GAIN_DB, 7.0), 4.0, 1e5);
        assert_eq!(other, tag(3, keys::RX_GAIN_DB, 7.0));
    }

    #[test]
    fn a_time_is_that_of_the_samples_in_the_item() {
        let mut shift = TagShift::new(ItemRatio::new(1, 4));
        // Without a rate it stays.
        let time = tag(9, keys::RX_TIME, at(1009, 1e6));
        assert_eq!(shift.moved(time, 8.0, 0.0).value, time.value);
        shift.learn(&tag(0, keys::RX_RATE_HZ, 1e6));
        // Item 9 of the input comes out with item 17, which is in output item 4, which begins with
        // item 16, which is item 8 of the input.
        let TagValue::Time(moved) = shift.moved(time, 8.0, 0.0).value else { panic!() };
        assert_eq!(moved.to_ticks(1e6), Some(1008));
        // The first item stays the first one, and is as old as the filter is long.
        let first = shift.moved(tag(0, keys::RX_TIME, at(1000, 1e6)), 8.0, 0.0);
        let TagValue::Time(moved) = first.value else { panic!() };
        assert_eq!((first.offset, moved.to_ticks(1e6)), (0, Some(992)));
        // Unless that was before the clock's zero.
        let first = shift.moved(tag(0, keys::RX_TIME, at(3, 1e6)), 8.0, 0.0);
        let TagValue::Time(moved) = first.value else { panic!() };
        assert_eq!((first.offset, moved.to_ticks(1e6)), (2, Some(3)));
        // Of four items the last one.
        let last = shift.moved(tag(8, keys::RX_TIME, at(1008, 1e6)), -3.0, 0.0);
        let TagValue::Time(moved) = last.value else { panic!() };
        assert_eq!((last.offset, moved.to_ticks(1e6)), (2, Some(1011)));
    }

    #[test]
    fn a_moment_moves_both_ways_to_the_bit() {
        let time = TagTime { seconds: 5, fraction: 1 << 62 };
        assert_eq!(time.later(0.75), Some(TagTime { seconds: 6, fraction: 0 }));
        assert_eq!(time.later(-0.5), Some(TagTime { seconds: 4, fraction: 3 << 62 }));
        assert_eq!((time.later(-6.0), time.later(1e30)), (None, None));
    }
}
