//! The memory that a process may lock (getrlimit(2), RLIMIT_MEMLOCK).
//!
//! The frame memory of AF_XDP counts as locked, by user; 8 MiB is the usual limit.

use std::io;

use rustix::process::Pid;

/// Allows a process (`None`: this one) to lock `bytes` more. The limit stays until the process
/// ends.
///
/// # Errors
/// The error of prlimit(2): it needs CAP_SYS_RESOURCE beyond the hard limit.
pub fn raise(process: Option<Pid>, bytes: u64) -> io::Result<()> {
    let now = limit(process, None).map_err(failed)?;
    let raised = now.rlim_cur.saturating_add(bytes);
    if raised == libc::RLIM_INFINITY {
        return Ok(());
    }
    let wanted = libc::rlimit { rlim_cur: raised, rlim_max: now.rlim_max.max(raised) };
    limit(process, Some(wanted)).map(drop).map_err(failed)
}

fn failed(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("RLIMIT_MEMLOCK cannot be raised: {error}"))
}

/// Returns how much of `bytes` more a process may be allowed without exceeding `most` in total:
/// repeated requests get no more.
///
/// # Errors
/// The error of prlimit(2).
pub fn room(process: i32, bytes: u64, most: u64) -> io::Result<u64> {
    let now = limit(Pid::from_raw(process), None).map_err(failed)?.rlim_cur;
    Ok(most.saturating_sub(now).min(bytes))
}

/// Returns the limit of a process, for [`put_back`] when another process got the allowance by
/// mistake.
///
/// # Errors
/// The error of prlimit(2).
pub fn of(process: i32) -> io::Result<libc::rlimit> {
    limit(Pid::from_raw(process), None).map_err(failed)
}

/// Restores the previous limit of a process.
pub fn put_back(process: i32, before: libc::rlimit) {
    // The process may have ended, too.
    let _ = limit(Pid::from_raw(process), Some(before));
}

/// Returns how much this process may lock, including the memory of its user's other links.
#[must_use]
pub fn lockable_bytes() -> u64 {
    use rustix::thread::{CapabilitySet, capabilities};
    let unlimited = |has: CapabilitySet| has.contains(CapabilitySet::IPC_LOCK);
    match capabilities(None) {
        Ok(sets) if unlimited(sets.effective) => u64::MAX,
        _ => limit(None, None).map_or(0, |now| now.rlim_cur),
    }
}

/// Returns the previous limit; sets it to `new` if one is given.
fn limit(process: Option<Pid>, new: Option<libc::rlimit>) -> io::Result<libc::rlimit> {
    let process = process.map_or(0, Pid::as_raw_pid);
    let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `new` is null or a limit that lives through the call; `old` is written.
    if unsafe { libc::prlimit(process, libc::RLIMIT_MEMLOCK, new, &raw mut old) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn whoever_asks_again_and_again_gets_no_more_than_there_is() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Pid::from_child(&child);
        let before = limit(Some(process), None).unwrap().rlim_cur;
        let most = before.saturating_add(10_000);
        for _ in 0..5 {
            let room = room(process.as_raw_pid(), 4096, most).unwrap();
            if let Err(error) = raise(Some(process), room) {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            }
        }
        let after = limit(Some(process), None).unwrap().rlim_cur;
        assert!(after == most || after == before, "{before}, {after}");
        assert_eq!(room(process.as_raw_pid(), 4096, 0).unwrap(), 0);
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn the_limit_of_another_process_grows_where_that_is_allowed() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Pid::from_child(&child);
        let before = limit(None, None).unwrap().rlim_cur;
        let raised = raise(Some(process), 4096);
        match raised {
            Ok(()) => {
                let after = limit(Some(process), None).unwrap().rlim_cur;
                assert_eq!(after, before.saturating_add(4096));
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
        assert_eq!(limit(None, None).unwrap().rlim_cur, before, "and only its");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
