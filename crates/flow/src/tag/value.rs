//! Values of tags.

use super::TagDocument;
use std::fmt;
use std::time::Duration;

/// The value of a tag: plain data, never on the heap.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TagValue {
    /// A count.
    Count(u64),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// A moment.
    Time(TagTime),
    /// A few words.
    Text(ShortText),
    /// Text of any length, with a document in JSON.
    Document(TagDocument),
}

impl TagValue {
    /// Makes a text value, cut at a character boundary to the size of a [`ShortText`].
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(ShortText::new(text))
    }

    /// Returns the value as a number, if it is one.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Self::Count(n) => Some(n as f64),
            Self::Integer(n) => Some(n as f64),
            Self::Number(x) => Some(x),
            Self::Time(time) => Some(time.as_secs_f64()),
            Self::Boolean(_) | Self::Text(_) | Self::Document(_) => None,
        }
    }

    /// Returns the text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.as_str()),
            Self::Document(document) => Some(document.text()),
            _ => None,
        }
    }

    /// Returns the count, if it is one.
    #[must_use]
    pub fn as_count(self) -> Option<u64> {
        match self {
            Self::Count(n) => Some(n),
            _ => None,
        }
    }
}

impl fmt::Display for TagValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(n) => n.fmt(f),
            Self::Integer(n) => n.fmt(f),
            Self::Number(x) => x.fmt(f),
            Self::Boolean(b) => b.fmt(f),
            Self::Time(time) => time.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::Document(document) => f.pad(document.text()),
        }
    }
}

macro_rules! from {
    ($($T:ty => $Kind:ident),*) => {$(
        impl From<$T> for TagValue {
            fn from(value: $T) -> Self {
                Self::$Kind(value)
            }
        }
    )*};
}

from!(
    u64 => Count, i64 => Integer, f64 => Number, bool => Boolean, TagTime => Time,
    TagDocument => Document
);

/// 2^52: floats above it have whole numbers only, and not all of them.
const RATE_MAX_HZ: f64 = 4_503_599_627_370_496.0;

/// A moment: seconds since the epoch of its source, and a binary fraction.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TagTime {
    /// Whole seconds.
    pub seconds: u64,
    /// The rest, in units of 2⁻⁶⁴ s.
    pub fraction: u64,
}

impl TagTime {
    /// Returns the moment of tick `ticks` of a clock of `rate_hz`. For a whole number of hertz, as
    /// clocks have, exact to the last bit of the fraction (rounded up); otherwise with the
    /// precision of a float.
    #[must_use]
    pub fn from_ticks(ticks: u64, rate_hz: f64) -> Self {
        if rate_hz >= 1.0 && rate_hz.fract() == 0.0 && rate_hz < u64::MAX as f64 {
            let rate = rate_hz as u64;
            let rest = u128::from(ticks % rate);
            // Below 2^64, because the rest is below the rate. Rounded up, so that rounding down
            // to nanoseconds does not lose one.
            let fraction = (rest << 64).div_ceil(u128::from(rate));
            return Self { seconds: ticks / rate, fraction: fraction as u64 };
        }
        let seconds = ticks as f64 / rate_hz;
        Self { seconds: seconds as u64, fraction: (seconds.fract() * 2f64.powi(64)) as u64 }
    }

    /// Returns the tick of a clock of `rate_hz` that is nearest to this moment, exactly, however
    /// long the clock has run. `None` for a rate below one hertz or beyond a float's whole numbers,
    /// or a tick beyond 64 bits.
    #[must_use]
    pub fn to_ticks(self, rate_hz: f64) -> Option<u64> {
        if !(1.0..=RATE_MAX_HZ).contains(&rate_hz) {
            return None;
        }
        // A float is a whole number of 53 bits and a power of two.
        let exponent = (rate_hz.to_bits() >> 52) as i32 - 1075;
        let mantissa = u128::from((rate_hz.to_bits() & ((1 << 52) - 1)) | (1 << 52));
        let shift = exponent.unsigned_abs();
        // Ticks in units of 2^-shift, without the part below one unit.
        let units =
            u128::from(self.seconds) * mantissa + ((u128::from(self.fraction) * mantissa) >> 64);
        let rounded = match shift {
            0 => units + (((u128::from(self.fraction) * mantissa) >> 63) & 1),
            _ => (units + (1 << (shift - 1))) >> shift,
        };
        u64::try_from(rounded).ok()
    }

    /// Returns the moment `seconds` later (or earlier, if negative); `None` before the epoch and
    /// beyond 64 bits of seconds.
    #[must_use]
    pub fn later(self, seconds: f64) -> Option<Self> {
        let length = seconds.abs();
        let fraction = u128::from((length.fract() * 2f64.powi(64)) as u64);
        let length = (u128::from(length as u64) << 64) + fraction;
        let now = (u128::from(self.seconds) << 64) + u128::from(self.fraction);
        let then = if seconds < 0.0 { now.checked_sub(length) } else { now.checked_add(length) }?;
        Some(Self { seconds: (then >> 64) as u64, fraction: then as u64 })
    }

