use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use millstream_host::socket::{get, set};
use millstream_testkit::netns::{Namespace, PairOptions, VethPair};
use millstream_testkit::raw::{Injector, mac, udp_frame};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::*;

/// `linux/udp.h`.
const UDP_SEGMENT: i32 = 103;
const UDP_GRO: i32 = 104;

const BYTES: usize = 1000;

/// A watch that only sees one namespace: other tests run at the same time.
struct Seen {
    watch: DropWatch,
    inode: u32,
    packets: Vec<DroppedPacket>,
}

impl Seen {
    /// `None`, with a reason, where programs are not allowed.
    fn new(opened: Result<DropWatch, ProbeError>, of: &Namespace, ports: &[u16]) -> Option<Self> {
        let mut watch = match opened {
            Err(error) if !matches!(error, ProbeError::Refused(_)) => {
                eprintln!("skipped: {error}");
                return None;
            }
            opened => opened.unwrap(),
        };
        watch.watch_ports(ports);
        let inode = of.run(|| std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino());
        Some(Self { watch, inode: inode as u32, packets: Vec::new() })
    }

    fn look(&mut self) -> &[DroppedPacket] {
        let mut all = Vec::new();
        self.watch.read(&mut all);
        let is_ours = |packet: &DroppedPacket| packet.namespace.is_none_or(|it| it == self.inode);
        let ours = all.into_iter().filter(is_ours);
        self.packets.extend(ours);
        &self.packets
    }

