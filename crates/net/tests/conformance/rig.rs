//! Two hosts joined by a network, and ports on them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::{Duration, Instant};

use millstream_link::LinkError;
use millstream_link::port::{Port, PortOptions};
use millstream_testkit::netns::{Namespace, Pair, PairOptions};

/// Far longer than anything takes, so that a failing test ends.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Long enough for what is under way to arrive.
pub const SETTLED: Duration = Duration::from_millis(50);

/// IPv4 and UDP headers, bytes.
pub const IP_UDP_BYTES: usize = 28;

/// What a rig over a veth pair looks like.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    near: &'static str,
    far: &'static str,
    mtu: usize,
    queues: usize,
}

impl Shape {
    /// The links of both hosts.
    pub fn new(near: &'static str, far: &'static str) -> Self {
        Self { near, far, mtu: 1500, queues: 1 }
    }

    /// Queues of either interface.
    pub fn queues(self, queues: usize) -> Self {
        Self { queues, ..self }
    }

    /// Largest IP packet, bytes.
    pub fn mtu(self, mtu: usize) -> Self {
        Self { mtu, ..self }
    }
}

/// One host: where it is and what carries its ports.
pub struct Host {
    link: &'static str,
    address: Ipv4Addr,
    side: fn(&Pair) -> &Namespace,
}

/// Two hosts joined by a network.
pub struct Rig {
    pair: Option<Pair>,
    near: Host,
    far: Host,
    /// Largest UDP payload that the network carries, bytes.
    pub payload_bytes_max: usize,
    /// Every datagram that is lost is counted where the receiver sees it.
    pub exact: bool,
}

impl Rig {
    /// Both hosts are this machine.
    pub fn loopback(link: &'static str) -> Self {
        let host = |side| Host { link, address: Ipv4Addr::LOCALHOST, side };
        let (near, far) = (host(|pair: &Pair| &pair.left), host(|pair: &Pair| &pair.right));
        Self { pair: None, near, far, payload_bytes_max: 65_507, exact: true }
    }

    /// Two namespaces joined by a veth pair; `None` where that cannot be done.
    pub fn veth(shape: Shape) -> Option<Self> {
        let Shape { near, far, mtu, queues } = shape;
        let pair = Pair::new(PairOptions { mtu, queues })?;
        let address = [pair.left.address, pair.right.address];
        Some(Self {
            near: Host { link: near, address: address[0], side: |pair| &pair.left },
            far: Host { link: far, address: address[1], side: |pair| &pair.right },
            pair: Some(pair),
            payload_bytes_max: mtu - IP_UDP_BYTES,
            exact: true,
        })
    }

    /// A port of the near host, room for any datagram.
    pub fn near(&self) -> Port {
        self.open(&self.near, 0, &self.options()).expect("the near port opens")
    }

    /// A port of the far host, room for any datagram.
    pub fn far(&self) -> Port {
        self.open(&self.far, 0, &self.options()).expect("the far port opens")
    }

    /// A port of the far host as it is wished.
    pub fn far_with(&self, port: u16, options: &PortOptions) -> Result<Port, LinkError> {
        self.open(&self.far, port, options)
    }

    /// A port of the far host that has just been closed, opened again.
    ///
    /// Another test of this process may be starting a program, which until then holds a copy of
    /// every descriptor: that alone is waited for.
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

    /// Room for any datagram of this network.
    pub fn options(&self) -> PortOptions {
        PortOptions { datagram_bytes_max: self.payload_bytes_max, ..PortOptions::default() }
    }

    /// Whether a frame link carries the ports of the far host.
    pub fn far_carries_frames(&self) -> bool {
        millstream_link::registry::carries_frames(self.far.link)
    }

    /// The namespaces, where there are some.
    pub fn pair(&self) -> Option<&Pair> {
        self.pair.as_ref()
    }

    fn open(&self, host: &Host, port: u16, options: &PortOptions) -> Result<Port, LinkError> {
        let bind = SocketAddrV4::new(host.address, port);
        let open = || millstream_net::open(host.link, bind, options);
        match &self.pair {
            Some(pair) => (host.side)(pair).run(open),
            None => open(),
        }
    }
}

/// Bytes of which each tells its place, so that what is cut wrong shows.
pub fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// The payload of datagram `number`: the number, then bytes up to the wanted size.
pub fn numbered(number: u64, bytes: usize) -> Vec<u8> {
    let mut payload = number.to_le_bytes().to_vec();
    payload.resize(bytes.max(8), number as u8);
    payload
}

/// The number in a payload of [`numbered`].
#[track_caller]
pub fn number(payload: &[u8]) -> u64 {
    u64::from_le_bytes(payload[..8].try_into().expect("eight bytes"))
}

/// Receives until `wanted` datagrams are there or nothing comes any more.
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

/// Receives until nothing has come for a while: how many, and every number in order of arrival.
pub fn drain(port: &mut Port) -> Vec<u64> {
    let mut all = Vec::new();
    while let count @ 1.. = port.rx.recv_batch(SETTLED).expect("receiving works") {
        all.extend((0..count).map(|index| number(port.rx.datagram(index).payload)));
    }
    all
}

/// That nothing arrives at a port for a while.
#[track_caller]
pub fn silent(port: &mut Port) {
    assert_eq!(port.rx.recv_batch(SETTLED).expect("receiving works"), 0, "nothing was sent here");
}
