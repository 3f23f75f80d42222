//! The live line: rewritten in place on a terminal, a line every second elsewhere. Always standard error.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A status line on standard error.
pub struct Live {
    terminal: bool,
    silent: bool,
    shown: bool,
    last: Option<Instant>,
}

impl Live {
    /// A line that adapts to what standard error is.
    pub fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), silent: false, shown: false, last: None }
    }

    /// A line that is only there for people: silent unless standard error is a terminal.
    pub fn on_terminal_only() -> Self {
        let mut live = Self::new();
        live.silent = !live.terminal;
        live
    }

    /// Shows `text`, at most ten times a second on a terminal and once a second elsewhere.
    pub fn show(&mut self, now: Instant, text: impl FnOnce() -> String) {
        let pause = Duration::from_millis(if self.terminal { 100 } else { 1000 });
        if self.silent || self.last.is_some_and(|last| now - last < pause) {
            return;
        }
        self.last = Some(now);
        let mut err = std::io::stderr().lock();
        // A status line that cannot be written is no reason to stop.
        let _ = if self.terminal {
            write!(err, "\r\x1b[2K{}", text())
        } else {
            writeln!(err, "{}", text())
        };
        let _ = err.flush();
        self.shown = true;
    }

    /// Leaves the last text standing and goes on below it.
    pub fn end(&mut self) {
        if self.shown && self.terminal {
            eprintln!();
        }
        self.shown = false;
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end();
    }
}
