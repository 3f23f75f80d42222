//! Tests of samples that stop while the device answers, and of times that one packet alone has.

use super::*;
use crate::RxError;
use crate::stream::SAMPLES_STOPPED;

/// Checks ten times a second, for twice the time that is allowed; `each` comes before each check.
/// Returns when the stream ended.
fn end_of(bench: &mut Bench, mut each: impl FnMut(&mut Bench)) -> Option<(u64, u64)> {
    let steps = 2 * SAMPLES_STOPPED.as_millis() as u64 / 100;
    (0..steps).find_map(|step| {
        each(bench);
        let outcome = bench.core.check_samples(bench.now);
        bench.pass_time(100);
        match outcome {
            Err(RxError::SamplesStopped { samples, .. }) => Some((100 * step, samples)),
            _ => None,
        }
    })
}

fn after_one_packet() -> Bench {
    let mut bench = Bench::running();
    bench.packet(0, SPP, false);
    bench.results();
    bench
}

#[test]
fn samples_that_stop_end_the_stream_in_time_and_what_was_due_is_lost() {
    type Each = fn(&mut Bench);
    let silent: Each = |_| ();
    let still: Each = |bench| {
        bench.core.is_waiting(BEGIN, bench.now);
    };
    let random: Each = |bench| {
        let seq = bench.core.numbers.next_seq();
        let ticks = bench.now.elapsed().as_nanos() as u64 | 1 << 60;
        bench.take(&packet(seq, ticks.wrapping_mul(0x9E37_79B9_7F4A_7C15), SPP, false));
        bench.results();
    };
    let set_up: Each = |bench| bench.set_up(0);
    for each in [silent, still, random, set_up] {
        let mut bench = after_one_packet();
        let (ms, samples) = end_of(&mut bench, each).expect("it ended");
        assert!((5000..=5200).contains(&ms), "{ms}");
        assert_eq!(samples, 5_000_000, "five seconds at 1 Msps");
        let ledger = bench.core.books.ledger();
        assert_eq!((ledger.lost(Cause::Unknown), ledger.balance()), (samples, Ok(())));
        assert_eq!(ledger.expected, SPP + samples);
    }
}

#[test]
fn restarts_that_the_radio_takes_and_never_executes_end_the_stream_in_time() {
    let mut bench = after_one_packet();
    let mut ticks = BEGIN;
    let (ms, samples) = end_of(&mut bench, |bench| {
        // Each is still ahead when the device is asked for its time.
        bench.restart(ticks, ticks + 50_000);
        ticks += 100;
        bench.core.is_waiting(ticks, bench.now);
    })
    .expect("it ended");
    assert!((5000..=5200).contains(&ms), "{ms}");
    assert_eq!((samples, bench.core.books.ledger().balance()), (5_000_000, Ok(())));
}

#[test]
fn a_capture_whose_samples_stop_expects_what_was_requested() {
    let mut bench = Bench::idle();
    bench.core.begin(Some(10 * SPP), None, false);
    bench.packet(0, SPP, false);
    bench.results();
    let (_, samples) = end_of(&mut bench, |_| ()).expect("it ended");
    assert_eq!((samples, bench.core.books.ledger().expected), (9 * SPP, 10 * SPP));
    assert_eq!(bench.core.books.ledger().balance(), Ok(()));
}

#[test]
fn a_wait_that_is_intended_is_no_end() {
    // Samples that come, however slowly.
    let mut bench = Bench::running();
    let mut seq = 0;
    let slow = |bench: &mut Bench| {
        bench.packet(seq, SPP, false);
        bench.results();
        seq += 1;
    };
    assert_eq!(end_of(&mut bench, slow), None);
    // A start ahead of a clock that runs.
    let mut bench = Bench::idle();
    bench.core.begin(None, Some(1 << 40), false);
    let mut ticks = BEGIN;
    let runs = |bench: &mut Bench| {
        ticks += 100_000;
        assert!(bench.core.is_waiting(ticks, bench.now));
    };
    assert_eq!(end_of(&mut bench, runs), None);
    // The same, and the clock stands still.
    let mut bench = Bench::idle();
    bench.core.begin(None, Some(1 << 40), false);
    let stands = |bench: &mut Bench| {
        bench.core.is_waiting(BEGIN, bench.now);
    };
    assert!(end_of(&mut bench, stands).is_some());
    // A caller that was away, and a stream that nothing runs on.
    let mut bench = after_one_packet();
    assert!(bench.core.check_samples(bench.now).is_ok());
    bench.pass_time(60_000);
    assert!(bench.core.check_samples(bench.now).is_ok());
    assert_eq!(end_of(&mut Bench::idle(), |_| ()), None);
}
