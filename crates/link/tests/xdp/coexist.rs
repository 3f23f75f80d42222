//! The kernel still receives every frame that is not wanted, on the same port and interface.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use millstream_link::frame::{FrameLink, Steer};

use crate::bench::{Bench, PATIENCE, PORT, try_open, wanted};

/// Ping and TCP on the same port number work while the link takes that port's UDP.
#[test]
fn ping_and_tcp_go_on_while_udp_streams() {
    for (mode, queues) in [("generic", 1), ("native", 4)] {
        let Some(mut bench) = Bench::new(&format!("mode={mode}"), 1500, queues) else { return };
        let (here, there) = (bench.pair.left.address, bench.pair.right.address);
        let listener = bench.pair.right.run(|| TcpListener::bind((there, PORT)).unwrap());
        let stop = AtomicBool::new(false);
        let stream = bench.pair.left.run(|| UdpSocket::bind((here, 0)).unwrap());
        let received = thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let _ = stream.send_to(&[7; 1000], (there, PORT));
                }
            });
            scope.spawn(|| {
                let (mut echo, _) = listener.accept().unwrap();
                let mut bytes = vec![0; 1 << 16];
                while let Ok(count @ 1..) = echo.read(&mut bytes) {
                    echo.write_all(&bytes[..count]).unwrap();
                }
            });
            let others = scope.spawn(|| {
                bench.pair.left.sh(&format!("ping -c 20 -i 0.01 -W 5 {there}"));
                let mut tcp = bench.pair.left.run(|| TcpStream::connect((there, PORT)).unwrap());
                tcp.set_read_timeout(Some(PATIENCE)).unwrap();
                let (sent, mut back) = (vec![5; 1 << 15], vec![0; 1 << 15]);
                for _ in 0..32 {
                    tcp.write_all(&sent).unwrap();
                    tcp.read_exact(&mut back).unwrap();
                    assert_eq!(sent, back);
                }
                stop.store(true, Ordering::Relaxed);
            });
            let (mut frames, mut received) = (Vec::new(), 0);
            while !others.is_finished() {
                received += bench.link.receive(&mut frames).unwrap();
                bench.link.give_back(&mut frames);
            }
            stop.store(true, Ordering::Relaxed);
            others.join().unwrap();
            received
        });
        assert!(received > 0, "{:?}", bench.link.counters());
        println!("{mode}: {received} datagrams beside 20 pings and 1 MiB of TCP");
        bench.at_rest();
    }
}

/// Frames on a queue that is not served are counted, and the kernel gets them.
#[test]
fn a_queue_that_nobody_watches_is_found() {
    const DATAGRAMS: u64 = 100;
    let Some(mut bench) = Bench::new("queues=0,mode=native", 1500, 4) else { return };
    let (here, there) = (bench.pair.left.address, bench.pair.right.address);
    let kernel = bench.pair.right.run(|| UdpSocket::bind((there, PORT)).unwrap());
    kernel.set_nonblocking(true).unwrap();
    let (mut ours, mut kernels, until) = (0, 0, Instant::now() + PATIENCE);
    for sent in 1..=DATAGRAMS {
        // Flows are spread over the queues by their hash.
        let flow = bench.pair.left.run(|| UdpSocket::bind((here, 0)).unwrap());
        flow.send_to(b"which queue?", (there, PORT)).unwrap();
        while ours + kernels < sent {
            assert!(Instant::now() < until, "{ours} and {kernels}: {:?}", bench.link.counters());
            ours += bench.look().len() as u64;
            kernels += u64::from(kernel.recv(&mut [0; 64]).is_ok());
        }
    }
    let counts = bench.link.counts(Some(PORT)).unwrap();
    println!("{ours} on the queue that is served, {kernels} on others");
    assert_eq!((counts.frames, counts.unwatched), (DATAGRAMS, kernels));
    assert_eq!(bench.link.counters().unwatched, kernels);
    assert!(ours > 0 && kernels > 0);
}

#[test]
fn beyond_the_rate_guard_frames_are_lost_and_counted() {
    let Some(mut bench) = Bench::new("rate_max_pps=1000", 1500, 1) else { return };
    (0..1000).for_each(|_| bench.offer(b"too fast"));
    let (mut received, until) = (0, Instant::now() + PATIENCE);
    while received + bench.link.counters().rate_limited < 1000 {
        assert!(Instant::now() < until, "{received}: {:?}", bench.link.counters());
        received += bench.look().len() as u64;
    }
    let limited = bench.link.counters().rate_limited;
    println!("{received} passed, {limited} were beyond 1000 a second");
    assert!(received >= 135 && limited > 0, "an interval's frames pass at once");
}

