//! Counts, in drawn cases, how often the intervals that the lab calls 95 % hold the true value.
//!
//! ```text
//! cargo test --release -p millstream-measure --test coverage -- --nocapture
//! ```
//!
//! prints the table of docs/evidence/comparisons.md. `MILLSTREAM_COVERAGE_SETS` is the number of
//! data sets for each line: 1000 in a release build, and 200 in others, where the arithmetic is
//! slow and the largest values come from one size of sample only.

mod draw;
mod figures;
mod largest;

use std::fmt;

/// The counts of a line of the table.
pub struct Line {
    /// The interval, and the drawn case.
    pub what: String,
    /// Intervals that held the true value.
    pub held: u32,
    /// True values that lay above.
    pub above: u32,
    /// All intervals.
    pub given: u32,
}

impl Line {
    /// Returns an empty line.
    pub fn new(what: String) -> Self {
        Self { what, held: 0, above: 0, given: 0 }
    }

    /// Counts an interval.
    pub fn add(&mut self, (low, high): (f64, f64), truth: f64) {
        self.given += 1;
        self.held += u32::from((low..=high).contains(&truth));
        self.above += u32::from(truth > high);
    }

    /// Returns whether 93 to 97 of 100 intervals hold, as far as so many draws can show: fewer than
    /// a thousand draws may exceed these bounds by three standard errors.
    fn is_true(&self) -> bool {
        let (held, given) = (f64::from(self.held), f64::from(self.given));
        let error = (0.95 * 0.05 / given).sqrt();
        let few = (error - (0.95f64 * 0.05 / 1000.0).sqrt()).max(0.0);
        let room = 3.0 * few;
        (0.93 - room..=0.97 + room).contains(&(held / given))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |count: u32| f64::from(count) / f64::from(self.given) * 100.0;
        write!(
            f,
            "{:<78} {:>5.1} % {:>5.1} % {:>6}",
            self.what,
            share(self.held),
            share(self.above),
            self.given
        )
    }
}

fn asked() -> Option<u32> {
    std::env::var("MILLSTREAM_COVERAGE_SETS").ok().and_then(|text| text.parse().ok())
}

/// Returns the number of data sets for each line.
pub fn sets() -> u32 {
    asked().unwrap_or(if cfg!(debug_assertions) { 200 } else { 1000 })
}

/// Returns whether the whole table is computed.
pub fn is_thorough() -> bool {
    !cfg!(debug_assertions) || asked().is_some()
}

/// Prints the lines and asserts that each has its coverage.
pub fn judge(heading: &str, lines: &[Line]) {
    println!("\n{heading:<78}    held   above  given");
    lines.iter().for_each(|line| println!("{line}"));
    let wrong: Vec<_> = lines.iter().filter(|line| !line.is_true()).map(Line::to_string).collect();
    assert!(wrong.is_empty(), "not 93 to 97 of 100:\n{}", wrong.join("\n"));
}