    /// Seconds as a float: exact to a microsecond for some centuries.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.seconds as f64 + self.fraction as f64 / 2f64.powi(64)
    }

    /// Nanoseconds of the fraction, rounded down.
    #[must_use]
    pub fn subsec_nanos(self) -> u32 {
        ((u128::from(self.fraction) * 1_000_000_000) >> 64) as u32
    }
}

impl From<Duration> for TagTime {
    /// Converts a time since the epoch.
    fn from(time: Duration) -> Self {
        let nanos = u128::from(time.subsec_nanos()) << 64;
        // Rounded up, so that rounding down gives the same nanosecond back.
        Self { seconds: time.as_secs(), fraction: nanos.div_ceil(1_000_000_000) as u64 }
    }
}

impl fmt::Display for TagTime {
    /// Seconds with nine digits behind the point.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{:09} s", self.seconds, self.subsec_nanos()))
    }
}

/// Text of up to 22 bytes, in place.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct ShortText {
    bytes: u8,
    text: [u8; Self::MAX_BYTES],
}

impl ShortText {
    /// The longest text, bytes.
    pub const MAX_BYTES: usize = 22;

    /// Cuts `text` at a character boundary to the size that fits.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let ends = text.char_indices().map(|(start, c)| start + c.len_utf8());
        let bytes = ends.take_while(|end| *end <= Self::MAX_BYTES).last().unwrap_or(0);
        let mut short = Self { bytes: bytes as u8, text: [0; Self::MAX_BYTES] };
        short.text[..bytes].copy_from_slice(&text.as_bytes()[..bytes]);
        short
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Always whole characters, see `new`.
        std::str::from_utf8(&self.text[..usize::from(self.bytes)]).unwrap_or_default()
    }
}

impl fmt::Debug for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_less_than_a_cache_line() {
        assert_eq!((size_of::<TagValue>(), size_of::<crate::Tag>()), (24, 48));
    }

    #[test]
    fn ticks_become_times_exactly() {
        let ticks = 7 * 122_880_000 + 61_440_000;
        let time = TagTime::from_ticks(ticks, 122_880_000.0);
        assert_eq!(time, TagTime { seconds: 7, fraction: 1 << 63 });
        assert_eq!(TagTime::from_ticks(3, 2.0).to_string(), "1.500000000 s");
        assert_eq!(TagTime::from_ticks(52, 20.0).to_string(), "2.600000000 s");
        assert_eq!(TagTime::from_ticks(1, 0.5).as_secs_f64(), 2.0);
        let last = TagTime::from_ticks(u64::MAX, 1.0);
        assert_eq!((last.seconds, last.fraction), (u64::MAX, 0));
    }

    #[test]
    fn nanoseconds_come_back() {
        for nanos in [0, 1, 333_333_333, 999_999_999] {
            assert_eq!(TagTime::from(Duration::new(5, nanos)).subsec_nanos(), nanos);
        }
    }

    #[test]
    fn text_is_cut_at_a_character() {
        assert_eq!(ShortText::new("overrun").as_str(), "overrun");
        assert_eq!(ShortText::new("ééééééééééé").as_str(), "ééééééééééé");
        assert_eq!(ShortText::new("xééééééééééé").as_str(), "xéééééééééé");
    }

    #[test]
    fn a_moment_is_the_tick_that_it_came_from() {
        // Unix time at a radio's rate: more than the 53 bits of a float.
        for rate_hz in [1.0, 48e3, 6.25e6, 61.44e6, 100e6, RATE_MAX_HZ] {
            for seconds in [0u64, 1, 1_793_000_000] {
                for rest in [0, 1, 7, rate_hz as u64 - 1] {
                    let ticks = u128::from(seconds) * rate_hz as u128 + u128::from(rest);
                    let Ok(ticks) = u64::try_from(ticks) else { continue };
                    let time = TagTime::from_ticks(ticks, rate_hz);
                    assert_eq!(time.to_ticks(rate_hz), Some(ticks), "{seconds} s at {rate_hz}");
                }
            }
        }
        // A rate that is not a whole number: the nearest tick.
        let at = |seconds, fraction| TagTime { seconds, fraction };
        assert_eq!(at(1_793_000_000, 0).to_ticks(2.5), Some(4_482_500_000));
        assert_eq!([at(1, 0), at(3, 0)].map(|time| time.to_ticks(2.5)), [Some(3), Some(8)]);
        assert_eq!(at(0, 1 << 63).to_ticks(6.5), Some(3));
        assert_eq!([0.5, f64::NAN, f64::INFINITY].map(|rate| at(1, 0).to_ticks(rate)), [None; 3]);
        assert_eq!(at(u64::MAX, 0).to_ticks(61.44e6), None);
    }
}
