//! Tests of the receive stream as a flowgraph source: its samples, segments, metrics and its end.

use std::time::Duration;

use crate::common::{Action, Meddler, SPP, args, device, meddled, patient, radio, ramp};
use millstream_flow::blocks::{NullSink, VectorSink};
use millstream_flow::{
    BlockStats, Graph, GraphFile, Mock, Plan, Registry, RunError, RunningGraph, WaitMode, Work,
};
use millstream_radio::block::{GapCause, RadioSource, RecordingSegment, SourceReport, register};
use millstream_radio::{Cause, Complex32, DeviceSet, RxArgs, RxEvent};

/// Returns a plan with everything on one thread.
pub fn plan(graph: &Graph) -> Plan {
    Plan::single(graph, WaitMode::Park)
}

/// Returns a graph of the source and a sink that drops the samples.
pub fn into_nothing(source: RadioSource<Complex32>) -> (Graph, Plan) {
    let mut graph = Graph::new();
    graph.add("tuner", source).unwrap();
    graph.add("sink", NullSink::<Complex32>::new()).unwrap();
    graph.connect("tuner", "sink").unwrap();
    let plan = plan(&graph);
    (graph, plan)
}

/// Starts a graph of a source of two channels, and a sink for each that drops the samples.
pub fn start_group(source: RadioSource<Complex32>) -> RunningGraph {
    let mut graph = Graph::new();
    graph.add("tuner", source).unwrap();
    for channel in 0..2 {
        graph.add(&format!("sink{channel}"), NullSink::<Complex32>::new()).unwrap();
        graph.connect(&format!("tuner.out{channel}"), &format!("sink{channel}")).unwrap();
    }
    let plan = plan(&graph);
    graph.start(&plan).unwrap()
}

pub fn metric(stats: &BlockStats, name: &str) -> u64 {
    stats.metric(name).unwrap_or_else(|| panic!("no metric {name}")) as u64
}

/// Checks that samples expected = delivered + the losses by cause; returns the losses.
pub fn balance(stats: &BlockStats) -> u64 {
    let lost = Cause::ALL.iter().map(|cause| metric(stats, cause.name())).sum::<u64>();
    assert_eq!(metric(stats, "expected"), metric(stats, "delivered") + lost, "{stats:?}");
    assert_eq!(metric(stats, "delivered"), stats.items_out);
    lost
}

/// Checks that each sample of a ramp is that of its time, by the segments of a recording.
pub fn check_times(samples: &[Complex32], segments: &[RecordingSegment]) {
    for (index, sample) in (0..).zip(samples) {
        let segment = segments.iter().rev().find(|one| one.first_sample <= index).unwrap();
        let ticks = segment.time_ticks.unwrap() + index - segment.first_sample;
        assert_eq!(ramp(*sample), ticks as u32, "sample {index}");
    }
}

#[test]
fn a_block_alone_brings_the_wires_samples_and_one_segment() {
    let (_radio, device) = device(2e6);
    let stream = device.rx_stream(args()).unwrap();
    let (source, SourceReport { segments, .. }) =
        RadioSource::<[i16; 2]>::new(device, stream, Some(20 * SPP + 7));
    let mut mock = Mock::new(source);
    let mut samples = Vec::new();
    while mock.call().unwrap() != Work::Finished {
        samples.extend(mock.take::<[i16; 2]>("out"));
        std::thread::yield_now();
    }
    samples.extend(mock.take::<[i16; 2]>("out"));
    assert_eq!(samples.len() as u64, 20 * SPP + 7);
    let segments: Vec<RecordingSegment> = segments.try_iter().collect();
    let first = segments[0].time_ticks.expect("the device sends time");
    let only = RecordingSegment::new(0, Some(first), None);
    assert_eq!(segments, [only]);
    for (sample, ticks) in samples.iter().zip(first..) {
        let [low, high] = sample.map(|half| u32::from(half as u16));
        assert_eq!(high << 16 | low, ticks as u32);
    }
}

