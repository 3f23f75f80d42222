//! AF_PACKET links against the kernel's own stack, over veth pairs in namespaces of their own.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use millstream_link::frame::{Frame, FrameLink, FrameOptions, Steer};
use millstream_link::port::PortOptions;
use millstream_link::{open, open_frames};
use millstream_testkit::netns::{Namespace, PairOptions, VethPair};

const PATIENCE: Duration = Duration::from_secs(10);
const PORT: u16 = 5000;

fn link(side: &Namespace, text: &str) -> Box<dyn FrameLink> {
    side.run(|| open_frames(text, &FrameOptions::default())).unwrap()
}

fn steered(side: &Namespace, text: &str) -> Box<dyn FrameLink> {
    let mut link = link(side, text);
    let steer = Steer { addresses: vec![side.address], udp_ports: vec![PORT], ..Steer::default() };
    link.steer(&steer).unwrap();
    link
}

/// Receives `wanted` frames and examines each.
fn each(link: &mut dyn FrameLink, wanted: usize, mut look: impl FnMut(&Frame, &[u8])) {
    let (mut frames, mut count, until) = (Vec::new(), 0, Instant::now() + PATIENCE);
    while count < wanted {
        assert!(Instant::now() < until, "{count} of {wanted} came, {:?}", link.counters());
        count += link.receive(&mut frames).unwrap();
        frames.iter().for_each(|frame| look(frame, link.memory().bytes(frame)));
        link.give_back(&mut frames);
    }
    assert_eq!(count, wanted);
}

/// Returns the one's complement sum over an IPv4 header, which is correct when it is all ones (RFC
/// 791).
fn header_sum(header: &[u8]) -> u32 {
    let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    (sum & 0xffff) + (sum >> 16)
}

#[test]
fn trains_of_a_segmenting_sender_come_as_the_datagrams_they_are() {
    let Some(pair) = VethPair::new(PairOptions { mtu: 9000, queues: 1 }) else { return };
    let mut link = steered(&pair.right, "packet:veth0");
    let to = SocketAddrV4::new(pair.right.address, PORT);
    let from = SocketAddrV4::new(pair.left.address, 0);
    let mut port = pair.left.run(|| open("udp", from, &PortOptions::default()).unwrap());
    assert!(port.tx.capabilities().segmentation);
    for segment in [100, 1472, 8000] {
        let datagrams = 150;
        let train: Vec<u8> = (0..segment * datagrams - 7).map(|at| (at / 7) as u8).collect();
        let mut payload = Vec::new();
        for part in train.chunks(segment * 15) {
            port.tx.send_train(part, segment, to).unwrap();
            each(&mut *link, part.len().div_ceil(segment), |frame, bytes| {
                assert!(frame.checksum_trusted() && bytes.len() <= 42 + segment);
                assert_eq!(header_sum(&bytes[14..34]), 0xffff);
                let udp = usize::from(u16::from_be_bytes([bytes[38], bytes[39]]));
                assert_eq!(udp, bytes.len() - 34);
                payload.extend_from_slice(&bytes[42..]);
            });
        }
        assert!(payload == train, "segments of {segment}");
    }
    let census = link.census();
    assert_eq!(census.lent, 0, "{census:?}");
    assert_eq!(link.counters().rx_dropped, 0);
}

/// Writes Ethernet, IPv4 and UDP headers from one link to another address, without a checksum.
fn datagram(bytes: &mut [u8], macs: ([u8; 6], [u8; 6]), ips: (Ipv4Addr, Ipv4Addr)) {
    let [ip, udp] = [14, 34].map(|at| ((bytes.len() - at) as u16).to_be_bytes());
    bytes[..6].copy_from_slice(&macs.1);
    bytes[6..12].copy_from_slice(&macs.0);
    bytes[12..26].copy_from_slice(&[8, 0, 0x45, 0, ip[0], ip[1], 0, 0, 0, 0, 64, 17, 0, 0]);
    bytes[26..30].copy_from_slice(&ips.0.octets());
    bytes[30..34].copy_from_slice(&ips.1.octets());
    let sum = !(header_sum(&bytes[14..34]) as u16);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    let port = PORT.to_be_bytes();
    bytes[34..42].copy_from_slice(&[port[0], port[1], port[0], port[1], udp[0], udp[1], 0, 0]);
}

/// The kernel keeps the data to send until the receiver has read it: a link that reuses its
/// transmit memory earlier would damage datagrams here.
#[test]
fn a_kernel_socket_that_reads_late_gets_every_byte_as_it_was_sent() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let here = SocketAddrV4::new(pair.right.address, PORT);
    let mut port = pair.right.run(|| open("udp", here, &PortOptions::default()).unwrap());
    let there = link(&pair.right, "packet:veth0").info().mac;
    let sizes = FrameOptions { receive_frames: 64, transmit_frames: 16 };
    let mut link = pair.left.run(|| open_frames("packet:veth0", &sizes)).unwrap();
    let mac = link.info().mac;
    let mut frames = Vec::new();
    // More than the transmit buffers, so that each is used again before the first is read.
    for number in 0..250u8 {
        assert_eq!(link.reserve(&mut frames, 1), 1);
        frames[0].set_len(1042);
        let memory = std::sync::Arc::clone(link.memory());
        let bytes = memory.bytes_mut(&mut frames[0]);
        bytes[42..].fill(number);
        datagram(bytes, (mac, there), (pair.left.address, pair.right.address));
        assert_eq!(link.transmit(&mut frames).unwrap(), 1);
        link.flush().unwrap();
    }
    let (mut wrong, mut count) = (0, 0u8);
    while count < 250 {
        let got = port.rx.recv_batch(PATIENCE).unwrap();
        assert_ne!(got, 0);
        for index in 0..got {
            let payload = port.rx.datagram(index).payload;
            assert_eq!(payload.len(), 1000);
            wrong += usize::from(payload.iter().any(|byte| *byte != count));
            count += 1;
        }
    }
    assert_eq!(wrong, 0, "datagrams damaged");
}

