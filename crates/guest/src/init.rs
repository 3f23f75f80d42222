//! The guest's first process: prepares the kernel, runs the job, reports the result, powers off.

use crate::job::{self, GuestJob};
use crate::processor::Processor;
use crate::state::MachineState;
use millstream_host::netlink::{Netlink, NetlinkError};
use rustix::fs::Mode;
use rustix::mount::{MountFlags, mount};
use rustix::system::RebootCommand;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The line for the command's output: the host reads the other end.
const OUTPUT: &str = Processor::OWN.output();

/// The status of a command that succeeded but left the machine changed.
const CHANGED: i32 = 124;

/// The folder in which modules create devices on request.
const CONFIGURATION: &str = "/sys/kernel/config";

/// The prefix, on the kernel's command line, of an interface and the microseconds for which the
/// kernel delays every packet that it sends: `millstream.netem_us=lo:200`.
const DELAY: &str = "millstream.netem_us=";

/// The longest wait for a card to find its link.
const LINK_PATIENCE: Duration = Duration::from_secs(5);

/// The status of a job that could not be started.
const NOT_BEGUN: i32 = 125;

/// Returns whether this process is the first one of a guest.
#[must_use]
pub fn is_first_process() -> bool {
    std::process::id() == 1 && Path::new(job::PATH).exists()
}

/// Does the job and powers the guest off. Errors go to the console.
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
    // The first process must not end: the kernel would panic.
    loop {
        std::thread::park();
    }
}

fn prepare() -> io::Result<()> {
    // DPDK loads no drivers from below a world-writable folder.
    rustix::fs::chmod("/", Mode::from_raw_mode(0o755))?;
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
            // Not every kernel has the last ones; a failure of the first shows by itself.
            eprintln!("millstream guest: {place}: {error}");
        }
    }
    for (name, file) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        rustix::fs::symlink(format!("/proc/self/fd{file}"), format!("/dev/{name}"))?;
    }
    rustix::fs::mkdir("/dev/shm", Mode::from_raw_mode(0o1777))?;
    mount("tmpfs", "/dev/shm", "tmpfs", MountFlags::empty(), None)?;
    if let Err(error) = bring_up("lo") {
        eprintln!("millstream guest: the loopback: {error}");
    }
    Ok(())
}

fn bring_up(name: &str) -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    let index = netlink.interface(name)?.index;
    netlink.set_up(index, true)
}

fn bring_up_interfaces() -> io::Result<()> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir("/sys/class/net")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        bring_up(&name).map_err(|error| io::Error::other(format!("interface {name}: {error}")))?;
        names.push(name);
    }
    // A card takes a moment to find its link. Without one the command runs all the same.
    let has_link = |name: &String| {
        let carrier = std::fs::read_to_string(format!("/sys/class/net/{name}/carrier"));
        carrier.is_ok_and(|carrier| carrier.trim() == "1")
    };
    let end = Instant::now() + LINK_PATIENCE;
    while !names.iter().all(has_link) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn work() -> io::Result<i32> {
    let text = std::fs::read(job::PATH)?;
    let job: GuestJob = serde_json::from_slice(&text)?;
    for module in &job.modules {
        load(module).map_err(|error| named(module, &error))?;
    }
    // Some kernels have it as a module, which creates the folder.
    if Path::new(CONFIGURATION).is_dir() {
        mount("configfs", CONFIGURATION, "configfs", MountFlags::empty(), None)?;
    }
    slow_down()?;
    if job.up {
        bring_up_interfaces()?;
    }
    for (path, value) in &job.settings {
        std::fs::write(path, value).map_err(|error| named(path, &error))?;
    }
    let mut command = Command::new("/init");
    command.args(&job.arguments).env("HOME", "/root").current_dir("/tmp");
    // A terminal in the guest, and a file on the host.
    command.env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(output()?);
    let before = job.unchanged.then(|| MachineState::take(Path::new("/")));
    let mut child = command.spawn()?;
    // Orphans of the command remain; the power-off ends them.
    let status = child.wait()?.code().unwrap_or(128);
    let changed = before.is_some_and(|before| tell_changes(&before));
    Ok(if changed && status == 0 { CHANGED } else { status })
}

/// Reports the changes of the machine; returns whether there are any.
fn tell_changes(before: &MachineState) -> bool {
    let after = MachineState::take(Path::new("/"));
    let changes = before.changes(&after);
    for line in changes.iter().chain(&before.moved_by_kernel(&after)) {
        eprintln!("millstream guest: {line}");
    }
    let (settings, threads) = before.count();
    eprintln!(
        "millstream guest: of {settings} settings and {threads} threads, {} differ from before",
        changes.len()
    );
    !changes.is_empty()
}

fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn load(module: &str) -> io::Result<()> {
    let (file, parameters) = module.split_once(' ').unwrap_or((module, ""));
    let file = File::open(file)?;
    rustix::system::finit_module(file.as_fd(), &CString::new(parameters)?, 0)?;
    Ok(())
}

/// Delays packets of interfaces, as the kernel's command line requests.
fn slow_down() -> io::Result<()> {
    let mut netlink = Netlink::open().map_err(io::Error::other)?;
    for (name, delay) in delays(&std::fs::read_to_string("/proc/cmdline")?)? {
        let interface = netlink.interface(&name).map_err(io::Error::other)?.index;
        netlink.hold_back(interface, delay).map_err(|error| {
            io::Error::other(format!("{DELAY} failed: {error}; add --module sch_netem"))
        })?;
    }
    Ok(())
}

/// Reads the words [`DELAY`] of a command line.
fn delays(line: &str) -> io::Result<Vec<(String, Duration)>> {
    let words = line.split_whitespace().filter_map(|word| word.strip_prefix(DELAY));
    let parse = |word: &str| {
        let (name, us) = word.split_once(':')?;
        Some((name.to_owned(), Duration::from_micros(us.parse().ok()?)))
    };
    let wrong = |word: &str| {
        io::Error::other(format!("{DELAY}{word} is wrong: write INTERFACE:MICROSECONDS, lo:200"))
    };
    words.map(|word| parse(word).ok_or_else(|| wrong(word))).collect()
}

/// Opens the output line, without the terminal's changes to line ends.
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
    // The power-off would lose bytes that are still in the line's buffer.
    rustix::termios::tcdrain(&line)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read_from_the_command_line() {
        let line = "console=ttyS0 millstream.netem_us=lo:200 quiet millstream.netem_us=eth0:5\n";
        let found = delays(line).unwrap();
        let us = Duration::from_micros;
        assert_eq!(found, [("lo".to_owned(), us(200)), ("eth0".to_owned(), us(5))]);
        assert!(delays("console=ttyS0").unwrap().is_empty());
        let error = delays("millstream.netem_us=200").unwrap_err().to_string();
        assert!(error.contains("lo:200"), "{error}");
    }
}
