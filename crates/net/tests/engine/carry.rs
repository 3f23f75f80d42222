//! Datagrams arrive whole, in order, without a copy, and ports do not disturb each other.

use std::time::{Duration, Instant};

use millstream_link::frame::FrameOptions;
use millstream_link::loopback::{LoopOptions, pair};
use millstream_link::port::PortOptions;
use millstream_net::engine::attach;

use crate::{Net, any, collect};

/// Both ways to drive a link, with all wait modes.
const MODES: [&str; 6] = [
    "io=thread",
    "io=thread,wait=park,user_wait=park",
    "io=thread,user_wait=spin",
    "io=inline",
    "io=inline,user_wait=park",
    "io=inline,user_wait=spin",
];

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 256) as u8).collect()
}

#[test]
fn datagrams_of_every_size_cross_in_both_directions() {
    for mode in MODES {
        let net = Net::with(mode, "io=thread", &LoopOptions::default());
        let (mut near, mut far) = (net.near(), net.far());
        for bytes in [0, 1, 17, 18, 19, 1472, 4096, 8972] {
            near.tx.send(&content(bytes), far.local).unwrap();
            let got = collect(&mut far, 1);
            assert_eq!(got, [(content(bytes), near.local)], "{mode} {bytes}");
            far.tx.send(&content(bytes), near.local).unwrap();
            assert_eq!(collect(&mut near, 1), [(content(bytes), far.local)], "{mode} {bytes}");
        }
        let error = near.tx.send(&content(8973), far.local).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE), "{mode}");
    }
}

#[test]
fn the_payload_lies_in_the_frame_memory() {
    for mode in MODES {
        let net = Net::new(mode, &LoopOptions::default());
        let (mut near, mut far) = (net.near(), net.far());
        let sender = std::thread::spawn(move || {
            near.tx.send_train(&content(100 * 64), 64, far.local).unwrap();
            near
        });
        let mut seen = 0;
        while seen < 100 {
            let count = far.rx.recv_batch(crate::PATIENCE).unwrap();
            for index in 0..count {
                let payload = far.rx.datagram(index).payload;
                assert!(net.far_memory.contains(payload.as_ptr()), "{mode}");
                assert_eq!(payload, &content(100 * 64)[64 * seen..][..64], "{mode}");
                seen += 1;
            }
        }
        sender.join().unwrap();
    }
}

#[test]
fn a_train_of_many_batches_leaves_at_once() {
    for mode in MODES {
        let net = Net::with(mode, "io=thread", &LoopOptions::default());
        let (mut near, mut far) = (net.near(), net.far());
        // At the first datagram the neighbour is unknown, at the second it is known; after neither
        // is there a call that would drive an inline link.
        for _ in 0..2 {
            near.tx.send_train(&content(200 * 64), 64, far.local).unwrap();
            assert_eq!(collect(&mut far, 200).len(), 200, "{mode}");
        }
    }
}

#[test]
fn a_datagram_in_several_parts_is_joined_and_counted() {
    for mode in MODES {
        let link = LoopOptions { part_bytes_max: Some(2048), ..LoopOptions::default() };
        let net = Net::with("io=thread", mode, &link);
        let (mut near, mut far) = (net.near(), net.far());
        for bytes in [1, 2005, 2006, 2007, 4053, 4054, 4055, 8972] {
            near.tx.send(&content(bytes), far.local).unwrap();
            assert_eq!(collect(&mut far, 1)[0].0, content(bytes), "{mode} {bytes}");
        }
        near.tx.send_train(&content(8972 * 5), 8972, far.local).unwrap();
        let got: Vec<u8> = collect(&mut far, 5).into_iter().flat_map(|got| got.0).collect();
        assert!(got == content(8972 * 5), "{mode}");
    }
}

/// As many parts as an MTU of 30000 and parts of 512 bytes make: 59.
#[test]
fn a_datagram_in_very_many_parts_arrives_whole() {
    let frames = FrameOptions { receive_frames: 4096, transmit_frames: 4096 };
    let link = LoopOptions { mtu: 30_000, part_bytes_max: Some(512), frames, keep: true };
    for mode in ["io=thread", "io=inline"] {
        let net = Net::with("io=thread", mode, &link);
        let (mut near, mut far) = (net.near(), net.far());
        for bytes in [100, 4000, 17_000, 17_500, 29_972] {
            near.tx.send(&content(bytes), far.local).unwrap();
            assert_eq!(collect(&mut far, 1)[0].0, content(bytes), "{mode} {bytes}");
        }
    }
}

#[test]
fn a_link_whose_frames_lie_in_too_many_parts_is_refused_with_advice() {
    let link = LoopOptions { mtu: 30_000, part_bytes_max: Some(256), ..LoopOptions::default() };
    let (one, _other, _) = pair(&link).unwrap();
    let error = attach(Box::new(one), "address=10.0.0.1/24").err().unwrap().to_string();
    let says = "a packet of 30000 bytes lies in 118 parts of 256 bytes on this link, and 64 are \
                supported: use longer parts, or a smaller MTU";
    assert!(error.contains(says), "{error}");
}

