//! SIGINT and SIGTERM ask every verb to end in order; a second one ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_signal: libc::c_int) {
    if ASKED.swap(true, Ordering::Relaxed) {
        // SAFETY: `_exit` is async-signal-safe.
        unsafe { libc::_exit(130) }
    }
}

/// Installs the handler. Interrupted system calls restart, so no verb needs to know about EINTR.
pub fn install() {
    let handler = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only touches an atomic and `_exit`, both async-signal-safe.
        unsafe { libc::signal(signal, handler) };
    }
}

/// Somebody asked the process to end.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
