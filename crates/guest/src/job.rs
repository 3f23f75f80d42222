//! What a guest is to do, and how it says what came of it.

use serde::{Deserialize, Serialize};

/// Where the guest finds its job, and by what its first process knows that it is one.
pub const PATH: &str = "/millstream-job.json";

/// Stands before the exit status in the guest's last line of output.
pub const STATUS_MARK: &str = "millstream-guest-status: ";

/// What a guest does between its start and its power-off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestJob {
    /// Modules to load in this order: a file of the image, and parameters behind it.
    pub modules: Vec<String>,
    /// Files to write before the command: settings of the kernel (path, value).
    pub settings: Vec<(String, String)>,
    /// Arguments of the `millstream` that is run.
    pub arguments: Vec<String>,
    /// Whether the command has to leave the machine as it found it.
    pub unchanged: bool,
}

/// Parts what came over the output line into the command's output and its exit status. The status
/// is missing when the guest did not come to its end.
#[must_use]
pub fn split(raw: &str) -> (&str, Option<i32>) {
    match raw.rfind(STATUS_MARK) {
        Some(at) => {
            let status = raw[at + STATUS_MARK.len()..].lines().next();
            (&raw[..at], status.and_then(|status| status.trim().parse().ok()))
        }
        None => (raw, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mark_counts() {
        let raw = format!("{{\"a\": 1}}\n{STATUS_MARK}7\nx\n{STATUS_MARK}3\n");
        let (output, status) = split(&raw);
        assert!(output.ends_with("x\n"));
        assert_eq!(status, Some(3));
    }

    #[test]
    fn a_line_that_broke_off_has_no_status() {
        assert_eq!(split("half a docu"), ("half a docu", None));
        assert_eq!(split(&format!("x\n{STATUS_MARK}")).1, None);
    }
}
