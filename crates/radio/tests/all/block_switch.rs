//! Tests of sources that messages stop, start and give another rate.

use std::time::{Duration, Instant};

use crate::block::{balance, check_times, metric, plan};
use crate::common::{PATIENCE, SPP, device, patient, radio, radio_with};
use millstream_emulator::{DeviceKind, RadioConfig};
use millstream_flow::blocks::{NullSink, VectorSink};
use millstream_flow::{Graph, RunningGraph, Snapshot};
use millstream_radio::block::{RadioSource, RecordingSegment, SourceReport};
use millstream_radio::{Complex32, Device, DeviceSet, RxArgs};

/// Waits until something is so.
pub fn until(running: &RunningGraph, what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + 6 * PATIENCE;
    while !done() {
        assert!(!running.is_finished(), "it ended before: {what}");
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a message, and waits until the block has taken it and not refused it.
pub fn send(running: &RunningGraph, name: &str, value: impl Into<millstream_flow::ParameterValue>) {
    let messages = || running.snapshot().block("tuner").unwrap().messages.clone().unwrap();
    let before = messages();
    running.send("tuner", name, value).unwrap();
    until(running, name, || messages().taken != before.taken);
    assert_eq!(messages().refused, before.refused, "{:?}", messages().refusal);
}

pub fn received(running: &RunningGraph, sink: &str) -> u64 {
    running.snapshot().block(sink).unwrap().items_in
}

/// Waits for so many more samples.
pub fn wait_for(running: &RunningGraph, sink: &str, samples: u64) {
    let wanted = received(running, sink) + samples;
    until(running, sink, || received(running, sink) >= wanted);
}

pub fn end(running: RunningGraph) -> Snapshot {
    running.stopper().stop();
    running.wait().unwrap()
}

#[test]
fn a_stop_loses_nothing_and_the_start_begins_a_segment_with_its_time() {
    let (_radio, device) = device(1e6);
    let stream = device.rx_stream(crate::common::args()).unwrap();
    let (source, SourceReport { segments, .. }) =
        RadioSource::<Complex32>::new(device, stream, None);
    let (sink, collected) = VectorSink::<Complex32>::new();
    let mut graph = Graph::new();
    graph.add("tuner", source.tunable(vec![(0, 0)])).unwrap();
    graph.add("sink", sink).unwrap();
    graph.connect("tuner", "sink").unwrap();
    let plan = plan(&graph);
    let running = graph.start(&plan).unwrap();
    for _ in 0..3 {
        wait_for(&running, "sink", 20 * SPP);
        send(&running, "stop", true);
        // A second stop has no effect.
        send(&running, "start", false);
        let stats = running.snapshot().block("tuner").unwrap().clone();
        assert_eq!(balance(&stats), 0);
        std::thread::sleep(Duration::from_millis(50));
        let now = running.snapshot().block("tuner").unwrap().clone();
        assert_eq!(metric(&now, "expected"), metric(&stats, "expected"), "nothing is expected");
        send(&running, "start", true);
    }
    wait_for(&running, "sink", 20 * SPP);
    let snapshot = end(running);
    let stats = snapshot.block("tuner").unwrap();
    assert_eq!((balance(stats), metric(stats, "gaps")), (0, 0));
    let segments: Vec<RecordingSegment> = segments.try_iter().collect();
    assert_eq!(segments.len(), 4);
    for (index, pair) in segments.windows(2).enumerate() {
        assert!(pair[1].is_restart() && pair[1].gap.is_none(), "segment {index}");
        let recorded = pair[1].first_sample - pair[0].first_sample;
        let passed = pair[1].time_ticks.unwrap() - pair[0].time_ticks.unwrap();
        assert!(passed >= recorded + 50_000, "the radio's time went on: {passed}");
    }
    let samples = collected.take();
    check_times(&samples, &segments);
}

#[test]
fn a_source_that_was_stopped_ends_and_one_with_a_length_gets_all_its_samples() {
    // A second of samples: the messages are for the first part of it.
    let (_radio, device) = device(1e5);
    let stream = device.rx_stream(crate::common::args()).unwrap();
    let wanted = 200 * SPP;
    let (source, _report) = RadioSource::<Complex32>::new(device, stream, Some(wanted));
    let (graph, plan) = crate::block::into_nothing(source.tunable(vec![(0, 0)]));
    let running = graph.start(&plan).unwrap();
    wait_for(&running, "sink", 20 * SPP);
    send(&running, "stop", true);
    send(&running, "start", true);
    let snapshot = running.wait().unwrap();
    let stats = snapshot.block("tuner").unwrap();
    assert_eq!((metric(stats, "expected"), balance(stats)), (wanted, 0));

    let (_radio, device) = crate::common::device(1e6);
    let stream = device.rx_stream(crate::common::args()).unwrap();
    let (source, _report) = RadioSource::<Complex32>::new(device, stream, Some(wanted));
    let (graph, plan) = crate::block::into_nothing(source.tunable(vec![(0, 0)]));
    let running = graph.start(&plan).unwrap();
    send(&running, "stop", true);
    let snapshot = end(running);
    assert_eq!(balance(snapshot.block("tuner").unwrap()), 0);
}

#[test]
fn both_channels_of_a_group_stop_and_start_together() {
    let (_radio, args) = radio(patient());
    let mut set = DeviceSet::open([args]).unwrap();
    set.set_rate(1e6).unwrap();
    let group = set.rx_group(&[(0, RxArgs::new(0)), (0, RxArgs::new(1))]).unwrap();
    let (source, report) = RadioSource::<Complex32>::new(set, group, None);
    let source = source.without_waiting();
    let mut graph = Graph::new();
    graph.add("tuner", source.tunable(vec![(0, 0), (0, 1)])).unwrap();
    for channel in 0..2 {
        graph.add(&format!("sink{channel}"), NullSink::<Complex32>::new()).unwrap();
        graph.connect(&format!("tuner.out{channel}"), &format!("sink{channel}")).unwrap();
    }
    let plan = plan(&graph);
    let running = graph.start(&plan).unwrap();
    wait_for(&running, "sink1", 20 * SPP);
    send(&running, "stop", true);
    send(&running, "start", true);
    wait_for(&running, "sink1", 20 * SPP);
    let snapshot = end(running);
    let segments: Vec<RecordingSegment> = report.segments.try_iter().collect();
    let [_, second] = segments[..] else { panic!("{segments:?}") };
    assert!(second.is_restart() && second.time_ticks.is_some(), "{second:?}");
    let ledgers = report.ledgers.try_recv().unwrap();
    assert_eq!(ledgers.len(), 2);
    for ledger in ledgers {
        assert_eq!((ledger.balance(), ledger.lost_total()), (Ok(()), 0));
        assert_eq!(ledger.delivered, snapshot.block("sink0").unwrap().items_in);
    }
}

#[test]
fn another_rate_is_received_with_one_ledger_and_one_that_is_not_there_changes_nothing() {
    let stock = RadioConfig { device: DeviceKind::E320, ..patient() };
    let (_radio, args) = radio_with(stock);
    let mut device = Device::open(args).unwrap();
    device.set_rate(1e6).unwrap();
    let clock_hz = device.tick_rate_hz();
    let stream = device.rx_stream(RxArgs::new(0)).unwrap();
    let (source, SourceReport { segments, .. }) =
        RadioSource::<Complex32>::new(device, stream, None);
    let source = source.tunable(vec![(0, 0)]).with_rates(vec![(0, RxArgs::new(0))]);
    let (graph, plan) = crate::block::into_nothing(source);
    let running = graph.start(&plan).unwrap();
    wait_for(&running, "sink", 20 * SPP);
    send(&running, "rate_hz", 500e3);
    wait_for(&running, "sink", 20 * SPP);
    // A rate that was set while nothing is received has its effect with the start.
    send(&running, "stop", true);
    send(&running, "rate_hz", 250e3);
    let before = received(&running, "sink");
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(received(&running, "sink"), before);
    send(&running, "start", true);
    wait_for(&running, "sink", 20 * SPP);
    running.send("tuner", "rate_hz", 260e3).unwrap();
    let refusal = loop {
        let messages = running.snapshot().block("tuner").unwrap().messages.clone().unwrap();
        if let Some(refusal) = messages.refusal {
            break refusal;
        }
    };
    assert!(
        refusal.contains("the radio has no sample rate of 260000 Hz: the nearest at its clock of"),
        "{refusal}"
    );
    wait_for(&running, "sink", 20 * SPP);
    let snapshot = end(running);
    let stats = snapshot.block("tuner").unwrap();
    assert_eq!((balance(stats), metric(stats, "gaps")), (0, 0));
    // Times are numbers of the same clock, however long a sample is.
    let segments: Vec<RecordingSegment> = segments.try_iter().collect();
    assert_eq!(segments.len(), 3);
    let samples_hz = [1e6, 500e3];
    for (pair, rate_hz) in segments.windows(2).zip(samples_hz) {
        let recorded = (pair[1].first_sample - pair[0].first_sample) as f64 * clock_hz / rate_hz;
        let passed = (pair[1].time_ticks.unwrap() - pair[0].time_ticks.unwrap()) as f64;
        assert!(passed >= recorded, "{passed} of {recorded}");
    }
}
