//! What clients do although they should not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millstream_client::{ClientError, RxOptions, StreamStart};

use crate::common::{
    PATIENCE, PROMPT, check_ramp, is_empty, ramp, reports, started, stream, ticks,
};

/// A time-out that no test waits for.
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_read_before_the_start_ends_soon_whatever_its_time_out() {
    let radio = ramp("");
    let stream = stream(&radio, RxOptions::default());
    let begin = Instant::now();
    let read = stream.read(&mut [&mut [[0_i16; 2]; 100]], HOUR).unwrap();
    assert!(is_empty(&read), "{read:?}");
    assert!(begin.elapsed() < PROMPT, "{:?}", begin.elapsed());
}

#[test]
fn a_stop_or_close_ends_a_read_that_waits() {
    let radio = ramp("");
    for closes in [false, true] {
        for _ in 0..10 {
            let stream = started(&radio, RxOptions::default());
            let thread = {
                let stream = stream.clone();
                std::thread::spawn(move || {
                    // More samples than come in the length of the test.
                    let mut samples = vec![[0_i16; 2]; 1 << 26];
                    (stream.read(&mut [&mut samples], HOUR), Instant::now())
                })
            };
            std::thread::sleep(Duration::from_millis(20));
            let begin = Instant::now();
            if closes {
                stream.close(PATIENCE);
            } else {
                stream.stop().unwrap();
            }
            let (read, end) = thread.join().unwrap();
            assert!(end.saturating_duration_since(begin) < PROMPT);
            match read {
                Err(ClientError::Closed) => assert!(closes),
                Ok(_) => assert!(!closes),
                Err(error) => panic!("{error}"),
            }
            assert_eq!(stream.stop().is_err(), closes);
        }
    }
}

