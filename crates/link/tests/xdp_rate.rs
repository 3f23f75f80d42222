//! The rate of AF_XDP over a veth pair, as a ratio to kernel UDP in the same run. A measurement:
//! `cargo test -p millstream-link --test xdp_rate -- --ignored --nocapture`.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millstream_link::frame::{FrameLink, FrameOptions, Steer};
use millstream_link::port::PortOptions;
use millstream_link::{open, open_frames};
use millstream_testkit::netns::{PairOptions, VethPair};

const TIME: Duration = Duration::from_millis(200);
const REPETITIONS: usize = 5;
const ETHERTYPE: u16 = 0x88b5;

fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// Returns received datagrams per second over kernel sockets.
fn udp(pair: &VethPair, payload: usize) -> f64 {
    let sizes = PortOptions::default();
    let to = SocketAddrV4::new(pair.right.address, 7000);
    let link = "udp:gso=off,gro=off";
    let mut rx = pair.right.run(|| open(link, to, &sizes).unwrap()).rx;
    let from = SocketAddrV4::new(pair.left.address, 0);
    let mut tx = pair.left.run(|| open(link, from, &sizes).unwrap()).tx;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(0);
            let train = vec![7; payload * 64];
            while !stop.load(Ordering::Relaxed) {
                let _ = tx.send_train(&train, payload, to);
            }
        });
        pin(1);
        let rate = measure(|| rx.recv_batch(Duration::from_millis(20)).unwrap());
        stop.store(true, Ordering::Relaxed);
        rate
    })
}

/// Returns received frames per second, after a start-up time.
fn measure(mut receive: impl FnMut() -> usize) -> f64 {
    let (mut start, mut count) = (Instant::now(), 0);
    let mut warm = false;
    loop {
        count += receive();
        let elapsed = start.elapsed();
        if !warm && elapsed > TIME / 4 {
            (start, count, warm) = (Instant::now(), 0, true);
        } else if warm && elapsed > TIME {
            return count as f64 / elapsed.as_secs_f64();
        }
    }
}

fn send(link: &mut dyn FrameLink, bytes: usize, stop: &AtomicBool) {
    pin(0);
    let mut frames = Vec::new();
    let room = link.info().part_bytes_max;
    let parts = bytes.div_ceil(room);
    let memory = link.memory().clone();
    while !stop.load(Ordering::Relaxed) {
        let wanted = 64 / parts * parts;
        link.reserve(&mut frames, wanted);
        let whole = frames.len() / parts * parts;
        let mut back = frames.split_off(whole);
        link.give_back(&mut back);
        for (index, frame) in frames.iter_mut().enumerate() {
            let part = index % parts;
            frame.set_len(room.min(bytes - part * room));
            frame.set_continues(part + 1 < parts);
            if part == 0 {
                let header = &mut memory.bytes_mut(frame)[..14];
                header[..12].copy_from_slice(&[2; 12]);
                header[12..].copy_from_slice(&ETHERTYPE.to_be_bytes());
            }
        }
        let _ = link.transmit(&mut frames);
        let _ = link.flush();
    }
    link.give_back(&mut frames);
}

fn xdp(pair: &VethPair, mode: &str, bytes: usize) -> f64 {
    let link = format!("xdp:veth0,mode={mode}");
    let receive_frames = std::env::var("MILLSTREAM_FRAMES").map_or(4096, |n| n.parse().unwrap());
    let sizes = FrameOptions { receive_frames, ..FrameOptions::default() };
    let mut rx = pair.right.run(|| open_frames(&link, &sizes).unwrap());
    let mut tx = pair.left.run(|| open_frames(&link, &sizes).unwrap());
    rx.steer(&Steer { ethertypes: vec![ETHERTYPE], ..Steer::default() }).unwrap();
    let stop = AtomicBool::new(false);
    let rate = std::thread::scope(|scope| {
        scope.spawn(|| send(&mut *tx, bytes, &stop));
        pin(1);
        let mut frames = Vec::new();
        let rate = measure(|| {
            rx.receive(&mut frames).unwrap();
            let whole = frames.iter().filter(|frame| !frame.continues()).count();
            rx.give_back(&mut frames);
            whole
        });
        stop.store(true, Ordering::Relaxed);
        rate
    });
    if std::env::var_os("MILLSTREAM_SHOW").is_some() {
        println!("{:?}\n{:?}", rx.counters(), tx.counters());
    }
    rate
}

#[test]
#[ignore = "a measurement"]
fn ratios_to_kernel_udp() {
    let Some(pair) = VethPair::new(PairOptions { mtu: 9000, queues: 1 }) else { return };
    let Some(small) = VethPair::new(PairOptions { mtu: 1500, queues: 1 }) else { return };
    println!(
        "frame bytes: generic [ratio], native [ratio], UDP (1000/s; medians of {REPETITIONS})"
    );
    for (pair, bytes) in [(&small, 64), (&small, 1514), (&pair, 64), (&pair, 1514), (&pair, 8042)] {
        let mut rows = Vec::new();
        for _ in 0..REPETITIONS {
            let base = udp(pair, bytes - 42);
            rows.push((xdp(pair, "generic", bytes), xdp(pair, "native", bytes), base));
        }
        let median = |of: &dyn Fn(&(f64, f64, f64)) -> f64| {
            let mut all: Vec<_> = rows.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[REPETITIONS / 2]
        };
        println!(
            "{bytes}: {:.0} [{:.2}], {:.0} [{:.2}], {:.0}",
            median(&|row| row.0) / 1e3,
            median(&|row| row.0 / row.2),
            median(&|row| row.1) / 1e3,
            median(&|row| row.1 / row.2),
            median(&|row| row.2) / 1e3
        );
    }
}
