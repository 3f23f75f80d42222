//! Two ends of a frame link, and the frames between them.

use std::time::{Duration, Instant};

use millstream_link::frame::{Frame, FrameCounts, FrameLink, FrameOptions, Steer};
use millstream_link::loopback::{self, Cable, CableState, LoopOptions};
use millstream_link::{LinkError, open_frames};
use millstream_testkit::netns::{INTERFACE, PairOptions, VethPair};

/// Far longer than any step takes, so that a failing test ends.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Ethernet header without VLAN tag, bytes (IEEE 802.3).
pub const ETHERNET_BYTES: usize = 14;

/// The shortest frame, without its check sequence, bytes (IEEE 802.3).
pub const FRAME_BYTES_MIN: usize = 60;

/// An Ethernet type for experiments (IEEE 802, local experimental 1).
pub const ETHERTYPE: u16 = 0x88b5;

/// Another one (local experimental 2).
pub const ETHERTYPE_UNWANTED: u16 = 0x88b6;

/// The properties of a wire over a veth pair.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    link: &'static str,
    mtu: usize,
    queues: usize,
}

impl Shape {
    /// Creates the shape of a link; a test inserts the interface for `IF`.
    pub fn new(link: &'static str) -> Self {
        Self { link, mtu: 1500, queues: 1 }
    }

    /// Sets the largest IP packet, bytes.
    pub fn mtu(self, mtu: usize) -> Self {
        Self { mtu, ..self }
    }

    /// Sets the queues of each end.
    pub fn queues(self, queues: usize) -> Self {
        Self { queues, ..self }
    }
}

/// The connection of the ends.
enum Joint {
    Memory(Cable),
    Veth(VethPair, &'static str),
    /// DPDK's ports in memory, by the link strings that opened them.
    Dpdk(Vec<String>),
}

/// A wire: frames transmitted at the first end are received at the last; a loop has only one end.
pub struct Wire {
    ends: Vec<Box<dyn FrameLink>>,
    joint: Joint,
    totals: Vec<usize>,
    /// Whether every lost frame is counted where it should have come.
    pub exact: bool,
}

impl Wire {
    /// Creates a loop: one end that receives what it sends.
    pub fn single() -> Option<Self> {
        let (end, cable) = loopback::single(&LoopOptions::default()).expect("there is memory");
        Some(Self::new(vec![Box::new(end)], Joint::Memory(cable), true))
    }

    /// Creates two ends in memory, with frames in pieces of at most `part_bytes_max` bytes.
    pub fn memory(part_bytes_max: Option<usize>) -> Option<Self> {
        let options = LoopOptions { part_bytes_max, ..LoopOptions::default() };
        let (one, other, cable) = loopback::pair(&options).expect("there is memory");
        Some(Self::new(vec![Box::new(one), Box::new(other)], Joint::Memory(cable), true))
    }

    /// Creates two namespaces joined by a veth pair; `None` where that is not possible.
    pub fn veth(shape: Shape) -> Option<Self> {
        let Shape { link, mtu, queues } = shape;
        let pair = VethPair::new(PairOptions { mtu, queues })?;
        let ends = [&pair.left, &pair.right].map(|side| {
            side.run(|| open(link)).unwrap_or_else(|error| panic!("{link} on a veth: {error}"))
        });
        Some(Self::new(ends.into(), Joint::Veth(pair, link), false))
    }

    /// Opens DPDK's ports in memory, each by a link string: with `NN` for the number of the wire,
    /// and `PP` for a path of its own. `None` where this build has no DPDK.
    pub fn dpdk(links: &[&str]) -> Option<Self> {
        let number = unique();
        let path = std::env::temp_dir().join(format!("ms-{}-{number}", std::process::id()));
        let fill = |link: &&str| {
            let link = link.replace("NN", &number.to_string());
            with_dpdk(&link.replace("PP", &path.to_string_lossy()))
        };
        let links: Vec<String> = links.iter().map(fill).collect::<Option<_>>()?;
        let ends = links.iter().map(|link| {
            open_frames(link, &FrameOptions::default()).unwrap_or_else(|error| panic!("{error}"))
        });
        let mut wire = Self::new(ends.collect(), Joint::Dpdk(links), false);
        wire.wait_for_peers();
        Some(wire)
    }

    /// Waits until both ends have found each other.
    fn wait_for_peers(&mut self) {
        let until = Instant::now() + PATIENCE;
        let mut frames = Vec::new();
        let mut is_down = |end: &mut Box<dyn FrameLink>| {
            let received = end.receive(&mut frames);
            end.give_back(&mut frames);
            received.is_err()
        };
        while self.ends.iter_mut().any(&mut is_down) {
            assert!(Instant::now() < until, "the ends do not find each other");
            std::thread::sleep(Duration::from_millis(1));
        }
        // A receiver in memory offers buffers when it polls. Received frames are the kernel's.
        for end in &mut self.ends {
            end.receive(&mut frames).expect("it is up");
            end.give_back(&mut frames);
        }
    }

