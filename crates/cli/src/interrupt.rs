//! SIGINT, SIGTERM and SIGHUP ask what runs to end in order; a second one ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(signal: libc::c_int) {
    if ASKED.swap(true, Ordering::Relaxed) {
        // SAFETY: `_exit` is async-signal-safe.
        unsafe { libc::_exit(128 + signal) }
    }
}

/// Installs the handlers. Verbs call this when there is something to end in order; until then a
/// signal simply ends the process. Interrupted system calls restart: nobody needs to know EINTR.
pub fn install() {
    let handler = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only touches an atomic and `_exit`, both async-signal-safe.
        let before = unsafe { libc::signal(signal, handler) };
        if signal == libc::SIGHUP && before == libc::SIG_IGN {
            // Somebody said `nohup`.
            // SAFETY: plain system call that restores what was there.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
}

/// Somebody asked the process to end.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
