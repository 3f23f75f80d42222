//! Profiles as data.

use millstream_cpu::CpuSet;
use serde::{Deserialize, Serialize};

/// The profiles that come with the program.
const BUILTIN: &str = include_str!("profiles.toml");

/// What runs beside a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadProfile {
    /// Its name.
    pub name: String,
    /// What it stands for.
    pub about: String,
    /// Its parts; none: idle.
    #[serde(default, rename = "worker")]
    pub workers: Vec<LoadWorker>,
}

/// A part of a profile: threads that do the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadWorker {
    /// What they do.
    #[serde(flatten)]
    pub kind: LoadKind,
    /// Where they run.
    pub on: Spot,
    /// How many; a timer has as many on each CPU, the others together.
    #[serde(default = "one")]
    pub count: usize,
}

fn one() -> usize {
    1
}

/// What a worker does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum LoadKind {
    /// Wakes up by the clock, as SCHED_FIFO: a load of timer interrupts.
    Timer {
        /// SCHED_FIFO.
        priority: u8,
        /// From wake-up to wake-up.
        interval_us: u64,
    },
    /// Computes.
    Cpu,
    /// Takes memory of this size, touches every page and gives it back: page faults.
    Memory {
        /// Bytes.
        bytes: usize,
    },
    /// Sends datagrams of this size within a network namespace of its own.
    Flood {
        /// Bytes.
        bytes: usize,
    },
    /// Writes all over memory of this size: caches.
    Thrash {
        /// Bytes.
        bytes: usize,
    },
    /// Writes so much to a file, syncs, and starts again.
    Io {
        /// Bytes.
        bytes: usize,
    },
    /// Pairs of threads that wake each other up.
    Chatter,
    /// Another program.
    Program {
        /// It and its arguments.
        command: Vec<String>,
    },
}

/// Which CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spot {
    /// Those whose latency is not measured; all where none is left.
    System,
    /// Those whose latency is measured.
    Measured,
    /// All.
    All,
}

impl Spot {
    /// The CPUs, of those that are allowed.
    #[must_use]
    pub fn cpus(self, allowed: &CpuSet, measured: &CpuSet) -> CpuSet {
        let system: CpuSet = allowed.iter().filter(|cpu| !measured.contains(*cpu)).collect();
        match self {
            Self::Measured => measured.clone(),
            Self::System if !system.is_empty() => system,
            Self::System | Self::All => allowed.clone(),
        }
    }
}

impl LoadWorker {
    /// Its name in reports.
    #[must_use]
    pub fn title(&self) -> String {
        let spot = match self.on {
            Spot::System => "system",
            Spot::Measured => "measured",
            Spot::All => "all",
        };
        let what = match &self.kind {
            LoadKind::Timer { priority, .. } => format!("timer fifo:{priority}"),
            LoadKind::Cpu => "cpu".to_owned(),
            LoadKind::Memory { .. } => "memory".to_owned(),
            LoadKind::Flood { .. } => "flood".to_owned(),
            LoadKind::Thrash { .. } => "thrash".to_owned(),
            LoadKind::Io { .. } => "io".to_owned(),
            LoadKind::Chatter => "chatter".to_owned(),
            LoadKind::Program { command } => command.first().cloned().unwrap_or_default(),
        };
        format!("{what} x{} on {spot}", self.count)
    }
}

/// Why profiles cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file is wrong.
    #[error("load profiles: {0}")]
    Syntax(#[from] toml::de::Error),
    /// There is no such profile.
    #[error("there is no load profile `{name}`; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
}

/// A set of profiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profiles {
    /// By name.
    #[serde(default, rename = "profile")]
    pub all: Vec<LoadProfile>,
}

impl Profiles {
    /// Those that come with the program.
    ///
    /// # Panics
    /// Never: a test reads them.
    #[must_use]
    pub fn builtin() -> Self {
        Self::parse(BUILTIN).expect("the profiles that come with the program are right")
    }

    /// Reads a file of profiles.
    ///
    /// # Errors
    /// [`ProfileError::Syntax`].
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        Ok(toml::from_str(text)?)
    }

    /// The profile of this name; of several, the last.
    ///
    /// # Errors
    /// [`ProfileError::Unknown`].
    pub fn get(&self, name: &str) -> Result<&LoadProfile, ProfileError> {
        self.all.iter().rev().find(|profile| profile.name == name).ok_or_else(|| {
            let known: Vec<_> = self.all.iter().map(|profile| &*profile.name).collect();
            ProfileError::Unknown { name: name.to_owned(), known: known.join(", ") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profiles_of_the_program_are_right() {
        let profiles = Profiles::builtin();
        assert!(profiles.get("idle").unwrap().workers.is_empty());
        let talk = profiles.get("talk").unwrap();
        let titles: Vec<_> = talk.workers.iter().map(LoadWorker::title).collect();
        assert_eq!(
            titles,
            [
                "timer fifo:98 x1 on system",
                "timer fifo:99 x1 on system",
                "cpu x8 on system",
                "memory x8 on system",
                "timer fifo:98 x1 on measured",
            ]
        );
        let error = profiles.get("none").unwrap_err().to_string();
        assert!(error.contains("`none`; there are idle, talk, flood"), "{error}");
    }

    #[test]
    fn the_system_has_the_cpus_that_are_not_measured() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        let (all, one) = (set("0-3"), set("3"));
        assert_eq!(Spot::System.cpus(&all, &one), set("0-2"));
        assert_eq!(Spot::Measured.cpus(&all, &one), one);
        assert_eq!(Spot::System.cpus(&one, &one), one, "there is no other");
    }
}
