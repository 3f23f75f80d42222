//! This program as started by hand: its output, and its exit.

use super::rig::wait;
use crate::program;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Time limit of each process.
const LIMIT: Duration = Duration::from_secs(120);

/// A process of this program. It ends with the thread that waits for it.
pub struct CardProcess {
    child: Child,
    line: String,
    output: [File; 2],
}

/// The end of a process.
pub struct ProcessEnd {
    pub status: ExitStatus,
    line: String,
    /// Standard output.
    pub text: String,
    /// Standard error.
    pub notes: String,
}

impl CardProcess {
    /// Starts it; its output goes into unnamed files.
    pub fn start(words: &[&str]) -> anyhow::Result<Self> {
        let [out, err] = [tempfile::tempfile()?, tempfile::tempfile()?];
        let mut command: Command = program::command(words)?;
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(err.try_clone()?);
        millstream_host::child::tie(&mut command, None);
        let child = command.spawn().context("cannot start this program as a child process")?;
        Ok(Self { child, line: format!("$ millstream {}", words.join(" ")), output: [out, err] })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`.
    pub fn kill(mut self) -> anyhow::Result<String> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(self.line.clone())
    }

    /// Waits for its end.
    pub fn end(mut self) -> anyhow::Result<ProcessEnd> {
        let ended = wait(LIMIT, || !matches!(self.child.try_wait(), Ok(None)));
        if !ended {
            self.child.kill()?;
        }
        let status = self.child.wait()?;
        let [out, err] = &mut self.output;
        let (text, notes) = (all(out)?, all(err)?);
        let line = std::mem::take(&mut self.line);
        ensure!(
            ended,
            "{line}\nthe command took more than {LIMIT:?} and was ended\n{}",
            tail(&notes)
        );
        Ok(ProcessEnd { status, line, text, notes })
    }
}

impl Drop for CardProcess {
    fn drop(&mut self) {
        // Both do nothing when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ProcessEnd {
    /// The command line, and the status.
    pub fn head(&self) -> String {
        format!("{} # {}", self.line, self.status)
    }

    /// Its JSON document, if it succeeded.
    pub fn document(&self) -> anyhow::Result<Value> {
        let document: Value = serde_json::from_str(&self.text).unwrap_or_default();
        let (head, ledger) = (self.head(), &document["results"]["ledger"]);
        ensure!(self.status.success(), "{head}\n{}\n{ledger}", tail(&self.notes));
        Ok(document)
    }

    /// Checks that it failed with all of `words`; returns its messages.
    pub fn refused(&self, words: &[&str]) -> anyhow::Result<Vec<String>> {
        let failed = !self.status.success();
        ensure!(
            failed,
            "{}\nthe command succeeded, but this test expects that it fails",
            self.head()
        );
        for word in words {
            ensure!(
                self.notes.contains(word),
                "{}\nthe output of the command lacks `{word}`: {}",
                self.head(),
                self.notes
            );
        }
        Ok(self.described())
    }

    /// The command line, the status, and the lines of its standard error.
    pub fn described(&self) -> Vec<String> {
        [self.head()].into_iter().chain(self.notes.lines().map(str::to_owned)).collect()
    }

    /// The lines of its standard output.
    pub fn wrote(&self) -> Vec<String> {
        self.text.lines().map(str::to_owned).collect()
    }
}

fn all(file: &mut File) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}
