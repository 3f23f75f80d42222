//! Tests of the program with frames of every kind, run by the kernel itself (BPF_PROG_TEST_RUN).

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

use millstream_host::mapping::Mapping;
use rustix::mm::ProtFlags;

use super::bpf::{self, ProgramCounts};
use super::privileged::{Loaded, socket};
use crate::frame::Steer;
use crate::rights::{Attach, Hook};

const DROP: u32 = 1;
const PASS: u32 = 2;
const REDIRECT: u32 = 4;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PORT: u16 = 49153;

/// The program with a socket on queue 0.
struct Bench {
    loaded: Loaded,
    counted: Mapping,
    _socket: Option<OwnedFd>,
}

impl Bench {
    /// Returns `None`, with a reason, where programs cannot be loaded.
    fn new(steer: &Steer, rate_max_hz: u32, watched: bool, parts: bool) -> Option<Self> {
        let loaded = Loaded::new(&Attach { hook: Hook::Generic, parts, rate_max_hz });
        let loaded = match loaded {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                eprintln!("skipped: XDP programs cannot be loaded here ({error})");
                return None;
            }
            loaded => loaded.unwrap(),
        };
        loaded.steer(steer).unwrap();
        let socket = watched.then(|| socket().unwrap());
        if let Some(socket) = &socket {
            loaded.watch(0, socket.as_fd()).unwrap();
        }
        let bytes = bpf::counters_bytes(bpf::cpus());
        let counted = Mapping::new(loaded.counters.as_fd(), 0, bytes, ProtFlags::READ).unwrap();
        Some(Self { loaded, counted, _socket: socket })
    }

    fn run(&self, frame: &[u8]) -> u32 {
        bpf::test_run(self.loaded.program.as_fd(), frame, 1).unwrap().0
    }

    fn counts(&self, row: usize) -> ProgramCounts {
        // SAFETY: the mapping is the counters' value.
        unsafe { bpf::read_counts(self.counted.base(), bpf::cpus(), row) }
    }
}

fn ports() -> Steer {
    Steer { addresses: vec![PEER, OURS], udp_ports: vec![7, PORT], ..Steer::default() }
}

fn own() -> Steer {
    Steer { own_addresses: true, ..ports() }
}

fn ethernet(destination: [u8; 6], tag: Option<u16>, kind: u16, rest: &[u8]) -> Vec<u8> {
    let mut frame = destination.to_vec();
    frame.extend([2, 0, 0, 0, 0, 1]);
    if let Some(tag) = tag {
        frame.extend(0x8100_u16.to_be_bytes());
        frame.extend(tag.to_be_bytes());
    }
    frame.extend(kind.to_be_bytes());
    frame.extend(rest);
    frame
}

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Returns an IPv4 packet of 8 bytes behind a header of `words` words.
fn ipv4(to: Ipv4Addr, protocol: u8, fragment: u16, words: u8, rest: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; usize::from(words) * 4];
    packet[0] = 0x40 | words;
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    packet[8] = 64;
    packet[9] = protocol;
    packet[12..16].copy_from_slice(&PEER.octets());
    packet[16..20].copy_from_slice(&to.octets());
    packet.extend(rest);
    packet
}

fn udp_header(port: u16) -> Vec<u8> {
    let mut header = 5000_u16.to_be_bytes().to_vec();
    header.extend(port.to_be_bytes());
    header.extend([0, 12, 0, 0, b'm', b's', 0, 0]);
    header
}

fn udp(to: Ipv4Addr, port: u16) -> Vec<u8> {
    ethernet(MAC, None, 0x0800, &ipv4(to, 17, 0x4000, 5, &udp_header(port)))
}

fn arp(sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let mut packet = vec![0, 1, 8, 0, 6, 4, 0, 1];
    packet.extend([2, 0, 0, 0, 0, 1]);
    packet.extend(sender.octets());
    packet.extend([0; 6]);
    packet.extend(target.octets());
    ethernet([0xff; 6], None, 0x0806, &packet)
}

