//! The guest's first process: prepares the kernel, runs the job, says what came of it, powers off.

use crate::job::{self, Job};
use rustix::fs::Mode;
use rustix::mount::{MountFlags, mount};
use rustix::system::RebootCommand;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

/// Where the command's output goes: the host reads the other end.
const OUTPUT: &str = "/dev/ttyS1";

/// The status that stands for a job that could not be begun.
const NOT_BEGUN: i32 = 125;

/// Whether this process is the first one of a guest.
#[must_use]
pub fn is_first_process() -> bool {
    std::process::id() == 1 && std::path::Path::new(job::PATH).exists()
}

/// Does the job and powers the guest off. What goes wrong is said on the console.
pub fn run() -> ! {
    let status = prepare().and_then(|()| work()).unwrap_or_else(|error| {
        eprintln!("millstream guest: {error}");
        NOT_BEGUN
    });
    if let Err(error) = report(status) {
        eprintln!("millstream guest: {OUTPUT}: {error}");
    }
    rustix::fs::sync();
    let _ = rustix::system::reboot(RebootCommand::PowerOff);
    // Nobody may end the first process: the kernel would panic.
    loop {
        std::thread::park();
    }
}

fn prepare() -> io::Result<()> {
    let system = [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
        ("tracefs", "/sys/kernel/tracing"),
        ("cgroup2", "/sys/fs/cgroup"),
    ];
    for (kind, place) in system {
        if let Err(error) = mount(kind, place, kind, MountFlags::empty(), None) {
            // Not every kernel has the last ones; without the first nothing works, and it shows.
            eprintln!("millstream guest: {place}: {error}");
        }
    }
    rustix::fs::mkdir("/dev/shm", Mode::from_raw_mode(0o1777))?;
    mount("tmpfs", "/dev/shm", "tmpfs", MountFlags::empty(), None)?;
    Ok(())
}

fn work() -> io::Result<i32> {
    let text = std::fs::read(job::PATH)?;
    let job: Job = serde_json::from_slice(&text)?;
    for module in &job.modules {
        load(module).map_err(|error| named(module, &error))?;
    }
    for (path, value) in &job.settings {
        std::fs::write(path, value).map_err(|error| named(path, &error))?;
    }
    let mut command = Command::new("/init");
    command.args(&job.arguments).env("HOME", "/root").current_dir("/tmp");
    command.stdin(Stdio::null()).stdout(output()?);
    let mut child = command.spawn()?;
    // Orphans of the command stay behind; the power-off takes them.
    let status = child.wait()?;
    Ok(status.code().unwrap_or(128))
}

fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn load(module: &str) -> io::Result<()> {
    let file = File::open(module)?;
    rustix::system::finit_module(file.as_fd(), c"", 0)?;
    Ok(())
}

/// The output line, without the terminal's changes to line ends.
fn output() -> io::Result<File> {
    let line = OpenOptions::new().write(true).open(OUTPUT)?;
    let mut settings = tcgetattr(&line)?;
    settings.make_raw();
    tcsetattr(&line, OptionalActions::Now, &settings)?;
    Ok(line)
}

fn report(status: i32) -> io::Result<()> {
    let mut line = output()?;
    write!(line, "\n{}{status}\n", job::STATUS_MARK)?;
    // Bytes that still wait in the line's buffer would be lost by the power-off.
    rustix::termios::tcdrain(&line)?;
    Ok(())
}
