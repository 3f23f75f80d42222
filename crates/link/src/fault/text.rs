//! Faults as text: `ACTION … [KEY=VALUE …]`, for programs in which people write them.

use super::held::HELD_MAX;
use super::rule::{FaultEffect, Select};

/// Words that begin a fault.
pub const ACTIONS: [&str; 6] = ["lose", "duplicate", "reorder", "delay", "corrupt", "truncate"];

/// The limit of copies of one packet.
const COPIES_MAX: u32 = 100;
const BITS_MAX: u32 = 10_000;

/// The most packets that may overtake another: the most that are delayed.
const PACKETS_MAX: u32 = HELD_MAX as u32;

/// Returns the effect of one of [`ACTIONS`].
///
/// # Errors
/// The problem of its keys.
pub fn effect(action: &str, keys: &mut Keys<'_>) -> Result<FaultEffect, String> {
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Ok(match action {
        "duplicate" => {
            FaultEffect::Duplicate { copies: keys.small("copies", COPIES_MAX)?.unwrap_or(1) }
        }
        "reorder" => {
            FaultEffect::Reorder { datagrams: keys.small("packets", PACKETS_MAX)?.unwrap_or(1) }
        }
        "delay" => FaultEffect::Delay { ns: needed("ms", keys.ms("ms")?)? },
        "truncate" => {
            FaultEffect::Truncate { bytes: place(needed("bytes", keys.number("bytes", 0)?)?) }
        }
        "corrupt" => {
            let bits = keys.small("bits", BITS_MAX)?.unwrap_or(1);
            let from = keys.number("from", 0)?.map_or(0, place);
            let to = keys.number("to", 1)?.map_or(usize::MAX, place);
            if from >= to {
                return Err(format!("from={from} must be less than to={to}"));
            }
            FaultEffect::Corrupt { bits, bytes: from..to }
        }
        "lose" => FaultEffect::Lose,
        _ => return Err(format!("`{action}` is not the name of a fault")),
    })
}

/// Returns the selection of packets: `skip`, `every`, `count`, `p` and `seed`. The caller sets
/// times.
///
/// # Errors
/// The problem of these keys.
pub fn select(keys: &mut Keys<'_>) -> Result<Select, String> {
    let all = Select::default();
    Ok(Select {
        skip: keys.number("skip", 0)?.unwrap_or(all.skip),
        every: keys.number("every", 1)?.unwrap_or(all.every),
        count: keys.number("count", 1)?,
        probability: keys.chance("p")?.unwrap_or(all.probability),
        seed: keys.number("seed", 0)?.unwrap_or(all.seed),
        ..all
    })
}

/// Returns a required value.
///
/// # Errors
/// That the value is missing.
pub fn needed<T>(key: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("the fault needs `{key}=`"))
}

/// Returns the value of one of several words.
///
/// # Errors
/// That the word is missing, or not one of them.
pub fn choose<T: Copy>(what: &str, word: Option<&str>, names: &[(&str, T)]) -> Result<T, String> {
    let known = || names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let word = word.ok_or_else(|| format!("the {what} is missing; give one of {}", known()))?;
    let found = names.iter().find(|(name, _)| *name == word);
    let value = found.map(|(_, value)| *value);
    value.ok_or_else(|| format!("there is no {what} `{word}`; give one of {}", known()))
}

/// The longest time, milliseconds: an hour.
const MS_MAX: f64 = 3_600_000.0;

/// Keys and their values; each may be taken once, and all must be.
#[derive(Debug)]
pub struct Keys<'a> {
    /// The keys that were not taken yet.
    left: Vec<(&'a str, &'a str)>,
    asked: Vec<String>,
}

impl<'a> Keys<'a> {
    /// Reads the keys in `words`.
    ///
    /// # Errors
    /// The first word that is not a `key=value`, or comes twice.
    pub fn new(words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut keys: Vec<(&str, &str)> = Vec::new();
        for word in words {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| format!("`{word}` is not of the form key=value"))?;
            if keys.iter().any(|(other, _)| *other == key) {
                return Err(format!("`{key}` is given twice"));
            }
            keys.push((key, value));
        }
        Ok(Self { left: keys, asked: Vec::new() })
    }

    /// Takes a value that `accept` understands, if the key is present; `wants` describes such
    /// values.
    ///
    /// # Errors
    /// That `accept` does not understand the value.
    pub fn take<T>(
        &mut self,
        key: &str,
        wants: &str,
        accept: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        self.asked.push(key.to_owned());
        let Some(index) = self.left.iter().position(|(other, _)| *other == key) else {
            return Ok(None);
        };
        let (_, value) = self.left.remove(index);
        accept(value).map(Some).ok_or_else(|| format!("`{key}={value}` wants {wants}"))
    }

    /// Takes a whole number from `least` on.
    ///
    /// # Errors
    /// As [`Keys::take`].
    pub fn number(&mut self, key: &str, least: u64) -> Result<Option<u64>, String> {
        let wants = format!("a whole number from {least} on");
        self.take(key, &wants, |value| value.parse().ok().filter(|&number| number >= least))
    }

    /// Takes a whole number from 1 to `most`.
    ///
    /// # Errors
    /// As [`Keys::take`].
    pub fn small(&mut self, key: &str, most: u32) -> Result<Option<u32>, String> {
        let wants = format!("a whole number from 1 to {most}");
        self.take(key, &wants, |value| value.parse().ok().filter(|n| (1..=most).contains(n)))
    }

    /// Takes a probability.
    ///
    /// # Errors
    /// As [`Keys::take`].
    pub fn chance(&mut self, key: &str) -> Result<Option<f64>, String> {
        let accept = |value: &str| value.parse().ok().filter(|p| (0.0..=1.0).contains(p));
        self.take(key, "a probability from 0 to 1", accept)
    }

    /// Takes a time in milliseconds, as nanoseconds.
    ///
    /// # Errors
    /// As [`Keys::take`].
    pub fn ms(&mut self, key: &str) -> Result<Option<u64>, String> {
        let accept = |value: &str| {
            let ms = value.parse().ok().filter(|ms| (0.0..=MS_MAX).contains(ms))?;
            Some((ms * 1e6).round() as u64)
        };
        self.take(key, "milliseconds from 0 to 3600000", accept)
    }

    /// Checks that all keys were taken.
    ///
    /// # Errors
    /// The first key that was not taken, and those that were.
    pub fn finish(self) -> Result<(), String> {
        match self.left.first() {
            Some((key, _)) => {
                let keys = self.asked.join(", ");
                Err(format!("this fault has no key `{key}`; its keys are {keys}"))
            }
            None => Ok(()),
        }
    }
}
