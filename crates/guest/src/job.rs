//! The job of a guest, and the format of its result.

use serde::{Deserialize, Serialize};

/// The guest's path of its job, by which the first process also recognises a guest.
pub const PATH: &str = "/millstream-job.json";

/// The prefix of the exit status in the guest's last line of output.
pub const STATUS_MARK: &str = "millstream-guest-status: ";

/// The work of a guest between its start and its power-off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestJob {
    /// Modules to load in this order: a file of the image, and parameters behind it.
    pub modules: Vec<String>,
    /// Files to write before the command: settings of the kernel (path, value).
    pub settings: Vec<(String, String)>,
    /// The arguments of `millstream`.
    pub arguments: Vec<String>,
    /// Whether the network interfaces are brought up before the command.
    pub up: bool,
    /// Whether the command has to leave the machine unchanged.
    pub unchanged: bool,
}

/// Splits the bytes of the output line into the command's output and its exit status. The status is
/// missing when the guest did not reach its end.
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
