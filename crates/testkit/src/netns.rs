//! Network namespaces joined by a veth pair, removed with the last handle: there is nothing to
//! clean up.
//!
//! A namespace here has no name. It lives as long as its [`Namespace`] (and as any process or file
//! in it), so a killed test leaves nothing behind, and tests can run concurrently.

use std::io::Write;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{LazyLock, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// The name of the interface on both sides of a [`VethPair`].
pub const INTERFACE: &str = "veth0";

/// A separate network namespace.
pub struct Namespace {
    /// Its address on the pair, a /24.
    pub address: Ipv4Addr,
    descriptor: OwnedFd,
    /// A thread that stays inside, so that the namespace has an identifier.
    inside: i32,
    leave: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Namespace {
    /// Returns a namespace with nothing but a loopback interface, in which no other program takes
    /// ports; `None` without the rights for one, or without `ip`.
    #[must_use]
    pub fn alone() -> Option<Self> {
        let made = Self::new(Ipv4Addr::LOCALHOST).ok()?;
        let up = made.command("ip").args(["link", "set", "lo", "up"]).status();
        up.is_ok_and(|status| status.success()).then_some(made)
    }

    fn new(address: Ipv4Addr) -> std::io::Result<Self> {
        let (leave, left) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            // SAFETY: a network namespace of its own; descriptors and files stay as they are.
            let entered = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) };
            let path = "/proc/thread-self/ns/net";
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let opened = entered.and_then(|()| rustix::fs::open(path, flags, Mode::empty()));
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            let _ = tell.send(opened.map(|descriptor| (descriptor, tid)));
            let _ = left.recv();
        });
        let (descriptor, inside) = told.recv().expect("the thread answers")?;
        Ok(Self { address, descriptor, inside, leave: Some(leave), thread: Some(thread) })
    }

    /// Runs `job` on a thread inside and waits for it. Sockets opened there stay there.
    ///
    /// # Panics
    /// With the panic of `job`.
    pub fn run<R: Send>(&self, job: impl FnOnce() -> R + Send) -> R {
        let joined = thread::scope(|scope| {
            let inside = || {
                let what = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(self.descriptor.as_fd(), what).expect("setns");
                job()
            };
            scope.spawn(inside).join()
        });
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Starts a thread inside.
    ///
    /// # Panics
    /// If the system has no descriptor left.
    pub fn spawn<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> JoinHandle<R> {
        let descriptor = self.descriptor.try_clone().expect("dup");
        thread::spawn(move || {
            let what = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(descriptor.as_fd(), what).expect("setns");
            job()
        })
    }

    /// Returns a command that will run inside.
    ///
    /// # Panics
    /// If the system has no descriptor left.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let descriptor = self.descriptor.try_clone().expect("dup");
        let mut command = Command::new(program);
        let enter = move || {
            let what = Some(LinkNameSpaceType::Network);
            Ok(move_into_link_name_space(descriptor.as_fd(), what)?)
        };
        // SAFETY: between fork and exec only setns(2) is called, which is safe there.
        unsafe { command.pre_exec(enter) };
        command
    }

    /// Runs a program inside, its arguments separated by spaces, such as `ip link set veth0 down`.
    ///
    /// # Panics
    /// If it fails: with its output.
    pub fn sh(&self, line: &str) -> String {
        let mut words = line.split_whitespace();
        let mut command = self.command(words.next().expect("a program"));
        let done = command.args(words).output().unwrap_or_else(|e| panic!("{line}: {e}"));
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{line}: {} {errors}", done.status);
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Executes all lines with one `ip`: a process for each would take most of a short test.
    fn ip(&self, lines: &str) {
        let mut command = self.command("ip");
        command.args(["-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut ip = command.spawn().unwrap_or_else(|e| panic!("ip: {e}"));
        // A process that has ended already reports why.
        let _ = ip.stdin.take().expect("it is a pipe").write_all(lines.as_bytes());
        let done = ip.wait_with_output().unwrap_or_else(|e| panic!("ip: {e}"));
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "ip -batch: {} {errors}\n{lines}", done.status);
    }
}

impl Namespace {
    /// Waits until the interface carries frames: until then the kernel drops them silently.
    ///
    /// # Panics
    /// If the carrier never comes.
    pub fn wait_for_carrier(&self) {
        let state = format!("ip -o link show dev {INTERFACE}");
        let carries = (0..1000).any(|_| {
            let up = self.sh(&state).contains("state UP");
            if !up {
                thread::sleep(Duration::from_millis(5));
            }
            up
        });
        assert!(carries, "{}", self.sh(&state));
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.leave.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The properties of a [`VethPair`].
#[derive(Debug, Clone, Copy)]
pub struct PairOptions {
    /// The MTU of both ends, bytes.
    pub mtu: usize,
    /// The receive and transmit queues of each end.
    pub queues: usize,
}

impl Default for PairOptions {
    fn default() -> Self {
        Self { mtu: 1500, queues: 1 }
    }
}

/// Two namespaces joined by a veth pair, up, with addresses; the interface is called [`INTERFACE`]
/// on both sides.
pub struct VethPair {
    /// The left side.
    pub left: Namespace,
    /// The right side.
    pub right: Namespace,
}

impl VethPair {
    /// Makes a pair. `None` where the system does not allow it; the reason is printed, and a test
    /// returns.
    ///
    /// # Panics
    /// If the system allows namespaces but not the pair in them.
    #[must_use]
    pub fn new(options: PairOptions) -> Option<Self> {
        let make = |last| Namespace::new(Ipv4Addr::new(10, 99, 0, last));
        let (left, right) = match (make(1), make(2)) {
            (Ok(left), Ok(right)) => (left, right),
            (Err(error), _) | (_, Err(error)) => {
                eprintln!("skipped: a network namespace cannot be made here ({error})");
                return None;
            }
        };
        static IP: LazyLock<bool> = LazyLock::new(|| Command::new("ip").arg("-V").output().is_ok());
        if !*IP {
            eprintln!("skipped: there is no `ip` here (Debian package iproute2)");
            return None;
        }
        let PairOptions { mtu, queues } = options;
        let numbers = format!("mtu {mtu} numtxqueues {queues} numrxqueues {queues}");
        let other = right.inside;
        let ends = format!("{INTERFACE} {numbers} type veth peer {INTERFACE} {numbers}");
        let up = |side: &Namespace| {
            let address = side.address;
            format!(
                "link set lo up\naddr add {address}/24 dev {INTERFACE}\nlink set {INTERFACE} up\n"
            )
        };
        left.ip(&format!("link add {ends} netns {other}\n{}", up(&left)));
        right.ip(&up(&right));
        [&left, &right].into_iter().for_each(Namespace::wait_for_carrier);
        Some(Self { left, right })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_pair_carries_datagrams_and_leaves_nothing() {
        let Some(pair) = VethPair::new(PairOptions { mtu: 9000, queues: 4 }) else { return };
        let there = (pair.right.address, 7000);
        let receiver = pair.right.run(|| UdpSocket::bind(there).unwrap());
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let sender = pair.left.run(|| UdpSocket::bind((pair.left.address, 0)).unwrap());
        sender.send_to(&[7; 8972], there).unwrap();
        let mut bytes = [0; 9000];
        assert_eq!(receiver.recv(&mut bytes).unwrap(), 8972);
        let seen = pair.left.sh("ip -o -d link show dev veth0");
        assert!(seen.contains("mtu 9000") && seen.contains("numrxqueues 4"), "{seen}");
    }
}
