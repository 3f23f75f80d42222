//! A descriptor is readable when there is data, and quiet when there is none.

use crate::explore;
use loom::sync::Arc;
use loom::thread;
use millstream_ring::beacon::Beacon;
use millstream_ring::spsc::{Receiver, channel};

/// Receives like a polling receiver: a lost ring lets it sleep for ever, which is a deadlock.
fn next(beacon: &Beacon, receiver: &mut Receiver<u32>) -> u32 {
    loop {
        if let Some(item) = receiver.pop() {
            return item;
        }
        beacon.arm();
        if let Some(item) = receiver.pop() {
            beacon.news();
            return item;
        }
        beacon.poll();
        thread::yield_now();
    }
}

#[test]
fn a_receiver_that_polls_gets_all_news() {
    explore(|| {
        let beacon = Arc::new(Beacon::new().unwrap());
        let (mut sender, mut receiver) = channel(2);
        let publisher = thread::spawn({
            let beacon = beacon.clone();
            move || {
                for item in 0..2 {
                    sender.push(item).unwrap();
                    beacon.news();
                }
            }
        });
        for item in 0..2 {
            assert_eq!(next(&beacon, &mut receiver), item);
        }
        publisher.join().unwrap();
    });
}

/// A receiver that was busy takes the item before the publisher rings for it, and then sleeps.
#[test]
fn what_is_rung_late_does_not_stay_readable() {
    explore(|| {
        let beacon = Arc::new(Beacon::new().unwrap());
        // From here on it is polled, and quiet.
        beacon.poll();
        beacon.arm();
        let (mut sender, mut receiver) = channel(1);
        let publisher = thread::spawn({
            let beacon = beacon.clone();
            move || {
                sender.push(0).unwrap();
                beacon.news();
            }
        });
        assert_eq!(next(&beacon, &mut receiver), 0);
        beacon.arm();
        publisher.join().unwrap();
        // A sender that was about to ring has woken it once more, without data.
        beacon.arm();
        assert!(!beacon.is_readable(), "it polls in vain until the next news");
    });
}

#[test]
fn two_that_have_news_at_once_lose_none() {
    explore(|| {
        let beacon = Arc::new(Beacon::new().unwrap());
        let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..2).map(|_| channel(1)).unzip();
        let publishers: Vec<_> = senders
            .into_iter()
            .map(|mut sender| {
                let beacon = beacon.clone();
                thread::spawn(move || {
                    sender.push(()).unwrap();
                    beacon.news();
                })
            })
            .collect();
        let mut taken = 0;
        while taken < 2 {
            let mut look = || receivers.iter_mut().filter_map(Receiver::pop).count();
            let mut found = look();
            if found == 0 {
                beacon.arm();
                found = look();
                if found == 0 {
                    beacon.poll();
                    thread::yield_now();
                } else {
                    beacon.news();
                }
            }
            taken += found;
        }
        publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
    });
}
