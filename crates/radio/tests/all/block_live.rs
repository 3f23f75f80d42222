//! Tests of live settings and stops of sources whose device goes away and is opened again.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::block::{balance, into_nothing, metric, start_group};
use crate::block_switch::{end, received, send, until, wait_for};
use crate::common::{PATIENCE, SPP, patient, radio};
use millstream_emulator::{DeviceKind, Radio, RadioConfig, RunningRadio, RxBand, RxWatcher};
use millstream_flow::RunningGraph;
use millstream_radio::block::{
    GapCause, OpenAgain, RadioSource, RecordingSegment, SourceReport, TunedOutput,
};
use millstream_radio::graph::StreamDirection::Rx;
use millstream_radio::{Complex32, Device, DeviceArgs, DeviceSet, RxArgs, TuneRequest};

/// The frequency of the start.
const BEGIN_HZ: f64 = 915e6;

/// The band of a channel of the emulated radio.
#[derive(Clone, Default)]
struct Band(Arc<Mutex<Option<(f64, f64)>>>);

impl RxWatcher for Band {
    fn sent(&mut self, band: RxBand, _: &[[u8; 4]]) {
        *self.0.lock().unwrap() = band.centre_hz.map(|centre_hz| (band.rate_hz, centre_hz));
    }
}

impl Band {
    fn is_near(&self, rate_hz: f64, centre_hz: f64) -> bool {
        let band = *self.0.lock().unwrap();
        band.is_some_and(|(rate, centre)| rate == rate_hz && near(centre, centre_hz))
    }
}

/// Whether a frequency is another one, but for the steps of the radio.
fn near(hz: f64, other_hz: f64) -> bool {
    (hz - other_hz).abs() < 20.0
}

/// Returns an emulated E320, whose DDCs shift, with the bands of its channels.
fn e320() -> (RunningRadio, DeviceArgs, [Band; 2]) {
    let bands = [Band::default(), Band::default()];
    let watchers = bands.iter().map(|band| Box::new(band.clone()) as Box<dyn RxWatcher>).collect();
    let config = RadioConfig {
        device: DeviceKind::E320,
        discovery_port: 0,
        rpc_port: 0,
        chdr_port: 0,
        ..patient()
    };
    let radio = Radio::start_watched(config, watchers).unwrap();
    let args = DeviceArgs {
        discovery_port: radio.discovery_addr().port(),
        rpc_port: radio.rpc_addr().port(),
        ..DeviceArgs::new(std::net::Ipv4Addr::LOCALHOST)
    };
    (radio, args, bands)
}

/// Returns how to open a channel again with the settings of the start.
fn again(args: &DeviceArgs, freq_hz: Option<f64>) -> OpenAgain {
    let args = args.clone();
    Box::new(move || {
        let mut device = Device::open(args.clone())?;
        device.set_rate(1e6)?;
        if let Some(hz) = freq_hz {
            device.tune(Rx, 0, TuneRequest::new(hz))?;
        }
        let stream = device.rx_stream(RxArgs::new(0))?;
        Ok((device.into(), stream))
    })
}

fn reopenings(running: &RunningGraph) -> u64 {
    metric(running.snapshot().block("tuner").unwrap(), "reopenings")
}

/// Returns the frequencies of an output, by their segments.
fn tunings(segments: &[RecordingSegment], output: usize) -> Vec<(bool, f64)> {
    let own = |one: &RecordingSegment| {
        let TunedOutput { freq_hz, .. } = one.tuning().filter(|tuned| tuned.output == output)?;
        Some((matches!(one.gap, Some(GapCause::Reopened { .. })), freq_hz))
    };
    segments.iter().filter_map(own).collect()
}

/// Collects what is told, and returns whether a tuning to a frequency is among it.
fn has_tuning(
    told: &mut Vec<RecordingSegment>,
    segments: &Receiver<RecordingSegment>,
    hz: f64,
) -> bool {
    told.extend(segments.try_iter());
    told.iter().any(|one| one.tuning().is_some_and(|tuned| near(tuned.freq_hz, hz)))
}

