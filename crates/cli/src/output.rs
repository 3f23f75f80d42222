//! The result of a verb, and its output: text on standard output and the error on standard error,
//! or with `--json` one document on standard output, whatever happened.

use crate::printable::printable;
use crate::results::VerbResult;
use crate::stdout;
use millstream_cpu::Environment;
use serde::Serialize;
use serde_json::Value;
use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::SystemTime;

/// Exit status of an invalid command line.
const USAGE_STATUS: u8 = 2;

/// The result of a verb.
#[derive(Debug)]
pub struct Report {
    /// The text: whole lines.
    pub text: String,
    /// The verb's own figures, for `--json`.
    pub results: Value,
    /// The reason why the job was not done although it ran to its end; `None` when it was.
    pub failure: Option<String>,
}

impl Report {
    /// A report of a finished job: its text, and its document.
    pub fn of(text: String, results: &impl VerbResult) -> Self {
        Self { text, results: document(results), failure: None }
    }

    /// The same with a reason why the job was not done, if there is one.
    #[must_use]
    pub fn failing(self, failure: Option<String>) -> Self {
        Self { failure, ..self }
    }

    /// The report of a process that serves another one, which has had all answers.
    #[must_use]
    pub fn none() -> Self {
        Self { text: String::new(), results: Value::Null, failure: None }
    }
}

/// The JSON value of what this program has made itself.
pub fn document(of: &impl Serialize) -> Value {
    serde_json::to_value(of).expect("our structs have fields with names that are text")
}

/// The document of `--json`. `error` is present when the exit status is not 0; `results` as soon as
/// there are any.
#[derive(Serialize)]
struct Document {
    command: Vec<String>,
    environment: Environment,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The failure of a command that a verb has run: it ended by itself, but not with 0, and this
/// process ends with the same status.
#[derive(Debug)]
pub struct CommandFailed {
    /// Its exit status.
    pub status: u8,
    /// The verb's report.
    pub report: Report,
}

impl std::error::Error for CommandFailed {}

impl Display for CommandFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.report.failure.as_deref().unwrap_or("the command failed"))
    }
}

/// The exit status for a command's end: its own, or, as in shells, 128 and the signal that killed
/// it.
pub fn status_of(ended: ExitStatus) -> u8 {
    let signal = || 128 + ended.signal().unwrap_or_default();
    u8::try_from(ended.code().unwrap_or_else(signal)).unwrap_or(1)
}

/// Prints the result of a verb; the exit status says whether the job was done.
pub fn finish(outcome: anyhow::Result<Report>) -> ExitCode {
    let (outcome, status) = match outcome.map_err(anyhow::Error::downcast::<CommandFailed>) {
        Err(Ok(CommandFailed { status, report })) => (Ok(report), Some(status)),
        Err(Err(error)) => (Err(error), None),
        Ok(report) => (Ok(report), None),
    };
    let (text, results, failure) = match outcome {
        Ok(report) => (report.text, Some(report.results), report.failure),
        Err(error) => (String::new(), None, Some(describe(&error))),
    };
    let status = status.unwrap_or(u8::from(failure.is_some()));
    let samples = stdout::end_samples();
    tell_set_aside();
    let written = if stdout::is_json() {
        write_json(results, failure.clone())
    } else if samples {
        // A missing reader is not a reason to fail.
        let _ = io::stderr().write_all(printable(&text).as_bytes());
        Ok(())
    } else {
        write(&text)
    };
    // After the text to which it belongs.
    if let Some(failure) = failure {
        note(format_args!("millstream: {failure}"));
    }
    settle(written, status)
}

/// Prints the error of the command line, or the help.
pub fn refuse(error: &clap::Error) -> ExitCode {
    let text = error.render().ansi().to_string();
    // The stream shows colours or not; it may have no reader.
    let _ = match error.use_stderr() {
        true => anstream::stderr().write_all(printable(&text).as_bytes()),
        false => anstream::stdout().write_all(printable(&text).as_bytes()),
    };
    match (error.use_stderr(), stdout::is_json()) {
        (false, _) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(USAGE_STATUS),
        (true, true) => settle(write_json(None, Some(essence(error))), USAGE_STATUS),
    }
}

/// Says which incomplete files of earlier runs have got another name.
fn tell_set_aside() {
    for path in millstream_output::take_set_aside() {
        note(format_args!(
            "millstream: an incomplete file of an earlier run is now {}",
            path.display()
        ));
    }
}

