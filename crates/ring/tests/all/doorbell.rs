//! The doorbell among descriptors, with real threads.
#![cfg(not(loom))]

use millstream_ring::spsc::{Receiver, Sender, channel};
use millstream_ring::{Doorbell, doorbell::DESCRIPTORS_MAX};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

const LONG: Option<Duration> = Some(Duration::from_secs(60));

#[test]
fn a_ring_before_the_wait_is_not_lost() {
    let bell = Doorbell::new().unwrap();
    bell.ring();
    bell.ring();
    assert!(bell.wait(&[], LONG).unwrap(), "two rings are one");
    assert!(!bell.wait(&[], Some(Duration::ZERO)).unwrap());
}

#[test]
fn a_wait_without_news_ends_with_its_timeout() {
    let bell = Doorbell::new().unwrap();
    let (start, timeout) = (Instant::now(), Duration::from_millis(2));
    assert!(!bell.wait(&[], Some(timeout)).unwrap());
    assert!(start.elapsed() >= timeout);
}

#[test]
fn a_descriptor_ends_the_sleep_as_a_ring_does() {
    let bell = Doorbell::new().unwrap();
    let (mut here, mut there) = UnixStream::pair().unwrap();
    there.write_all(b"x").unwrap();
    let others = vec![here.as_fd(); DESCRIPTORS_MAX];
    assert!(!bell.wait(&others, LONG).unwrap(), "nobody rang");
    here.read_exact(&mut [0]).unwrap();
    bell.ring();
    assert!(bell.wait(&[here.as_fd()], LONG).unwrap());
}

const TURNS: u32 = 10_000;

/// Answers each number with the next one until all rounds are done.
fn play(
    mut incoming: Receiver<u32>,
    mine: &Doorbell,
    mut outgoing: Sender<u32>,
    theirs: &Doorbell,
) {
    loop {
        let Some(number) = incoming.pop() else {
            mine.wait(&[], LONG).unwrap();
            continue;
        };
        if number < TURNS {
            outgoing.push(number + 1).unwrap();
            theirs.ring();
        }
        if number + 1 >= TURNS {
            return;
        }
    }
}

#[test]
fn rings_wake_a_sleeper_again_and_again() {
    let [one, two] = [0, 1].map(|_| Doorbell::new().unwrap());
    let ((mut to_one, from_two), (to_two, from_one)) = (channel(1), channel(1));
    to_one.push(0).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| play(from_two, &one, to_two, &two));
        scope.spawn(|| play(from_one, &two, to_one, &one));
    });
}

#[test]
#[should_panic(expected = "at most 31 descriptors")]
fn too_many_descriptors_are_refused() {
    let bell = Doorbell::new().unwrap();
    let (here, _there) = UnixStream::pair().unwrap();
    let _ = bell.wait(&[here.as_fd(); DESCRIPTORS_MAX + 1], LONG);
}
