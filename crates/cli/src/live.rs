//! The live line: rewritten in place on a terminal, a line every second elsewhere. Always standard
//! error.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Columns of a terminal that does not tell.
const COLUMNS: usize = 80;
/// And rows.
const ROWS: usize = 24;

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

    /// Whether people look at it.
    pub fn is_terminal(&self) -> bool {
        self.terminal
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
            write!(err, "\r\x1b[2K{}", fit(&text(), columns()))
        } else {
            writeln!(err, "{}", text())
        };
        let _ = err.flush();
        self.shown = true;
    }

    /// Leaves the last text standing and goes on below it.
    pub fn end(&mut self) {
        if self.shown && self.terminal {
            crate::output::note("");
        }
        self.shown = false;
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end();
    }
}

fn columns() -> usize {
    size().0
}

/// Columns and rows of the terminal at standard error.
pub fn size() -> (usize, usize) {
    let usual = |said: u16, usual: usize| if said == 0 { usual } else { said.into() };
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.map_or((COLUMNS, ROWS), |size| (usual(size.ws_col, COLUMNS), usual(size.ws_row, ROWS)))
}

/// What stays on one line: a line that wraps cannot be rewritten in place. The last column stays
/// free, since terminals differ in where the cursor goes from there.
pub fn fit(text: &str, columns: usize) -> &str {
    let end = text.char_indices().nth(columns.saturating_sub(1));
    end.map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn a_line_never_reaches_the_last_column() {
        assert_eq!(fit("abcd", 5), "abcd");
        assert_eq!(fit("abcd", 4), "abc");
        assert_eq!(fit("äöü", 2), "ä");
        assert_eq!(fit("abcd", 0), "");
    }
}
