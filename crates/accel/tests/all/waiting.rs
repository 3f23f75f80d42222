//! The thread of a block does not pay for waiting.

use super::{filter, noise};
use millstream_accel::{OffloadBlock, OffloadSettings, StandIn, StandInFault};
use millstream_cpu::usage::thread_cpu_time;
use millstream_dsp::Sample;
use millstream_flow::{Block, Context, Mock, Work};
use std::time::{Duration, Instant};

/// Calls a block as the runtime does: again after the time that it asked for.
fn idle(mock: &mut Mock<impl Block>, time: Duration) -> (Duration, u32) {
    let (begun, cpu) = (Instant::now(), thread_cpu_time());
    let mut calls = 0;
    while begun.elapsed() < time {
        match mock.block.work(&mut Context::at(Instant::now())).unwrap() {
            Work::Again(after) => std::thread::sleep(after),
            other => panic!("it waits for the device and returns {other:?}"),
        }
        calls += 1;
    }
    (thread_cpu_time().saturating_sub(cpu), calls)
}

#[test]
fn waiting_for_a_device_takes_less_than_a_twentieth_of_a_core() {
    let kernel = filter(31, 1);
    let device = StandIn {
        faults: vec![(0, StandInFault::Stall(Duration::from_secs(1000)))],
        ..StandIn::default()
    };
    let settings = OffloadSettings {
        stall_after: Duration::from_secs(1000),
        ..OffloadSettings::for_batches(1000, &kernel)
    };
    let mut mock = Mock::new(OffloadBlock::<Sample>::new(kernel, &device, settings).unwrap());
    mock.feed("in", &noise(1, 4000));
    mock.run().unwrap();
    let time = Duration::from_millis(500);
    let (cpu, calls) = idle(&mut mock, time);
    // The later an answer, the rarer are the looks: at most one a millisecond.
    assert!(calls < 900, "{calls} calls");
    assert!(cpu < time / 20, "{cpu:?} of {time:?}");
}