/// The time now, RFC 3339.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// Prints a line on standard error; a missing reader is not a reason to stop.
pub fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{}", printable(&line.to_string()));
}

/// Returns the text of a server's report: none, because its last words go to standard error, where
/// its first one, `ready`, is. A document has the numbers.
pub fn last_words(text: &str) -> String {
    if !stdout::is_json() {
        let _ = io::stderr().write_all(printable(text).as_bytes());
    }
    String::new()
}

/// Formats an error and its causes in one line. Many errors of this project include their cause.
pub fn describe(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |mut text, cause| {
        let cause = cause.to_string();
        if !text.contains(cause.trim_end()) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(cause.trim_end());
        }
        text
    })
}

/// Formats a number: whole, or with three decimals.
pub fn short(value: f64) -> String {
    if value == value.trunc() { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// Formats a number with its sign and this many decimals; a value that rounds to 0 has no minus
/// sign.
pub fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    let is_zero = !text.contains(|digit: char| ('1'..='9').contains(&digit));
    if is_zero { text.replacen('-', "+", 1) } else { text }
}

/// Formats a share in whole percent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Formats a count of a noun with a regular plural: `1 burst`, `2 bursts`.
pub fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Joins the items of an iterator.
pub trait Join: Iterator {
    /// Their texts with `between` them.
    fn join(self, between: &str) -> String;
}

impl<I: Iterator<Item: Display>> Join for I {
    fn join(self, between: &str) -> String {
        self.map(|item| item.to_string()).collect::<Vec<_>>().join(between)
    }
}

/// The name of a file for `--json`: what is no UTF-8 appears as U+FFFD. A path itself cannot be
/// written into a document.
pub fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The path with a number in its name: `a/b.sc16` becomes `a/b-1.sc16`.
pub fn numbered(path: &Path, number: impl Display) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The first paragraph of clap's error, which names the problem; usage and hints follow it.
fn essence(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    first.trim_start_matches("error: ").lines().map(str::trim).join(" ")
}

fn write_json(results: Option<Value>, error: Option<String>) -> io::Result<()> {
    let document = Document {
        command: std::env::args_os().map(|one| one.to_string_lossy().into_owned()).collect(),
        environment: Environment::read(Path::new("/"), &now()).with_kernel_origin(Path::new("/")),
        results,
        error,
    };
    write(&format!("{}\n", serde_json::to_string_pretty(&document)?))
}

fn write(text: &str) -> io::Result<()> {
    // Without colours where no terminal shows them, or the user has disabled them (NO_COLOR).
    let mut out = anstream::stdout().lock();
    out.write_all(printable(text).as_bytes())?;
    out.flush()
}

fn settle(written: io::Result<()>, status: u8) -> ExitCode {
    match written {
        // A reader that closes early, such as `head`, is not a failure.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            note(format_args!("millstream: cannot write to standard output: {error}"));
            ExitCode::from(status.max(1))
        }
        _ => ExitCode::from(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn a_cause_that_is_quoted_already_is_not_repeated() {
        let error = Err::<(), _>(anyhow!("disk full\n"))
            .context("cannot write x: disk full; free some space")
            .context("block `file` failed")
            .unwrap_err();
        let expected = "block `file` failed: cannot write x: disk full; free some space";
        assert_eq!(describe(&error), expected);
    }

    #[test]
    fn a_command_that_was_killed_has_the_status_that_shells_give_it() {
        assert_eq!(status_of(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(status_of(ExitStatus::from_raw(libc::SIGTERM)), 143);
    }

    #[test]
    fn files_of_several_are_numbered() {
        assert_eq!(numbered(Path::new("a/b.sc16"), 1), Path::new("a/b-1.sc16"));
        assert_eq!(numbered(Path::new("b"), 0), Path::new("b-0"));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(short(3.0), "3");
        assert_eq!(short(2.5), "2.500");
    }

    #[test]
    fn zero_has_no_minus_and_one_no_plural() {
        assert_eq!(signed(-0.4, 0), "+0");
        assert_eq!(signed(-0.0, 2), "+0.00");
        assert_eq!((signed(-0.6, 0), signed(0.25, 1)), ("-1".to_owned(), "+0.2".to_owned()));
        assert_eq!((count(1, "burst"), count(0, "burst")), ("1 burst".into(), "0 bursts".into()));
    }
}
