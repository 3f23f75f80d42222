//! Time-outs are kept, and waiting has no growing costs.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use millstream_link::port::Port;
use millstream_testkit::allocations;

use crate::rig::{PATIENCE, Rig, collect};

pub fn waiting_ends_when_the_time_is_up(rig: &Rig) {
    let mut quiet = rig.far();
    let started = Instant::now();
    assert_eq!(quiet.rx.recv_batch(Duration::ZERO).unwrap(), 0);
    for wait_ms in [1, 5, 30] {
        let started = Instant::now();
        assert_eq!(quiet.rx.recv_batch(Duration::from_millis(wait_ms)).unwrap(), 0);
        assert!(started.elapsed() >= Duration::from_millis(wait_ms), "{wait_ms} ms");
    }
    assert!(started.elapsed() < PATIENCE, "a wait ends");
}

pub fn a_datagram_wakes_a_waiting_receiver(rig: &Rig) {
    let (mut near, far) = (rig.near(), rig.far());
    let Port { local, mut rx, tx } = far;
    let (waits, waiting) = mpsc::channel();
    let waiter = thread::spawn(move || {
        waits.send(()).unwrap();
        rx.recv_batch(Duration::MAX).unwrap()
    });
    waiting.recv().unwrap();
    // Most likely it sleeps by now; if not, the test is still valid.
    thread::sleep(Duration::from_millis(20));
    near.tx.send(b"wake", local).unwrap();
    assert_eq!(waiter.join().unwrap(), 1);
    drop(tx);
}

pub fn a_short_wait_sees_what_is_there(rig: &Rig) {
    let (mut near, mut far) = (rig.near(), rig.far());
    for _ in 0..200 {
        near.tx.send(b"soon", far.local).unwrap();
        let until = Instant::now() + PATIENCE;
        let mut polls = 0;
        while far.rx.recv_batch(Duration::from_micros(polls.min(100))).unwrap() == 0 {
            assert!(Instant::now() < until, "{polls} looks saw nothing");
            polls += 1;
        }
    }
}

pub fn steady_state_allocates_nothing(rig: &Rig) {
    let (mut near, mut far) = rig.acquainted();
    let bytes = rig.payload_bytes_max.min(1472);
    let train = vec![1u8; bytes * 12];
    let mut exchange = || {
        near.tx.send_train(&train, bytes, far.local).unwrap();
        near.tx.send(&train[..100], far.local).unwrap();
        let (mut wanted, mut seen) = (13, 0);
        while wanted > 0 {
            let count = far.rx.recv_batch(PATIENCE).unwrap();
            assert_ne!(count, 0);
            seen += (0..count).map(|index| far.rx.datagram(index).payload.len()).sum::<usize>();
            wanted -= count;
        }
        assert_eq!(far.rx.recv_batch(Duration::from_micros(10)).unwrap(), 0);
        assert_eq!(seen, train.len() + 100);
    };
    // The first exchange may allocate room that stays.
    exchange();
    let before = allocations();
    (0..100).for_each(|_| exchange());
    assert_eq!(allocations(), before, "allocations by the user's thread");
    assert!(collect(&mut far, 0).is_empty());
}
