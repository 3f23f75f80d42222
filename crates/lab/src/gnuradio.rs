//! GNU Radio as a peer: a script in a Python that has it, with one request and one answer a line.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The usual path of a Python with GNU Radio; another Python is often first in the PATH.
pub const PYTHON: &str = "/usr/bin/python3";

/// The reason why GNU Radio could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The program does not exist.
    #[error("cannot run {}: {source}; give another with --python, or --no-gnuradio",
        path.display())]
    Run {
        /// The program.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It has no GNU Radio, or it failed.
    #[error("GNU Radio in {} ended: {said}; install it (Debian package gnuradio), give another \
        Python with --python, or leave it out with --no-gnuradio", path.display())]
    Ended {
        /// The program.
        path: PathBuf,
        /// The last line of its output.
        said: String,
    },
}

/// A running script.
#[derive(Debug)]
pub struct Script {
    path: PathBuf,
    child: Child,
    answers: BufReader<ChildStdout>,
    /// GNU Radio's version.
    pub version: String,
}

#[derive(Deserialize)]
struct Hello {
    version: String,
}

impl Script {
    /// Starts a script with this Python; its first line is `{"version": …}`. It ends with the
    /// calling thread.
    ///
    /// # Errors
    /// [`PeerError`] when the program does not exist or has no GNU Radio.
    pub fn start(python: &Path, script: &str) -> Result<Self, PeerError> {
        let mut command = Command::new(python);
        command.args(["-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        millstream_host::child::tie(&mut command, None);
        let path = python.to_owned();
        let spawned = command.spawn();
        let mut child = spawned.map_err(|source| PeerError::Run { path: path.clone(), source })?;
        let answers = BufReader::new(child.stdout.take().expect("a pipe was asked for"));
        let mut peer = Self { path, child, answers, version: String::new() };
        peer.version = peer.answer::<Hello>()?.version;
        Ok(peer)
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// [`PeerError`] when the script ends instead.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &Value) -> Result<T, PeerError> {
        let sent = self.child.stdin.as_mut().map(|pipe| writeln!(pipe, "{request}"));
        if !matches!(sent, Some(Ok(()))) {
            return Err(self.ended());
        }
        self.answer()
    }

    fn answer<T: DeserializeOwned>(&mut self) -> Result<T, PeerError> {
        let mut line = String::new();
        loop {
            line.clear();
            match self.answers.read_line(&mut line) {
                // GNU Radio prints notes of its own.
                Ok(1..) => {
                    if let Ok(answer) = serde_json::from_str(&line) {
                        return Ok(answer);
                    }
                }
                Ok(0) | Err(_) => return Err(self.ended()),
            }
        }
    }

    fn ended(&mut self) -> PeerError {
        let _ = self.child.kill();
        let mut said = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = io::Read::read_to_string(&mut errors, &mut said);
        }
        let said = said.lines().last().unwrap_or("it said nothing").to_owned();
        PeerError::Ended { path: self.path.clone(), said }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_gnu_radio_is_an_error_that_says_what_to_do() {
        let tell = |path| Script::start(Path::new(path), "").unwrap_err().to_string();
        assert!(tell("/no/python").starts_with("cannot run /no/python: No such file"));
        assert!(tell("/no/python").ends_with("; give another with --python, or --no-gnuradio"));
        assert!(tell("true").starts_with("GNU Radio in true ended: it said nothing; install it"));
    }
}
