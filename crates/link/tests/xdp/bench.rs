//! A link at one end of a veth pair, the kernel's sockets at the other.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use millstream_link::frame::{Frame, FrameLink, FrameOptions, Steer};
use millstream_link::xdp::XdpLink;
use millstream_link::{LinkError, Spec};
use millstream_testkit::netns::{INTERFACE, Namespace, PairOptions, VethPair};

/// The longest wait of any step.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The UDP port that is steered to the link.
pub const PORT: u16 = 7000;

/// Ethernet, IPv4 and UDP headers, bytes.
pub const HEADERS: usize = 42;

/// Opens `xdp:veth0` with more options.
pub fn try_open(side: &Namespace, options: &str) -> Result<XdpLink, LinkError> {
    let text = format!("xdp:{INTERFACE},{options}");
    let spec = Spec::parse(&text).unwrap();
    let sizes = FrameOptions { receive_frames: 512, transmit_frames: 128 };
    side.run(|| XdpLink::open(&spec, &sizes))
}

/// A link on the right, steered to [`PORT`], and a kernel socket on the left.
pub struct Bench {
    pub pair: VethPair,
    pub link: XdpLink,
    pub peer: UdpSocket,
    peer_mac: [u8; 6],
    total: usize,
}

impl Bench {
    /// Returns `None` where namespaces cannot be made.
    pub fn new(options: &str, mtu: usize, queues: usize) -> Option<Self> {
        let pair = VethPair::new(PairOptions { mtu, queues })?;
        let link = try_open(&pair.right, options);
        let mut link = link.unwrap_or_else(|error| panic!("{options}: {error}"));
        link.steer(&wanted(pair.right.address)).unwrap();
        let peer = pair.left.run(|| UdpSocket::bind((pair.left.address, 0)).unwrap());
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        let (peer_mac, total) = (mac_of(&pair.left), link.census().total());
        Some(Self { pair, link, peer, peer_mac, total })
    }

    /// Sends a datagram from the kernel to the link.
    pub fn offer(&self, payload: &[u8]) {
        self.peer.send_to(payload, (self.pair.right.address, PORT)).unwrap();
    }

    /// Returns the payloads of the next `count` datagrams.
    #[track_caller]
    pub fn collect(&mut self, count: usize) -> Vec<Vec<u8>> {
        let (mut all, until) = (Vec::new(), Instant::now() + PATIENCE);
        while all.len() < count {
            assert!(Instant::now() < until, "{} of {count}: {:?}", all.len(), self.link.counters());
            all.extend(self.look());
        }
        all
    }

    /// Returns the payloads of the datagrams that have arrived.
    pub fn look(&mut self) -> Vec<Vec<u8>> {
        let (mut frames, mut all, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        self.link.receive(&mut frames).unwrap();
        for frame in &frames {
            whole.extend_from_slice(self.link.memory().bytes(frame));
            if !frame.continues() {
                all.push(whole.split_off(HEADERS));
                whole.clear();
            }
        }
        self.link.give_back(&mut frames);
        all
    }

    /// Sends a datagram to the kernel's socket.
    pub fn send(&mut self, payload: &[u8]) {
        let mut frames: Vec<Frame> = Vec::new();
        let parts = self.write(&mut frames, payload);
        assert_eq!(self.link.transmit(&mut frames).unwrap(), parts);
    }

    /// Appends a datagram to the kernel's socket; returns the number of its parts.
    pub fn write(&mut self, frames: &mut Vec<Frame>, payload: &[u8]) -> usize {
        let frame = self.datagram_to_peer(payload);
        let room = self.link.info().part_bytes_max;
        let (first, parts) = (frames.len(), frame.len().div_ceil(room));
        let until = Instant::now() + PATIENCE;
        while frames.len() < first + parts {
            assert!(Instant::now() < until, "no buffers: {:?}", self.link.census());
            let missing = first + parts - frames.len();
            self.link.reserve(frames, missing);
        }
        for (index, piece) in frame.chunks(room).enumerate() {
            let part = &mut frames[first + index];
            part.set_len(piece.len());
            part.set_continues(index + 1 < parts);
            self.link.memory().bytes_mut(part).copy_from_slice(piece);
        }
        parts
    }

    /// Returns the frame of a datagram to the link, as the left would send it.
    pub fn datagram_to_link(&self, payload: &[u8]) -> Vec<u8> {
        let (left, right) = (self.pair.left.address, self.pair.right.address);
        datagram([self.link.info().mac, self.peer_mac], [left, right], PORT, payload)
    }

    /// Returns the frame of a datagram to the kernel's socket.
    pub fn datagram_to_peer(&self, payload: &[u8]) -> Vec<u8> {
        let port = self.peer.local_addr().unwrap().port();
        let (left, right) = (self.pair.left.address, self.pair.right.address);
        datagram([self.peer_mac, self.link.info().mac], [right, left], port, payload)
    }

    /// Checks that frames add up and none is lent.
    #[track_caller]
    pub fn at_rest(&self) {
        let census = self.link.census();
        assert_eq!((census.total(), census.lent), (self.total, 0), "{census:?}");
    }
}

/// Selects UDP to [`PORT`] at an address.
pub fn wanted(address: Ipv4Addr) -> Steer {
    Steer { addresses: vec![address], udp_ports: vec![PORT], ..Steer::default() }
}

/// Returns a UDP datagram without checksum: Ethernet addresses (to, from), IPv4 addresses (from,
/// to).
fn datagram(macs: [[u8; 6]; 2], ends: [Ipv4Addr; 2], port: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = macs.concat();
    frame.extend([8, 0]);
    let mut header = vec![0x45, 0];
    header.extend((payload.len() as u16 + 28).to_be_bytes());
    header.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    header.extend(ends[0].octets());
    header.extend(ends[1].octets());
    let sum: u32 = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(header);
    frame.extend(PORT.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend((payload.len() as u16 + 8).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

fn mac_of(side: &Namespace) -> [u8; 6] {
    let text = side.sh(&format!("ip -o link show {INTERFACE}"));
    let mac = text.split("link/ether ").nth(1).unwrap().split(' ').next().unwrap();
    let bytes: Vec<_> = mac.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    bytes.try_into().unwrap()
}
