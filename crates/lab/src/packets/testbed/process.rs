//! One side's process, seen from its starter.

use std::time::{Duration, Instant};

use super::{StageError, StartSide};
use crate::helper::HelperProcess;
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
    process: HelperProcess,
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
        let process = start(network).and_then(|command| HelperProcess::start(command, cpu));
        let process = process.map_err(|error| StageError::Process {
            side,
            what: format!("cannot be started: {error}"),
        })?;
        Ok(Self { side, process, ended })
    }

    pub fn pid(&self) -> u32 {
        self.process.child.id()
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
        let written = self.process.say(line);
        written.map_err(|error| self.fail(format!("does not accept its job: {error}")))
    }

    fn reply(&mut self, longest: Duration) -> Result<SideReply, StageError> {
        let line = self.line(longest)?;
        serde_json::from_str(&line).map_err(|_| self.fail(format!("said: {line}")))
    }

    fn line(&mut self, longest: Duration) -> Result<String, StageError> {
        let until = Instant::now() + longest;
        loop {
            match self.process.read_line(TICK) {
                Ok(Some(line)) => return Ok(line),
                Err(_) => return Err(self.fail("ended too early".to_owned())),
                Ok(None) if self.is_ended() => return Err(StageError::Ended),
                Ok(None) if Instant::now() > until => {
                    return Err(self.fail(format!("did not answer for {} s", longest.as_secs())));
                }
                Ok(None) => {}
            }
        }
    }

    fn fail(&self, what: String) -> StageError {
        StageError::Process { side: self.side, what }
    }
}
