//! The time of items.

use millstream_flow::{Tag, TagTime, TagValue, keys};

/// The time of items, by the tags before them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ItemClock {
    /// An item and its time.
    anchor: Option<(u64, TagTime)>,
    rate_hz: Option<f64>,
    /// Whether the rate is the user's.
    is_fixed: bool,
}

impl ItemClock {
    /// Makes a clock without a time, of items at `rate_hz`; `None`: as the tag `rx_rate_hz` says.
    pub fn new(rate_hz: Option<f64>) -> Self {
        Self { anchor: None, rate_hz, is_fixed: rate_hz.is_some() }
    }

    /// Takes a tag, if it is about times.
    pub fn read(&mut self, tag: &Tag) {
        match (tag.key, tag.value) {
            (keys::RX_TIME, TagValue::Time(time)) => self.anchor = Some((tag.offset, time)),
            (keys::RX_RATE_HZ, value) if !self.is_fixed => self.rate_hz = value.as_f64(),
            _ => {}
        }
    }

    /// Returns the time of an item at the anchor or behind it.
    pub fn time(&self, item: u64) -> Option<TagTime> {
        let (first, time) = self.anchor?;
        let items = item.checked_sub(first)?;
        if items == 0 {
            return Some(time);
        }
        let since = TagTime::from_ticks(items, self.rate_hz.filter(|rate| *rate > 0.0)?);
        let (fraction, carry) = time.fraction.overflowing_add(since.fraction);
        let seconds = time.seconds.checked_add(since.seconds)?.checked_add(carry.into())?;
        Some(TagTime { seconds, fraction })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_the_time_of_the_last_mark_and_the_items_since() {
        let mut clock = ItemClock::default();
        let tag = |offset, key, value| Tag { offset, key, value };
        assert_eq!(clock.time(0), None);
        let time = TagTime { seconds: 5, fraction: 3 << 62 };
        clock.read(&tag(100, keys::RX_TIME, TagValue::Time(time)));
        assert_eq!((clock.time(99), clock.time(100), clock.time(101)), (None, Some(time), None));
        clock.read(&tag(100, keys::RX_RATE_HZ, TagValue::Number(4.0)));
        assert_eq!(clock.time(103), Some(TagTime { seconds: 6, fraction: 1 << 63 }));
        // The user's rate is better known than the tag's: blocks between may have changed it.
        let mut fixed = ItemClock { rate_hz: Some(8.0), is_fixed: true, ..clock };
        fixed.read(&tag(100, keys::RX_RATE_HZ, TagValue::Number(4.0)));
        assert_eq!(fixed.time(102), Some(TagTime { seconds: 6, fraction: 0 }));
    }
}
