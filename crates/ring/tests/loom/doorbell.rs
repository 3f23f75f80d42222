//! No ring is lost, whatever else wakes the owner. `loom` reports an owner that sleeps for ever as
//! a deadlock.

use crate::explore;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use millstream_ring::Doorbell;
use millstream_ring::spsc::channel;

#[test]
fn a_sleeper_hears_every_ringer() {
    explore(|| {
        let bell = Arc::new(Doorbell::new().unwrap());
        let news = [0, 1].map(|_| Arc::new(AtomicBool::new(false)));
        let ringers = news.clone().map(|news| {
            let bell = bell.clone();
            thread::spawn(move || {
                news.store(true, Ordering::Relaxed);
                bell.ring();
            })
        });
        while !news.iter().all(|news| news.load(Ordering::Relaxed)) {
            bell.wait(None).unwrap();
        }
        ringers.into_iter().for_each(|ringer| ringer.join().unwrap());
    });
}

/// The disturbance lets the owner get up between a ringer's two steps, so that its descriptor
/// becomes readable late, into the next sleep.
#[test]
fn a_ring_that_comes_late_does_not_hide_the_next() {
    explore(|| {
        let bell = Arc::new(Doorbell::new().unwrap());
        let (mut sender, mut receiver) = channel(2);
        let ringer = thread::spawn({
            let bell = bell.clone();
            move || {
                for item in 0..2 {
                    sender.push(item).unwrap();
                    bell.ring();
                }
            }
        });
        let other = thread::spawn({
            let bell = bell.clone();
            move || bell.disturb()
        });
        for item in 0..2 {
            let got = loop {
                match receiver.pop() {
                    Some(got) => break got,
                    None => drop(bell.wait(None).unwrap()),
                }
            };
            assert_eq!(got, item);
        }
        ringer.join().unwrap();
        other.join().unwrap();
    });
}

/// A nudge of an awake owner leaves no token: the owner's last poll has to find the data.
#[test]
fn a_nudge_and_the_last_look_cannot_miss_each_other() {
    explore(|| {
        let bell = Arc::new(Doorbell::new().unwrap());
        let news = [0, 1].map(|_| Arc::new(AtomicBool::new(false)));
        let nudgers = news.clone().map(|news| {
            let bell = bell.clone();
            thread::spawn(move || {
                news.store(true, Ordering::Relaxed);
                bell.nudge();
            })
        });
        for news in &news {
            while !news.load(Ordering::Relaxed) {
                bell.wait_unless(|| news.load(Ordering::Relaxed)).unwrap();
            }
        }
        nudgers.into_iter().for_each(|nudger| nudger.join().unwrap());
    });
}