#[test]
fn udp_to_a_wanted_port_goes_to_the_socket_and_all_else_to_the_kernel() {
    for parts in [false, true] {
        let Some(bench) = Bench::new(&ports(), 0, true, parts) else { return };
        let of = |fragment, words, rest: &[u8]| {
            ethernet(MAC, None, 0x0800, &ipv4(OURS, 17, fragment, words, rest))
        };
        let broadcast = ipv4(Ipv4Addr::new(10, 0, 0, 255), 17, 0, 5, &udp_header(PORT));
        let tagged = |tag| ethernet(MAC, Some(tag), 0x0800, &ipv4(OURS, 17, 0, 5, &udp_header(7)));
        for (what, frame, wanted) in [
            ("a wanted port", udp(OURS, PORT), REDIRECT),
            ("another wanted port and address", udp(PEER, 7), REDIRECT),
            ("broadcast", ethernet([0xff; 6], None, 0x0800, &broadcast), REDIRECT),
            ("a priority tag", tagged(0xe000), REDIRECT),
            ("another port", udp(OURS, PORT + 1), PASS),
            ("port 0", udp(OURS, 0), PASS),
            ("another address", udp(OTHER, PORT), PASS),
            ("a VLAN", tagged(5), PASS),
            ("ARP", arp(PEER, OURS), PASS),
            ("ICMP", ethernet(MAC, None, 0x0800, &ipv4(OURS, 1, 0, 5, &udp_header(PORT))), PASS),
            ("TCP", ethernet(MAC, None, 0x0800, &ipv4(OURS, 6, 0, 5, &udp_header(PORT))), PASS),
            ("a first fragment", of(0x2000, 5, &udp_header(PORT)), PASS),
            ("a later fragment", of(0x0001, 5, &udp_header(PORT)), PASS),
            ("options", of(0, 6, &udp_header(PORT)), PASS),
            ("a short UDP header", of(0, 5, &udp_header(PORT)[..7]), PASS),
            ("a short IPv4 header", of(0, 5, &[])[..33].to_vec(), PASS),
            ("a short Ethernet frame", udp(OURS, PORT)[..14].to_vec(), PASS),
            ("a short tag", tagged(0)[..17].to_vec(), PASS),
            ("IPv6", ethernet(MAC, None, 0x86dd, &[0x60; 48]), PASS),
            ("a private type", ethernet(MAC, None, 0x88b5, &[0; 46]), PASS),
        ] {
            assert_eq!(bench.run(&frame), wanted, "{what}, parts {parts}");
        }
        // 46 bytes each, and a tag.
        let seen = [0, 1, 2].map(|row| (bench.counts(row).frames, bench.counts(row).bytes));
        assert_eq!(seen, [(0, 0), (2, 46 + 50), (2, 46 + 46)]);
    }
}

#[test]
fn an_own_address_gets_all_that_is_for_it_and_its_arp() {
    let Some(bench) = Bench::new(&own(), 0, true, false) else { return };
    let to = |to, protocol| ethernet(MAC, None, 0x0800, &ipv4(to, protocol, 0, 5, &[0; 26]));
    let all = |port| {
        let packet = ipv4(Ipv4Addr::BROADCAST, 17, 0, 5, &udp_header(port));
        ethernet([0xff; 6], None, 0x0800, &packet)
    };
    for (what, frame, wanted) in [
        ("ARP for it", arp(OTHER, OURS), REDIRECT),
        ("ARP by it: a conflict", arp(OURS, OTHER), REDIRECT),
        ("ARP of others", arp(OTHER, Ipv4Addr::new(10, 0, 0, 8)), PASS),
        ("an ARP probe of others", arp(Ipv4Addr::UNSPECIFIED, OTHER), PASS),
        ("a short ARP", arp(OTHER, OURS)[..41].to_vec(), PASS),
        ("ICMP", to(OURS, 1), REDIRECT),
        ("TCP", to(OURS, 6), REDIRECT),
        ("UDP to a port that nobody has", udp(OURS, 9), REDIRECT),
        ("a fragment", ethernet(MAC, None, 0x0800, &ipv4(OURS, 17, 0x2000, 5, &[0; 8])), REDIRECT),
        ("ICMP for others", to(OTHER, 1), PASS),
        ("ICMP for all", to(Ipv4Addr::BROADCAST, 1), PASS),
        ("DHCP for all, which the kernel's host may wait for", all(68), PASS),
        ("ARP for nobody", arp(OTHER, Ipv4Addr::BROADCAST), PASS),
    ] {
        assert_eq!(bench.run(&frame), wanted, "{what}");
    }
    assert_eq!(bench.counts(0).frames, 6);
    assert_eq!(bench.run(&all(PORT)), REDIRECT, "broadcast to a wanted port");
    // Without served addresses there is no own one.
    bench.loaded.steer(&Steer { addresses: vec![], ..own() }).unwrap();
    let none = [all(68), all(PORT), arp(OTHER, Ipv4Addr::BROADCAST), to(OURS, 1), udp(OURS, PORT)];
    assert_eq!(none.map(|frame| bench.run(&frame)), [PASS, REDIRECT, PASS, PASS, PASS]);
}

