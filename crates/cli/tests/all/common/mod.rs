//! Runs the built command as a user or a script would. No test depends on the machine's speed:
//! every wait is for an event, and its bound only ends a test that has failed.
#![allow(dead_code, reason = "every test file uses a part of it")]

pub mod every_verb;
pub mod page;
pub mod shell;

use millstream_cpu::proc::Stat;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait for an event.
const PATIENCE: Duration = Duration::from_secs(120);

/// The end of an invocation.
#[derive(Debug)]
pub struct Outcome {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// The one document that `--json` must print.
    pub fn json(&self) -> Value {
        let document: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not one JSON document ({error}): {self:?}"));
        assert!(document["command"].is_array(), "{document}");
        assert!(document["environment"]["kernel_release"].is_string(), "{document}");
        assert_eq!(document.get("error").is_some(), self.status != Some(0), "{document}");
        document
    }

    /// Checks that it failed with this status, a last line that contains `part`, and no panic.
    #[track_caller]
    pub fn fails(&self, status: i32, part: &str) -> &Self {
        assert_eq!(self.status, Some(status), "{self:?}");
        assert!(self.stderr.contains(part), "no \"{part}\" in {self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        self
    }

    #[track_caller]
    pub fn succeeds(&self) -> &Self {
        assert_eq!(self.status, Some(0), "{self:?}");
        self
    }
}

/// Returns an address of this machine that no other test uses: every one of 127/8 is.
pub fn address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(100);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, NEXT.fetch_add(1, Ordering::Relaxed), high, low.clamp(1, 254))
}

/// An invocation in `folder`.
pub fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(crate::PROGRAM);
    command.current_dir(folder).args(args);
    // A test must not use stored plans of the user, nor store any there.
    command.env("XDG_STATE_HOME", folder.join(".state"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let hear_hangups = || {
        // SAFETY: plain system call, which restores what `nohup` may have changed.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: the closure runs between fork and exec, and only makes an async-signal-safe call.
    unsafe { command.pre_exec(hear_hangups) };
    command
}

/// Runs it to its end.
pub fn millstream(folder: &Path, args: &[&str]) -> Outcome {
    Running::start(command(folder, args)).wait()
}

/// A process with its output, which ends with the test.
pub struct Running {
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<String>>,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().map(|mut out| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                out.read_to_end(&mut bytes).unwrap();
                bytes
            })
        });
        let (sender, lines) = std::sync::mpsc::channel();
        let stderr = child.stderr.take().map(|err| {
            std::thread::spawn(move || {
                let mut text = String::new();
                for line in BufReader::new(err).lines() {
                    let line = line.unwrap();
                    text += &format!("{line}\n");
                    let _ = sender.send(line);
                }
                text
            })
        });
        Self { child, stdout, stderr, lines }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the first line on standard error that starts with `start`.
    #[track_caller]
    pub fn line(&self, start: &str) -> String {
        let mut seen = String::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line =
                line.unwrap_or_else(|error| panic!("no line \"{start}\": {error}; read:\n{seen}"));
            if line.starts_with(start) {
                return line;
            }
            seen += &format!("{line}\n");
        }
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: plain system call on a process that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    pub fn wait(mut self) -> Outcome {
        eventually("the end of the process", || self.child.try_wait().unwrap().is_some());
        let stdout = self.stdout.take().map_or(Vec::new(), |thread| thread.join().unwrap());
        let stderr = self.stderr.take().map_or(String::new(), |thread| thread.join().unwrap());
        Outcome {
            status: self.child.wait().unwrap().code(),
            stdout: String::from_utf8(stdout)
                .unwrap_or_else(|error| panic!("standard output: {}", error.utf8_error())),
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            // What it said may tell why.
            std::thread::sleep(Duration::from_millis(100));
            self.lines.try_iter().for_each(|line| eprintln!("its standard error: {line}"));
        }
    }
}

/// Waits until the condition holds.
#[track_caller]
pub fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the process runs; a zombie does not.
pub fn is_alive(pid: u32) -> bool {
    let state = Stat::read(format!("/proc/{pid}").as_ref()).and_then(|stat| stat.field(3));
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| name(entry).into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Waits until a recording is under way.
pub fn growing(part: &Path) {
    eventually("samples in the file", || part.metadata().is_ok_and(|data| data.len() > 0));
}

/// A graph of this repository.
pub fn graph(name: &str) -> String {
    format!("{}/../../graphs/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs `sim fault` on a radio with this control address.
pub fn fault(control: &str, args: &[&str]) -> Outcome {
    millstream(Path::new("/"), &[&["sim", "fault", control], args].concat())
}

/// An emulated radio with a large buffer, so that a busy machine loses no sample.
pub struct Radio {
    pub addr: Ipv4Addr,
    pub chdr_port: u16,
    pub running: Running,
}

impl Radio {
    pub fn start(folder: &Path, args: &[&str]) -> Self {
        Self::start_and_hear(folder, args).0
    }

    /// Starts a radio that takes faults while it serves. Returns its control address, too.
    pub fn start_with_control(folder: &Path, args: &[&str]) -> (Self, String) {
        let args = [&["--control", "0"], args].concat();
        let (radio, mut lines) = Self::start_and_hear(folder, &args);
        let line = lines.remove(0);
        let control = line.strip_prefix("control: ").unwrap().split(',').next().unwrap().to_owned();
        (radio, control)
    }

    /// The same, with its output before it is ready.
    pub fn start_and_hear(folder: &Path, args: &[&str]) -> (Self, Vec<String>) {
        let addr = address();
        let addr_text = addr.to_string();
        let mut all = vec!["sim", "radio", "--json", "--addr", &addr_text, "--chdr-port", "0"];
        if !args.contains(&"--rx-buffer-samples") {
            all.extend(["--rx-buffer-samples", "8388608"]);
        }
        all.extend(args);
        let running = Running::start(command(folder, &all));
        let mut said = Vec::new();
        let ready = loop {
            match running.line("") {
                line if line.starts_with("ready") => break line,
                line => said.push(line),
            }
        };
        let chdr_port = ready.rsplit(':').next().unwrap().parse().unwrap();
        (Self { addr, chdr_port, running }, said)
    }

    /// Device arguments of it.
    pub fn args(&self) -> String {
        format!("addr={}", self.addr)
    }

    /// Ends it and returns its counters.
    pub fn stop(self) -> Value {
        self.running.signal(libc::SIGTERM);
        let outcome = self.running.wait();
        outcome.succeeds().json()["results"]["counters"].take()
    }
}