    /// Whether the ends have a connection that can be unplugged or removed.
    pub fn has_cable(&self) -> bool {
        !matches!(self.joint, Joint::Dpdk(_))
    }

    fn new(ends: Vec<Box<dyn FrameLink>>, joint: Joint, exact: bool) -> Self {
        let mut wire = Self { ends, joint, totals: Vec::new(), exact };
        wire.totals = wire.ends.iter().map(|end| end.census().total()).collect();
        let wanted = Steer { ethertypes: vec![ETHERTYPE], ..Steer::default() };
        wire.ends.iter_mut().for_each(|end| end.steer(&wanted).expect("the link steers"));
        wire
    }

    /// Returns the end that sends.
    pub fn tx(&mut self) -> &mut dyn FrameLink {
        &mut **self.ends.first_mut().expect("there is one")
    }

    /// Returns the end that receives.
    pub fn rx(&mut self) -> &mut dyn FrameLink {
        &mut **self.ends.last_mut().expect("there is one")
    }

    /// Puts middleware around the sending end, or else the receiving one.
    pub fn wrap(
        &mut self,
        sender: bool,
        wrap: impl FnOnce(Box<dyn FrameLink>) -> Box<dyn FrameLink>,
    ) {
        let index = if sender { 0 } else { self.ends.len() - 1 };
        let end = self.ends.remove(index);
        self.ends.insert(index, wrap(end));
    }

    /// Returns the frames that faults removed at either end.
    pub fn fault_lost(&mut self) -> u64 {
        self.ends.iter_mut().map(|end| end.counters().fault_lost).sum()
    }

    /// Returns the longest frame that the network carries, bytes.
    pub fn frame_bytes_max(&mut self) -> usize {
        self.tx().info().mtu + ETHERNET_BYTES
    }

    /// Returns the namespaces, where there are some.
    pub fn pair(&self) -> Option<&VethPair> {
        match &self.joint {
            Joint::Memory(_) | Joint::Dpdk(_) => None,
            Joint::Veth(pair, _) => Some(pair),
        }
    }

    /// Sets the interface at the receiving end down or up.
    pub fn set_up(&self, up: bool) {
        match &self.joint {
            Joint::Memory(cable) => cable.set(if up { CableState::Up } else { CableState::Down }),
            Joint::Veth(pair, _) => {
                let state = if up { "up" } else { "down" };
                pair.right.sh(&format!("ip link set {INTERFACE} {state}"));
            }
            Joint::Dpdk(_) => unreachable!("asked before (`has_cable`)"),
        }
    }

    /// Deletes the interface.
    pub fn delete(&self) {
        match &self.joint {
            Joint::Memory(cable) => cable.set(CableState::Gone),
            Joint::Veth(pair, _) => drop(pair.right.sh(&format!("ip link del {INTERFACE}"))),
            Joint::Dpdk(_) => unreachable!("asked before (`has_cable`)"),
        }
    }

    /// Closes the receiving end and opens it again; returns false where that is not possible.
    pub fn reopen(&mut self) -> bool {
        if matches!(self.joint, Joint::Memory(_)) {
            return false;
        }
        drop(self.ends.pop());
        let again = match &self.joint {
            Joint::Veth(pair, link) => pair.right.run(|| open(link)),
            Joint::Dpdk(links) => open_frames(&links[links.len() - 1], &FrameOptions::default()),
            Joint::Memory(_) => unreachable!("returned above"),
        };
        self.ends.push(again.unwrap_or_else(|error| panic!("{error}")));
        self.wait_for_peers();
        let wanted = Steer { ethertypes: vec![ETHERTYPE], ..Steer::default() };
        self.rx().steer(&wanted).expect("the link steers");
        true
    }

    /// Checks that the frames of either end add up, and that the user holds none.
    #[track_caller]
    pub fn at_rest(&mut self) {
        self.balanced();
        for end in &self.ends {
            assert_eq!(end.census().lent, 0, "{:?}", end.census());
        }
    }

    /// Checks that the frames of either end add up.
    #[track_caller]
    pub fn balanced(&mut self) {
        for (end, total) in self.ends.iter().zip(&self.totals) {
            let census: FrameCounts = end.census();
            assert_eq!(census.total(), *total, "{}: {census:?}", end.info().name);
        }
    }

    /// Appends a frame to transmit that carries `number` and is `bytes` long, in as many parts as
    /// it needs; returns false when there are not enough buffers.
    pub fn write(&mut self, frames: &mut Vec<Frame>, number: u64, bytes: usize) -> bool {
        self.write_as(frames, number, bytes, ETHERTYPE)
    }

