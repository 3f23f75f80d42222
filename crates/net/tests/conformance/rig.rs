//! Two hosts joined by a network, and ports on them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::{Duration, Instant};

use millstream_link::LinkError;
use millstream_link::frame::FrameOptions;
use millstream_link::loopback::{self, LoopLink, LoopOptions};
use millstream_link::port::{Port, PortOptions};
use millstream_link::registry::carries_frames;
use millstream_net as net;
use millstream_testkit::netns::{PairOptions, VethPair};

/// Far longer than any step takes, so that a failing test ends.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Long enough for datagrams in flight to arrive.
pub const SETTLED: Duration = Duration::from_millis(50);

/// IPv4 and UDP headers, bytes.
pub const IP_UDP_BYTES: usize = 28;

/// The properties of a set-up over a veth pair.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    near: &'static str,
    far: &'static str,
    mtu: usize,
    queues: usize,
}

impl Shape {
    /// Creates a shape with the links of both hosts.
    pub fn new(near: &'static str, far: &'static str) -> Self {
        Self { near, far, mtu: 1500, queues: 1 }
    }

    /// Sets the queues of either interface.
    pub fn queues(self, queues: usize) -> Self {
        Self { queues, ..self }
    }

    /// Sets the largest IP packet, bytes.
    pub fn mtu(self, mtu: usize) -> Self {
        Self { mtu, ..self }
    }
}

/// The function with which a host opens ports.
type Open = Box<dyn Fn(SocketAddrV4, &PortOptions) -> Result<Port, LinkError> + Send + Sync>;

/// One host: its namespace and the link of its ports.
struct Host {
    address: Ipv4Addr,
    open: Open,
    /// Whether a frame link carries the ports.
    frames: bool,
}

impl Host {
    /// Creates a host whose ports are opened by a link string, by the calling thread.
    fn by_name(link: &'static str, address: Ipv4Addr) -> Self {
        let open = Box::new(move |bind, options: &PortOptions| net::open(link, bind, options));
        Self { address, open, frames: carries_frames(link) }
    }

    /// Creates a host on one end of a link in memory.
    fn in_memory(link: LoopLink, address: Ipv4Addr, io: &str) -> Self {
        let attached =
            net::engine::attach(Box::new(link), &format!("address={address}/24,io={io}"));
        let attached = attached.unwrap_or_else(|error| panic!("{error}"));
        let open = Box::new(move |bind, options: &PortOptions| attached.open(bind, options));
        Self { address, open, frames: true }
    }
}

/// Two hosts joined by a network.
pub struct Rig {
    near: Host,
    far: Host,
    // Dropped after the hosts, when their ports are closed.
    pair: Option<VethPair>,
    /// Largest UDP payload that the network carries, bytes.
    pub payload_bytes_max: usize,
    /// Whether every lost datagram is counted where the receiver sees it.
    pub exact: bool,
    /// Whether a host has only one port at a time.
    pub single: bool,
}

impl Rig {
    /// Creates a set-up in which both hosts are this machine.
    pub fn loopback(link: &'static str) -> Self {
        let [near, far] = [0, 0].map(|_| Host::by_name(link, Ipv4Addr::LOCALHOST));
        Self { near, far, pair: None, payload_bytes_max: 65_507, exact: true, single: false }
    }

    /// Creates a set-up joined by a frame link in memory, in pieces of at most 2048 bytes that
    /// never get lost; `io` is the driver of the far end.
    pub fn memory(mtu: usize, io: &'static str) -> Self {
        let frames = FrameOptions { receive_frames: 16_384, transmit_frames: 8192 };
        let options = LoopOptions { mtu, part_bytes_max: Some(2048), frames, keep: true };
        let (one, other, _) = loopback::pair(&options).expect("there is memory");
        let address = |last| Ipv4Addr::new(10, 99, 0, last);
        let near = Host::in_memory(one, address(1), "thread");
        let far = Host::in_memory(other, address(2), io);
        let payload_bytes_max = mtu - IP_UDP_BYTES;
        Self { near, far, pair: None, payload_bytes_max, exact: true, single: io == "inline" }
    }

    /// Creates two namespaces joined by a veth pair; `None` where that is not possible.
    pub fn veth(shape: Shape) -> Option<Self> {
        let Shape { near, far, mtu, queues } = shape;
        let pair = VethPair::new(PairOptions { mtu, queues })?;
        Some(Self {
            near: Host::by_name(near, pair.left.address),
            far: Host::by_name(far, pair.right.address),
            pair: Some(pair),
            payload_bytes_max: mtu - IP_UDP_BYTES,
            // Losses of the interface below the link are not counted for a port.
            exact: !carries_frames(far) && !carries_frames(near),
            single: [near, far].iter().any(|link| link.contains("io=inline")),
        })
    }

