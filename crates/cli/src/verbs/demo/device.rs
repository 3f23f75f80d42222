//! The emulated radio of the demo: a process of its own, so that nothing but the network is shared.

use anyhow::Context;
use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// Samples that wait in the radio while the host is busy: 0.67 s at 6.25 MS/s.
const BUFFER_SAMPLES: u64 = 1 << 22;
/// How long the radio has to end by itself.
const STOP_TIME: Duration = Duration::from_secs(3);

/// A radio process; dropping it ends the process and removes what was made for it.
pub struct EmulatedRadio {
    child: Child,
    addr: Ipv4Addr,
    scratch: Option<PathBuf>,
}

impl EmulatedRadio {
    /// Starts a radio whose antenna hears `ts`, or `fallback` when no file is given, and waits until
    /// it listens.
    pub fn start(ts: Option<&Path>, fallback: &[u8], time_scale: f64) -> anyhow::Result<Self> {
        let pid = std::process::id();
        let scratch = match ts {
            Some(_) => None,
            None => {
                let path = std::env::temp_dir().join(format!("millstream-demo-{pid}.ts"));
                std::fs::write(&path, fallback)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Some(path)
            }
        };
        // Every address of 127/8 is this machine: one per process keeps several demos apart.
        let [_, _, high, low] = pid.to_be_bytes();
        let addr = Ipv4Addr::new(127, 83, high, low.max(1));
        let antenna = ts.or(scratch.as_deref()).expect("one of both is there");
        let spawned = spawn(addr, antenna, time_scale);
        let mut radio = match spawned {
            Ok(child) => Self { child, addr, scratch },
            Err(error) => {
                remove(scratch.as_deref());
                return Err(error);
            }
        };
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

    /// Ends the process, gently first.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for EmulatedRadio {
    fn drop(&mut self) {
        // SAFETY: plain system call; the child has not been waited for, so its number is still its own.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        let until = Instant::now() + STOP_TIME;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        // Both do nothing when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        remove(self.scratch.as_deref());
    }
}

fn remove(path: Option<&Path>) {
    if let Some(path) = path {
        // A file in the temporary folder that is gone already is what we want.
        let _ = std::fs::remove_file(path);
    }
}

fn spawn(addr: Ipv4Addr, antenna: &Path, time_scale: f64) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command
        .args(["radio", "--serial", "DEMO", "--chdr-port", "0"])
        .args(["--addr", &addr.to_string()])
        .args(["--rx-buffer-samples", &BUFFER_SAMPLES.to_string()])
        .args(["--time-scale", &time_scale.to_string()])
        .arg("--rx-antenna")
        .arg(format!("atsc:{}", antenna.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let die_with_us = || {
        // SAFETY: plain system call. If this process dies in whatever way, the radio ends too.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes one async-signal-safe system call and allocates nothing.
    unsafe { command.pre_exec(die_with_us) };
    command.spawn().context("cannot start the emulated radio")
}

/// Reads until the radio says that it listens; what it says later goes to our own standard error.
fn wait_until_ready(stderr: ChildStderr) -> anyhow::Result<()> {
    let mut lines = BufReader::new(stderr);
    let mut said = String::new();
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            anyhow::bail!("the emulated radio did not start: {}", said.trim());
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
            eprint!("{}", String::from_utf8_lossy(&rest[..count]));
        }
    })?;
    Ok(())
}
