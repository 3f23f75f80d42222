//! The engine over links in memory: ports, threads, shares of frames, and the end of each.

mod carry;
mod dpdk;
mod granted;
mod lifetime;
mod network;
mod steady;
mod stuck;
mod threads;
mod veth;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use millstream_link::frame::{FrameLink, FrameMemory};
use millstream_link::loopback::{Cable, LoopOptions, pair};
use millstream_link::port::{Port, PortOptions};
use millstream_net::engine::{AttachedLink, attach};

/// Far longer than any step takes, so that a failing test ends.
const PATIENCE: Duration = Duration::from_secs(10);

/// Two hosts joined in memory: 10.0.0.1 and 10.0.0.2.
struct Net {
    near: AttachedLink,
    far: AttachedLink,
    far_memory: Arc<FrameMemory>,
    cable: Cable,
}

impl Net {
    /// Creates the network, with these engine options on both sides.
    fn new(options: &str, link: &LoopOptions) -> Self {
        Self::with(options, options, link)
    }

    fn with(near: &str, far: &str, link: &LoopOptions) -> Self {
        let (one, two, cable) = pair(link).unwrap();
        let far_memory = Arc::clone(two.memory());
        let on = |link, last: u8, options: &str| {
            attach(link, &format!("address=10.0.0.{last}/24,{options}")).unwrap()
        };
        let near = on(Box::new(one) as Box<dyn FrameLink>, 1, near);
        let far = on(Box::new(two), 2, far);
        Self { near, far, far_memory, cable }
    }

    fn near(&self) -> Port {
        self.near.open(any(), &PortOptions::default()).unwrap()
    }

    fn far(&self) -> Port {
        self.far.open(any(), &PortOptions::default()).unwrap()
    }
}

/// Returns the address of any interface with any port.
fn any() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)
}

/// Receives `count` datagrams: payloads and sources.
#[track_caller]
fn collect(port: &mut Port, count: usize) -> Vec<(Vec<u8>, SocketAddrV4)> {
    let mut all = Vec::new();
    while all.len() < count {
        let got = port.rx.recv_batch(PATIENCE).unwrap();
        assert_ne!(got, 0, "{} of {count} came", all.len());
        for index in 0..got {
            let datagram = port.rx.datagram(index);
            all.push((datagram.payload.to_vec(), datagram.source));
        }
    }
    all
}

/// Returns the threads of this process whose name begins with `prefix`.
fn threads(prefix: &str) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    let names = tasks.filter_map(name).map(|name| name.trim().to_owned());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// The names of the threads that begin with `prefix`, once there are as many: a new thread gives
/// itself its name, perhaps when its opener has gone on.
#[track_caller]
fn started(prefix: &str, count: usize) -> Vec<String> {
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let names = threads(prefix);
        if names.len() >= count || std::time::Instant::now() >= until {
            return names;
        }
        std::thread::yield_now();
    }
}

/// Waits until no thread has a name that begins with `prefix`: the system lists a joined thread a
/// moment longer.
#[track_caller]
fn gone(prefix: &str) {
    let until = std::time::Instant::now() + PATIENCE;
    while !threads(prefix).is_empty() {
        assert!(std::time::Instant::now() < until, "{prefix} is still there");
        std::thread::yield_now();
    }
}
