//! Neighbours of shared addresses: resolved by the kernel, asked by a thread of its own.
//!
//! Talking to the kernel's tables may wait for its locks, which the thread that moves frames
//! must not. The helper sleeps unless there is a question; a next hop is asked for when it is
//! first used, and as long as it is in use every few seconds after that.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millstream_cpu::thread::unpin_current_thread;
use millstream_host::netlink::Netlink;
use millstream_ring::spsc::{Receiver, Sender, channel};
use millstream_ring::{Doorbell, Wait, Waiter};

/// Questions under way at most.
const QUESTIONS: usize = 64;

/// How long the kernel tries: three requests, a second apart, and some patience.
const PATIENCE: Duration = Duration::from_millis(3500);

/// How often the kernel is asked whether it knows by now.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The port that everybody discards (RFC 863).
const DISCARD: u16 = 9;

/// What the kernel says about a neighbour: its Ethernet address, or that it does not answer.
pub(super) type Answer = (Ipv4Addr, Option<[u8; 6]>);

/// The asking end. Dropping it ends the helper.
pub(super) struct Neighbours {
    questions: Option<Sender<Ipv4Addr>>,
    answers: Receiver<Answer>,
    waiter: Arc<Waiter>,
    helper: Option<JoinHandle<()>>,
}

impl Neighbours {
    /// Starts the helper, called `ms-arp-NAME`, for one interface of this thread's namespace;
    /// `bell` is rung when there is an answer.
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
            // Its opener may spin where it is pinned.
            let _ = unpin_current_thread();
            helper.run();
        })?;
        let helper = Some(helper);
        Ok(Self { questions: Some(questions), answers, waiter, helper })
    }

    /// Asks; a question too many is left out, because it will be asked again.
    pub fn ask(&mut self, neighbour: Ipv4Addr) {
        if let Some(questions) = &mut self.questions {
            let _ = questions.push(neighbour);
            self.waiter.notify();
        }
    }

    /// The next answer.
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
    /// Questions without an answer yet, and when they are given up.
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
            // That needs CAP_NET_ADMIN. A datagram that nobody wants makes the kernel look, too.
            let any = (Ipv4Addr::UNSPECIFIED, 0);
            let _ = UdpSocket::bind(any).and_then(|s| s.send_to(&[], (neighbour, DISCARD)));
        }
        self.open.push((neighbour, Instant::now() + PATIENCE));
    }

    /// Whether a question has its answer now.
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
