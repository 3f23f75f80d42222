//! SIGINT, SIGTERM and SIGHUP request an orderly end; a second one ends the process at once.
//!
//! One request often arrives twice: `timeout` signals its child and then the group that the child
//! is in, `make` and `sudo` forward the terminal's signal to all. Signals within
//! `SAME_REQUEST_NS` is the same request.

use rustix::process::{Pid, Signal, kill_process};
use std::process::Child;
use std::sync::atomic::{AtomicI64, Ordering};

/// Signals closer than this are one request, nanoseconds.
const SAME_REQUEST_NS: i64 = 300_000_000;

/// The time of the first request, monotonic nanoseconds; 0 without a request.
static ASKED_NS: AtomicI64 = AtomicI64::new(0);

extern "C" fn on_signal(signal: libc::c_int) {
    let now_ns = now_ns();
    let first = ASKED_NS.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|first_ns| is_another(first_ns, now_ns)) {
        // SAFETY: `_exit` is async-signal-safe.
        unsafe { libc::_exit(128 + signal) }
    }
}

/// Whether a signal is a second request.
fn is_another(first_ns: i64, now_ns: i64) -> bool {
    now_ns - first_ns > SAME_REQUEST_NS
}

/// Monotonic time, at least 1.
fn now_ns() -> i64 {
    // `clock_gettime` is async-signal-safe.
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec * 1_000_000_000 + now.tv_nsec).max(1)
}

/// Installs the handlers. Verbs call this when there is work to end in order; until then a signal
/// ends the process. Interrupted system calls restart, so that no caller sees EINTR.
pub fn install() {
    millstream_radio::rpc::end_waits_if(asked);
    let handler = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler reads a clock, touches an atomic and may call `_exit`, all of which
        // are async-signal-safe.
        let before = unsafe { libc::signal(signal, handler) };
        if signal == libc::SIGHUP && before == libc::SIG_IGN {
            // The signal was ignored, as under `nohup`. SAFETY: plain system call that restores the
            // former state.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
}

/// Lets a write beyond `ulimit -f` fail with an error that says so; by default SIGXFSZ kills the
/// process. Programs that this one starts have the default again (execve(2) resets handlers).
pub fn survive_file_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    let handler = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGXFSZ, handler) };
}

/// Asks the process to end, as the user does by a signal.
pub fn ask() {
    let _ = ASKED_NS.compare_exchange(0, now_ns(), Ordering::Relaxed, Ordering::Relaxed);
}

/// Whether the user asked the process to end.
pub fn asked() -> bool {
    ASKED_NS.load(Ordering::Relaxed) != 0
}

/// Fails if the user asked the process to end before `what` was so.
pub fn check(what: &str) -> anyhow::Result<()> {
    anyhow::ensure!(!asked(), "interrupted before {what}: run the command again");
    Ok(())
}

/// Forwards a request to a child, once: `told` says whether that was done.
pub fn forward(child: &Child, told: &mut bool) {
    if asked() && !std::mem::replace(told, true) {
        // It may just have ended.
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_come_together_are_one_request() {
        assert!(!is_another(5, 5 + SAME_REQUEST_NS));
        assert!(is_another(5, 6 + SAME_REQUEST_NS));
    }
}