#[test]
fn each_gap_begins_a_segment_and_is_booked() {
    let lost = |n| matches!(n, 10..15 | 40);
    let meddler = Meddler::data(move |n, _| if lost(n) { Action::Drop } else { Action::Pass });
    let (_radio, device) = meddled(meddler, 2e6);
    let stream = device.rx_stream(args()).unwrap();
    let (source, SourceReport { segments, .. }) =
        RadioSource::<Complex32>::new(device, stream, Some(100 * SPP));
    let (sink, collected) = VectorSink::<Complex32>::new();
    let mut graph = Graph::new();
    graph.add("tuner", source).unwrap();
    graph.add("sink", sink).unwrap();
    graph.connect("tuner", "sink").unwrap();
    let plan = plan(&graph);
    let snapshot = graph.run(&plan).unwrap();

    let stats = snapshot.block("tuner").unwrap();
    assert_eq!(balance(stats), 6 * SPP);
    assert_eq!(metric(stats, "network_loss"), 6 * SPP);
    assert_eq!((metric(stats, "gaps"), metric(stats, "packets")), (2, 94));

    let segments: Vec<RecordingSegment> = segments.try_iter().collect();
    let first = segments[0].time_ticks.unwrap();
    let gap = |packets| {
        let samples = packets * SPP;
        Some(GapCause::Stream(RxEvent::SequenceGap { packets, samples }))
    };
    let at = |sample: u64, packet, gap| (sample, Some(first + packet * SPP), gap);
    let want = [at(0, 0, None), at(10 * SPP, 15, gap(5)), at(35 * SPP, 41, gap(1))];
    let told = segments.iter().map(|one| (one.first_sample, one.time_ticks, one.gap));
    assert_eq!(told.collect::<Vec<_>>(), want);
    let causes: Vec<_> = segments.iter().flat_map(RecordingSegment::losses).collect();
    assert_eq!(causes, [(Cause::NetworkLoss, 5 * SPP), (Cause::NetworkLoss, SPP)]);

    // The segments have the time of each sample of the recording.
    let samples = collected.take();
    assert_eq!(samples.len() as u64, 94 * SPP);
    check_times(&samples, &segments);
}

