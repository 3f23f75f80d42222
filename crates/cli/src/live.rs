//! The live line: rewritten in place on a terminal, a line every second elsewhere. Always standard
//! error.

use crate::printable::printable;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a job of many similar parts still takes, by those that it has done; of a job that goes
/// on with an earlier one, some were done before.
pub struct TimeLeft {
    begun: Instant,
    first: Option<usize>,
}

impl TimeLeft {
    /// Creates the estimate before the first part.
    pub fn new(now: Instant) -> Self {
        Self { begun: now, first: None }
    }

    /// The mean time of a part when `done` of them are done; `None` at the first.
    pub fn each(&mut self, now: Instant, done: usize) -> Option<Duration> {
        let since = done.saturating_sub(*self.first.get_or_insert(done));
        (since > 0).then(|| (now - self.begun) / since as u32)
    }

    /// The rest of a text, `, about 3 min left`, when `done` of `all` parts are done.
    pub fn left(&mut self, now: Instant, done: usize, all: usize) -> String {
        let left = |each: Duration| each.as_secs_f64() * all.saturating_sub(done) as f64;
        let left_s = self.each(now, done).map(left);
        left_s.map_or_else(String::new, |left_s| format!(", about {} left", rough_time(left_s)))
    }
}

/// The progress of a measurement with this many similar steps, where it is known.
struct Progress {
    total: Option<usize>,
    begun: usize,
    estimate: TimeLeft,
}

impl Progress {
    fn new(total: Option<usize>, now: Instant) -> Self {
        Self { total, begun: 0, estimate: TimeLeft { begun: now, first: Some(0) } }
    }

    /// Begins the next step; returns its position, and the estimated time of the remaining ones.
    fn next(&mut self, now: Instant) -> String {
        self.begun += 1;
        let Some(total) = self.total else { return self.begun.to_string() };
        let left = self.estimate.left(now, self.begun - 1, total);
        format!("{} of {total}{left}", self.begun)
    }
}

fn rough_time(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

/// The estimate after the text of a job whose parts take equally long: `done` of `all` parts took
/// `passed`.
pub fn left(passed: Duration, done: u64, all: u64) -> String {
    let left_s = passed.as_secs_f64() * (all.saturating_sub(done) as f64 / done.max(1) as f64);
    format!(", about {} left", rough_time(left_s))
}

/// The live line of a measurement that takes minutes: a text for each of its steps, with the number
/// of remaining steps and their time. It is written without a terminal, too, but seldom.
pub struct Steps {
    live: Live,
    progress: Progress,
}

impl Steps {
    /// Creates the line before the first step; without a total, of a measurement that ends by
    /// itself.
    pub fn new(total: Option<usize>) -> Self {
        Self { live: Live::seldom(), progress: Progress::new(total, Instant::now()) }
    }

    /// Begins the next step.
    pub fn next(&mut self, what: impl FnOnce() -> String) {
        let now = Instant::now();
        let place = self.progress.next(now);
        self.live.show(now, || format!("{place}: {}", what()));
    }

    /// Skips the next step.
    pub fn skip(&mut self) {
        self.progress.begun += 1;
    }

    /// Keeps the last text and continues below it.
    pub fn end(&mut self) {
        self.live.end();
    }
}

/// Shorter jobs need no line.
const SHORT: Duration = Duration::from_secs(5);

/// Runs a job that cannot report its progress, and shows meanwhile how long it has run and, where
/// it is known, the expected time.
pub fn during<T>(what: &str, expected: Option<Duration>, work: impl FnOnce() -> T) -> T {
    during_with(what, expected, String::new, work)
}

/// The same for a job whose results so far have words.
pub fn during_with<T>(
    what: &str,
    expected: Option<Duration>,
    so_far: impl Fn() -> String + Send,
    work: impl FnOnce() -> T,
) -> T {
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
                    live.show(Instant::now(), || {
                        let so_far = Some(so_far()).filter(|words| !words.is_empty());
                        let words = so_far.map_or(String::new(), |words| format!("  {words}"));
                        how_far(what, passed, expected) + &words
                    });
                }
            }
        };
        // Without a thread only the line is missing.
        let _ = std::thread::Builder::new().name("progress".to_owned()).spawn_scoped(scope, show);
        // Ends the thread also when the job panics.
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

/// Columns of a terminal that does not report them.
const COLUMNS: usize = 80;
/// Rows of such a terminal.
const ROWS: usize = 24;

