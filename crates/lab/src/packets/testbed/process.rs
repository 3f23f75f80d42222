//! One side's process, seen from its starter.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::{StageError, StartSide};
use crate::packets::end::EndAddress;
use crate::packets::job::{JobResult, SideJob, SideReply};
use crate::packets::worker::{HELLO, STOP};

/// Time limit of a side's immediate answers.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval at which a wait checks whether the user asked to end.
const TICK: Duration = Duration::from_millis(50);

/// A process that serves jobs.
pub(super) struct SideProcess {
    side: &'static str,
    child: Child,
    jobs: ChildStdin,
    lines: Receiver<String>,
    ended: fn() -> bool,
}

impl SideProcess {
    pub fn spawn(
        side: &'static str,
        start: StartSide,
        network: Option<&str>,
        cpu: Option<usize>,
        ended: fn() -> bool,
    ) -> Result<Self, StageError> {
        let fail = |what: String| StageError::Process { side, what };
        let no_start = |error: std::io::Error| fail(format!("cannot be started: {error}"));
        let mut command = start(network).map_err(no_start)?;
        // Ctrl-C goes to this process, which then ends the sides.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        millstream_host::child::tie(&mut command, cpu);
        let mut child = command.spawn().map_err(no_start)?;
        let (jobs, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(jobs), Some(answers)) = (jobs, answers) else {
            return Err(fail("has no pipes".to_owned()));
        };
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            let answers = BufReader::new(answers).lines().map_while(Result::ok);
            // Ends with the process, or when the receiver has gone.
            answers.map(|line| tell.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        Ok(Self { side, child, jobs, lines, ended })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it is in its network.
    pub fn hello(&mut self) -> Result<(), StageError> {
        match self.line(PATIENCE)? {
            line if line == HELLO => Ok(()),
            line => Err(StageError::Network(line)),
        }
    }

    /// Sends it a job and waits until it is ready.
    pub fn start(&mut self, job: &SideJob) -> Result<EndAddress, StageError> {
        let text = serde_json::to_string(job).map_err(|error| self.fail(error.to_string()))?;
        self.write(&text)?;
        match self.reply(PATIENCE)? {
            SideReply::Ready(address) => Ok(address),
            SideReply::Failed(reason) => Err(StageError::Refused(reason)),
            SideReply::Done(_) => Err(self.fail("did nothing".to_owned())),
        }
    }

    /// Asks it to end its job.
    pub fn stop(&mut self) -> Result<(), StageError> {
        self.write(STOP)
    }

    /// Waits for its result.
    pub fn finish(&mut self, longest: Duration) -> Result<JobResult, StageError> {
        match self.reply(longest + PATIENCE)? {
            SideReply::Done(outcome) => Ok(*outcome),
            SideReply::Failed(reason) => Err(StageError::Refused(reason)),
            SideReply::Ready(_) => Err(self.fail("began again".to_owned())),
        }
    }

    /// Whether the user asked to end.
    pub fn is_ended(&self) -> bool {
        (self.ended)()
    }

    fn write(&mut self, line: &str) -> Result<(), StageError> {
        let written = self.jobs.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| self.fail(format!("does not accept its job: {error}")))
    }

    fn reply(&mut self, longest: Duration) -> Result<SideReply, StageError> {
        let line = self.line(longest)?;
        serde_json::from_str(&line).map_err(|_| self.fail(format!("said: {line}")))
    }

    fn line(&mut self, longest: Duration) -> Result<String, StageError> {
        let until = Instant::now() + longest;
        loop {
            match self.lines.recv_timeout(TICK) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.fail("ended too early".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) if (self.ended)() => return Err(StageError::Ended),
                Err(RecvTimeoutError::Timeout) if Instant::now() > until => {
                    return Err(self.fail(format!("did not answer for {} s", longest.as_secs())));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn fail(&self, what: String) -> StageError {
        StageError::Process { side: self.side, what }
    }
}

impl Drop for SideProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