#[test]
fn a_source_goes_on_behind_an_overrun_and_ends_at_its_number_of_samples_of_time() {
    // The device reports that it could not continue, and stops.
    let meddler = Meddler::data(|n, packet| {
        let mut last = packet.to_vec();
        last[7] |= 0x02;
        if n == 50 { Action::Replace(last) } else { Action::Pass }
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let stream = device.rx_stream(args()).unwrap();
    let wanted = 2_000_003;
    let (source, SourceReport { segments, .. }) =
        RadioSource::<Complex32>::new(device, stream, Some(wanted));
    let (graph, plan) = into_nothing(source);
    let snapshot = graph.run(&plan).unwrap();
    let stats = snapshot.block("tuner").unwrap();
    let lost = balance(stats);
    assert_eq!((metric(stats, "gaps"), metric(stats, "overruns")), (1, 1));
    assert_eq!(metric(stats, "device_overrun"), lost);
    let segments: Vec<RecordingSegment> = segments.try_iter().collect();
    assert_eq!(segments.len(), 2);
    assert_eq!(segments[1].gap, Some(GapCause::Stream(RxEvent::Overrun { samples: lost })));
    let first_ticks = segments[0].time_ticks.unwrap();
    assert_eq!(segments[1].time_ticks.unwrap(), first_ticks + segments[1].first_sample + lost);
    // A gap that extends past the end would be counted whole; this one does not.
    assert_eq!(metric(stats, "expected"), wanted.max(segments[1].first_sample + lost));
}

#[test]
fn a_start_that_has_passed_is_told() {
    let (_radio, device) = device(2e6);
    while device.time_ticks().unwrap() < 10 {}
    let stream = device.rx_stream(args()).unwrap();
    let (source, _report) = RadioSource::<Complex32>::new(device, stream, Some(100));
    let (graph, plan) = into_nothing(source.starting_at(Some(1)));
    let error = graph.run(&plan).unwrap_err().to_string();
    assert!(
        error.contains("had passed the start time before the command came: try again"),
        "{error}"
    );
}

#[test]
fn channels_are_recorded_at_the_same_moments_and_end_together() {
    // Packets of one channel or of both are lost; the other one drops the same moments.
    let lost = |n| matches!(n, 10..15 | 60);
    let meddler = Meddler::data(move |n, _| if lost(n) { Action::Drop } else { Action::Pass });
    let (_radio, mut device) = radio(patient());
    device.open_port = Some(meddler.open_port());
    let mut devices = DeviceSet::open([device]).unwrap();
    devices.set_rate(2e6).unwrap();
    let channels = [0, 1].map(|channel| (0, RxArgs::new(channel).with_samples_per_packet(500)));
    let group = devices.rx_group(&channels).unwrap();
    let (source, report) = RadioSource::<Complex32>::new(devices, group, Some(100_001));
    let source = source.without_waiting();
    let mut graph = Graph::new();
    graph.add("tuner", source).unwrap();
    let collected = [0, 1].map(|channel| {
        let (sink, collected) = VectorSink::<Complex32>::new();
        graph.add(&format!("sink{channel}"), sink).unwrap();
        graph.connect(&format!("tuner.out{channel}"), &format!("sink{channel}")).unwrap();
        collected
    });
    let plan = plan(&graph);
    let snapshot = graph.run(&plan).unwrap();
    let ledgers = report.ledgers.try_recv().unwrap();
    let segments: Vec<RecordingSegment> = report.segments.try_iter().collect();
    assert!(segments.len() > 1, "{segments:?}");
    let [one, two] = collected.map(|samples| samples.take());
    assert!(one == two, "a ramp on both");
    for ledger in &ledgers {
        ledger.balance().unwrap();
        assert_eq!((ledger.expected, ledger.delivered), (100_001, one.len() as u64));
        assert!(ledger.lost_total() >= SPP, "{ledger}");
    }
    let stats = snapshot.block("tuner").unwrap();
    assert_eq!(metric(stats, "expected"), 200_002);
    check_times(&one, &segments);
}

#[test]
fn stopping_the_graph_stops_the_radio_and_closes_the_ledger() {
    let (radio, device) = device(2e6);
    let stream = device.rx_stream(args()).unwrap();
    let (source, SourceReport { segments, .. }) =
        RadioSource::<Complex32>::new(device, stream, None);
    let (graph, plan) = into_nothing(source);
    let running = graph.start(&plan).unwrap();
    while running.snapshot().block("sink").unwrap().items_in < 100 * SPP {
        assert!(!running.is_finished(), "a source without end goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.stopper().stop();
    let snapshot = running.wait().unwrap();
    let stats = snapshot.block("tuner").unwrap();
    let lost = balance(stats);
    assert_eq!(lost, 0, "what comes after the end is not lost");
    assert_eq!(snapshot.block("sink").unwrap().items_in, stats.items_out);
    assert_eq!(segments.try_iter().count(), 1);
    // The block has ended, and with it the claim: the radio is free.
    let packets = radio.counters().rx_packets;
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(radio.counters().rx_packets, packets, "the radio has stopped");
}

#[test]
fn a_device_that_dies_fails_its_block_by_name() {
    let (radio, device) = device(2e6);
    let address = radio.chdr_addr().to_string();
    let stream = device.rx_stream(args()).unwrap();
    let (source, _report) = RadioSource::<Complex32>::new(device, stream, None);
    let (graph, plan) = into_nothing(source);
    let running = graph.start(&plan).unwrap();
    while running.snapshot().block("sink").unwrap().items_in < 10 * SPP {
        std::thread::sleep(Duration::from_millis(5));
    }
    radio.stop();
    let error = running.wait().unwrap_err();
    assert!(matches!(&error, RunError::Block { block, .. } if block == "tuner"), "{error}");
    let text = error.to_string();
    assert!(text.contains("`tuner` failed") && text.contains(&address), "{text}");
    assert!(text.contains("stopped answering"), "{text}");
}

#[test]
fn a_graph_file_opens_the_radio_or_says_what_is_wrong() {
    let (radio, _) = radio(patient());
    let mut registry = Registry::builtin();
    register(&mut registry);
    let build = |change: &dyn Fn(String) -> String| {
        let text = format!(
            "[[block]]\nname = \"tuner\"\ntype = \"radio_rx\"\nrate_hz = 2e6\nsamples = 5000\n\
             channel = 0\nargs = \"addr=127.0.0.1,discovery_port={},rpc_port={}\"\n\
             [[block]]\nname = \"sink\"\ntype = \"null_sink\"\nitem = \"cf32\"\n\
             [graph]\nconnections = [\"tuner -> sink\"]\n",
            radio.discovery_addr().port(),
            radio.rpc_addr().port()
        );
        GraphFile::parse("g.toml", &change(text)).and_then(|file| file.build(&registry, &[]))
    };
    let tuned = "freq_hz = 915e6\ngain_db = 30.0\nantenna = \"RX2\"\nbandwidth_hz = 5e6";
    let graph = build(&|text| text.replace("channel = 0", tuned)).unwrap();
    let plan = plan(&graph);
    let snapshot = graph.run(&plan).unwrap();
    assert_eq!(snapshot.block("sink").unwrap().items_in, 5000);
    assert_eq!(balance(snapshot.block("tuner").unwrap()), 0);
    for (from, to, part) in [
        ("channel = 0", "channel = -1", "0 or more"),
        ("channel = 0", "channel = 7", "no receive channel 7"),
        ("samples = 5000", "samples = -5", "0 or more"),
        ("rate_hz = 2e6", "rate_hz = 0.0", "is not a sample rate"),
        ("addr=127.0.0.1", "addr=nowhere", "wants an IPv4 address"),
        ("channel = 0", "freq_hz = 1e6", "frequency 1000000 Hz is not possible"),
        ("channel = 0", "antenna = \"X\"", "there is no antenna"),
    ] {
        let error = build(&|text| text.replace(from, to)).err().expect(to).to_string();
        assert!(error.contains(part) && error.contains("tuner"), "{to}: {error}");
    }
}