#[test]
fn a_port_that_is_not_read_loses_its_own_datagrams_only() {
    for checksum in ["", "udp_checksum=off,checksum=ignore"] {
        let net = Net::new(checksum, &LoopOptions::default());
        let (mut near, mut slow) = (net.near(), net.far());
        let mut quick = net.far();
        let room = slow.rx.capabilities().recv_queue_datagrams.unwrap();
        let turns = room as u64 + 500;
        for turn in 0..turns {
            near.tx.send(&turn.to_le_bytes(), slow.local).unwrap();
            near.tx.send(&turn.to_le_bytes(), quick.local).unwrap();
            assert_eq!(collect(&mut quick, 1)[0].0, turn.to_le_bytes(), "the other is served");
        }
        let (mut kept, mut next) = (0, 0);
        while let count @ 1.. = slow.rx.recv_batch(Duration::from_millis(50)).unwrap() {
            for index in 0..count {
                assert_eq!(slow.rx.datagram(index).payload, u64::to_le_bytes(next));
                next += 1;
            }
            kept += count as u64;
        }
        assert!(kept >= room as u64, "{kept} of {room}");
        assert_eq!(kept + slow.rx.queue_drops(), turns);
        assert_eq!(quick.rx.queue_drops(), 0);
        near.tx.send(b"again", slow.local).unwrap();
        assert_eq!(collect(&mut slow, 1)[0].0, b"again");
    }
}

#[test]
fn a_wait_ends_when_the_time_is_up_and_not_before() {
    for mode in MODES {
        let net = Net::new(mode, &LoopOptions::default());
        let mut far = net.far();
        assert_eq!(far.rx.recv_batch(Duration::ZERO).unwrap(), 0);
        for wait in [Duration::from_micros(300), Duration::from_millis(20)] {
            let start = Instant::now();
            assert_eq!(far.rx.recv_batch(wait).unwrap(), 0, "{mode}");
            assert!(start.elapsed() >= wait, "{mode}");
        }
    }
}

#[test]
fn a_datagram_ends_a_long_wait() {
    for mode in MODES {
        let net = Net::with("io=thread", mode, &LoopOptions::default());
        let (mut near, mut far) = (net.near(), net.far());
        let to = far.local;
        let waiter = std::thread::spawn(move || collect(&mut far, 1)[0].0.clone());
        std::thread::sleep(Duration::from_millis(30));
        near.tx.send(b"good morning", to).unwrap();
        assert_eq!(waiter.join().unwrap(), b"good morning", "{mode}");
    }
}

#[test]
fn a_port_gets_the_queue_that_it_asks_for_as_far_as_there_are_frames() {
    let frames = FrameOptions { receive_frames: 4096, transmit_frames: 1024 };
    let net = Net::new("", &LoopOptions { mtu: 1500, frames, ..LoopOptions::default() });
    let options = |bytes| PortOptions {
        recv_queue_bytes: bytes,
        datagram_bytes_max: 1472,
        ..PortOptions::default()
    };
    let queue =
        |port: &millstream_link::port::Port| port.rx.capabilities().recv_queue_datagrams.unwrap();
    let small = net.far.open(any(), &options(300 * 1490)).unwrap();
    assert_eq!(queue(&small), 300);
    let large = net.far.open(any(), &options(64 << 20)).unwrap();
    assert!((1000..4096 / 2).contains(&queue(&large)), "{}", queue(&large));
    let rest = net.far.open(any(), &options(64 << 20)).unwrap();
    assert!(queue(&rest) < queue(&large));
    let before = queue(&rest);
    drop(rest);
    let again = net.far.open(any(), &options(64 << 20)).unwrap();
    assert_eq!(queue(&again), before, "a closed port leaves its share behind");
    let mut ports = vec![small, large, again];
    let error = loop {
        match net.far.open(any(), &options(64 << 20)) {
            Ok(port) => ports.push(port),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("are left for another port"), "{error}");
}

#[test]
fn ports_that_are_opened_together_get_the_same() {
    let frames = FrameOptions { receive_frames: 4096, transmit_frames: 1024 };
    let net = Net::new("", &LoopOptions { mtu: 1500, frames, ..LoopOptions::default() });
    let open = |more_ports| {
        let options =
            PortOptions { recv_queue_bytes: 64 << 20, more_ports, ..PortOptions::default() };
        net.far.open(any(), &options).unwrap()
    };
    let ports = [3, 2, 1, 0].map(open);
    let queues = ports.each_ref().map(|port| port.rx.capabilities().recv_queue_datagrams.unwrap());
    let spread = queues.iter().max().unwrap() - queues.iter().min().unwrap();
    assert!(queues[0] > 500 && spread <= 1, "{queues:?}");
}

/// Each of several users of a link without a thread gets its datagrams, whichever user polls.
#[test]
fn the_users_of_an_inline_link_serve_each_other() {
    const TURNS: u64 = 200;
    for mode in ["io=inline", "io=inline,user_wait=park", "io=inline,user_wait=spin"] {
        // Small queues, so that there are enough frames for all.
        let near = format!("{mode},queue=64");
        let net = Net::with(&near, "io=thread,queue=64", &LoopOptions::default());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let (mut near, mut far) = (net.near(), net.far());
                let (here, there) = (near.local, far.local);
                scope.spawn(move || {
                    for turn in 0..TURNS {
                        assert_eq!(collect(&mut far, 1), [(turn.to_le_bytes().to_vec(), here)]);
                        far.tx.send(&turn.to_le_bytes(), here).unwrap();
                    }
                });
                scope.spawn(move || {
                    for turn in 0..TURNS {
                        near.tx.send(&turn.to_le_bytes(), there).unwrap();
                        assert_eq!(collect(&mut near, 1), [(turn.to_le_bytes().to_vec(), there)]);
                    }
                });
            }
        });
        // A user that does not poll finds the datagrams that another's poll received.
        let (mut near, mut far, mut idle) = (net.near(), net.far(), net.near());
        far.tx.send(b"first", idle.local).unwrap();
        far.tx.send(b"second", near.local).unwrap();
        assert_eq!(collect(&mut near, 1)[0].0, b"second", "{mode}");
        assert_eq!(collect(&mut idle, 1)[0].0, b"first", "{mode}");
    }
}