    /// Waits until so many datagrams were dropped.
    fn wait(&mut self, datagrams: u32) -> &[DroppedPacket] {
        let start = Instant::now();
        while self.look().iter().map(|packet| packet.segments).sum::<u32>() < datagrams {
            assert!(start.elapsed() < Duration::from_secs(30), "{:?}", self.packets);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(self.watch.missed(), 0);
        &self.packets
    }

    fn reasons(&self) -> Vec<&str> {
        let mut reasons: Vec<_> = self.packets.iter().map(|packet| &*packet.reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        reasons
    }
}

fn socket(namespace: &Namespace) -> UdpSocket {
    namespace.run(|| UdpSocket::bind((namespace.address, 0)).unwrap())
}

fn port(socket: &UdpSocket) -> u16 {
    socket.local_addr().unwrap().port()
}

/// A socket with room for a few datagrams.
fn tiny(namespace: &Namespace) -> UdpSocket {
    let socket = socket(namespace);
    set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &4096).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// `count` datagrams in a row; each begins with its number.
fn numbered(first: u64, count: u64) -> Vec<u8> {
    let one = |number: u64| [number.to_be_bytes().as_slice(), &[7; BYTES - 8]].concat();
    (first..first + count).flat_map(one).collect()
}

/// Numbers of the datagrams that can be read.
fn numbers_in(socket: &UdpSocket) -> Vec<u64> {
    let mut bytes = [0; 65536];
    let read = || socket.recv(&mut bytes).ok().map(|length| bytes[..length].to_vec());
    let number = |bytes: &[u8]| u64::from_be_bytes(*bytes.first_chunk().unwrap());
    let datagrams = std::iter::from_fn(read);
    datagrams.flat_map(|bytes| bytes.chunks(BYTES).map(number).collect::<Vec<_>>()).collect()
}

fn numbers_of(packets: &[DroppedPacket]) -> Vec<u64> {
    packets.iter().map(|packet| u64::from_be_bytes(packet.header.unwrap())).collect()
}

fn without_pages() -> Result<DropWatch, ProbeError> {
    DropWatch::with(&Btf::of_kernel(Path::new("/"))?, None)
}

/// Whether the kernel lets programs at tracepoints read pages.
fn reads_pages() -> bool {
    let types = Btf::of_kernel(Path::new("/")).unwrap();
    let function = types.function("bpf_dynptr_from_skb");
    function.is_some_and(|function| DropWatch::with(&types, Some(function)).is_ok())
}

/// The word of this kernel, where it has any.
fn word(name: &'static str) -> &'static str {
    let types = Btf::of_kernel(Path::new("/")).unwrap();
    if types.enumeration("skb_drop_reason").is_empty() { "UNKNOWN" } else { name }
}

#[test]
fn datagrams_for_which_a_socket_has_no_room_are_told_exactly() {
    let Some(namespace) = Namespace::alone() else { return };
    let (receiver, sender) = (tiny(&namespace), socket(&namespace));
    let ports = [port(&receiver)];
    let Some(mut seen) = Seen::new(DropWatch::open(), &namespace, &ports) else { return };
    let mut older = Seen::new(without_pages(), &namespace, &ports).unwrap();
    for number in 0..100 {
        sender.send_to(&numbered(number, 1), receiver.local_addr().unwrap()).unwrap();
    }
    let got = numbers_in(&receiver);
    assert!((1..100).contains(&got.len()), "{got:?}");
    for seen in [&mut seen, &mut older] {
        let packets = seen.wait(100 - got.len() as u32);
        let expected: Vec<_> = (0..100).filter(|number| !got.contains(number)).collect();
        assert_eq!(numbers_of(packets), expected);
        let times: Vec<_> = packets.iter().map(|packet| packet.at_ns).collect();
        assert!(times.is_sorted());
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        assert!(now - times[0] < 60_000_000_000, "{} at {now}", times[0]);
        let ends = packets.iter().map(|packet| (packet.source.into(), packet.destination.into()));
        let own = (sender.local_addr().unwrap(), receiver.local_addr().unwrap());
        assert!(ends.into_iter().all(|ends: (SocketAddr, SocketAddr)| ends == own));
        assert_eq!(seen.reasons(), [word("SOCKET_RCVBUFF")]);
    }
}

#[test]
fn trains_are_counted_by_their_datagrams_and_known_by_their_first_bytes() {
    let Some(namespace) = Namespace::alone() else { return };
    let (single, whole) = (tiny(&namespace), tiny(&namespace));
    set(whole.as_fd(), libc::SOL_UDP, UDP_GRO, &1).unwrap();
    let sender = socket(&namespace);
    set(sender.as_fd(), libc::SOL_UDP, UDP_SEGMENT, &(BYTES as i32)).unwrap();
    let ports = [port(&sender)];
    let Some(mut seen) = Seen::new(DropWatch::open(), &namespace, &ports) else { return };
    let mut older = Seen::new(without_pages(), &namespace, &ports).unwrap();
    // Kernels without reasons divide trains before the loopback interface.
    let train = if word("") == "UNKNOWN" { 1 } else { 8 };
    for (receiver, segments) in [(single, 1), (whole, train)] {
        for train in 0..10 {
            sender.send_to(&numbered(8 * train, 8), receiver.local_addr().unwrap()).unwrap();
        }
        let got = numbers_in(&receiver);
        for (seen, reads_pages) in [(&mut seen, reads_pages()), (&mut older, false)] {
            let packets = seen.wait(80 - got.len() as u32);
            assert!(packets.iter().all(|packet| packet.segments == segments), "{packets:?}");
            let missing = (0..80).step_by(segments as usize);
            let mut missing = missing.filter(|number| !got.contains(number));
            // Without pages, those are known whose bytes lie with the headers.
            let is_known = |packet: &&DroppedPacket| reads_pages || packet.header.is_some();
            let known: Vec<_> = packets.iter().filter(is_known).cloned().collect();
            assert!(numbers_of(&known).iter().all(|known| missing.any(|number| number == *known)));
            assert!(!reads_pages || missing.next().is_none());
            assert_eq!(seen.reasons(), [word("SOCKET_RCVBUFF")]);
            seen.packets.clear();
        }
    }
}

#[test]
fn datagrams_to_a_closed_port_have_no_socket() {
    let Some(namespace) = Namespace::alone() else { return };
    let sender = socket(&namespace);
    let closed = port(&socket(&namespace));
    let Some(mut seen) = Seen::new(DropWatch::open(), &namespace, &[closed]) else { return };
    sender.send_to(&numbered(5, 1), (namespace.address, closed)).unwrap();
    // A datagram that is too short for a header.
    sender.send_to(&[1; 7], (namespace.address, closed)).unwrap();
    let packets = seen.wait(2);
    assert_eq!(packets[0].header, Some(5_u64.to_be_bytes()));
    assert_eq!(packets[1].header, None);
    assert_eq!(seen.reasons(), [word("NO_SOCKET")]);
}

#[test]
fn datagrams_that_a_queueing_discipline_drops_are_of_the_sending_namespace() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let (sender, receiver) = (socket(&pair.left), socket(&pair.right));
    receiver.set_nonblocking(true).unwrap();
    let ports = [port(&receiver)];
    let Some(mut seen) = Seen::new(DropWatch::open(), &pair.left, &ports) else { return };
    pair.left.sh("tc qdisc add dev veth0 root tbf rate 8mbit burst 3000 limit 5000");
    for number in 0..50 {
        sender.send_to(&numbered(number, 1), receiver.local_addr().unwrap()).unwrap();
    }
    let (start, mut got) = (Instant::now(), Vec::new());
    while got.len() + seen.look().len() < 50 {
        got.extend(numbers_in(&receiver));
        assert!(start.elapsed() < Duration::from_secs(30), "{got:?} {:?}", seen.packets);
    }
    let expected: Vec<_> = (0..50).filter(|number| !got.contains(number)).collect();
    assert_eq!(numbers_of(&seen.packets), expected);
    assert!(!expected.is_empty());
    assert!(seen.reasons()[0].starts_with(word("QDISC_")), "{:?}", seen.reasons());
}

#[test]
fn a_datagram_with_a_wrong_checksum_is_told() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let receiver = socket(&pair.right);
    let ports = [port(&receiver)];
    let Some(mut seen) = Seen::new(DropWatch::open(), &pair.right, &ports) else { return };
    let end = |at: &Namespace, port| SocketAddrV4::new(at.address, port);
    let (from, to) = (end(&pair.left, 4000), end(&pair.right, ports[0]));
    let mut frame = udp_frame((mac(&pair.left), mac(&pair.right)), from, to, &numbered(9, 1));
    *frame.last_mut().unwrap() ^= 0x55;
    Injector::new(&pair.left).send(&frame).unwrap();
    // The kernel computes the sum when the program reads.
    receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    while seen.look().is_empty() {
        receiver.recv(&mut [0; BYTES]).unwrap_err();
    }
    assert_eq!(seen.wait(1)[0].header, Some(9_u64.to_be_bytes()));
    // Older kernels do not say why where the program reads.
    let word = seen.reasons()[0];
    assert!(["UDP_CSUM", "NOT_SPECIFIED", "UNKNOWN"].contains(&word), "{word}");
}

#[test]
fn a_healthy_flow_has_no_drops_although_a_packet_socket_has_no_room() {
    let Some(namespace) = Namespace::alone() else { return };
    let (sender, receiver) = (socket(&namespace), socket(&namespace));
    let ports = [port(&receiver), port(&sender)];
    let Some(seen) = Seen::new(DropWatch::open(), &namespace, &ports) else { return };
    // As on a kernel that has no reasons, by its symbols; these may be hidden.
    let mut older = Seen::new(without_pages(), &namespace, &ports).unwrap();
    older.watch.reasons.clear();
    older.watch.taps = Taps::of_kernel(Path::new("/"));
    // Every packet, both ways; nobody reads it.
    let tap = namespace.run(|| {
        let every = i32::from((libc::ETH_P_ALL as u16).to_be());
        // SAFETY: a plain system call; the result is checked before it is owned.
        let tap = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, every) };
        assert!(tap >= 0, "{}", io::Error::last_os_error());
        // SAFETY: just opened, and not owned elsewhere.
        unsafe { OwnedFd::from_raw_fd(tap) }
    });
    set(tap.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &4096).unwrap();
    for number in 0..10_000 {
        sender.send_to(&numbered(number, 1), receiver.local_addr().unwrap()).unwrap();
        let mut bytes = [0; BYTES];
        assert_eq!(receiver.recv(&mut bytes).unwrap(), BYTES);
    }
    let mut counts = [0; 2];
    get(tap.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut counts).unwrap();
    assert!(counts[1] > 1000, "packets, drops: {counts:?}");
    for seen in [seen, older].iter_mut().filter(|seen| seen.watch.tells_taps()) {
        assert_eq!(seen.look(), []);
        assert_eq!(seen.watch.missed(), 0);
    }
}

