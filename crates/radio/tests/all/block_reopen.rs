//! Tests of sources that open their device again.

use std::time::Duration;

use crate::block::{balance, into_nothing, metric, start_group};
use crate::common::{PATIENCE, SPP, args, patient, radio};
use millstream_emulator::RunningRadio;
use millstream_flow::RunningGraph;
use millstream_radio::block::{GapCause, OpenAgain, RadioSource, RecordingSegment, SourceReport};
use millstream_radio::{Cause, Complex32, Device, DeviceArgs, DeviceSet, RxArgs};

/// Returns how to open the device again.
fn again(args_of: &DeviceArgs, rate_hz: f64) -> OpenAgain {
    let args_of = args_of.clone();
    Box::new(move || {
        let mut device = Device::open(args_of.clone())?;
        device.set_rate(rate_hz)?;
        let stream = device.rx_stream(args())?;
        Ok((device.into(), stream))
    })
}

/// Lets the graph receive, the device reboot, and the graph receive again, so many times; then
/// stops it.
fn run_through_reboots(radio: &RunningRadio, running: &RunningGraph, sink: &str, reboots: u32) {
    let until = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(!running.is_finished(), "it goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let received = || running.snapshot().block(sink).unwrap().items_in;
    until(&|| received() >= 50 * SPP);
    for reboot in 1..=reboots {
        radio.faults().add("reboot silent_ms=300").unwrap();
        let reopenings = || running.snapshot().block("tuner").unwrap().metric("reopenings");
        until(&|| reopenings() == Some(reboot.into()));
        let more = received() + 50 * SPP;
        until(&|| received() >= more);
    }
    running.stopper().stop();
}

#[test]
fn a_device_that_reboots_is_opened_again_and_the_gap_has_a_length() {
    let (radio, args_of) = radio(patient());
    let (device, stream) = again(&args_of, 1e6)().unwrap();
    let (source, SourceReport { segments, .. }) =
        RadioSource::<Complex32>::new(device, stream, None);
    let source = source.reopening(again(&args_of, 1e6), PATIENCE).unwrap();
    let (graph, plan) = into_nothing(source);
    let running = graph.start(&plan).unwrap();
    run_through_reboots(&radio, &running, "sink", 2);
    let snapshot = running.wait().unwrap();
    let stats = snapshot.block("tuner").unwrap();
    let lost = balance(stats);
    let segments: Vec<RecordingSegment> = segments.try_iter().collect();
    assert_eq!(segments.len(), 3, "{segments:?}");
    let (start, mut missing) = (segments[0].time_ticks.unwrap(), 0);
    for segment in &segments[1..] {
        let Some(GapCause::Reopened { samples }) = segment.gap else { panic!("{segment:?}") };
        // Its time went on: about as long as the silence and the opening took.
        assert!(samples > 300_000, "{samples}");
        missing += samples;
        assert_eq!(segment.time_ticks, Some(start + segment.first_sample + missing));
    }
    assert_eq!((metric(stats, "reopened"), lost), (missing, missing), "the sum of both");
}

/// Returns how to open both channels of the device again.
fn both_again(args_of: &DeviceArgs, rate_hz: f64) -> OpenAgain {
    let args_of = args_of.clone();
    Box::new(move || {
        let mut set = DeviceSet::open([args_of.clone()])?;
        set.set_rate(rate_hz)?;
        let group = set.rx_group(&[(0, RxArgs::new(0)), (0, RxArgs::new(1))])?;
        Ok((set, group))
    })
}

#[test]
fn a_group_goes_on_behind_one_gap_when_its_device_reboots() {
    let (radio, args_of) = radio(patient());
    let (set, group) = both_again(&args_of, 1e6)().unwrap();
    let (source, report) = RadioSource::<Complex32>::new(set, group, None);
    let source = source.without_waiting();
    let source = source.reopening(both_again(&args_of, 1e6), PATIENCE).unwrap();
    let running = start_group(source);
    run_through_reboots(&radio, &running, "sink1", 1);
    let snapshot = running.wait().unwrap();
    let ledgers = report.ledgers.try_recv().unwrap();
    let segments: Vec<RecordingSegment> = report.segments.try_iter().collect();
    let [first, second] = segments[..] else { panic!("{segments:?}") };
    let Some(GapCause::Reopened { samples }) = second.gap else { panic!("{second:?}") };
    assert!(samples > 300_000, "{samples}");
    let due = first.time_ticks.unwrap() + second.first_sample + samples;
    assert_eq!(second.time_ticks, Some(due), "the time of both went on");
    assert_eq!(ledgers.len(), 2);
    for (channel, ledger) in ledgers.iter().enumerate() {
        assert_eq!((ledger.balance(), ledger.held), (Ok(()), 0));
        assert_eq!((ledger.lost(Cause::Reopened), ledger.lost_total()), (samples, samples));
        let sink = snapshot.block(&format!("sink{channel}")).unwrap();
        assert_eq!(ledger.delivered, sink.items_in);
    }
    let stats = snapshot.block("tuner").unwrap();
    assert_eq!(metric(stats, "reopened"), 2 * samples, "the metrics are sums over the channels");
}

#[test]
fn several_devices_cannot_be_opened_again() {
    let (_radios, args): (Vec<_>, Vec<_>) = (0..2).map(|_| radio(patient())).unzip();
    let mut set = DeviceSet::open(args.iter().cloned()).unwrap();
    set.set_rate(1e6).unwrap();
    let group = set.rx_group(&[(0, RxArgs::new(0)), (1, RxArgs::new(0))]).unwrap();
    let (source, _report) = RadioSource::<Complex32>::new(set, group, None);
    let source = source.without_waiting();
    let refused = source.reopening(both_again(&args[0], 1e6), PATIENCE).err().unwrap();
    assert!(refused.to_string().contains("only one device can be opened again"), "{refused}");
}

#[test]
fn a_device_that_does_not_come_back_fails_with_the_last_error() {
    let (radio, args_of) = radio(patient());
    let (device, stream) = again(&args_of, 1e6)().unwrap();
    let (source, _report) = RadioSource::<Complex32>::new(device, stream, None);
    let (graph, plan) =
        into_nothing(source.reopening(again(&args_of, 1e6), Duration::from_millis(1)).unwrap());
    let running = graph.start(&plan).unwrap();
    while running.snapshot().block("sink").unwrap().items_in < 10 * SPP {
        std::thread::sleep(Duration::from_millis(5));
    }
    radio.stop();
    let text = running.wait().unwrap_err().to_string();
    assert!(text.contains("the radio did not come back within"), "{text}");
    assert!(text.contains("cannot connect to the management server"), "{text}");
}
