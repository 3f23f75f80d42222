//! AF_XDP on veth pairs in namespaces of their own.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use millstream_link::frame::{Frame, FrameLink, FrameOptions, Steer};
use millstream_link::{Spec, xdp};
use millstream_testkit::netns::{Pair, PairOptions};

/// Longest that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

fn open(text: &str) -> xdp::XdpLink {
    let spec = Spec::parse(text, xdp::OPTIONS_HELP).unwrap();
    let sizes = FrameOptions { receive_frames: 512, transmit_frames: 256 };
    xdp::XdpLink::open(&spec, &sizes).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn collect(link: &mut xdp::XdpLink, count: usize) -> Vec<Vec<u8>> {
    let (mut whole, mut part, until) = (Vec::new(), Vec::new(), Instant::now() + PATIENCE);
    let mut frames: Vec<Frame> = Vec::new();
    while whole.len() < count {
        assert!(Instant::now() < until, "{} of {count}: {:?}", whole.len(), link.counters());
        link.receive(&mut frames).unwrap();
        for frame in &frames {
            part.extend_from_slice(link.memory().bytes(frame));
            if !frame.continues() {
                whole.push(std::mem::take(&mut part));
            }
        }
        link.give_back(&mut frames);
    }
    whole
}

#[test]
fn first_light() {
    for (mode, queues, mtu) in [("generic", 1, 1500), ("native", 1, 1500), ("native", 4, 9000)] {
        let Some(pair) = Pair::new(PairOptions { mtu, queues }) else { return };
        let mut link = pair.right.run(|| open(&format!("xdp:veth0,mode={mode}")));
        println!("{}", link.info().detail);
        let total = link.census().total();
        let addresses = vec![pair.right.address];
        link.steer(&Steer { addresses, udp_ports: vec![7000], ..Steer::default() }).unwrap();
        let sender = pair.left.run(|| UdpSocket::bind((pair.left.address, 0)).unwrap());
        for turn in 0..1000u32 {
            let mut bytes = vec![turn as u8; mtu - 28];
            bytes[..4].copy_from_slice(&turn.to_le_bytes());
            sender.send_to(&bytes, (pair.right.address, 7000)).unwrap();
            let got = collect(&mut link, 1).pop().unwrap();
            assert_eq!(got[42..], bytes);
        }
        println!("{:?} {:?}", link.counters(), link.counts(Some(7000)));
        assert_eq!(link.census().total(), total);
        println!("{}", pair.left.sh(&format!("ping -c 3 -i 0.01 {}", pair.right.address)));
        drop(link);
        let shown = pair.right.sh("ip link show veth0");
        assert!(!shown.contains("xdp"), "{shown}");
        let mut link = pair.right.run(|| open(&format!("xdp:veth0,mode={mode}")));
        assert_eq!(link.counters().rx_frames, 0);
    }
}