/// A status line on standard error.
pub struct Live {
    terminal: bool,
    silent: bool,
    /// Time between two lines where they are not rewritten.
    pause: Duration,
    shown: bool,
    last: Option<Instant>,
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}

impl Live {
    /// Creates a line that adapts to standard error.
    pub fn new() -> Self {
        let (terminal, pause) = (std::io::stderr().is_terminal(), Duration::from_secs(1));
        Self { terminal, silent: false, pause, shown: false, last: None }
    }

    /// Creates a line that is silent unless standard error is a terminal.
    pub fn on_terminal_only() -> Self {
        let mut live = Self::new();
        live.silent = !live.terminal;
        live
    }

    /// Creates a line for jobs of minutes: every ten seconds where it is not rewritten.
    pub fn seldom() -> Self {
        Self { pause: Duration::from_secs(10), ..Self::new() }
    }

    /// Shows `text`, at most ten times a second on a terminal and seldom elsewhere.
    pub fn show(&mut self, now: Instant, text: impl FnOnce() -> String) {
        let pause = if self.terminal { Duration::from_millis(100) } else { self.pause };
        if self.silent || self.last.is_some_and(|last| now - last < pause) {
            return;
        }
        self.last = Some(now);
        let mut err = std::io::stderr().lock();
        // A status line that cannot be written is not a reason to stop.
        let _ = if self.terminal {
            write!(err, "\r\x1b[2K{}", fit(&printable(&text()), size().0))
        } else {
            writeln!(err, "{}", printable(&text()))
        };
        let _ = err.flush();
        self.shown = true;
    }

    /// Keeps the last text and continues below it.
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

/// A picture of several lines on standard error, which is drawn over itself. It uses no other
/// screen, no hidden cursor and no mode of the terminal, so there is nothing to restore.
#[derive(Default)]
pub struct Picture {
    /// Lines of the drawn picture.
    lines: usize,
}

impl Picture {
    /// Draws the lines over those of the picture before.
    pub fn draw(&mut self, lines: &[String]) {
        let text = redraw(self.lines.min(size().1), lines);
        // A failed write is not a reason to stop.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
        self.lines = lines.len();
    }
}

/// Redraws the lines over the `above` lines above the cursor.
fn redraw(above: usize, lines: &[String]) -> String {
    let mut text = String::new();
    if above > 0 {
        // Up, to the first column.
        let _ = write!(text, "\x1b[{above}F");
    }
    for line in lines {
        // The rest of a longer line is erased.
        let _ = write!(text, "{}\x1b[K\r\n", printable(line));
    }
    // And the rest of a higher picture below.
    text.push_str("\x1b[J");
    text
}

/// Columns and rows of the terminal at standard error.
pub fn size() -> (usize, usize) {
    let usual = |said: u16, usual: usize| if said == 0 { usual } else { said.into() };
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.map_or((COLUMNS, ROWS), |size| (usual(size.ws_col, COLUMNS), usual(size.ws_row, ROWS)))
}

/// Returns the part that fits one line: a line that wraps cannot be rewritten in place. The last
/// column stays free, since terminals differ in the cursor's next position.
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
        assert_eq!(Progress::new(None, start).next(start), "1");
        let mut progress = Progress::new(Some(4), start);
        assert_eq!(progress.next(start), "1 of 4");
        assert_eq!(progress.next(start + Duration::from_secs(10)), "2 of 4, about 30 s left");
        assert_eq!(progress.next(start + Duration::from_secs(200)), "3 of 4, about 3 min left");
        assert_eq!(progress.next(start + Duration::from_secs(60)), "4 of 4, about 20 s left");
    }

    #[test]
    fn parts_that_were_done_before_do_not_count() {
        let (start, later) = (Instant::now(), Instant::now() + Duration::from_secs(60));
        let mut estimate = TimeLeft::new(start);
        assert_eq!(estimate.left(start, 3, 6), "", "nothing is known");
        assert_eq!(estimate.left(later, 5, 6), ", about 30 s left");
        let each = estimate.each(later, 5).unwrap();
        assert!((29..=31).contains(&each.as_secs()), "{each:?}");
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

    #[test]
    fn a_picture_is_drawn_over_the_one_before() {
        let lines = ["a".to_owned(), "b".to_owned()];
        assert_eq!(redraw(0, &lines), "a\x1b[K\r\nb\x1b[K\r\n\x1b[J");
        assert_eq!(redraw(3, &lines[..1]), "\x1b[3Fa\x1b[K\r\n\x1b[J");
    }
}
