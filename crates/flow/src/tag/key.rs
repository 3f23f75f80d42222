//! Names of tags.

use millstream_ring::Lock;
use std::collections::BTreeSet;
use std::fmt;

/// The name of a kind of tag. Copied and compared without a table.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key(&'static str);

impl Key {
    /// Makes the key of this name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Makes the key of a name from outside the program. Each name stays in memory until the
    /// program ends, so this is for names from files and command lines, before a graph runs.
    #[must_use]
    pub fn intern(name: &str) -> Self {
        static NAMES: Lock<BTreeSet<&'static str>> = Lock::new(BTreeSet::new());
        let mut names = NAMES.lock();
        if let Some(known) = names.get(name) {
            return Self(known);
        }
        let name: &'static str = Box::leak(name.into());
        names.insert(name);
        Self(name)
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

/// Keys that several blocks use.
pub mod keys {
    use super::Key;

    /// When the item was received, by the radio's clock: a [`TagTime`](crate::TagTime). On the
    /// first item of a stream and on the first after a gap.
    pub const RX_TIME: Key = Key::new("rx_time");
    /// Items per second from here on: a number.
    pub const RX_RATE_HZ: Key = Key::new("rx_rate_hz");
    /// The frequency in the middle of the band from here on, Hz: a number. On the first item, and
    /// where a radio was tuned while it ran.
    pub const RX_FREQ_HZ: Key = Key::new("rx_freq_hz");
    /// The gain from here on, dB: a number.
    pub const RX_GAIN_DB: Key = Key::new("rx_gain_db");
    /// The antenna from here on: text.
    pub const RX_ANTENNA: Key = Key::new("rx_antenna");
    /// The analogue bandwidth from here on, Hz: a number.
    pub const RX_BANDWIDTH_HZ: Key = Key::new("rx_bandwidth_hz");
    /// When the item was received, by UTC: a [`TagTime`](crate::TagTime) since 1970.
    pub const RX_UTC: Key = Key::new("rx_utc");
    /// Items of the stream for each sample of the recording from which they come: a number. On the
    /// first item.
    pub const ITEMS_PER_SAMPLE: Key = Key::new("items_per_sample");
    /// The description of the recording from which the items come: a
    /// [`TagDocument`](crate::TagDocument), the `global` object of its SigMF metadata.
    pub const RECORDING: Key = Key::new("recording");
    /// The description of the part of a recording that begins here: a
    /// [`TagDocument`](crate::TagDocument), an object of `captures` of its SigMF metadata.
    pub const CAPTURE: Key = Key::new("capture");
    /// The speed of the radio's clock, where it does not run as fast as this machine's: a number,
    /// 0.5 for half as fast.
    pub const CLOCK_SPEED: Key = Key::new("clock_speed");
    /// Why items are missing in front of this one: text, the name of the cause.
    pub const LOSS_CAUSE: Key = Key::new("loss_cause");
    /// The number of items missing in front of this one: a count. Accompanies every [`LOSS_CAUSE`],
    /// in the same order.
    pub const LOSS_ITEMS: Key = Key::new("loss_items");
    /// When the item passed a latency mark, nanoseconds of its clock: a count.
    pub const PROBE_NS: Key = Key::new("probe_ns");
    /// The item of the source from which this one and those behind it come: a count of the items
    /// that entered the block which numbers, missing ones included. See
    /// [`observe::memory`](crate::observe::memory).
    pub const SOURCE_ITEM: Key = Key::new("source_item");
    /// A user's annotation of the items from here on: text, or a
    /// [`TagDocument`](crate::TagDocument), an object of `annotations` of SigMF metadata, whose
    /// text is its label or comment.
    pub const ANNOTATION: Key = Key::new("annotation");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_outside_is_the_same_key() {
        let name = String::from("rx_time");
        assert_eq!(Key::intern(&name), keys::RX_TIME);
        assert!(std::ptr::eq(Key::intern("other").name(), Key::intern("other").name()));
    }
}