    /// Opens a port of the near host, with room for any datagram.
    pub fn near(&self) -> Port {
        self.open(false, 0, &self.options()).expect("the near port opens")
    }

    /// Opens a port of the far host, with room for any datagram.
    pub fn far(&self) -> Port {
        self.open(true, 0, &self.options()).expect("the far port opens")
    }

    /// Opens a port on each host and exchanges datagrams, so that no address has to be resolved any
    /// more.
    pub fn acquainted(&self) -> (Port, Port) {
        self.acquainted_with(&self.options())
    }

    /// Does the same, with options for the far port.
    pub fn acquainted_with(&self, far: &PortOptions) -> (Port, Port) {
        let (mut near, mut far) = (self.near(), self.far_with(0, far).expect("the far port opens"));
        near.tx.send(&numbered(u64::MAX, 8), far.local).expect("the way is free");
        assert_eq!(number(&collect(&mut far, 1)[0].0), u64::MAX);
        far.tx.send(&numbered(u64::MAX, 8), near.local).expect("the way is free");
        assert_eq!(number(&collect(&mut near, 1)[0].0), u64::MAX);
        (near, far)
    }

    /// Opens a port of the far host with options.
    pub fn far_with(&self, port: u16, options: &PortOptions) -> Result<Port, LinkError> {
        self.open(true, port, options)
    }

    /// Opens a port of the far host again that has just been closed.
    ///
    /// Another test of this process may be starting a program, which until then holds a copy of
    /// every descriptor: the call waits for that only.
    #[track_caller]
    pub fn far_again(&self, port: u16) -> Port {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.far_with(port, &self.options()) {
                Ok(port) => return port,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns options with room for any datagram of this network.
    pub fn options(&self) -> PortOptions {
        PortOptions { datagram_bytes_max: self.payload_bytes_max, ..PortOptions::default() }
    }

    /// Whether a frame link carries the ports of the far host.
    pub fn far_carries_frames(&self) -> bool {
        self.far.frames
    }

    /// Returns the namespaces, where there are some.
    pub fn pair(&self) -> Option<&VethPair> {
        self.pair.as_ref()
    }

    fn open(&self, far: bool, port: u16, options: &PortOptions) -> Result<Port, LinkError> {
        let host = if far { &self.far } else { &self.near };
        let bind = SocketAddrV4::new(host.address, port);
        match &self.pair {
            Some(pair) => {
                (if far { &pair.right } else { &pair.left }).run(|| (host.open)(bind, options))
            }
            None => (host.open)(bind, options),
        }
    }
}

/// Returns bytes that encode their positions, so that wrong splits show.
pub fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Returns the payload of datagram `number`: the number, then bytes up to the wanted size.
pub fn numbered(number: u64, bytes: usize) -> Vec<u8> {
    let mut payload = number.to_le_bytes().to_vec();
    payload.resize(bytes.max(8), number as u8);
    payload
}

/// Returns the number in a payload of [`numbered`].
#[track_caller]
pub fn number(payload: &[u8]) -> u64 {
    u64::from_le_bytes(payload[..8].try_into().expect("eight bytes"))
}

/// Receives until `wanted` datagrams have come or no more arrive.
#[track_caller]
pub fn collect(port: &mut Port, wanted: usize) -> Vec<(Vec<u8>, SocketAddrV4)> {
    let mut all = Vec::new();
    while all.len() < wanted {
        let count = port.rx.recv_batch(PATIENCE).expect("receiving works");
        if count == 0 {
            break;
        }
        assert!(count <= port.rx.capabilities().batch_max);
        for index in 0..count {
            let datagram = port.rx.datagram(index);
            all.push((datagram.payload.to_vec(), datagram.source));
        }
    }
    all
}

/// Receives until no datagram has come for a while; returns every number in order of arrival.
pub fn drain(port: &mut Port) -> Vec<u64> {
    let mut all = Vec::new();
    while let count @ 1.. = port.rx.recv_batch(SETTLED).expect("receiving works") {
        all.extend((0..count).map(|index| number(port.rx.datagram(index).payload)));
    }
    all
}

/// Checks that nothing arrives at a port for a while.
#[track_caller]
pub fn silent(port: &mut Port) {
    assert_eq!(port.rx.recv_batch(SETTLED).expect("receiving works"), 0, "nothing was sent here");
}