#[test]
fn a_vlan_tag_that_the_kernel_took_out_is_noted() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let mut sender = link(&pair.left, "packet:veth0");
    let macs = (sender.info().mac, link(&pair.right, "packet:veth0").info().mac);
    let steer = |vlan| Steer {
        addresses: vec![pair.right.address],
        udp_ports: vec![PORT],
        vlan,
        ..Steer::default()
    };
    let mut link = link(&pair.right, "packet:veth0");
    // A tag with identifier 0 is a priority, and belongs to no VLAN.
    for (vlan, tag, comes) in [
        (Some(7), 7, true),
        (Some(7), 0x6007, true),
        (Some(8), 7, false),
        (None, 7, false),
        (None, 0x6000, true),
        (Some(7), 0x6000, false),
    ] {
        link.steer(&steer(vlan)).unwrap();
        let mut plain = [7; 60];
        datagram(&mut plain, macs, (pair.left.address, pair.right.address));
        let [upper, lower] = u16::to_be_bytes(tag);
        let tagged = [&plain[..12], &[0x81, 0, upper, lower], &plain[12..]].concat();
        let mut frames = Vec::new();
        sender.reserve(&mut frames, 1);
        frames[0].set_len(tagged.len());
        let memory = std::sync::Arc::clone(sender.memory());
        memory.bytes_mut(&mut frames[0]).copy_from_slice(&tagged);
        sender.transmit(&mut frames).unwrap();
        sender.flush().unwrap();
        if comes {
            each(&mut *link, 1, |frame, bytes| {
                assert_eq!(frame.vlan(), Some(tag));
                assert_eq!(bytes, plain);
            });
        } else {
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(link.receive(&mut frames).unwrap(), 0, "{vlan:?}");
        }
    }
}

/// Frames as long as the MTU allows, and four bytes more with a VLAN tag: the kernel would refuse
/// longer ones.
#[test]
fn frames_that_the_kernel_would_refuse_are_counted() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let mut receiver = link(&pair.right, "packet:veth0");
    let everything = Steer { ethertypes: vec![0x88b5], vlan: None, ..Steer::default() };
    let mut sender = link(&pair.left, "packet:veth0");
    let mtu = sender.info().mtu;
    for (bytes, vlan, passes) in [
        (mtu + 14, None, true),
        (mtu + 15, None, false),
        (mtu + 18, None, false),
        (mtu + 18, Some(7), true),
        (13, None, false),
    ] {
        receiver.steer(&Steer { vlan, ..everything.clone() }).unwrap();
        let before = sender.counters();
        let mut frames = Vec::new();
        sender.reserve(&mut frames, 1);
        frames[0].set_len(bytes);
        let memory = std::sync::Arc::clone(sender.memory());
        let head = [&[0xff; 12][..], &[0x81, 0, 0, 7, 0x88, 0xb5]].concat();
        let at = if vlan.is_some() { 12 } else { 16 };
        memory.bytes_mut(&mut frames[0])[..12].copy_from_slice(&head[..12]);
        let kind = &head[at..][..(bytes - 12).min(head.len() - at)];
        memory.bytes_mut(&mut frames[0])[12..][..kind.len()].copy_from_slice(kind);
        assert_eq!(sender.transmit(&mut frames).unwrap(), 1);
        sender.flush().unwrap();
        let after = sender.counters();
        assert_eq!(after.tx_frames - before.tx_frames, u64::from(passes), "{bytes}");
        assert_eq!(after.tx_invalid - before.tx_invalid, u64::from(!passes), "{bytes}");
        if passes {
            each(&mut *receiver, 1, |frame, _| assert_eq!(frame.vlan(), vlan));
        }
    }
}

#[test]
fn the_kernel_goes_on_answering_beside_the_link() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let mut link = steered(&pair.right, "packet:veth0");
    let sender = pair.left.run(|| UdpSocket::bind((pair.left.address, 0)).unwrap());
    sender.send_to(&[9; 100], (pair.right.address, PORT)).unwrap();
    sender.send_to(&[8; 100], (pair.right.address, PORT + 1)).unwrap();
    each(&mut *link, 1, |_, bytes| assert_eq!(bytes[42..], [9; 100]));
    pair.left.sh(&format!("ping -c 3 -i 0.01 -W 2 {}", pair.right.address));
    let mut frames = Vec::new();
    assert_eq!(link.receive(&mut frames).unwrap(), 0, "only what was asked for");
}

#[test]
fn links_of_one_fanout_group_share_the_frames() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let texts = ["packet:veth0,fanout=7:lb"; 2];
    let mut links = texts.map(|text| steered(&pair.right, text));
    let sender = pair.left.run(|| UdpSocket::bind((pair.left.address, 0)).unwrap());
    for _ in 0..100 {
        sender.send_to(&[1; 10], (pair.right.address, PORT)).unwrap();
    }
    for link in &mut links {
        each(&mut **link, 50, |_, bytes| assert_eq!(bytes[42..52], [1; 10]));
    }
    let other = || open_frames("packet:veth0,fanout=7:cpu", &FrameOptions::default());
    let error = pair.right.run(other).err().unwrap().to_string();
    assert!(error.contains("all links of a group must share it the same way"), "{error}");
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let open = || open_frames("packet:nonesuch0", &FrameOptions::default());
    let error = open().err().unwrap().to_string();
    assert!(error.contains("nonesuch0"), "{error}");
}