#[test]
fn a_device_that_reboots_gets_the_last_frequency_gain_and_rate_again() {
    let (radio, args, [band, _]) = e320();
    let (device, stream) = again(&args, Some(BEGIN_HZ))().unwrap();
    let (source, SourceReport { segments, .. }) =
        RadioSource::<Complex32>::new(device, stream, None);
    let source = source.tunable(vec![(0, 0)]).with_rates(vec![(0, RxArgs::new(0))]);
    let (graph, plan) =
        into_nothing(source.reopening(again(&args, Some(BEGIN_HZ)), PATIENCE).unwrap());
    let running = graph.start(&plan).unwrap();
    wait_for(&running, "sink", 20 * SPP);
    assert!(band.is_near(1e6, BEGIN_HZ));
    send(&running, "freq_hz", 920e6);
    send(&running, "freq_hz", 930e6);
    send(&running, "gain_db", 33.0);
    // The samples of a busy radio are behind its clock.
    let mut told = Vec::new();
    until(&running, "samples of the new frequency", || has_tuning(&mut told, &segments, 930e6));
    send(&running, "rate_hz", 500e3);
    wait_for(&running, "sink", 50 * SPP);
    radio.faults().add("reboot silent_ms=200").unwrap();
    until(&running, "it is opened again", || reopenings(&running) >= 1);
    wait_for(&running, "sink", 50 * SPP);
    assert!(band.is_near(500e3, 930e6), "{:?}", band.0);
    let snapshot = end(running);
    let lost = balance(snapshot.block("tuner").unwrap());
    told.extend(segments.try_iter());
    let segments = told;
    let Some(GapCause::Reopened { samples }) = segments.last().unwrap().gap else {
        panic!("{segments:?}")
    };
    assert_eq!(lost, samples);
    // What the recording says is where the device was.
    let told = tunings(&segments, 0);
    let [(false, first), (false, second), (true, last)] = told[..] else { panic!("{told:?}") };
    assert!(near(first, 920e6) && near(second, 930e6) && last == second, "{told:?}");
}

/// Returns how to open both channels again with the settings of the start.
fn both_again(args: &DeviceArgs) -> OpenAgain {
    let args = args.clone();
    Box::new(move || {
        let mut set = DeviceSet::open([args.clone()])?;
        set.set_rate(1e6)?;
        for channel in [0, 1] {
            set.devices_mut()[0].tune(Rx, channel, TuneRequest::new(BEGIN_HZ))?;
        }
        let group = set.rx_group(&[(0, RxArgs::new(0)), (0, RxArgs::new(1))])?;
        Ok((set, group))
    })
}

#[test]
fn a_channel_whose_oscillator_was_moved_says_so_and_so_do_both_behind_a_reboot() {
    let (radio, args, bands) = e320();
    let (set, group) = both_again(&args)().unwrap();
    let (source, report) = RadioSource::<Complex32>::new(set, group, None);
    let source = source.without_waiting();
    let source = source.tunable(vec![(0, 0), (0, 1)]);
    let running = start_group(source.reopening(both_again(&args), PATIENCE).unwrap());
    wait_for(&running, "sink1", 20 * SPP);
    // The channels share an oscillator, and the DDC of the other one does not reach so far back.
    send(&running, "freq_hz0", 2.4e9);
    let mut segments = Vec::new();
    let told = &report.segments;
    until(&running, "samples of it", || has_tuning(&mut segments, told, 2.4e9));
    radio.faults().add("reboot silent_ms=200").unwrap();
    until(&running, "it is opened again", || reopenings(&running) >= 1);
    wait_for(&running, "sink1", 50 * SPP);
    assert!(bands.iter().all(|band| band.is_near(1e6, 2.4e9)), "{:?}", bands.map(|band| band.0));
    end(running);
    segments.extend(report.segments.try_iter());
    for output in 0..2 {
        let told = tunings(&segments, output);
        assert!(told.len() == 2 && told.iter().all(|(_, hz)| near(*hz, 2.4e9)), "{segments:?}");
    }
    assert!(report.ledgers.try_recv().unwrap().iter().all(|ledger| ledger.balance().is_ok()));
}

/// Returns whether a message is refused because the device is being opened.
fn is_away(running: &RunningGraph) -> bool {
    let messages = || running.snapshot().block("tuner").unwrap().messages.clone().unwrap();
    let before = messages();
    running.send("tuner", "gain_db", 10.0).unwrap();
    until(running, "a message is taken", || messages().taken > before.taken);
    messages().refusal.is_some_and(|why| why.contains("the radio is not open now"))
}

/// The samples that were lost because the device was away.
fn away(running: &RunningGraph) -> u64 {
    metric(running.snapshot().block("tuner").unwrap(), "reopened")
}

