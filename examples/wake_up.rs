//! Measures how late a sleeping thread wakes up, as a distribution. `millstream-lab latency timer`
//! does it with real-time classes, a thread on each CPU, and an estimate of the maximum.

use millstream::stats::Histogram;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Sleeps `count` times to deadlines `interval` apart.
fn measure(count: u32, interval: Duration) -> Histogram {
    let mut late = Histogram::default();
    let mut deadline = Instant::now();
    for _ in 0..count {
        deadline += interval;
        sleep(deadline.saturating_duration_since(Instant::now()));
        late.record(deadline.elapsed().as_nanos() as u64);
    }
    late
}

fn main() {
    let late = measure(1000, Duration::from_millis(1));
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        println!("{name} {:8.1} µs", late.quantile_ns(quantile) as f64 / 1e3);
    }
    println!("max {:8.1} µs", late.max_ns() as f64 / 1e3);
}

#[test]
fn no_wake_up_is_early() {
    let late = measure(20, Duration::from_millis(1));
    assert_eq!(late.count(), 20);
    assert!(late.quantile_ns(0.5) <= late.max_ns());
}
