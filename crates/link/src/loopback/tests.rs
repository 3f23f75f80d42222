use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

use super::*;
use crate::frame::Frame;

fn small(keep: bool) -> LoopOptions {
    let frames = FrameOptions { receive_frames: 8, transmit_frames: 4 };
    LoopOptions { mtu: 1500, frames, keep, ..LoopOptions::default() }
}

/// Writes a frame of `bytes` bytes, in as many parts as it takes; each byte encodes its position.
fn write(link: &mut LoopLink, frames: &mut Vec<Frame>, bytes: usize) {
    let part = link.info().part_bytes_max;
    let mut at = 0;
    while at < bytes {
        assert_eq!(link.reserve(frames, 1), 1);
        let frame = frames.last_mut().unwrap();
        frame.set_len(part.min(bytes - at));
        frame.set_continues(at + frame.len() < bytes);
        let memory = Arc::clone(&link.memory);
        memory.bytes_mut(frame).iter_mut().zip(at..).for_each(|(b, at)| *b = (at * 7) as u8);
        at += frame.len();
    }
}

fn readable(link: &LoopLink) -> bool {
    let fd = link.poll_fd().unwrap();
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
}

#[test]
fn what_is_sent_arrives_in_order_and_in_the_receivers_memory() {
    let (mut a, mut b, _cable) = pair(&small(false)).unwrap();
    let total = (a.census().total(), b.census().total());
    assert_eq!(total, (12, 12));
    let mut frames = Vec::new();
    for round in 0..100 {
        for bytes in [14, 60, 1514 + round % 5] {
            write(&mut a, &mut frames, bytes);
        }
        assert_eq!(a.transmit(&mut frames).unwrap(), 3);
        assert_eq!(b.receive(&mut frames).unwrap(), 3);
        let lengths: Vec<_> = frames.iter().map(Frame::len).collect();
        assert_eq!(lengths, [14, 60, 1514 + round % 5]);
        for frame in &frames {
            let bytes = b.memory().bytes(frame);
            assert!(b.memory().contains(bytes.as_ptr()));
            assert!(bytes.iter().zip(0..).all(|(b, at): (_, usize)| *b == (at * 7) as u8));
        }
        assert_eq!((b.census().lent, b.census().total()), (3, total.1));
        frames.reverse();
        b.give_back(&mut frames);
        assert_eq!((a.census().total(), a.census().lent, b.census().lent), (12, 0, 0));
    }
    assert_eq!((a.counters().tx_frames, b.counters().rx_frames), (300, 300));
    assert_eq!(a.counters().tx_bytes, b.counters().rx_bytes);
    assert_eq!(a.counters().syscalls, 0, "nobody polls");
}

#[test]
fn a_slow_receiver_loses_frames_and_they_are_counted() {
    let (mut a, mut b, _cable) = pair(&small(false)).unwrap();
    let mut frames = Vec::new();
    for _ in 0..20 {
        write(&mut a, &mut frames, 60);
        assert_eq!(a.transmit(&mut frames).unwrap(), 1);
    }
    assert_eq!(b.receive(&mut frames).unwrap(), 8);
    assert_eq!(b.counters().rx_ring_full, 12);
    b.give_back(&mut frames);
    write(&mut a, &mut frames, 60);
    a.transmit(&mut frames).unwrap();
    assert_eq!(b.receive(&mut frames).unwrap(), 1, "it goes on");
    b.give_back(&mut frames);
}

#[test]
fn with_full_wait_the_sender_keeps_what_does_not_fit() {
    let (mut a, mut b, _cable) = pair(&small(true)).unwrap();
    let mut frames = Vec::new();
    for _ in 0..8 {
        write(&mut a, &mut frames, 60);
        a.transmit(&mut frames).unwrap();
    }
    write(&mut a, &mut frames, 99);
    assert_eq!(a.transmit(&mut frames).unwrap(), 0);
    assert_eq!((frames.len(), a.counters().tx_ring_full), (1, 1));
    let mut got = Vec::new();
    assert_eq!(b.receive(&mut got).unwrap(), 8);
    b.give_back(&mut got);
    assert_eq!(a.transmit(&mut frames).unwrap(), 1);
    assert_eq!(b.receive(&mut got).unwrap(), 1);
    assert_eq!(got[0].len(), 99);
    b.give_back(&mut got);
}

#[test]
fn a_long_frame_comes_in_parts_that_are_never_split_over_two_calls() {
    let mut options = LoopOptions { mtu: 9000, part_bytes_max: Some(2048), ..small(true) };
    options.frames = FrameOptions { receive_frames: 200, transmit_frames: 200 };
    let (mut link, _cable) = single(&options).unwrap();
    let mut frames = Vec::new();
    for _ in 0..20 {
        write(&mut link, &mut frames, 9014);
    }
    assert_eq!(frames.len(), 100);
    while !frames.is_empty() {
        link.transmit(&mut frames).unwrap();
    }
    let mut whole = 0;
    loop {
        let count = link.receive(&mut frames).unwrap();
        if count == 0 {
            break;
        }
        assert!(count <= link.info().batch_max && count % 5 == 0, "{count}");
        for parts in frames.chunks(5) {
            let flags: Vec<_> = parts.iter().map(Frame::continues).collect();
            assert_eq!(flags, [true, true, true, true, false]);
            assert_eq!(parts.iter().map(Frame::len).sum::<usize>(), 9014);
            whole += 1;
        }
        link.give_back(&mut frames);
    }
    assert_eq!((whole, link.counters().rx_frames, link.census().lent), (20, 20, 0));
}

