//! Cost and delay of each wait mode at three loads, printed as a table with `--nocapture`. Only
//! properties that do not depend on the machine's speed are asserted.
#![cfg(not(loom))]

use millstream_ring::spsc::channel;
use millstream_ring::{Wait, Waiter};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The time for one cell of the table.
const WATCHED: Duration = Duration::from_millis(150);

struct Cost {
    /// CPU time of the waiting thread as a share of the time that passed.
    cpu: f64,
    p50: Duration,
    p99: Duration,
}

/// Sends every `gap` for a while; the waiting thread records its delay each time.
fn measure(how: Wait, gap: Duration) -> Cost {
    let (mut sender, mut receiver) = channel::<Instant>(1024);
    let waiter = Arc::new(Waiter::new());
    let theirs = Arc::clone(&waiter);
    let owner = thread::spawn(move || {
        let cpu = || {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        };
        let (start, before) = (Instant::now(), cpu());
        let mut late = Vec::with_capacity(1 << 16);
        while !receiver.is_ended() {
            match receiver.pop() {
                Some(sent) => late.push(sent.elapsed()),
                None => drop(theirs.wait(how, None)),
            }
        }
        let share = (cpu() - before).as_secs_f64() / start.elapsed().as_secs_f64();
        late.sort_unstable();
        Cost { cpu: share, p50: late[late.len() / 2], p99: late[late.len() * 99 / 100] }
    });
    let start = Instant::now();
    let mut next = gap;
    while next < WATCHED {
        // The sender spins to the moment, so that its own wake-up is not measured.
        while start.elapsed() < next {
            std::hint::spin_loop();
        }
        if sender.push(Instant::now()).is_ok() {
            waiter.notify();
        }
        next += gap;
    }
    drop(sender);
    waiter.notify();
    owner.join().unwrap()
}

#[test]
fn each_way_to_wait_has_its_price() {
    println!("{:<10} {:>8} {:>8} {:>10} {:>10}", "wait", "news/s", "CPU", "p50 µs", "p99 µs");
    let mut idle_cpu = Vec::new();
    for gap_us in [10, 100, 1000] {
        for how in Wait::ALL {
            let cost = measure(how, Duration::from_micros(gap_us));
            let [p50, p99] = [cost.p50, cost.p99].map(|time| time.as_secs_f64() * 1e6);
            let (name, cpu) = (how.name(), 100.0 * cost.cpu);
            println!("{name:<10} {:>8} {cpu:>7.1}% {p50:>10.1} {p99:>10.1}", 1_000_000 / gap_us);
            if gap_us == 1000 {
                idle_cpu.push((how, cost.cpu));
            }
        }
    }
    let of = |how| idle_cpu.iter().find(|(other, _)| *other == how).unwrap().1;
    // Shares of one thread's time, so a busy machine changes both alike.
    assert!(of(Wait::Adaptive) < of(Wait::Spin) / 2.0, "{idle_cpu:?}");
    assert!(of(Wait::Park) < of(Wait::Spin) / 2.0, "{idle_cpu:?}");
}