#[test]
fn a_second_read_waits_for_the_first_one_no_longer_than_its_time_out() {
    let radio = ramp("");
    let stream = started(&radio, RxOptions::default());
    let second = |timeout| {
        let begin = Instant::now();
        (stream.read(&mut [&mut [[0_i16; 2]; 10]], timeout), begin.elapsed())
    };
    let delivered = || stream.ledger(0).unwrap().delivered;
    // A thread that reads has taken samples.
    let wait_for_a_read = |before| {
        while delivered() == before {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    std::thread::scope(|scope| {
        let long = |timeout| {
            let stream = stream.clone();
            // More samples than come in the length of the test.
            move || stream.read(&mut [&mut vec![[0_i16; 2]; 1 << 26]], timeout)
        };
        let first = scope.spawn(long(HOUR));
        wait_for_a_read(0);
        for timeout in [Duration::ZERO, Duration::from_millis(30)] {
            let (read, took) = second(timeout);
            let read = read.unwrap();
            assert!(is_empty(&read), "{read:?}");
            assert!(timeout <= took && took < timeout + PROMPT, "{took:?}");
        }
        let third = scope.spawn(long(HOUR));
        std::thread::sleep(Duration::from_millis(50));
        stream.stop().unwrap();
        assert!(first.join().unwrap().unwrap().samples > 0);
        assert!(is_empty(&third.join().unwrap().unwrap()));
        stream.start(StreamStart::now()).unwrap();
        // The first one ends, and the second one has its turn.
        let before = delivered();
        let first = scope.spawn(long(Duration::from_millis(100)));
        wait_for_a_read(before);
        assert_eq!(second(PATIENCE).0.unwrap().samples, 10);
        assert!(first.join().unwrap().unwrap().samples > 0);
        let before = delivered();
        let first = scope.spawn(long(HOUR));
        wait_for_a_read(before);
        let second = scope.spawn(long(HOUR));
        std::thread::sleep(Duration::from_millis(50));
        stream.close(PATIENCE);
        for thread in [first, second] {
            assert!(matches!(thread.join().unwrap(), Err(ClientError::Closed)));
        }
    });
}

#[test]
fn a_stream_starts_and_stops_again_and_again() {
    let radio = ramp("");
    let stream = stream(&radio, RxOptions::default());
    let (mut samples, mut before) = ([[0_i16; 2]; 700], 0);
    for _ in 0..200 {
        stream.start(StreamStart::now()).unwrap();
        let read = stream.read(&mut [&mut samples], PATIENCE).unwrap();
        assert_eq!(read.samples, samples.len());
        let time = ticks(&read);
        assert!(time >= before);
        check_ramp(&samples, time);
        before = time + read.samples as u64;
        stream.stop().unwrap();
    }
    let ledger = radio.rx(0).ledger().unwrap();
    ledger.balance().unwrap();
    assert_eq!((ledger.delivered, ledger.lost_total()), (200 * 700, 0));
}

#[test]
fn the_rate_changes_while_another_thread_reads() {
    let radio = ramp("");
    let stream = started(&radio, reports());
    let thread = {
        let stream = stream.clone();
        std::thread::spawn(move || {
            let (mut samples, mut times) = (vec![[0_i16; 2]; 4096], Vec::new());
            loop {
                match stream.read(&mut [&mut samples], PATIENCE) {
                    Ok(read) => {
                        if read.samples > 0 {
                            check_ramp(&samples[..read.samples], ticks(&read));
                            times.push(ticks(&read));
                        }
                    }
                    Err(ClientError::Closed) => return times,
                    Err(error) => panic!("{error}"),
                }
            }
        })
    };
    for turn in 0..30 {
        let rate_hz = [2e6, 0.5e6, 1e6][turn % 3];
        assert_eq!(radio.rx(0).set_rate(rate_hz).unwrap(), rate_hz);
        assert_eq!(stream.rate_hz(), rate_hz);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(stream.is_active());
    std::thread::sleep(Duration::from_millis(50));
    stream.close(PATIENCE);
    assert!(thread.join().unwrap().len() > 5);
}

#[test]
fn a_radio_that_is_closed_says_so_everywhere() {
    let radio = ramp("");
    let stream = started(&radio, RxOptions::default());
    assert!(radio.close(4 * PATIENCE));
    let read = stream.read(&mut [&mut [[0_i16; 2]; 10]], PATIENCE);
    assert!(matches!(read, Err(ClientError::Closed)), "{read:?}");
    assert!(matches!(radio.rx(0).rate(), Err(ClientError::Closed)));
    assert!(matches!(radio.rx(0).stream(RxOptions::default()), Err(ClientError::Closed)));
}

#[test]
fn a_radio_that_stops_answering_is_lost_once_and_for_all_until_the_next_start() {
    let radio = ramp("");
    let stream = started(&radio, RxOptions::default());
    let mut samples = vec![[0_i16; 2]; 4096];
    assert!(stream.read(&mut [&mut samples], PATIENCE).unwrap().samples > 0);
    radio.add_fault("stall ms=30000").unwrap();
    let error = loop {
        match stream.read(&mut [&mut samples], PATIENCE) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ClientError::Rx(_)), "{error}");
    let again = stream.read(&mut [&mut samples], PATIENCE);
    assert!(matches!(again, Err(ClientError::Lost { .. })), "{again:?}");
    assert!(!stream.is_active());
}

#[test]
fn a_start_during_a_change_of_rates_comes_after_it() {
    let radio = ramp("");
    let stream = stream(&radio, RxOptions::default());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if !stream.is_active() {
                    stream.start(StreamStart::now()).unwrap();
                }
            }
        });
        let outcome = (0..20).try_for_each(|n| {
            let rate_hz = [1e6, 2e6][n % 2];
            radio.rx(0).set_rate(rate_hz).map(drop)
        });
        done.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
}

#[test]
fn a_close_waits_no_longer_than_asked_and_a_dropped_stream_leaves_its_channel() {
    let radio = ramp("");
    for _ in 0..3 {
        drop(started(&radio, RxOptions::default()));
    }
    let stream = started(&radio, RxOptions::default());
    assert!(stream.close(PATIENCE));
    let stream = started(&radio, RxOptions::default());
    let mut samples = vec![[0_i16; 2]; 4096];
    assert!(stream.read(&mut [&mut samples], PATIENCE).unwrap().samples > 0);
    radio.add_fault("stall ms=30000").unwrap();
    assert!(!stream.close(Duration::from_millis(1)));
    let read = stream.read(&mut [&mut samples], PATIENCE);
    assert!(matches!(read, Err(ClientError::Closed)), "{read:?}");
    assert!(radio.close(4 * PATIENCE));
}
