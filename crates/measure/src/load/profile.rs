//! Load profiles as data.

use millstream_cpu::CpuSet;
use serde::{Deserialize, Serialize};

/// The profiles that come with the program.
const BUILTIN: &str = include_str!("profiles.toml");

/// A load that runs during a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadProfile {
    /// Its name.
    pub name: String,
    /// The situation that it represents.
    pub about: String,
    /// Its parts; empty: idle.
    #[serde(default, rename = "worker")]
    pub workers: Vec<LoadWorker>,
}

/// A part of a profile: threads with the same work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadWorker {
    /// The work of the threads.
    #[serde(flatten)]
    pub kind: LoadKind,
    /// The CPUs of the threads.
    pub on: Spot,
    /// The number of threads; a timer has as many on each CPU, the others in total.
    #[serde(default = "one")]
    pub count: usize,
}

fn one() -> usize {
    1
}

/// The work of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum LoadKind {
    /// Wakes up by the clock, as SCHED_FIFO: a load of timer interrupts.
    Timer {
        /// The priority in SCHED_FIFO.
        priority: u8,
        /// The time between wake-ups.
        interval_us: u64,
    },
    /// Computes.
    Cpu,
    /// Allocates memory of this size, touches every page and frees it: page faults.
    Memory {
        /// Bytes.
        bytes: usize,
    },
    /// Sends datagrams of this size within a network namespace of its own.
    Flood {
        /// Bytes.
        bytes: usize,
    },
    /// Writes to random places in memory of this size: cache misses.
    Thrash {
        /// Bytes.
        bytes: usize,
    },
    /// Writes this many bytes to a file, syncs, and starts again.
    Io {
        /// Bytes.
        bytes: usize,
    },
    /// Pairs of threads that wake each other up.
    Chatter,
    /// Another program.
    Program {
        /// The program and its arguments.
        command: Vec<String>,
    },
}

/// A choice of CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spot {
    /// The CPUs whose latency is not measured; all when there are no others.
    System,
    /// The CPUs whose latency is measured.
    Measured,
    /// All.
    All,
}

impl Spot {
    /// Selects the CPUs from the allowed ones.
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
    /// Returns the name in reports.
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

/// The reason why profiles cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file is wrong.
    #[error("cannot read the load profiles: {0}")]
    Syntax(#[from] toml::de::Error),
    /// There is no such profile.
    #[error("there is no load profile `{name}`; there are: {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The known profiles.
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
    /// Returns the profiles that come with the program.
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

    /// Returns the profile of this name; of several, the last.
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
        assert!(error.contains("`none`; there are: idle, talk, flood"), "{error}");
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
