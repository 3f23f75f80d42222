//! Errors of DPDK.

use std::ffi::CStr;
use std::io;

use crate::raw;

/// The reason why EAL or a port could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DpdkError {
    /// EAL did not start, now or earlier: it can be tried once in a process.
    #[error("DPDK cannot start: {source}{}", said(.log))]
    Eal {
        /// The system's error.
        source: io::Error,
        /// The last lines of DPDK's log.
        log: String,
    },
    /// A port could not be opened.
    #[error("DPDK cannot {step}: {source}{}", said(.log))]
    Port {
        /// The step that failed.
        step: String,
        /// The system's error.
        source: io::Error,
        /// The last lines of DPDK's log.
        log: String,
    },
}

/// Returns the error of an errno of the system, or of DPDK's own numbers, which lie above.
pub(crate) fn cause(errno: i32) -> io::Error {
    const FIRST_OF_DPDK: i32 = 1001;
    if errno < FIRST_OF_DPDK {
        return io::Error::from_raw_os_error(errno);
    }
    // SAFETY: it is a string that stays until this thread's next call.
    let text = unsafe { CStr::from_ptr(raw::ms_error_text(errno)) };
    io::Error::other(text.to_string_lossy().into_owned())
}

fn said(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!(" (DPDK says: {log})") }
}

/// Returns the last lines of DPDK's log, as one.
pub(crate) fn log() -> String {
    let mut bytes = [0u8; 2048];
    // SAFETY: the shim writes at most the given number of bytes.
    let count = unsafe { raw::ms_log_take(bytes.as_mut_ptr().cast(), bytes.len()) };
    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| is_news(line)).collect();
    let last = lines.len().saturating_sub(4);
    lines[last..].join("; ")
}

/// Whether a line contains information about the failure.
fn is_news(line: &str) -> bool {
    !line.is_empty()
        && !["Detected", "Selected IOVA", "VFIO support", "TELEMETRY", "DPDK is running"]
            .iter()
            .any(|dull| line.contains(dull))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_dpdks_own_have_its_words() {
        assert_eq!(cause(libc::ENODEV).raw_os_error(), Some(libc::ENODEV));
        let secondary = cause(1001).to_string();
        assert!(secondary.contains("secondary process"), "{secondary}");
    }
}
