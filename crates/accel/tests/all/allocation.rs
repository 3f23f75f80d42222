//! A running block allocates nothing.

use super::{filter, noise};
use millstream_accel::{OffloadBlock, OffloadSettings, StandIn, StandInFault};
use millstream_dsp::Sample;
use millstream_flow::{BlockFacts, Metric, Mock};
use millstream_testkit::allocations;
use std::time::{Duration, Instant};

#[test]
fn a_running_block_allocates_nothing_also_while_the_cpu_takes_over() {
    let kernel = filter(200, 2);
    let device = StandIn {
        latency: Duration::from_micros(50),
        faults: vec![(60, StandInFault::Stall(Duration::from_secs(1000)))],
        ..StandIn::default()
    };
    let settings = OffloadSettings {
        stall_after: Duration::from_millis(5),
        check_every: 7,
        ..OffloadSettings::for_batches(1000, &kernel)
    };
    let mut mock =
        Mock::with_room(OffloadBlock::<Sample>::new(kernel, &device, settings).unwrap(), 200_000);
    mock.feed("in", &noise(5, 190_000));
    let counter = |wanted| {
        let mut metrics = BlockFacts::of(&mock.block).metrics.into_iter();
        match metrics.find(|(name, _)| *name == wanted) {
            Some((_, Metric::Counter(counter))) => counter,
            other => panic!("{wanted}: {other:?}"),
        }
    };
    let [stalled, checked] = ["accelerator_stall_items", "device_checked_items"].map(counter);
    // The first calls see the input once.
    mock.call().unwrap();
    std::thread::sleep(Duration::from_millis(1));
    mock.call().unwrap();
    let (before, begun) = (allocations(), Instant::now());
    while stalled.get() < 50_000 || checked.get() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(100), "{stalled:?} {checked:?}");
        mock.call().unwrap();
        std::thread::sleep(Duration::from_micros(200));
    }
    assert_eq!(allocations(), before);
    assert!(mock.take::<Sample>("out").len() > 50_000);
}
