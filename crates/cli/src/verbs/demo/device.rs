//! The emulated radio of the demo: a process of its own, so that nothing but the network is shared.

use anyhow::{Context, anyhow};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// Samples that wait in the radio while the host is busy: 0.67 s at 6.25 MS/s.
const BUFFER_SAMPLES: u64 = 1 << 22;
/// How long the radio has to end by itself.
const STOP_TIME: Duration = Duration::from_secs(3);

/// A radio process; dropping it ends the process.
pub struct EmulatedRadio {
    child: Child,
    addr: Ipv4Addr,
}

impl EmulatedRadio {
    /// Starts a radio whose antenna hears `ts`, or `fallback` when no file is given, and waits
    /// until it listens.
    pub fn start(ts: Option<&Path>, fallback: &[u8], time_scale: f64) -> anyhow::Result<Self> {
        let pid = std::process::id();
        // Every address of 127/8 is this machine: one per process keeps several demos apart.
        let [_, _, high, low] = pid.to_be_bytes();
        let addr = Ipv4Addr::new(127, 83, high, low.max(1));
        let child = spawn(addr, ts, fallback, time_scale)?;
        let mut radio = Self { child, addr };
        let stderr = radio.child.stderr.take().context("the radio process has no output")?;
        wait_until_ready(stderr)?;
        Ok(radio)
    }

    /// Where it listens.
    pub fn addr(&self) -> Ipv4Addr {
        self.addr
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The better reason of a failed reception: that this process has ended by itself.
    pub fn explain(mut self, error: anyhow::Error) -> anyhow::Error {
        match self.child.try_wait() {
            Ok(Some(status)) => anyhow!("the emulated radio ended before its time ({status})"),
            _ => error,
        }
    }

    /// Ends the process, and gives the counters that it leaves.
    pub fn stop(mut self) -> anyhow::Result<Value> {
        self.end();
        let mut text = String::new();
        let mut stdout = self.child.stdout.take().context("the radio process has no output")?;
        stdout.read_to_string(&mut text).context("cannot read what the radio leaves")?;
        let mut document: Value =
            serde_json::from_str(&text).context("the emulated radio did not end in order")?;
        Ok(document["results"]["counters"].take())
    }

    /// Gently first.
    fn end(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // SAFETY: plain system call; the child has not been waited for: its number is its own.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        let until = Instant::now() + STOP_TIME;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        // Both do nothing when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for EmulatedRadio {
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(
    addr: Ipv4Addr,
    ts: Option<&Path>,
    fallback: &[u8],
    time_scale: f64,
) -> anyhow::Result<Child> {
    let (stdin, antenna) = match ts {
        Some(path) => (Stdio::null(), path.to_str().context("--ts: the name must be UTF-8")?),
        None => (in_memory(fallback)?.into(), "/dev/stdin"),
    };
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command
        .args(["radio", "--json", "--serial", "DEMO", "--chdr-port", "0"])
        .args(["--addr", &addr.to_string()])
        .args(["--rx-buffer-samples", &BUFFER_SAMPLES.to_string()])
        .args(["--time-scale", &time_scale.to_string()])
        .arg("--rx-antenna")
        .arg(format!("atsc:{antenna}"))
        // Ctrl-C is for the receiver, which then ends the radio.
        .process_group(0)
        .stdin(stdin)
        // Its counters at the end, which a pipe holds.
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let parent = std::process::id();
    let die_with_us = move || {
        // SAFETY: plain system call. If this process dies in whatever way, the radio ends too.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        // It may have died just before.
        if std::os::unix::process::parent_id() == parent {
            Ok(())
        } else {
            Err(ErrorKind::Other.into())
        }
    };
    // SAFETY: the closure makes async-signal-safe system calls and allocates nothing.
    unsafe { command.pre_exec(die_with_us) };
    command.spawn().context("cannot start the emulated radio")
}

/// A file without a name: nothing is left of it, however this program ends.
fn in_memory(content: &[u8]) -> anyhow::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file = rustix::fs::memfd_create("test-picture.ts", flags).map(File::from);
    let mut file = file.context("cannot make a file in memory")?;
    file.write_all(content).context("cannot write a file in memory")?;
    Ok(file)
}

/// Reads until the radio says that it listens; what it says later goes to our own standard error.
fn wait_until_ready(stderr: ChildStderr) -> anyhow::Result<()> {
    let mut lines = BufReader::new(stderr);
    let mut said = String::new();
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            let reason = said.trim().trim_start_matches("millstream: ");
            anyhow::bail!("the emulated radio did not start: {reason}");
        }
        if line.starts_with("ready") {
            break;
        }
        said.push_str(&line);
    }
    // Keeps the pipe from filling; ends with the process.
    std::thread::Builder::new().name("ms-demo-radio".to_owned()).spawn(move || {
        let mut rest = [0; 4096];
        while let Ok(count @ 1..) = lines.read(&mut rest) {
            // Nobody may be listening.
            let _ = std::io::stderr().write_all(&rest[..count]);
        }
    })?;
    Ok(())
}