    /// Does the same with any Ethernet type.
    pub fn write_as(
        &mut self,
        frames: &mut Vec<Frame>,
        number: u64,
        bytes: usize,
        ethertype: u16,
    ) -> bool {
        let to = self.rx().info().mac;
        let end = self.tx();
        let (from, room) = (end.info().mac, end.info().part_bytes_max);
        let first = frames.len();
        let parts = bytes.div_ceil(room);
        if end.reserve(frames, parts) < parts {
            let mut back = frames.split_off(first);
            end.give_back(&mut back);
            return false;
        }
        let payload = numbered(number, bytes - ETHERNET_BYTES);
        let whole = [&to[..], &from, &ethertype.to_be_bytes(), &payload].concat();
        for (index, piece) in whole.chunks(room).enumerate() {
            let frame = &mut frames[first + index];
            frame.set_len(piece.len());
            frame.set_continues(index + 1 < parts);
            end.memory().bytes_mut(frame).copy_from_slice(piece);
        }
        true
    }

    /// Sends the frames with these numbers, and waits for room.
    #[track_caller]
    pub fn send(&mut self, numbers: std::ops::Range<u64>, bytes: usize) {
        let until = Instant::now() + PATIENCE;
        let (mut frames, mut next) = (Vec::new(), numbers.start);
        while next < numbers.end || !frames.is_empty() {
            while next < numbers.end && frames.len() < 64 && self.write(&mut frames, next, bytes) {
                next += 1;
            }
            self.tx().transmit(&mut frames).expect("the interface is up");
            self.tx().flush().expect("the interface is up");
            assert!(Instant::now() < until, "{} frames are not taken", frames.len());
        }
    }

    /// Receives until `wanted` frames of ours have come or no more arrive; gives them back.
    #[track_caller]
    pub fn collect(&mut self, wanted: usize) -> Vec<Vec<u8>> {
        self.collect_for(wanted, PATIENCE)
    }

    /// Does the same, until no frame has come for `quiet`.
    #[track_caller]
    pub fn collect_for(&mut self, wanted: usize, quiet: Duration) -> Vec<Vec<u8>> {
        let (mut frames, mut all) = (Vec::new(), Vec::new());
        let mut until = Instant::now() + quiet;
        while all.len() < wanted && Instant::now() < until {
            let end = self.rx();
            let parts = end.receive(&mut frames).expect("the interface is up");
            assert_eq!(parts, frames.len());
            let whole = join(end, &frames);
            end.give_back(&mut frames);
            assert!(frames.is_empty(), "all is taken back");
            let ours = whole.into_iter().filter(|frame| frame[12..14] == ETHERTYPE.to_be_bytes());
            let before = all.len();
            all.extend(ours);
            if all.len() > before {
                until = Instant::now() + quiet;
            } else {
                // Middleware may hold frames for which the link had no room.
                let _ = self.tx().flush();
            }
        }
        all
    }
}

/// Opens a link on the interface of this namespace.
fn open(link: &str) -> Result<Box<dyn FrameLink>, LinkError> {
    open_frames(&link.replace("IF", INTERFACE), &FrameOptions::default())
}

/// Returns a number that no port of this process had before.
fn unique() -> u32 {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// Completes a DPDK link string with the pages of this run; `None` where this build has no DPDK.
fn with_dpdk(link: &str) -> Option<String> {
    if !millstream_link::dpdk::AVAILABLE {
        eprintln!("skipped: this build is without DPDK");
        return None;
    }
    let huge = std::env::var_os(crate::huge::HUGE).is_some();
    Some(format!("{link},huge={}", if huge { "on" } else { "off" }))
}

/// Joins parts to whole Ethernet frames.
pub fn join(end: &dyn FrameLink, frames: &[Frame]) -> Vec<Vec<u8>> {
    let mut whole = Vec::new();
    let mut begun = Vec::new();
    for frame in frames {
        assert!(frame.len() <= end.info().part_bytes_max.max(frame.room()));
        begun.extend_from_slice(end.memory().bytes(frame));
        if !frame.continues() {
            whole.push(std::mem::take(&mut begun));
        }
    }
    assert!(begun.is_empty(), "the parts of a frame come together");
    whole
}

/// Returns a payload: the number, then bytes that encode their positions.
pub fn numbered(number: u64, bytes: usize) -> Vec<u8> {
    let mut payload = number.to_le_bytes().to_vec();
    payload.extend((8..bytes as u64).map(|at| (at.wrapping_mul(40_503) >> 8 ^ number) as u8));
    payload
}

/// Returns the number in a frame.
#[track_caller]
pub fn number(frame: &[u8]) -> u64 {
    u64::from_le_bytes(frame[ETHERNET_BYTES..][..8].try_into().expect("eight bytes"))
}

/// Returns the numbers in frames.
pub fn numbers(frames: &[Vec<u8>]) -> impl Iterator<Item = u64> {
    frames.iter().map(|frame| number(frame))
}