#[test]
fn frames_that_cannot_be_are_counted_and_their_buffers_come_back() {
    let (mut link, _cable) = single(&small(false)).unwrap();
    let mut frames = Vec::new();
    write(&mut link, &mut frames, 13);
    write(&mut link, &mut frames, 1519);
    write(&mut link, &mut frames, 60);
    let lengths: Vec<_> = frames.iter().map(Frame::len).collect();
    assert_eq!(lengths, [13, 1518, 1, 60]);
    frames[3].set_continues(true);
    assert_eq!(link.transmit(&mut frames).unwrap(), 4);
    assert_eq!(link.counters().tx_invalid, 3);
    assert_eq!(link.receive(&mut frames).unwrap(), 0);
    assert_eq!(link.census().lent, 0);
}

#[test]
fn a_pulled_cable_is_an_error_at_both_ends_until_it_is_back() {
    let (mut a, mut b, cable) = pair(&small(false)).unwrap();
    let mut frames = Vec::new();
    assert!(readable(&b), "whoever polls looks once");
    assert_eq!(b.receive(&mut frames).unwrap(), 0);
    assert!(!readable(&b));
    cable.set(CableState::Down);
    assert!(readable(&b), "the change wakes sleepers");
    write(&mut a, &mut frames, 60);
    let down = std::io::ErrorKind::NetworkDown;
    assert_eq!(a.transmit(&mut frames).unwrap_err().kind(), down);
    assert_eq!(b.receive(&mut Vec::new()).unwrap_err().kind(), down);
    assert!(!readable(&b));
    cable.set(CableState::Up);
    assert_eq!(a.transmit(&mut frames).unwrap(), 1);
    assert_eq!(b.receive(&mut frames).unwrap(), 1);
    b.give_back(&mut frames);
    cable.set(CableState::Gone);
    assert_eq!(b.receive(&mut frames).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    assert_eq!(a.flush().unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn the_descriptor_is_readable_while_there_is_something_to_receive() {
    let options = LoopOptions { frames: FrameOptions::default(), ..small(false) };
    let (mut a, mut b, _cable) = pair(&options).unwrap();
    let mut frames = Vec::new();
    readable(&b);
    b.receive(&mut frames).unwrap();
    for _ in 0..100 {
        write(&mut a, &mut frames, 60);
    }
    while !frames.is_empty() {
        a.transmit(&mut frames).unwrap();
    }
    for wanted in [64, 36] {
        assert!(readable(&b));
        assert_eq!(b.receive(&mut frames).unwrap(), wanted);
        b.give_back(&mut frames);
    }
    assert_eq!(b.receive(&mut frames).unwrap(), 0);
    assert!(!readable(&b));
}

#[test]
fn two_threads_exchange_frames_and_sleep_between() {
    let (mut a, mut b, _cable) = pair(&small(true)).unwrap();
    const FRAMES: u64 = 200_000;
    let sender = std::thread::spawn(move || {
        let (mut frames, mut next) = (Vec::new(), 0u64);
        while next < FRAMES || !frames.is_empty() {
            if next < FRAMES && a.reserve(&mut frames, 1) == 1 {
                let frame = frames.last_mut().unwrap();
                frame.set_len(22);
                a.memory.bytes_mut(frame)[14..].copy_from_slice(&next.to_ne_bytes());
                next += 1;
            }
            if a.transmit(&mut frames).unwrap() == 0 {
                std::thread::yield_now();
            }
            if next % 50_000 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        a.census()
    });
    let (mut frames, mut next) = (Vec::new(), 0u64);
    while next < FRAMES {
        if b.receive(&mut frames).unwrap() == 0 {
            let fd = b.poll_fd().unwrap();
            let mut fds = [PollFd::new(&fd, PollFlags::IN)];
            let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
            assert_eq!(rustix::event::poll(&mut fds, Some(&limit)).unwrap(), 1, "lost wake-up");
        }
        for frame in &frames {
            assert_eq!(b.memory().bytes(frame)[14..], next.to_ne_bytes());
            next += 1;
        }
        b.give_back(&mut frames);
    }
    assert_eq!((sender.join().unwrap().lent, b.census().lent), (0, 0));
}

#[test]
fn options_are_checked() {
    let open = |text: &str| crate::open_frames(text, &FrameOptions::default());
    let link = open("loop:mtu=1500,part_bytes=512,full=wait").unwrap();
    assert_eq!((link.info().mtu, link.info().part_bytes_max), (1500, 512));
    for (text, reason) in [
        ("loop:veth0", "\"veth0\": is not of the form name=value"),
        ("loop:mtu=20", "\"mtu=20\": wants bytes from 68 to 65535"),
        ("loop:full=maybe", "wants one of: drop, wait"),
        ("loop:depth=2", "\"depth=2\": is not known"),
    ] {
        let error = open(text).err().unwrap().to_string();
        // A user who knows the option needs no list of all.
        assert!(error.contains(reason), "{error}");
        assert_ne!(
            error.contains("this link: mtu, part_bytes"),
            reason.contains("wants "),
            "{error}"
        );
    }
}
