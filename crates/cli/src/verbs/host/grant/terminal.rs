//! A terminal of the command's own, between it and root's.
//!
//! Who has a terminal open can put characters into its input queue (TIOCSTI), as if the user had
//! typed them, and can read what the user types later. So the command is in a session of its own,
//! and where root's terminal would be, it has a pseudoterminal (pty(7)), whose other end this
//! process copies. Keys such as Ctrl-C and job control work in it as usual.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{read, write};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcgetwinsize};
use rustix::termios::{tcsetattr, tcsetwinsize};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Bytes that are copied at a time.
const CHUNK: usize = 4096;

/// Chunks that are shown after the command's end at most: what it started may print on without end.
const REST: usize = 64;

/// The pseudoterminal of a command, until the command has ended.
pub struct CommandTerminal {
    /// Root's terminal.
    real: OwnedFd,
    master: Arc<OwnedFd>,
    /// How root's terminal was, if its keys go to the command.
    before: Option<Termios>,
    has_ended: Arc<AtomicBool>,
    copying: Option<JoinHandle<()>>,
}

impl CommandTerminal {
    /// Replaces each standard stream of the command that would be a terminal; `None` if none would.
    /// The terminal belongs to the user.
    ///
    /// # Errors
    /// The system's error: there is no pseudoterminal.
    pub fn between(command: &mut Command, user: u32) -> io::Result<Option<Self>> {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        let are = streams.map(isatty);
        // The last one: the first one may be open for reading only.
        let Some(real) = (0..3).rev().find(|place| are[*place]) else { return Ok(None) };
        let real = streams[real].try_clone_to_owned()?;
        let (master, slave) = pair(&real)?;
        // SAFETY: a plain system call on a descriptor that is open.
        if unsafe { libc::fchown(slave.as_raw_fd(), user, libc::gid_t::MAX) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let own = || slave.try_clone().map(Stdio::from);
        if are[0] {
            command.stdin(own()?);
        }
        if are[1] {
            command.stdout(own()?);
        }
        if are[2] {
            command.stderr(own()?);
        }
        let before = if are[0] && is_in_front(&real) { Some(tcgetattr(&real)?) } else { None };
        let (master, has_ended) = (Arc::new(master), Arc::new(AtomicBool::new(false)));
        Ok(Some(Self { real, master, before, has_ended, copying: None }))
    }

    /// Begins to copy; the command has been started.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(&mut self) -> io::Result<()> {
        if let Some(before) = &self.before {
            let mut raw = before.clone();
            raw.make_raw();
            tcsetattr(&self.real, OptionalActions::Now, &raw)?;
        }
        let (real, master) = (self.real.try_clone()?, Arc::clone(&self.master));
        let (keys, has_ended) = (self.before.is_some(), Arc::clone(&self.has_ended));
        let body = move || copy(&real, &master, keys, &has_ended);
        self.copying =
            Some(std::thread::Builder::new().name("ms-terminal".to_owned()).spawn(body)?);
        Ok(())
    }

    /// Passes a new size of root's terminal on.
    pub fn follow_size(&self) {
        let (Ok(now), Ok(known)) = (tcgetwinsize(&self.real), tcgetwinsize(&*self.master)) else {
            return;
        };
        if (now.ws_row, now.ws_col) != (known.ws_row, known.ws_col) {
            let _ = tcsetwinsize(&*self.master, now);
        }
    }

    /// Begins the next line, after one of this process.
    pub fn begin_line(&self) {
        if self.before.is_some() {
            let _ = write(&self.real, b"\r");
        }
    }
}

impl Drop for CommandTerminal {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        if let Some(copying) = self.copying.take() {
            let _ = copying.join();
        }
        if let Some(before) = &self.before {
            let _ = tcsetattr(&self.real, OptionalActions::Drain, before);
        }
    }
}

/// Opens a pseudoterminal with the modes and size of a terminal.
fn pair(like: &OwnedFd) -> io::Result<(OwnedFd, OwnedFd)> {
    let (mut master, mut slave) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: the two numbers outlive the call; null stands for no name, modes and size.
    let status = unsafe { libc::openpty(&mut master, &mut slave, none, none.cast(), none.cast()) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just opened both, and nobody else owns them.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    for end in [&master, &slave] {
        rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
    }
    tcsetattr(&slave, OptionalActions::Now, &tcgetattr(like)?)?;
    tcsetwinsize(&slave, tcgetwinsize(like)?)?;
    Ok((master, slave))
}

/// Returns whether the terminal's keys belong to this process: from the background, to read them or
/// to set modes would stop it.
fn is_in_front(terminal: &OwnedFd) -> bool {
    tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Copies keys to the command and its output back, until the command has ended and all of that is
/// shown.
fn copy(real: &OwnedFd, master: &OwnedFd, keys: bool, has_ended: &AtomicBool) {
    let (mut keys, mut rest) = (keys, REST);
    let tick = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    loop {
        let is_last = has_ended.load(Ordering::Relaxed);
        let wait = if is_last { Timespec::default() } else { tick };
        let mut polled = [PollFd::new(master, PollFlags::IN), PollFd::new(real, PollFlags::IN)];
        // A terminal that is gone would end each wait at once.
        let _ = poll(&mut polled[..1 + usize::from(keys)], Some(&wait));
        let [shown, typed] = [0, 1].map(|place| !polled[place].revents().is_empty());
        if typed && !is_last {
            keys = pass(real.as_fd(), master.as_fd());
        }
        // An error: no process has the command's terminal open, for now.
        let is_closed = shown && !pass(master.as_fd(), real.as_fd());
        rest -= usize::from(is_last);
        if is_last && (is_closed || !shown || rest == 0) {
            return;
        }
        if is_closed {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// Copies what has come; false if nothing can come any more.
fn pass(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> bool {
    let mut bytes = [0; CHUNK];
    let count = match read(from, &mut bytes) {
        Ok(0) => return false,
        Ok(count) => count,
        Err(error) => return matches!(error, rustix::io::Errno::INTR | rustix::io::Errno::AGAIN),
    };
    let mut rest = &bytes[..count];
    while !rest.is_empty() {
        match write(to, rest) {
            Ok(written) => rest = &rest[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}
