//! A helper process: reads lines, writes lines, and ends with its owner.

use serde::Serialize;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A process and its lines.
#[derive(Debug)]
pub(crate) struct HelperProcess {
    pub child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl HelperProcess {
    /// Starts it, on `cpu` if given.
    pub fn start(mut command: Command, cpu: Option<usize>) -> io::Result<Self> {
        // Ctrl-C goes to this process, which then ends its helpers.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        millstream_host::child::tie(&mut command, cpu);
        let mut child = command.spawn()?;
        let input = child.stdin.take().expect("piped");
        let output = child.stdout.take().expect("piped");
        let (tell, lines) = channel();
        std::thread::Builder::new().name("ms-lines".to_owned()).spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // Ends with the process, or when the receiver has gone.
            lines.map(|line| tell.send(line)).take_while(Result::is_ok).for_each(drop);
        })?;
        Ok(Self { child, input, lines })
    }

    pub fn say(&mut self, line: &str) -> io::Result<()> {
        self.input.write_all(format!("{line}\n").as_bytes())
    }

    /// Returns the next line; `None` when it takes longer.
    pub fn read_line(&self, patience: Duration) -> io::Result<Option<String>> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(io::Error::other("a helper process of the command has ended"))
            }
        }
    }
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        // It may be stopped, or late: it has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a helper's answer as a line.
pub(crate) fn answer(output: &mut impl Write, answer: &impl Serialize) -> io::Result<()> {
    let line = serde_json::to_string(answer)? + "\n";
    output.write_all(line.as_bytes())?;
    output.flush()
}