#[test]
fn a_function_that_programs_may_not_call_is_another_refusal_than_lacking_rights() {
    let Ok(types) = Btf::of_kernel(Path::new("/")) else { return };
    let refused = DropWatch::with(&types, types.function("vprintk"));
    match refused {
        Err(error @ ProbeError::Rights { .. }) => eprintln!("skipped: {error}"),
        refused => assert!(matches!(refused, Err(ProbeError::Refused(_))), "{refused:?}"),
    }
}

#[test]
fn without_rights_the_error_names_the_capabilities() {
    let refused = std::thread::spawn(|| {
        let none = CapabilitySet::empty();
        set_capabilities(
            None,
            CapabilitySets { effective: none, permitted: none, inheritable: none },
        )
        .unwrap();
        DropWatch::open()
    });
    match refused.join().unwrap() {
        Err(ProbeError::Types(error)) => eprintln!("skipped: {error}"),
        refused => {
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("needs CAP_BPF and CAP_PERFMON ("), "{text}");
        }
    }
}

#[test]
fn packets_of_a_list_are_told_one_by_one() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let sender = socket(&pair.left);
    set(sender.as_fd(), libc::SOL_UDP, UDP_SEGMENT, &(BYTES as i32)).unwrap();
    let closed = port(&socket(&pair.right));
    let Some(mut seen) = Seen::new(DropWatch::open(), &pair.right, &[closed]) else { return };
    if pair.left.command("ethtool").arg("--version").output().is_err() {
        eprintln!("skipped: there is no `ethtool` here (Debian package ethtool)");
        return;
    }
    // The sender's kernel divides the trains, the receiver's hangs the packets together.
    pair.left.sh("ethtool -K veth0 tx-udp-segmentation off");
    pair.right.sh("ethtool -K veth0 gro on rx-gro-list on");
    for train in 0..4 {
        sender.send_to(&numbered(8 * train, 8), (pair.right.address, closed)).unwrap();
    }
    let packets = seen.wait(32);
    assert_eq!(packets.len(), 32);
    if reads_pages() {
        assert_eq!(numbers_of(packets), (0..32).collect::<Vec<_>>());
    }
    assert!(packets.iter().all(|packet| packet.segments == 1), "{packets:?}");
    assert_eq!(seen.reasons(), [word("NO_SOCKET")]);
}