#[test]
fn a_vlan_a_type_or_everything_can_be_wanted() {
    let vlan = Steer { vlan: Some(5), ..ports() };
    let Some(bench) = Bench::new(&vlan, 0, true, false) else { return };
    let tagged = |tag| ethernet(MAC, Some(tag), 0x0800, &ipv4(OURS, 17, 0, 5, &udp_header(7)));
    assert_eq!(
        [tagged(5), tagged(0x6005), tagged(6), udp(OURS, 7)].map(|f| bench.run(&f)),
        [REDIRECT, REDIRECT, PASS, PASS]
    );
    let private = Steer { ethertypes: vec![0x1234, 0x88b5], ..Steer::default() };
    bench.loaded.steer(&private).unwrap();
    let of = |kind| ethernet(MAC, None, kind, &[0; 46]);
    assert_eq!(
        [0x88b5, 0x1234, 0x88b6, 0].map(|kind| bench.run(&of(kind))),
        [REDIRECT, REDIRECT, PASS, PASS]
    );
    bench.loaded.steer(&Steer { everything: true, ..Steer::default() }).unwrap();
    let all = [udp(OTHER, 9), arp(OTHER, PEER), tagged(6), of(0x86dd)];
    assert_eq!(all.map(|frame| bench.run(&frame)), [REDIRECT; 4]);
}

#[test]
fn a_queue_without_a_socket_is_counted_and_left_to_the_kernel() {
    let Some(bench) = Bench::new(&ports(), 0, false, false) else { return };
    assert_eq!(bench.run(&udp(OURS, PORT)), PASS);
    let counts = bench.counts(2);
    assert_eq!((counts.frames, counts.unwatched, counts.limited), (1, 1, 0));
}

#[test]
fn beyond_the_rate_guard_frames_are_dropped_and_counted() {
    // One frame in 134 ms: a burst passes one frame for each interval that it touches.
    let Some(bench) = Bench::new(&ports(), 7, true, false) else { return };
    let frame = udp(OURS, PORT);
    let results: Vec<_> = (0..100).map(|_| bench.run(&frame)).collect();
    let passed = results.iter().filter(|result| **result == REDIRECT).count();
    let dropped = results.iter().filter(|result| **result == DROP).count();
    assert!(passed >= 1 && dropped > 0 && passed + dropped == 100, "{passed} {dropped}");
    assert_eq!(bench.counts(2).limited, dropped as u64);
    assert_eq!(bench.run(&udp(OURS, 9)), PASS, "what is not wanted is not limited");
}

/// The cost is printed and has no limit, because it depends on the machine.
#[test]
fn the_cost_of_the_program_is_shown() {
    let Some(bench) = Bench::new(&ports(), 0, false, false) else { return };
    for (what, frame) in [("wanted", udp(OURS, PORT)), ("ARP", arp(PEER, OURS))] {
        let (_, ns) = bpf::test_run(bench.loaded.program.as_fd(), &frame, 1_000_000).unwrap();
        println!("{what}: {ns} ns a frame, the harness included");
    }
    assert_eq!(bench.counts(2).frames, 1_000_000);
}
