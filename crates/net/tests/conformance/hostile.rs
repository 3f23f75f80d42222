//! Frames that no honest host sends.

use std::net::SocketAddrV4;

use millstream_testkit::raw::{Injector, at, mac, seal_ip, seal_udp, too_long, udp_frame};

use crate::rig::{Rig, collect, content, silent};

/// A change that makes a correct frame wrong.
type Spoil = fn(&mut Vec<u8>);

/// The faults, and the changes that cause them. None of the results is a datagram for the port.
const WRONGS: &[(&str, Spoil)] = &[
    ("cut in the Ethernet header", |frame| frame.truncate(14)),
    ("cut in the IPv4 header", |frame| frame.truncate(at::IP + 12)),
    ("cut in the UDP header", |frame| frame.truncate(at::UDP + 5)),
    ("cut in the payload", |frame| frame.truncate(frame.len() - 1)),
    ("IP version 5", |frame| set_ip(frame, 0, 0x55)),
    ("an IPv4 header of 16 bytes", |frame| set_ip(frame, 0, 0x44)),
    ("an IPv4 header longer than the packet", |frame| {
        frame.truncate(at::PAYLOAD + 8);
        set_ip(frame, 0, 0x4f);
    }),
    ("an IPv4 length of 0", |frame| set_ip_length(frame, 0)),
    ("an IPv4 length without UDP header", |frame| set_ip_length(frame, 24)),
    ("an IPv4 length beyond the frame", |frame| set_ip_length(frame, 65_535)),
    ("a wrong IPv4 checksum", |frame| frame[at::IP + 10] ^= 0x40),
    ("a first fragment", |frame| set_ip(frame, 6, 0x20)),
    ("a later fragment", |frame| set_ip(frame, 7, 0x10)),
    ("another protocol", |frame| set_ip(frame, 9, 6)),
    ("another destination", |frame| set_ip(frame, 19, 77)),
    ("a wrong UDP checksum", |frame| frame[at::PAYLOAD] ^= 1),
    ("a UDP length of 7", |frame| set_udp_length(frame, 7)),
    ("a UDP length beyond the packet", |frame| set_udp_length(frame, 2000)),
    ("another port", |frame| {
        frame[at::UDP + 3] ^= 1;
        seal_udp(frame);
    }),
    ("another Ethernet type", |frame| frame[at::ETHERTYPE..at::IP].fill(0x86)),
];

fn set_ip(frame: &mut [u8], offset: usize, value: u8) {
    frame[at::IP + offset] = value;
    seal_ip(frame);
    if frame.len() > at::PAYLOAD {
        seal_udp(frame);
    }
}

fn set_ip_length(frame: &mut [u8], bytes: u16) {
    frame[at::IP + 2..at::IP + 4].copy_from_slice(&bytes.to_be_bytes());
    seal_ip(frame);
}

fn set_udp_length(frame: &mut [u8], bytes: u16) {
    frame[at::UDP + 4..at::UDP + 6].copy_from_slice(&bytes.to_be_bytes());
    seal_udp(frame);
}

pub fn hostile_frames_cost_counters(rig: &Rig) {
    let Some(pair) = rig.pair() else { return };
    let (mut near, mut far) = (rig.near(), rig.far());
    let injector = Injector::new(&pair.left);
    let macs = (mac(&pair.left), mac(&pair.right));
    let from = SocketAddrV4::new(pair.left.address, near.local.port());
    let to = SocketAddrV4::new(pair.right.address, far.local.port());
    let right = udp_frame(macs, from, to, &content(300));
    for (what, spoil) in WRONGS {
        let mut frame = right.clone();
        spoil(&mut frame);
        injector.send(&frame).unwrap_or_else(|error| panic!("{what}: {error}"));
        // A correct frame follows: when it has arrived, the wrong one has been processed.
        injector.send(&right).unwrap();
        let got = collect(&mut far, 1);
        assert_eq!(got[0].0, content(300), "{what}");
        assert_eq!(got[0].1, from, "{what}");
        assert_eq!(far.rx.recv_batch(std::time::Duration::ZERO).unwrap(), 0, "{what}");
    }
    noise(&injector, &right);
    silent(&mut far);
    // The kernel's sockets count a wrong checksum among the drops of the port.
    assert!(
        far.rx.queue_drops() <= 1,
        "{} drops: what is not ours is not lost",
        far.rx.queue_drops()
    );
    near.tx.send(b"after all that", far.local).unwrap();
    assert_eq!(collect(&mut far, 1)[0].0, b"after all that");
}

/// A sender who knows both ports can forge a router's message (RFC 5927): it must not cause a
/// failure.
pub fn a_forged_error_fails_no_send(rig: &Rig) {
    let Some(pair) = rig.pair() else { return };
    let (mut near, mut far) = rig.acquainted();
    let longest = content(rig.payload_bytes_max);
    far.tx.send(&longest, near.local).unwrap();
    assert_eq!(collect(&mut near, 1)[0].0, longest);
    let (here, there) = (mac(&pair.left), mac(&pair.right));
    let sent = udp_frame((there, here), far.local, near.local, &longest);
    let injector = Injector::new(&pair.left);
    for mtu in [0, 68, 600, 1400] {
        injector.send(&too_long((here, there), pair.left.address, &sent, mtu)).unwrap();
        // Frames behind it are processed after it.
        near.tx.send(b"behind", far.local).unwrap();
        assert_eq!(collect(&mut far, 1)[0].0, b"behind");
        for _ in 0..3 {
            far.tx.send(&longest, near.local).unwrap_or_else(|error| panic!("{mtu}: {error}"));
            assert_eq!(collect(&mut near, 1)[0].0, longest, "{mtu}");
        }
    }
}

/// Sends frames of which single bytes, or all behind the addresses, are random.
fn noise(injector: &Injector, right: &[u8]) {
    let mut seed = 0x1234_5678u32;
    let mut random = || {
        // Xorshift (Marsaglia 2003).
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        seed
    };
    for turn in 0..500 {
        let mut frame = right.to_vec();
        if turn % 2 == 0 {
            // Anywhere in the headers, never back to the old value; the sender's ports and
            // addresses are not checked.
            let place = at::IP + random() as usize % 20;
            frame[place] ^= 1 + (random() % 255) as u8;
        } else {
            let length = at::IP + random() as usize % 400;
            frame.resize(length, 0);
            frame[at::IP..].fill_with(|| random() as u8);
        }
        injector.send(&frame).unwrap();
    }
}
