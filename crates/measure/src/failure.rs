//! A start without a result: stored with its run, so that the report names what is missing.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A start and the reason why it has no result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The run of the start.
    pub run: String,
    /// The compared side: a kernel, an option; may be empty.
    pub variant: String,
    /// The plan's name of the measurement, or `boot`.
    pub name: String,
    /// The load during it.
    pub load: String,
    /// The number of the start, from 0.
    pub restart: u32,
    /// The number of tries.
    pub tries: u32,
    /// The reason, in words.
    pub reason: String,
    /// Whether it is a part of a start that has other records. Such a start is not repeated.
    #[serde(default)]
    pub partial: bool,
}

/// In a file with records, each failure is a line of its own.
#[derive(Serialize, Deserialize)]
struct FailureLine {
    failure: Failure,
}

impl Failure {
    /// Returns the failure as a line without its end, for files of records.
    ///
    /// # Panics
    /// Never: all parts are text and numbers.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(&FailureLine { failure: self.clone() }).expect("text and numbers")
    }

    /// Reads a line; `None` when it is not a failure.
    #[must_use]
    pub fn of_line(line: &str) -> Option<Self> {
        serde_json::from_str::<FailureLine>(line).ok().map(|line| line.failure)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variant, name, load, restart, tries, reason, .. } = self;
        let colon = if variant.is_empty() { "" } else { ": " };
        let times = if *tries == 1 { "time" } else { "times" };
        let start = restart + 1;
        write!(f, "{variant}{colon}{name} | {load}, start {start}, tried {tries} {times}: {reason}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_a_line_that_reads_back_the_same_and_a_text() {
        let (variant, name) = ("6.1 x".to_owned(), "boot".to_owned());
        let reason = "the guest\nsaid nothing".to_owned();
        let failure = Failure { variant, name, tries: 2, reason, ..Failure::default() };
        let line = failure.to_line();
        assert!(!line.contains('\n'));
        assert_eq!(Failure::of_line(&line).as_ref(), Some(&failure));
        assert_eq!(Failure::of_line("{\"format\": 1}"), None);
        let text = failure.to_string();
        assert!(text.starts_with("6.1 x: boot | , start 1, tried 2 times: the guest"), "{text}");
    }
}
