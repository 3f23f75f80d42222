//! Neighbours of shared addresses: a separate thread has the kernel resolve them.
//!
//! Access to the kernel's tables may wait for its locks, which the thread that moves frames must
//! not do. The helper thread sleeps unless there is a request. A next hop is requested at its first
//! use, and every few seconds as long as it is in use.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millstream_cpu::thread::unpin_current_thread;
use millstream_host::netlink::Netlink;
use millstream_ring::spsc::{Receiver, Sender, channel};
use millstream_ring::{Doorbell, Wait, Waiter};

/// The most pending requests.
const QUESTIONS: usize = 64;

/// The time limit of the kernel's attempts: three requests, a second apart, and a margin.
const PATIENCE: Duration = Duration::from_millis(3500);

/// The interval at which the helper reads the kernel's answer.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The discard port (RFC 863).
const DISCARD: u16 = 9;

/// The kernel's answer about a neighbour: its Ethernet address, or that it does not answer.
pub(super) type Answer = (Ipv4Addr, Option<[u8; 6]>);

/// The requesting end. Dropping it ends the helper thread.
pub(super) struct Neighbours {
    questions: Option<Sender<Ipv4Addr>>,
    answers: Receiver<Answer>,
    waiter: Arc<Waiter>,
    helper: Option<JoinHandle<()>>,
}

impl Neighbours {
    /// Starts the helper thread, called `ms-arp-NAME`, for one interface of this thread's
    /// namespace; an answer rings `bell`.
    pub fn start(
        name: &str,
        interface: u32,
        netlink: Netlink,
        bell: Arc<Doorbell>,
    ) -> std::io::Result<Self> {
        let (questions, incoming) = channel(QUESTIONS);
        let (outgoing, answers) = channel(QUESTIONS);
        let waiter = Arc::new(Waiter::new());
        let mut helper = Helper {
            netlink,
            interface,
            incoming,
            outgoing,
            bell,
            open: Vec::new(),
            waiter: Arc::clone(&waiter),
        };
        let builder = std::thread::Builder::new().name(format!("ms-arp-{name}"));
        let helper = builder.spawn(move || {
            // The calling thread may spin where it is pinned.
            let _ = unpin_current_thread();
            helper.run();
        })?;
        let helper = Some(helper);
        Ok(Self { questions: Some(questions), answers, waiter, helper })
    }

    /// Sends a request; one that does not fit is dropped, because it will be repeated.
    pub fn ask(&mut self, neighbour: Ipv4Addr) {
        if let Some(questions) = &mut self.questions {
            let _ = questions.push(neighbour);
            self.waiter.notify();
        }
    }

    /// Returns the next answer.
    pub fn answer(&mut self) -> Option<Answer> {
        self.answers.pop()
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        drop(self.questions.take());
        self.waiter.notify();
        let _ = self.helper.take().map(JoinHandle::join);
    }
}

struct Helper {
    netlink: Netlink,
    interface: u32,
    incoming: Receiver<Ipv4Addr>,
    outgoing: Sender<Answer>,
    bell: Arc<Doorbell>,
    waiter: Arc<Waiter>,
    /// Requests without an answer yet, and when they time out.
    open: Vec<(Ipv4Addr, Instant)>,
}

impl Helper {
    fn run(&mut self) {
        while !self.incoming.is_ended() {
            while let Some(neighbour) = self.incoming.pop() {
                self.begin(neighbour);
            }
            let now = Instant::now();
            let mut open = std::mem::take(&mut self.open);
            open.retain(|(neighbour, until)| !self.resolve(*neighbour, now >= *until));
            self.open.append(&mut open);
            let pause = if self.open.is_empty() { None } else { Some(LOOK_EVERY) };
            self.waiter.wait(Wait::Park, pause);
        }
    }

    fn begin(&mut self, neighbour: Ipv4Addr) {
        if self.open.iter().any(|(other, _)| *other == neighbour) {
            return;
        }
        if self.netlink.use_neighbour(self.interface, neighbour).is_err() {
            // That needs CAP_NET_ADMIN. A datagram to the discard port makes the kernel resolve it,
            // too.
            let any = (Ipv4Addr::UNSPECIFIED, 0);
            let _ = UdpSocket::bind(any).and_then(|s| s.send_to(&[], (neighbour, DISCARD)));
        }
        self.open.push((neighbour, Instant::now() + PATIENCE));
    }

    /// Whether a request has its answer now.
    fn resolve(&mut self, neighbour: Ipv4Addr, late: bool) -> bool {
        let known = self.netlink.neighbour(self.interface, neighbour).ok().flatten();
        let answer = match known {
            Some(entry) if entry.mac.is_some() => (neighbour, entry.mac),
            Some(entry) if entry.failed => (neighbour, None),
            _ if late => (neighbour, None),
            _ => return false,
        };
        let told = self.outgoing.push(answer).is_ok();
        self.bell.ring();
        told
    }
}
