//! GNU Radio as a peer: a script in a Python that has it, with one request and one answer a line.

use crate::helper::HelperProcess;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The usual path of a Python with GNU Radio; another Python is often first in the PATH.
pub const PYTHON: &str = "/usr/bin/python3";

/// The reason why GNU Radio could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The program does not exist.
    #[error("cannot run {}: {source}; give another Python with --python, or leave GNU Radio out \
         with --no-gnuradio",
        path.display())]
    Run {
        /// The program.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It has no GNU Radio, or it failed.
    #[error("GNU Radio in {} ended: {said}. Install it (Debian package gnuradio), give another \
         Python with --python, or leave it out with --no-gnuradio", path.display())]
    Ended {
        /// The program.
        path: PathBuf,
        /// The last line of its output.
        said: String,
    },
}

/// GNU Radio, running a script.
#[derive(Debug)]
pub struct GnuRadio {
    path: PathBuf,
    process: HelperProcess,
    /// GNU Radio's version.
    pub version: String,
}

#[derive(Deserialize)]
struct Hello {
    version: String,
}

impl GnuRadio {
    /// Starts a script with this Python; its first line is `{"version": …}`. It ends with the
    /// calling thread.
    ///
    /// # Errors
    /// [`PeerError`] when the program does not exist or has no GNU Radio.
    pub fn start(python: &Path, script: &str) -> Result<Self, PeerError> {
        let mut command = Command::new(python);
        command.args(["-c", script]).stderr(Stdio::piped());
        let path = python.to_owned();
        let process = HelperProcess::start(command, None)
            .map_err(|source| PeerError::Run { path: path.clone(), source })?;
        let mut peer = Self { path, process, version: String::new() };
        peer.version = peer.answer::<Hello>()?.version;
        Ok(peer)
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// [`PeerError`] when the script ends instead.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &impl Serialize) -> Result<T, PeerError> {
        let said = serde_json::to_string(request).map_err(io::Error::from);
        said.and_then(|line| self.process.say(&line)).map_err(|_| self.ended())?;
        self.answer()
    }

    fn answer<T: DeserializeOwned>(&mut self) -> Result<T, PeerError> {
        while let Ok(Some(line)) = self.process.read_line(Duration::MAX) {
            // GNU Radio prints notes of its own.
            if let Ok(answer) = serde_json::from_str(&line) {
                return Ok(answer);
            }
        }
        Err(self.ended())
    }

    fn ended(&mut self) -> PeerError {
        let _ = self.process.child.kill();
        let mut said = String::new();
        if let Some(mut errors) = self.process.child.stderr.take() {
            let _ = io::Read::read_to_string(&mut errors, &mut said);
        }
        let said = said.lines().last().unwrap_or("it said nothing").to_owned();
        PeerError::Ended { path: self.path.clone(), said }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_gnu_radio_is_an_error_that_says_what_to_do() {
        let tell = |path| GnuRadio::start(Path::new(path), "").unwrap_err().to_string();
        assert!(tell("/no/python").starts_with("cannot run /no/python: No such file"));
        assert!(tell("/no/python").ends_with(
            "; give another Python with --python, or leave GNU Radio out with --no-gnuradio"
        ));
        assert!(tell("true").starts_with("GNU Radio in true ended: it said nothing. Install it"));
    }
}
