//! Faults as text: `ACTION … [KEY=VALUE …]`, for programs in which people write them.

use super::held::HELD_MAX;
use super::rule::FaultEffect;
use crate::options;
use crate::options::{BadOption, Line, Parsed, maybe, number};

/// The words that begin a fault of packets, each with its keys.
pub const ACTIONS: [(&str, &[&str]); 6] = [
    ("lose", &[]),
    ("duplicate", &["copies"]),
    ("reorder", &["packets"]),
    ("delay", &["ms"]),
    ("corrupt", &["bits", "from", "to"]),
    ("truncate", &["bytes"]),
];

/// Milliseconds, as nanoseconds; at most an hour.
pub const MS: Parsed<u64> = Parsed {
    looks: "MS",
    wants: "wants milliseconds from 0 to 3600000",
    read: |text| {
        let ms: f64 = text.parse().ok()?;
        (0.0..=3_600_000.0).contains(&ms).then(|| (ms * 1e6).round() as u64)
    },
    write: |ns| (*ns as f64 / 1e6).to_string(),
};

options! {
    /// The keys of all [`ACTIONS`].
    #[derive(Debug)]
    pub struct EffectKeys {
        /// copies of each packet
        copies: u32 = 1, number("copies", 1..=100);
        /// packets that overtake it; at most as many as can be delayed
        packets: u32 = 1, number("packets", 1..=HELD_MAX as u32);
        /// its delay, milliseconds; required
        ns as "ms": Option<u64> = None, maybe(MS);
        /// bits that are inverted
        bits: u32 = 1, number("bits", 1..=10_000);
        /// the first byte that may be hit
        from: usize = 0, number("a byte", 0..=usize::MAX);
        /// the byte behind the last one that may be hit
        to: usize = usize::MAX, number("a byte", 1..=usize::MAX);
        /// most bytes that remain; required
        bytes: Option<usize> = None, maybe(number("bytes", 0..=usize::MAX));
    }
}

/// Takes an action's keys out of a line.
///
/// # Errors
/// That there is no such action, or the problem of its keys.
pub fn effect(action: &str, line: &mut Line) -> Result<FaultEffect, BadOption> {
    let known = ACTIONS.iter().find(|(name, _)| *name == action);
    let (_, names) = known.ok_or_else(|| BadOption::new(action, "is no fault"))?;
    let keys: EffectKeys = line.take_of(names)?;
    let EffectKeys { copies, packets, ns, bits, from, to, bytes } = keys;
    Ok(match action {
        "duplicate" => FaultEffect::Duplicate { copies },
        "reorder" => FaultEffect::Reorder { datagrams: packets },
        "delay" => FaultEffect::Delay { ns: needed("ms", ns)? },
        "truncate" => FaultEffect::Truncate { bytes: needed("bytes", bytes)? },
        "corrupt" if from >= to => {
            let reason = format!("must be less than to={to}");
            return Err(BadOption::new(format!("from={from}"), reason));
        }
        "corrupt" => FaultEffect::Corrupt { bits, bytes: from..to },
        _ => FaultEffect::Lose,
    })
}

/// Returns a required value.
///
/// # Errors
/// That the value is missing.
pub fn needed<T>(key: &str, value: Option<T>) -> Result<T, BadOption> {
    value.ok_or_else(|| BadOption::new(format!("{key}="), "is missing: it has no default"))
}
