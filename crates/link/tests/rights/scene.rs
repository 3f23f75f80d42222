//! A pair of namespaces with a load from the left, and processes on the right.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millstream_link::frame::FrameLink;
use millstream_testkit::netns::{PairOptions, VethPair};

use crate::role::{PORT, ROLE};

/// The longest wait of any step.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Scene {
    pair: VethPair,
    /// The folder with a copy of this program that any user may run.
    folder: tempfile::TempDir,
}

impl Scene {
    /// Returns `None`, with a printed reason, where it cannot be made.
    pub fn new(options: PairOptions) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can act as a broker");
            return None;
        }
        if Command::new("setpriv").arg("--version").output().is_err() {
            eprintln!("skipped: there is no `setpriv` here (Debian package util-linux)");
            return None;
        }
        let pair = VethPair::new(options)?;
        let folder = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open.clone()).unwrap();
        let program = folder.path().join("program");
        // A separate process copies it: a file that this process has open for writing may be
        // inherited by another test's child for a moment, and could not be executed then.
        let mut copy = Command::new("cp");
        copy.args([&std::env::current_exe().unwrap(), &program]);
        assert!(copy.status().unwrap().success());
        std::fs::set_permissions(&program, open).unwrap();
        Some(Self { pair, folder })
    }

    pub fn address(&self) -> Ipv4Addr {
        self.pair.right.address
    }

    pub fn inside<R: Send>(&self, job: impl FnOnce() -> R + Send) -> R {
        self.pair.right.run(job)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("grant.sock")
    }

    /// Whether a program is attached to the interface.
    pub fn is_attached(&self) -> bool {
        self.pair.right.sh("ip link show veth0").contains("xdp")
    }

    /// Starts a broker and waits until it listens.
    pub fn broker(&self) -> Process {
        let mut broker = self.start(&format!("broker {}", self.socket().display()), false);
        broker.hears("listening");
        broker
    }

    /// Starts a process that streams: as the user "nobody" without rights, or as root.
    pub fn client(&self, link: &str, unprivileged: bool) -> Process {
        let broker = format!("broker={}", self.socket().display());
        self.start(&format!("client {link},{broker} {}", self.address()), unprivileged)
    }

    fn start(&self, role: &str, unprivileged: bool) -> Process {
        let program = self.folder.path().join("program");
        let mut command = if unprivileged {
            let mut command = self.pair.right.command("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]);
            command.args(["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]);
            command.arg(program);
            command
        } else {
            self.pair.right.command(program.to_str().expect("a path in UTF-8"))
        };
        command.args(["--exact", "role::play", "--nocapture"]).env(ROLE, role);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        Process::new(child)
    }

    /// Sends datagrams of several flows from the left, as many as the kernel takes, until it is
    /// dropped.
    pub fn load(&self) -> Load {
        let (from, to) = (self.pair.left.address, (self.address(), PORT));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = self.pair.left.spawn(move || {
            let sockets = [(); 16].map(|()| UdpSocket::bind((from, 0)).unwrap());
            while !stopped.load(Ordering::Relaxed) {
                for socket in &sockets {
                    // Refused while there is no listener, which the tests include.
                    let _ = socket.send_to(&[7; 1000], to);
                }
            }
        });
        Load { stop, thread: Some(thread) }
    }

    /// Sends from a port of its own, so on a flow of its own.
    pub fn send_from_new_port(&self, count: usize) {
        let to = (self.address(), PORT);
        self.pair.left.run(|| {
            let socket = UdpSocket::bind((self.pair.left.address, 0)).unwrap();
            (0..count).for_each(|_| drop(socket.send_to(&[7; 100], to)));
        });
    }

    /// Sends until a frame comes on another queue than 0; returns the sender and that queue.
    pub fn sender_on_another_queue(&self, link: &mut dyn FrameLink) -> u32 {
        let mut found = None;
        wait_until("a flow on another queue", || {
            self.send_from_new_port(1);
            crate::role::take(link);
            let text = link.explain().unwrap_or_default();
            let number = text.split_once("on queue ").map(|(_, rest)| rest);
            found = number.and_then(|rest| rest.split([' ', ',']).next()?.parse().ok());
            found.is_some()
        });
        found.unwrap()
    }
}

/// A process in a role. It is killed when this is dropped.
pub struct Process {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
    told: String,
}

impl Process {
    fn new(mut child: Child) -> Self {
        let out = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // The harness writes before us on the same line.
                if let Some((_, line)) = line.split_once('@') {
                    let _ = send.send(line.to_owned());
                }
            }
        });
        Self { child, lines, told: String::new() }
    }

    /// Returns the line that it printed when it had opened its link.
    pub fn told(&self) -> &str {
        &self.told
    }

    fn next(&mut self) -> String {
        let line = self.lines.recv_timeout(PATIENCE);
        line.unwrap_or_else(|error| panic!("{error}; last: {:?}", self.told))
    }

    fn hears(&mut self, word: &str) -> String {
        let line = self.next();
        let rest = line.strip_prefix(word);
        rest.unwrap_or_else(|| panic!("{word} expected: {line}")).trim().to_owned()
    }

    /// Waits until it has received `count` frames.
    pub fn streams(&mut self, count: u64) {
        if self.told.is_empty() {
            self.told = self.hears("open");
        }
        while self.hears("got").parse::<u64>().unwrap() < count {}
    }

    /// Returns the reason why it could not open its link.
    pub fn fails(mut self) -> String {
        self.hears("error")
    }

    pub fn status(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap()
    }

    /// Makes it end in order.
    pub fn ends(mut self) {
        writeln!(self.child.stdin.take().unwrap(), "end").unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Returns a field of /proc/PID/status.
pub fn status_field(status: &str, name: &str) -> String {
    let line = status.lines().find(|line| line.starts_with(name)).expect("the field");
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

/// Waits for a condition; a panic names it.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < until, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
