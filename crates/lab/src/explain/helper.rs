//! A helper process: reads lines, writes lines, and ends with its owner.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A process and its lines.
#[derive(Debug)]
pub(super) struct HelperProcess {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl HelperProcess {
    pub fn start(mut command: Command) -> io::Result<Self> {
        // Ctrl-C goes to this process, which then ends its helpers.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        millstream_host::child::tie(&mut command, None);
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().expect("piped");
        let (tell, lines) = channel();
        std::thread::Builder::new().name("ms-lines".to_owned()).spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { child, input, lines })
    }

    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    pub fn say(&mut self, line: &str) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{line}")
    }

    /// Returns the next line; `None` when it takes longer.
    pub fn read_line(&self, patience: Duration) -> io::Result<Option<String>> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(io::Error::other("a helper process has ended"))
            }
        }
    }
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        self.input = None;
        // It may be stopped, or late: it has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