/// The selection of frames can be changed while frames come.
#[test]
fn ports_can_be_given_and_taken() {
    let Some(mut bench) = Bench::new("mode=auto", 1500, 1) else { return };
    let there = bench.pair.right.address;
    let kernel = bench.pair.right.run(|| UdpSocket::bind((there, PORT)).unwrap());
    kernel.set_read_timeout(Some(PATIENCE)).unwrap();
    let steers = [wanted(there), Steer::default(), wanted(there)];
    for (turn, steer) in steers.iter().enumerate() {
        bench.link.steer(steer).unwrap();
        bench.offer(&[turn as u8; 20]);
        let mut got = [0; 20];
        if steer.udp_ports.is_empty() {
            assert_eq!(kernel.recv(&mut got).unwrap(), 20);
        } else {
            got.copy_from_slice(&bench.collect(1)[0][..20]);
        }
        assert_eq!(got, [turn as u8; 20]);
    }
    let many = Steer { udp_ports: (1..=300).collect(), ..wanted(there) };
    let error = bench.link.steer(&many).unwrap_err().to_string();
    assert!(error.contains("300 UDP ports are too many: one link can have at most 255"), "{error}");
}

/// Counts stay with their port, in any row of counters, and start at zero with a new port.
#[test]
fn every_port_has_its_own_counts_while_ports_come_and_go() {
    let Some(mut bench) = Bench::new("mode=generic", 1500, 1) else { return };
    let there = bench.pair.right.address;
    let (one, two, three) = (PORT, PORT + 1, PORT + 2);
    for (ports, frames) in [
        (vec![one, two], [Some(1), Some(1), None]),
        (vec![two], [None, Some(2), None]),
        (vec![three, two, two], [None, Some(3), Some(1)]),
        (vec![two, three], [None, Some(4), Some(2)]),
        (vec![one], [Some(1), None, None]),
    ] {
        bench.link.steer(&Steer { udp_ports: ports.clone(), ..wanted(there) }).unwrap();
        let mut wanted = 0;
        for port in [one, two, three].into_iter().filter(|port| ports.contains(port)) {
            bench.peer.send_to(b"count me", (there, port)).unwrap();
            wanted += 1;
        }
        bench.collect(wanted);
        let counts = [one, two, three].map(|port| bench.link.counts(Some(port)));
        assert_eq!(counts.map(|found| found.map(|counts| counts.frames)), frames, "{ports:?}");
        assert!(counts.iter().flatten().all(|counts| counts.bytes == 50 * counts.frames));
    }
}

/// The libxdp project's tool lists our program.
#[test]
fn xdp_loader_sees_the_program_come_and_go() {
    if Command::new("xdp-loader").arg("help").output().is_err() {
        eprintln!("skipped: there is no `xdp-loader` here (Debian package xdp-tools)");
        return;
    }
    for (mode, seen) in [("generic", "skb"), ("native", "native")] {
        let Some(bench) = Bench::new(&format!("mode={mode}"), 1500, 1) else { return };
        let there = bench.pair.right.sh("xdp-loader status veth0");
        assert!(there.contains("millstream") && there.contains(seen), "{there}");
        let Bench { pair, link, .. } = bench;
        drop(link);
        let gone = pair.right.sh("xdp-loader status veth0");
        assert!(gone.contains("No XDP program loaded!"), "{gone}");
        println!("{there}{gone}");
    }
}

/// Of tagged and untagged frames only those of the VLAN come, with their tags.
#[test]
fn frames_of_a_vlan_come_with_their_tags() {
    for mode in ["generic", "native"] {
        let Some(mut bench) = Bench::new(&format!("mode={mode}"), 1500, 1) else { return };
        bench.link.steer(&Steer { vlan: Some(5), ..wanted(bench.pair.right.address) }).unwrap();
        let mut sender = try_open(&bench.pair.left, "mode=generic").unwrap();
        bench.offer(b"untagged");
        let plain = bench.datagram_to_link(b"tagged");
        let mut frames = Vec::new();
        assert_eq!(sender.reserve(&mut frames, 3), 3);
        for (frame, vlan) in frames.iter_mut().zip([4, 5, 6]) {
            frame.set_len(plain.len() + 4);
            let tag = [&plain[..12], &[0x81, 0, 0xe0, vlan], &plain[12..]].concat();
            sender.memory().bytes_mut(frame).copy_from_slice(&tag);
        }
        sender.transmit(&mut frames).unwrap();
        sender.flush().unwrap();
        let until = Instant::now() + PATIENCE;
        while frames.is_empty() {
            assert!(Instant::now() < until, "{mode}: {:?}", bench.link.counters());
            bench.link.receive(&mut frames).unwrap();
        }
        assert_eq!(frames.len(), 1);
        let bytes = bench.link.memory().bytes(&frames[0]);
        assert_eq!(bytes[12..18], [0x81, 0, 0xe0, 5, 8, 0], "{mode}");
        assert!(bytes.ends_with(b"tagged"));
        bench.link.give_back(&mut frames);
    }
}
