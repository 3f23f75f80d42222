//! Tests of jumps of the device's clock while it sends: a separate cause, and no other one.

use crate::common::{Brought, PATIENCE, SPP, args, device, receive};
use millstream_emulator::RunningRadio;
use millstream_radio::{Cause, Complex32, Device, RxEvent, RxStreamer};

/// Returns a continuous stream whose device's clock jumps by `ticks`.
fn jump(ticks: i64) -> (RunningRadio, Device, RxStreamer, Brought) {
    let (radio, device) = device(2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_continuous(None).unwrap();
    receive(&mut stream, 20 * SPP);
    radio.faults().add(&format!("clock_jump ticks={ticks}")).unwrap();
    let mut brought = receive(&mut stream, 20 * SPP);
    while brought.events.is_empty() {
        brought = receive(&mut stream, 20 * SPP);
    }
    (radio, device, stream, brought)
}

#[test]
fn a_clock_that_jumps_forward_is_no_overrun() {
    let (radio, _device, stream, brought) = jump(1_000_000);
    assert_eq!(brought.events, [RxEvent::ClockJump { ticks: 1_000_000, samples: 1_000_000 }]);
    assert_eq!(stream.counters().clock_jumps, 1);
    let ledger = stream.finish();
    assert_eq!((ledger.lost(Cause::ClockJump), ledger.lost_total()), (1_000_000, 1_000_000));
    assert_eq!((ledger.balance(), radio.counters().rx_overruns), (Ok(()), 0));
}

#[test]
fn a_clock_set_back_loses_nothing() {
    let (radio, _device, stream, brought) = jump(-500_000);
    assert_eq!(brought.events, [RxEvent::ClockJump { ticks: -500_000, samples: 0 }]);
    let ledger = stream.finish();
    assert_eq!((ledger.lost_total(), ledger.balance()), (0, Ok(())));
    assert_eq!(radio.counters().rx_overruns, 0);
}

#[test]
fn a_clock_set_to_the_time_of_day_does_not_end_the_stream() {
    // The nanoseconds of 2026, as ticks of 50 MHz.
    let ticks = 88_000_000_000_000_000;
    let (_radio, _device, stream, brought) = jump(ticks);
    // One packet waited until the next confirmed its time.
    assert_eq!(brought.events, [RxEvent::ClockJump { ticks, samples: 0 }]);
    let ledger = stream.finish();
    assert_eq!((ledger.lost_total(), ledger.balance()), (0, Ok(())));
}

#[test]
fn a_finite_capture_brings_all_its_samples_across_a_jump() {
    let (radio, device) = device(2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    let at = device.time_ticks().unwrap() + 400_000;
    stream.start_finite(2000 * SPP, Some(at)).unwrap();
    let jump = format!("clock_jump ticks=77777 at_tick={}", at + 50 * SPP);
    radio.faults().add(&jump).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.samples, brought.missing), (2000 * SPP, 0), "{brought:?}");
    // A capture queued behind it is still distinguished from it.
    stream.queue_finite(300 * SPP, None).unwrap();
    stream.queue_finite(300 * SPP, None).unwrap();
    radio.faults().add("clock_jump ticks=1234567").unwrap();
    let mut buffer = vec![Complex32::default(); 4096];
    let (mut samples, mut ends) = (0, 0);
    while stream.is_running() {
        let meta = stream.recv(&mut buffer, PATIENCE).unwrap();
        samples += meta.samples as u64;
        ends += u64::from(meta.end_of_burst);
    }
    assert_eq!((samples, ends), (600 * SPP, 2));
    let ledger = stream.finish();
    assert_eq!(ledger.delivered, 2600 * SPP);
    assert_eq!((ledger.expected, ledger.balance()), (2600 * SPP, Ok(())));
}
