//! Sets of CPUs in the kernel's list format (Documentation/admin-guide/cputopology.rst).

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The largest CPU number accepted: the kernel has at most 8192 CPUs. The fuzzer's machines are
/// smaller, because a file of each CPU is looked for.
const MAX_CPU: usize = if cfg!(fuzzing) { 63 } else { 8191 };

/// A set of CPU numbers, written like `0-3,8`.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CpuSet(BTreeSet<usize>);

impl CpuSet {
    /// Iterates over the CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// Returns the number of CPUs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set has no CPU.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Formats the set for messages: `CPU 1`, `CPUs 2-3`.
    #[must_use]
    pub fn named(&self) -> String {
        format!("CPU{} {self}", if self.len() == 1 { "" } else { "s" })
    }

    /// Whether `cpu` belongs to the set.
    #[must_use]
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

/// Text that is not a CPU list.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a list of CPUs: write numbers and ranges, for example `0-3,8`")]
pub struct ParseCpuSetError(String);

impl FromStr for CpuSet {
    type Err = ParseCpuSetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || ParseCpuSetError(text.to_owned());
        let number =
            |part: &str| part.parse::<usize>().ok().filter(|cpu| *cpu <= MAX_CPU).ok_or_else(fail);
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(fail());
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.0.iter().copied().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            if first == last {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_read_and_write_alike() {
        for text in ["", "0", "0-3", "0,2,4", "0-3,8-11,15"] {
            assert_eq!(text.parse::<CpuSet>().unwrap().to_string(), text);
        }
        assert_eq!("3,0-1,2\n".parse::<CpuSet>().unwrap().to_string(), "0-3");
    }

    #[test]
    fn one_cpu_is_named_as_one() {
        let named = |text: &str| text.parse::<CpuSet>().unwrap().named();
        assert_eq!([named("1"), named("2-3"), named("0,4")], ["CPU 1", "CPUs 2-3", "CPUs 0,4"]);
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for text in ["x", "3-1", "-1", "0-99999999", "1-"] {
            let error = text.parse::<CpuSet>().unwrap_err().to_string();
            let expected = format!(
                "`{text}` is not a list of CPUs: write numbers and ranges, for example `0-3,8`"
            );
            assert_eq!(error, expected);
        }
    }
}