#[test]
fn a_pause_that_begins_while_the_device_is_opened_is_not_lost() {
    let (radio, args) = radio(patient());
    let (device, stream) = again(&args, None)().unwrap();
    let (source, SourceReport { segments, .. }) =
        RadioSource::<Complex32>::new(device, stream, None);
    let source = source.tunable(vec![(0, 0)]).reopening(again(&args, None), 6 * PATIENCE).unwrap();
    let (graph, plan) = into_nothing(source);
    let running = graph.start(&plan).unwrap();
    let gone = Instant::now();
    wait_for(&running, "sink", 20 * SPP);
    radio.faults().add("reboot silent_ms=1500").unwrap();
    until(&running, "it is away", || is_away(&running));
    send(&running, "stop", true);
    let stopped = gone.elapsed();
    let counted = away(&running);
    // The samples until the stop are lost, and no others.
    assert!(counted > 0 && counted as f64 <= stopped.as_secs_f64() * 1e6, "{counted} {stopped:?}");
    until(&running, "it is opened again", || reopenings(&running) >= 1);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(received(&running, "sink") + counted, {
        let stats = running.snapshot().block("tuner").unwrap().clone();
        assert_eq!(balance(&stats), counted);
        metric(&stats, "expected")
    });
    send(&running, "start", true);
    wait_for(&running, "sink", 20 * SPP);
    assert_eq!(away(&running), counted, "nothing is lost behind the stop");
    let snapshot = end(running);
    assert_eq!(balance(snapshot.block("tuner").unwrap()), counted);
    let segments: Vec<_> = segments.try_iter().collect();
    let [first, lost, restart] = segments[..] else { panic!("{segments:?}") };
    assert_eq!(lost.gap, Some(GapCause::Reopened { samples: counted }));
    assert!(restart.is_restart() && restart.gap.is_none(), "{restart:?}");
    let passed = restart.time_ticks.unwrap() - first.time_ticks.unwrap();
    assert!(passed > restart.first_sample + counted, "the radio's time went on: {passed}");
}

#[test]
fn a_device_that_went_away_in_a_pause_is_opened_by_the_start() {
    let (radio, args) = radio(patient());
    let args = DeviceArgs { silence_max: Duration::from_millis(300), ..args };
    let (device, stream) = again(&args, None)().unwrap();
    let (source, SourceReport { segments, .. }) =
        RadioSource::<Complex32>::new(device, stream, None);
    let source = source.tunable(vec![(0, 0)]).reopening(again(&args, None), 6 * PATIENCE).unwrap();
    let (graph, plan) = into_nothing(source);
    let running = graph.start(&plan).unwrap();
    wait_for(&running, "sink", 20 * SPP);
    send(&running, "stop", true);
    let stopped = Instant::now();
    radio.faults().add("reboot silent_ms=300").unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let (paused, started) = (stopped.elapsed(), Instant::now());
    send(&running, "start", true);
    until(&running, "it is opened again", || reopenings(&running) >= 1);
    wait_for(&running, "sink", 20 * SPP);
    let since = started.elapsed();
    let snapshot = end(running);
    let stats = snapshot.block("tuner").unwrap();
    assert_eq!(balance(stats), metric(stats, "reopened"));
    let lost_s = metric(stats, "reopened") as f64 / 1e6;
    assert!(lost_s > 0.0 && lost_s <= since.as_secs_f64(), "{lost_s} s of {since:?}, {paused:?}");
    let segments: Vec<_> = segments.try_iter().collect();
    assert!(segments.iter().any(RecordingSegment::is_restart), "{segments:?}");
}

#[test]
fn what_is_lost_right_before_a_stop_of_a_group_is_told_as_its_own() {
    let (radio, args) = radio(patient());
    radio.faults().add("lose to_host data p=0.3 seed=3").unwrap();
    let mut set = DeviceSet::open([args]).unwrap();
    set.set_rate(1e6).unwrap();
    let small = |channel| RxArgs::new(channel).with_samples_per_packet(SPP as u32);
    let group = set.rx_group(&[(0, small(0)), (0, small(1))]).unwrap();
    let (source, report) = RadioSource::<Complex32>::new(set, group, None);
    let source = source.without_waiting();
    let running = start_group(source.tunable(vec![(0, 0), (0, 1)]));
    for turn in 0..10 {
        if turn > 0 {
            send(&running, "start", true);
        }
        wait_for(&running, "sink1", 10 * SPP);
        send(&running, "stop", true);
    }
    end(running);
    let segments: Vec<_> = report.segments.try_iter().collect();
    let told: u64 = segments.iter().flat_map(RecordingSegment::losses).map(|loss| loss.1).sum();
    for ledger in report.ledgers.try_recv().unwrap() {
        assert_eq!((ledger.balance(), ledger.lost_total()), (Ok(()), told), "{segments:?}");
    }
}
