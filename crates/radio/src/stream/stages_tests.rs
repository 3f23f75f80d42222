//! Tests of the recovery, by the core's requests and their outcomes.

use super::*;
use crate::channel::RxRequest;

#[test]
fn the_end_of_a_run_without_an_end_asks_for_a_restart() {
    let mut bench = Bench::running();
    bench.packet(0, SPP, false);
    bench.results();
    bench.packet(1, 40, true);
    assert_eq!(bench.core.step.take(), Some(Step::Restart { attempts: 0 }));
    bench.results();
    let (told, start) = (9000, bench.core.aligned(9500, 9000));
    bench.restart(told, start);
    bench.take(&packet(2, start, SPP, false));
    let samples = start - (BEGIN + SPP + 40);
    let overrun = (RxEvent::Overrun { samples }, Some(start));
    assert_eq!(bench.results(), [overrun, samples_at(start)]);
    assert_eq!(bench.core.books.ledger().lost(Cause::DeviceOverrun), samples);
    assert!(bench.core.run.restart().is_none() && bench.core.step.is_none());
}

#[test]
fn a_silent_device_is_asked_and_then_the_stream_is_set_up_again() {
    let mut bench = Bench::running();
    bench.packet(0, SPP, false);
    bench.results();
    bench.pass_time(60);
    assert_eq!(bench.core.idle(bench.now), None);
    assert!(std::mem::take(&mut bench.core.report_due), "the last report may be lost");
    bench.pass_time(250);
    let silent = Duration::from_millis(310);
    assert_eq!(bench.core.idle(bench.now), Some(Step::Ask { silent }));
    assert!(bench.core.is_waiting(BEGIN + SPP + 50, bench.now), "the next one is not complete");
    assert!(!bench.core.is_waiting(BEGIN + 300_000, bench.now));
    // 3 packets came during the handshake.
    bench.set_up(3);
    bench.core.end_recovery();
    let start = BEGIN + 310_000;
    bench.restart(BEGIN + 300_000, start);
    bench.take(&packet(0, start, SPP, false));
    let missing = start - (BEGIN + SPP);
    let overrun = (RxEvent::Overrun { samples: missing }, Some(start));
    assert_eq!(bench.results(), [overrun, samples_at(start)]);
    assert_eq!(bench.core.books.counters().late, 3);
    assert_eq!(bench.core.books.ledger().lost(Cause::Unknown), missing, "lost, kept or not sent");
}

#[test]
fn a_restart_asks_for_one_register_after_another_and_stops_where_an_answer_is_missing() {
    let mut bench = Bench::running();
    bench.packet(0, 40, true);
    bench.results();
    let step = bench.core.step.take().expect("a restart");
    bench.core.begin_step(step, bench.now).unwrap();
    let mut asked = Vec::new();
    let silent = || silent(DEVICE, "", 1, Duration::from_millis(200));
    // The second start is acknowledged.
    let mut lost = 1;
    while let Some(RecoveryNeed::Register(request)) = bench.core.need() {
        let outcome = match request {
            RxRequest::Start if lost > 0 => {
                lost -= 1;
                Err(silent())
            }
            RxRequest::TimeLow => Ok(9000),
            _ => Ok(0),
        };
        bench.core.note_outcome(outcome, bench.now).unwrap();
        asked.push(request);
    }
    use RxRequest::{Start, StartHigh, StartLow, Stop, TimeHigh, TimeLow};
    let time = [TimeHigh, TimeLow, TimeHigh];
    // 5 ms ahead.
    let start = [StartHigh(0), StartLow(14_000), Start];
    assert_eq!(asked, [&time[..], &[Stop], &time, &start, &[Stop], &start].concat());
    assert_eq!(bench.core.run.awaited(), Some(14_000));

    // Without any answer to the first request, it is over.
    bench.core.begin_step(Step::Restart { attempts: 1 }, bench.now).unwrap();
    let error = bench.core.note_outcome(Err(silent()), bench.now).unwrap_err();
    assert!(matches!(error, RxError::Radio(RadioError::Silent { .. })), "{error}");
    assert!(!bench.core.is_recovering());
    // Of a start that was refused, the rest is stopped.
    let halt = Halt { attempts: 0, own: true, before: 8000, behind: 9000 };
    bench.core.begin_start(halt, 14_000, 1);
    let refused = || RadioError::Refused { what: "", port: 1, address: 2, status: "" };
    for outcome in [Ok(0), Ok(0), Err(refused())] {
        bench.core.note_outcome(outcome, bench.now).unwrap();
    }
    assert_eq!(bench.core.need(), Some(RecoveryNeed::Register(Stop)));
    assert!(bench.core.note_outcome(Ok(0), bench.now).is_err());
    assert!(!bench.core.is_recovering());
    // Nine starts were too late.
    let error = bench.core.begin_step(Step::Restart { attempts: 9 }, bench.now).unwrap_err();
    assert!(matches!(error, RxError::NotRestarted { attempts: 9 }), "{error}");
    assert!(bench.core.run.is_idle());
}

#[test]
fn a_stop_within_a_restart_awaits_a_run_that_may_have_begun() {
    for (answers, awaited) in [(9, None), (10, Some(14_000))] {
        let mut bench = Bench::running();
        bench.packet(0, 40, true);
        bench.results();
        let step = bench.core.step.take().expect("a restart");
        bench.core.begin_step(step, bench.now).unwrap();
        for number in 0..answers - 1 {
            let word = if number % 4 == 1 { 9000 } else { 0 };
            bench.core.note_outcome(Ok(word), bench.now).unwrap();
        }
        bench.core.give_up_recovery();
        assert_eq!((bench.core.run.awaited(), bench.core.is_recovering()), (awaited, false));
    }
}

#[test]
fn a_start_that_was_refused_before_it_was_sent_is_not_awaited() {
    let refused = || RadioError::Refused { what: "", port: 1, address: 2, status: "" };
    let silent = || silent(DEVICE, "", 1, Duration::from_millis(200));
    // The answers before the refusal: of the time, of the start itself, or of the stop behind it.
    for (answers, awaited) in [
        (vec![], None),
        (vec![Ok(0)], None),
        (vec![Err(silent())], None),
        (vec![Ok(0), Ok(0), Err(silent())], Some(14_000)),
        (vec![Ok(0), Ok(0), Err(silent()), Ok(0)], Some(14_000)),
    ] {
        let mut bench = Bench::running();
        bench.packet(0, SPP, false);
        bench.results();
        (bench.core.reports.overruns, bench.core.reports.overrun_ticks) = (1, BEGIN + 250);
        let halt = Halt { attempts: 0, own: true, before: 8000, behind: 9000 };
        bench.core.begin_start(halt, 14_000, 1);
        for outcome in answers.into_iter().chain([Err(refused())]) {
            let _ = bench.core.note_outcome(outcome, bench.now);
        }
        assert_eq!((bench.core.run.awaited(), bench.core.is_recovering()), (awaited, false));
        // The overrun stays known for the next start.
        let is_known = bench.core.new_overrun() == Some(BEGIN + 250);
        assert_eq!(is_known, awaited.is_none());
    }
}
