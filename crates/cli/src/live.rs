//! The live line: rewritten in place on a terminal, a line every second elsewhere. Always standard
//! error.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How far a measurement of so many similar steps is.
pub struct Progress {
    total: usize,
    begun: usize,
    started: Instant,
}

impl Progress {
    /// Nothing has begun.
    pub fn new(total: usize, now: Instant) -> Self {
        Self { total, begun: 0, started: now }
    }

    /// The next step begins: its place.
    pub fn next(&mut self, now: Instant) -> String {
        self.begun += 1;
        self.place(now)
    }

    /// Which step it is, and how long all that are left take if they take as long as those before.
    fn place(&self, now: Instant) -> String {
        let done = self.begun.saturating_sub(1);
        let left = match done {
            0 => String::new(),
            _ => {
                let each_s = (now - self.started).as_secs_f64() / done as f64;
                let left_s = each_s * self.total.saturating_sub(done) as f64;
                format!(", about {} left", rough_time(left_s))
            }
        };
        format!("{} of {}{left}", self.begun, self.total)
    }
}

fn rough_time(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

/// What follows the text of something that takes equally long for every part: `done` of `all` parts
/// took so long.
pub fn left(passed: Duration, done: u64, all: u64) -> String {
    let left_s = passed.as_secs_f64() * (all.saturating_sub(done) as f64 / done.max(1) as f64);
    format!(", about {} left", rough_time(left_s))
}

/// The live line of a measurement that takes minutes: a text for each of its steps, with how many
/// are left and for how long. It is written where nobody sees a terminal, too, but seldom.
pub struct Steps {
    live: Live,
    progress: Progress,
}

impl Steps {
    /// Nothing has begun.
    pub fn new(total: usize) -> Self {
        Self { live: Live::seldom(), progress: Progress::new(total, Instant::now()) }
    }

    /// The next step begins.
    pub fn next(&mut self, what: impl FnOnce() -> String) {
        self.progress.begun += 1;
        let (now, progress) = (Instant::now(), &self.progress);
        self.live.show(now, || format!("{}: {}", progress.place(now), what()));
    }

    /// The next step is left out.
    pub fn skip(&mut self) {
        self.progress.begun += 1;
    }

    /// Leaves the last text standing and goes on below it.
    pub fn end(&mut self) {
        self.live.end();
    }
}

/// What takes less needs no line.
const SHORT: Duration = Duration::from_secs(5);

/// Runs something that cannot say how far it is, and shows meanwhile how long it has run and, where
/// that is known, for how long it will.
pub fn during<T>(what: &str, expected: Option<Duration>, work: impl FnOnce() -> T) -> T {
    if expected.is_some_and(|expected| expected < SHORT) {
        return work();
    }
    let (running, ended) = channel::<()>();
    std::thread::scope(move |scope| {
        let show = move || {
            let (mut live, begun) = (Live::seldom(), Instant::now());
            while ended.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                let passed = begun.elapsed();
                if expected.is_some() || passed > SHORT {
                    live.show(Instant::now(), || how_far(what, passed, expected));
                }
            }
        };
        // Without a thread there is no line, and nothing else is missing.
        let _ = std::thread::Builder::new().name("progress".to_owned()).spawn_scoped(scope, show);
        // Ends the thread also where the work panics.
        let _running = running;
        work()
    })
}

fn how_far(what: &str, passed: Duration, expected: Option<Duration>) -> String {
    let passed_s = passed.as_secs_f64();
    match expected.map(|expected| expected.as_secs_f64()) {
        Some(all_s) => {
            let left = rough_time((all_s - passed_s).max(0.0));
            format!("{what}: {passed_s:.0} of {all_s:.0} s, about {left} left")
        }
        None => format!("{what}: {passed_s:.0} s"),
    }
}

/// Columns of a terminal that does not tell.
const COLUMNS: usize = 80;
/// And rows.
const ROWS: usize = 24;

/// A status line on standard error.
pub struct Live {
    terminal: bool,
    silent: bool,
    /// Between two lines where nobody rewrites them.
    pause: Duration,
    shown: bool,
    last: Option<Instant>,
}

impl Live {
    /// A line that adapts to what standard error is.
    pub fn new() -> Self {
        let (terminal, pause) = (std::io::stderr().is_terminal(), Duration::from_secs(1));
        Self { terminal, silent: false, pause, shown: false, last: None }
    }

    /// A line that is only there for people: silent unless standard error is a terminal.
    pub fn on_terminal_only() -> Self {
        let mut live = Self::new();
        live.silent = !live.terminal;
        live
    }

    /// A line of what takes minutes: every ten seconds where it is not rewritten.
    pub fn seldom() -> Self {
        Self { pause: Duration::from_secs(10), ..Self::new() }
    }

    /// Whether people look at it.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Shows `text`, at most ten times a second on a terminal and seldom elsewhere.
    pub fn show(&mut self, now: Instant, text: impl FnOnce() -> String) {
        let pause = if self.terminal { Duration::from_millis(100) } else { self.pause };
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
    use super::*;

    #[test]
    fn what_is_left_is_estimated_from_what_was_done() {
        let start = Instant::now();
        let mut progress = Progress::new(4, start);
        assert_eq!(progress.next(start), "1 of 4");
        assert_eq!(progress.next(start + Duration::from_secs(10)), "2 of 4, about 30 s left");
        assert_eq!(progress.next(start + Duration::from_secs(200)), "3 of 4, about 3 min left");
        assert_eq!(progress.next(start + Duration::from_secs(60)), "4 of 4, about 20 s left");
    }

    #[test]
    fn what_is_left_of_equal_parts_takes_as_long_as_those_before() {
        assert_eq!(left(Duration::from_secs(10), 1, 4), ", about 30 s left");
        assert_eq!(left(Duration::from_secs(10), 5, 4), ", about 0 s left");
    }

    #[test]
    fn what_cannot_say_how_far_it_is_ends_with_its_result() {
        assert_eq!(during("nothing", Some(SHORT / 2), || 1), 1);
        assert_eq!(during("waiting", Some(SHORT), || 2), 2);
        assert!(
            std::panic::catch_unwind(|| during("failing", None, || panic!("on purpose"))).is_err()
        );
        let (passed, expected) = (Duration::from_secs(12), Duration::from_secs(30));
        assert_eq!(how_far("x", passed, Some(expected)), "x: 12 of 30 s, about 18 s left");
        assert_eq!(how_far("x", expected, Some(passed)), "x: 30 of 12 s, about 0 s left");
        assert_eq!(how_far("x", passed, None), "x: 12 s");
    }

    #[test]
    fn a_line_never_reaches_the_last_column() {
        assert_eq!(fit("abcd", 5), "abcd");
        assert_eq!(fit("abcd", 4), "abc");
        assert_eq!(fit("äöü", 2), "ä");
        assert_eq!(fit("abcd", 0), "");
    }
}
