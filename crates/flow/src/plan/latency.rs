//! A bound on the items under way between a source and its sinks.
//!
//! Rings of any size and blocks of any number hold items, and items that wait are old when they
//! come out. A bound says how many items of a source may be under way at most, from its output to
//! the last block that consumes them, and so how old an item can get: at `rate_hz` items per
//! second, `max_ms × rate_hz ÷ 1000` items are `max_ms` of signal. The source's room is cut to the
//! bound; batches shrink with it, and no ring need be sized by hand.
//!
//! ```toml
//! [plan.latency]
//! max_ms = 2.0          # or max_items = 2000
//! rate_hz = 1e6         # items per second of the sources; needed for max_ms
//!
//! [plan.latency.source.radio]    # one source by name, in place of the above
//! max_items = 4000
//! ```
//!
//! With `rate_hz` alone items are measured without a bound.
//!
//! The items under way are, along the path that holds the most, those in each ring and those that
//! blocks keep ([`BlockFacts`](crate::BlockFacts)), each in items of the source by the blocks'
//! [`ItemRatio`](crate::ItemRatio)s. A bound below the needs of the blocks' `min_items` is refused,
//! with the least bound that is possible.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The section `latency` of a plan: bounds for all sources, and for single ones.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Latency {
    /// Items under way at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// The same bound as time, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<Positive>,
    /// Items per second that a source gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<Positive>,
    /// Single sources, by the name of the block.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub source: BTreeMap<String, SourceLatencyLimit>,
}

/// The limit that a plan sets for one source.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SourceLatencyLimit {
    /// As [`Latency::max_items`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// As [`Latency::max_ms`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<Positive>,
    /// As [`Latency::rate_hz`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<Positive>,
}

/// A finite number above zero.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Positive(f64);

// Never NaN.
impl Eq for Positive {}

impl Positive {
    /// Returns the number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Positive {
    type Error = String;

    fn try_from(number: f64) -> Result<Self, String> {
        let good = number.is_finite() && number > 0.0;
        good.then_some(Self(number))
            .ok_or_else(|| format!("{number} is not allowed here: write a number above zero"))
    }
}

impl From<Positive> for f64 {
    fn from(number: Positive) -> Self {
        number.0
    }
}

/// The reason why a bound cannot be kept.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LatencyError {
    /// A bound for a block that is not a source.
    #[error(
        "latency.source names `{name}`, which is not a source; the sources are: {}",
        known.join(", ")
    )]
    NoSource {
        /// The name.
        name: String,
        /// The sources of the graph.
        known: Vec<String>,
    },
    /// Two bounds for one source.
    #[error(
        "latency bound of `{source_name}`: max_items and max_ms are both given: keep one of them"
    )]
    Both {
        /// The source.
        source_name: String,
    },
    /// Time without a rate.
    #[error(
        "latency bound of `{source_name}`: max_ms also needs rate_hz, the items per second of the \
         source: add it, or use max_items"
    )]
    NoRate {
        /// The source.
        source_name: String,
    },
    /// The blocks cannot work with so few.
    #[error(
        "latency bound of `{source_name}`: {bound} items are too few for its blocks; the least is \
         {least} items{}, most of them for {most}", ms(*least_ms)
    )]
    TooSmall {
        /// The source.
        source_name: String,
        /// The bound that was given, items.
        bound: u64,
        /// The least bound that is possible, items.
        least: u64,
        /// The same in milliseconds, if the rate is known.
        least_ms: Option<f64>,
        /// The block that needs most of it.
        most: String,
    },
}

fn ms(least_ms: Option<f64>) -> String {
    least_ms.map(|ms| format!(" ({ms:.3} ms)")).unwrap_or_default()
}

/// The bound and rate of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LatencyBound {
    pub(crate) bound_items: Option<u64>,
    pub(crate) rate_hz: Option<f64>,
}

impl Latency {
    /// Returns the bound and rate for the source of this name.
    pub(crate) fn wanted(&self, source: &str) -> Result<LatencyBound, LatencyError> {
        let all = SourceLatencyLimit {
            max_items: self.max_items,
            max_ms: self.max_ms,
            rate_hz: self.rate_hz,
        };
        let mut own = self.source.get(source).cloned().unwrap_or_else(|| all.clone());
        own.rate_hz = own.rate_hz.or(all.rate_hz);
        let rate_hz = own.rate_hz.map(Positive::get);
        let bound_items = match (own.max_items, own.max_ms, rate_hz) {
            (Some(_), Some(_), _) => {
                return Err(LatencyError::Both { source_name: source.to_owned() });
            }
            (None, Some(_), None) => {
                return Err(LatencyError::NoRate { source_name: source.to_owned() });
            }
            (items, None, _) => items,
            // Saturates.
            (None, Some(ms), Some(rate_hz)) => Some((ms.get() * rate_hz / 1000.0) as u64),
        };
        Ok(LatencyBound { bound_items, rate_hz })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Latency {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn time_becomes_items_at_the_rate() {
        let latency = read("max_ms = 2.0\nrate_hz = 1e6\n[source.slow]\nmax_items = 7");
        let wanted = |items| LatencyBound { bound_items: Some(items), rate_hz: Some(1e6) };
        assert_eq!(latency.wanted("radio"), Ok(wanted(2000)));
        assert_eq!(latency.wanted("slow"), Ok(wanted(7)));
        let measured = LatencyBound { bound_items: None, rate_hz: Some(1e6) };
        assert_eq!(read("rate_hz = 1e6").wanted("radio"), Ok(measured));
    }

    #[test]
    fn what_cannot_be_read_says_what_to_write() {
        let error = read("max_ms = 2.0").wanted("radio").unwrap_err().to_string();
        assert_eq!(
            error,
            "latency bound of `radio`: max_ms also needs rate_hz, the items per second of the \
             source: add it, or use max_items"
        );
        let both = read("max_ms = 2.0\nmax_items = 5\nrate_hz = 1.0").wanted("radio").unwrap_err();
        assert!(both.to_string().ends_with("keep one of them"));
        for text in ["max_ms = -1.0", "max_ms = nan", "rate_hz = 0", "max_items = -1", "max = 1"] {
            assert!(toml::from_str::<Latency>(text).is_err(), "{text}");
        }
    }
}
