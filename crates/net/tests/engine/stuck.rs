//! Links whose driver misbehaves: a driver that does not return stops its own users only, and ports
//! are chosen from those that the link may have.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use millstream_link::LinkError;
use millstream_link::frame::{
    Frame, FrameCounts, FrameLink, FrameMemory, LinkCounters, LinkInfo, Steer,
};
use millstream_link::loopback::{LoopLink, LoopOptions, pair};
use millstream_link::port::PortOptions;
use millstream_net::engine::{attach, inventory, open};

use crate::{PATIENCE, any, gone};

/// The calls that do not return while their flag is set.
#[derive(Clone, Default)]
struct Held {
    steer: Arc<AtomicBool>,
    receive: Arc<AtomicBool>,
    /// Set while a call does not return.
    hangs: Arc<AtomicBool>,
}

impl Held {
    fn wait_while(&self, held: &AtomicBool) {
        while held.load(Ordering::SeqCst) {
            self.hangs.store(true, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Makes a call hang, and waits until one does.
    fn hold(&self, what: &AtomicBool) {
        what.store(true, Ordering::SeqCst);
        let until = Instant::now() + PATIENCE;
        while !self.hangs.load(Ordering::SeqCst) {
            assert!(Instant::now() < until, "nothing calls it");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A link in memory with a driver that can be made to hang.
struct Stuck {
    inner: LoopLink,
    info: LinkInfo,
    held: Held,
}

impl Stuck {
    fn new() -> (Self, Held) {
        let held = Held::default();
        let (inner, _other, _) = pair(&LoopOptions::default()).unwrap();
        let info = inner.info().clone();
        (Self { inner, info, held: held.clone() }, held)
    }
}

impl FrameLink for Stuck {
    fn info(&self) -> &LinkInfo {
        &self.info
    }
    fn memory(&self) -> &Arc<FrameMemory> {
        self.inner.memory()
    }
    fn steer(&mut self, steer: &Steer) -> Result<(), LinkError> {
        self.held.wait_while(&self.held.steer);
        self.inner.steer(steer)
    }
    fn receive(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        self.held.wait_while(&self.held.receive);
        self.inner.receive(frames)
    }
    fn give_back(&mut self, frames: &mut Vec<Frame>) {
        self.inner.give_back(frames);
    }
    fn reserve(&mut self, frames: &mut Vec<Frame>, count: usize) -> usize {
        self.inner.reserve(frames, count)
    }
    fn transmit(&mut self, frames: &mut Vec<Frame>) -> io::Result<usize> {
        self.inner.transmit(frames)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.poll_fd()
    }
    fn counters(&mut self) -> LinkCounters {
        self.inner.counters()
    }
    fn explain(&mut self) -> Option<String> {
        self.inner.explain()
    }
    fn census(&self) -> FrameCounts {
        self.inner.census()
    }
}

/// Uses another link.
fn use_another_link() {
    let link = "loop:address=10.3.0.1/24,thread=other";
    let port = open(link, any(), &PortOptions::default()).unwrap();
    let all = inventory().threads;
    assert!(all.iter().any(|thread| thread.name == "ms-io-other" && !thread.dead));
    drop(port);
}

/// Runs `job` on a separate thread and fails if it does not return.
#[track_caller]
fn comes_back<T: Send + 'static>(what: &str, job: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(job()));
    told.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{what} does not come back"))
}

#[test]
fn other_links_open_and_close_while_one_is_being_opened() {
    let (link, held) = Stuck::new();
    held.steer.store(true, Ordering::SeqCst);
    let opening = thread::spawn(move || {
        attach(Box::new(link), "address=10.3.1.1/24,thread=opening").map(drop)
    });
    held.hold(&held.steer);
    comes_back("another link", use_another_link);
    assert!(!opening.is_finished());
    held.steer.store(false, Ordering::SeqCst);
    opening.join().unwrap().unwrap();
    gone("ms-io-opening");
}

#[test]
fn a_thread_that_hangs_in_its_driver_is_reported_and_stops_nobody_else() {
    let (link, held) = Stuck::new();
    let stuck = attach(Box::new(link), "address=10.3.2.1/24,thread=hangs").unwrap();
    let port = stuck.open(any(), &PortOptions::default()).unwrap();
    held.hold(&held.receive);
    let all = comes_back("the inventory", || inventory().threads);
    let thread = all.iter().find(|thread| thread.name == "ms-io-hangs").unwrap();
    assert!(thread.notes.iter().any(|note| note.contains("does not answer")), "{thread:?}");
    assert!(!thread.dead, "it may come back");
    comes_back("another link", use_another_link);
    // Opening another port is refused with a clear error.
    let (stuck, error) = comes_back("a further port", move || {
        let error = stuck.open(any(), &PortOptions::default()).err().unwrap().to_string();
        (stuck, error)
    });
    assert!(error.contains("I/O thread") && error.contains("does not answer"), "{error}");
    held.receive.store(false, Ordering::SeqCst);
    // It answers again, without a lasting effect.
    let again = loop {
        if let Ok(port) = stuck.open(any(), &PortOptions::default()) {
            break port;
        }
    };
    assert_eq!(inventory().threads.iter().filter(|t| t.name == "ms-io-hangs").count(), 1);
    drop((port, again, stuck));
    gone("ms-io-hangs");
}

/// As with a broker that limits the ports that may be taken from the kernel.
#[test]
fn a_port_of_no_number_is_one_that_the_link_may_have() {
    let (mut link, _held) = Stuck::new();
    link.info.udp_ports = vec![2000..=2001, 50_007..=50_007];
    let link = attach(Box::new(link), "address=10.3.3.1/24,queue=64").unwrap();
    let ports = [(); 3].map(|()| link.open(any(), &PortOptions::default()).unwrap());
    let mut numbers = ports.each_ref().map(|port| port.local.port());
    numbers.sort_unstable();
    assert_eq!(numbers, [2000, 2001, 50_007]);
    let error = link.open(any(), &PortOptions::default()).err().unwrap().to_string();
    assert!(error.contains("every port that it may have is in use"), "{error}");
}
