//! Rings between two or more real threads.
#![cfg(not(loom))]

use millstream_ring::{RingOptions, Wait, Waiter, ring};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Passes a counted stream through a ring with three readers, each side waiting `how`.
fn stream(how: Wait, count: u64) {
    let count = crate::steps(count);
    let (mut writer, readers) = ring::<[u64; 3]>(&RingOptions::items(1).readers(3)).unwrap();
    let write_waiter = Arc::new(Waiter::new());
    let read_waiters: Vec<_> = readers.iter().map(|_| Arc::new(Waiter::new())).collect();
    thread::scope(|scope| {
        for (mut reader, waiter) in readers.into_iter().zip(read_waiters.clone()) {
            let write_waiter = Arc::clone(&write_waiter);
            scope.spawn(move || {
                let mut expected = 0;
                loop {
                    let items = reader.slice();
                    for item in items {
                        assert_eq!(*item, [expected, !expected, expected]);
                        expected += 1;
                    }
                    let (items, ended) = (items.len(), reader.is_ended());
                    reader.consume(items);
                    write_waiter.notify();
                    if ended {
                        assert_eq!(expected, count);
                        return;
                    }
                    if items == 0 {
                        waiter.wait(how, None);
                    }
                }
            });
        }
        let mut next = 0;
        while next < count {
            let room = writer.slice_mut();
            let items = room.len().min((count - next) as usize);
            for slot in &mut room[..items] {
                *slot = [next, !next, next];
                next += 1;
            }
            writer.produce(items);
            if items == 0 {
                write_waiter.wait(how, None);
            }
            read_waiters.iter().for_each(|waiter| waiter.notify());
        }
        writer.close();
        read_waiters.iter().for_each(|waiter| waiter.notify());
    });
}

#[test]
fn parked_threads_pass_every_item_in_order() {
    stream(Wait::Park, 300_000);
}

#[test]
fn spinning_threads_pass_every_item_in_order() {
    stream(Wait::Spin, 30_000);
}

#[test]
fn adaptive_threads_pass_every_item_in_order() {
    stream(Wait::Adaptive, 100_000);
}

#[test]
fn a_token_left_before_the_wait_is_not_lost() {
    for how in Wait::ALL {
        let waiter = Waiter::new();
        waiter.notify();
        waiter.notify();
        assert!(waiter.wait(how, None), "two notes leave one token");
        assert!(!waiter.wait(how, Some(Duration::ZERO)));
        assert!(!waiter.take());
    }
}

#[test]
fn a_wait_without_news_ends_with_its_timeout() {
    for how in Wait::ALL {
        let (waiter, timeout) = (Waiter::new(), Duration::from_millis(2));
        let start = Instant::now();
        assert!(!waiter.wait(how, Some(timeout)));
        assert!(start.elapsed() >= timeout);
        waiter.notify();
        assert!(waiter.take(), "the state is clean after a timeout");
    }
}

#[test]
fn tokens_wake_a_sleeping_thread_again_and_again() {
    ping_pong(Wait::Park);
    ping_pong(Wait::Adaptive);
}

fn ping_pong(how: Wait) {
    let turns = crate::steps(10_000);
    let waiters = [Arc::new(Waiter::new()), Arc::new(Waiter::new())];
    thread::scope(|scope| {
        let [ping, pong] = waiters;
        let (ping_too, pong_too) = (Arc::clone(&ping), Arc::clone(&pong));
        scope.spawn(move || {
            for _ in 0..turns {
                pong.notify();
                assert!(ping.wait(how, None));
            }
        });
        scope.spawn(move || {
            for _ in 0..turns {
                assert!(pong_too.wait(how, None));
                ping_too.notify();
            }
        });
    });
}

#[test]
fn a_way_to_wait_is_known_by_its_name() {
    for how in Wait::ALL {
        assert_eq!(how.name().parse(), Ok(how));
    }
    let error = "sleep".parse::<Wait>().unwrap_err().to_string();
    let expected = "`sleep` is not a wait mode: use spin (never sleeps, needs a core), adaptive \
         or park (sleeps)";
    assert_eq!(error, expected);
}

/// The governor's bound: long waits stop costing CPU time.
#[test]
#[cfg_attr(miri, ignore = "Miri has no clock of a thread's CPU time")]
fn an_adaptive_wait_that_is_long_each_time_stops_spinning() {
    let thread_time = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let waiter = Waiter::new();
    let spent = |how| {
        let before = thread_time();
        (0..40).for_each(|_| assert!(!waiter.wait(how, Some(Duration::from_millis(1)))));
        let spent = thread_time() - before;
        spent.tv_sec * 1_000_000_000 + spent.tv_nsec
    };
    let (adaptive, spin) = (spent(Wait::Adaptive), spent(Wait::Spin));
    assert!(adaptive < spin / 2, "adaptive {adaptive} ns, spin {spin} ns of CPU time");
}
