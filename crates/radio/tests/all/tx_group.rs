//! Tests of several transmit channels, of one device and of several, as one.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::group::finish_tx;
use crate::common::{Action, Meddler, PATIENCE, device, is_data, meddled, patient, radio};
use millstream_emulator::RadioConfig;
use millstream_radio::{
    Complex32, Device, DeviceSet, TxArgs, TxCause, TxError, TxEvent, TxMetadata, TxSent, TxStreamer,
};

fn acks(group: &mut TxStreamer) -> Vec<u64> {
    let mut acks = vec![None; group.members().len()];
    for _ in 0..10_000 {
        if let Some((member, event)) = group.poll_event().unwrap() {
            let TxEvent::BurstAck { time_ticks } = event else { panic!("{event:?}") };
            assert_eq!(acks[member].replace(time_ticks), None);
        }
        if acks.iter().all(Option::is_some) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    acks.into_iter().map(|ack| ack.expect("each member's burst is acknowledged")).collect()
}

#[test]
fn two_channels_end_at_the_same_tick() {
    let (radio, device) = device(1e6);
    let mut group = device.tx_group(&[TxArgs::new(0), TxArgs::new(1)]).unwrap();
    let samples = vec![Complex32::new(0.25, -0.25); 70_001];
    let slices = [&samples[..], &samples[..]];
    // Without a time, in pieces; then at a time.
    let first = slices.map(|slice| &slice[..33]);
    group.send_all(&first, TxMetadata::now(), PATIENCE).unwrap();
    let rest = slices.map(|slice| &slice[33..]);
    let sent = group.send_all(&rest, TxMetadata::now().ending(), PATIENCE).unwrap();
    assert_eq!(sent, TxSent { samples: 69_968, end_of_burst: true });
    let times = acks(&mut group);
    assert_eq!(times[0], times[1]);
    let at = device.time_ticks().unwrap() + 200_000;
    group.send_all(&slices, TxMetadata::at(at).ending(), PATIENCE).unwrap();
    // The radio transmits two ticks later.
    assert_eq!(acks(&mut group), [at + 70_000 + 2; 2]);
    for ledger in finish_tx(group) {
        assert_eq!((ledger.transmitted, ledger.lost_total()), (140_002, 0));
    }
    assert_eq!(radio.counters().tx_samples, 280_004);
}

#[test]
fn a_partial_send_takes_as_much_on_every_channel() {
    let (_radio, device) = device(1e6);
    let slow = TxArgs::new(1).with_samples_per_packet(100);
    let mut group = device.tx_group(&[TxArgs::new(0), slow]).unwrap();
    let samples = vec![[1i16, 2]; 4_000_000];
    let at = device.time_ticks().unwrap() + 1_000_000;
    let (slices, meta) = ([&samples[..], &samples[..]], TxMetadata::at(at).ending());
    let sent = group.send_all(&slices, meta, Duration::from_millis(2)).unwrap();
    assert!(sent.samples > 0 && sent.samples < samples.len() && !sent.end_of_burst);
    assert!(group.ledgers().all(|ledger| ledger.accepted == sent.samples as u64));
}

#[test]
fn members_stay_in_step_whatever_their_windows_do() {
    // Windows of less than one call's samples: each count query comes in the middle of one.
    let (radio, args) = radio(RadioConfig { tx_buffer_samples: 1 << 14, ..patient() });
    let mut device = Device::open(args).unwrap();
    device.set_rate(2e6).unwrap();
    let args = [TxArgs::new(0).with_samples_per_packet(20), TxArgs::new(1)];
    let mut group = device.tx_group(&args).unwrap();
    let samples = vec![[3i16, 4]; 200_000];
    let mut done = 0;
    while done < samples.len() {
        let end = (done + 70_001).min(samples.len());
        let mut meta = TxMetadata::now();
        meta.end_of_burst = end == samples.len();
        let slices = [&samples[done..end]; 2];
        let sent = group.send_all(&slices, meta, Duration::from_millis(1)).unwrap();
        done += sent.samples;
        assert!(group.ledgers().all(|ledger| ledger.accepted == done as u64));
    }
    // On a busy machine such buffers underflow, and later samples are late. Behind a late end of
    // the burst no acknowledgement comes, and what was transmitted is unknown.
    for ledger in finish_tx(group) {
        assert_eq!((ledger.accepted, ledger.balance()), (200_000, Ok(())));
        assert_eq!(ledger.lost_total(), ledger.lost(TxCause::Late));
        let known = ledger.transmitted + ledger.lost(TxCause::Late);
        assert_eq!(known + ledger.unknown.samples, 200_000);
    }
    let counters = radio.counters();
    assert_eq!(counters.tx_samples + counters.tx_late_samples, 400_000);
}

#[test]
fn finishing_ends_the_bursts_of_all_members_before_it_waits_for_one() {
    for by_drop in [false, true] {
        let (radio, device) = device(1e6);
        let mut group = device.tx_group(&[TxArgs::new(0), TxArgs::new(1)]).unwrap();
        let samples = vec![[3i16, 4]; 30_000];
        let at = device.time_ticks().unwrap() + 500_000;
        group.send_all(&[&samples, &samples], TxMetadata::at(at), PATIENCE).unwrap();
        if by_drop {
            drop(group);
        } else {
            assert!(finish_tx(group).iter().all(|ledger| ledger.transmitted == 30_000));
        }
        let counters = radio.counters();
        assert_eq!((counters.tx_underflows, counters.tx_late_packets), (0, 0));
        assert_eq!((counters.tx_samples, counters.tx_burst_acks), (60_002, 2));
    }
}

#[test]
fn four_channels_of_two_devices_start_at_one_pps_aligned_time() {
    let config = |serial: &str| RadioConfig { serial: serial.into(), ..patient() };
    let (radios, args): (Vec<_>, Vec<_>) =
        [config("ONE"), config("TWO")].into_iter().map(radio).unzip();
    let mut set = DeviceSet::open(args).unwrap();
    set.set_rate(4e5).unwrap();
    set.sync_at_pps(0, PATIENCE).unwrap();
    let channels = [0, 1].map(|device| [0, 1].map(|channel| (device, TxArgs::new(channel))));
    let mut group = set.tx_group(channels.as_flattened()).unwrap();
    let samples = vec![[7i16, 8]; 50_000];
    let at = set.devices()[0].time_ticks().unwrap() + 200_000;
    let slices = [&samples[..]; 4];
    group.send_all(&slices, TxMetadata::at(at).ending(), PATIENCE).unwrap();
    assert_eq!(acks(&mut group), [at + 49_999 + 2; 4]);
    assert!(finish_tx(group).iter().all(|ledger| ledger.transmitted == 50_000));
    assert!(radios.iter().all(|radio| radio.counters().tx_samples == 100_000));
}

#[test]
fn a_group_whose_members_are_out_of_step_sends_nothing_more() {
    // The number of the next data packet, once the test counts them; the second one fails.
    let packets = Arc::new(AtomicU32::new(u32::MAX));
    let count = Arc::clone(&packets);
    let meddler = Meddler::new(|_| Action::Pass).sent(move |packet| {
        let counts = count.load(Ordering::Relaxed) != u32::MAX && is_data(packet);
        let second = counts && count.fetch_add(1, Ordering::Relaxed) == 1;
        if second { Action::Fail(ErrorKind::NetworkUnreachable) } else { Action::Pass }
    });
    let (_radio, device) = meddled(meddler, 1e6);
    let mut group = device.tx_group(&[TxArgs::new(0), TxArgs::new(1)]).unwrap();
    let one = [[1i16, 2]; 100];
    let at = TxMetadata::at(device.time_ticks().unwrap() + 500_000).ending();
    packets.store(0, Ordering::Relaxed);
    let error = group.send_all(&[&one, &one], at, PATIENCE).unwrap_err();
    assert!(matches!(error, TxError::Radio(_)), "{error}");
    let error = group.send_all(&[&one, &one], at, PATIENCE).unwrap_err();
    assert!(matches!(error, TxError::BadGroup { .. }), "{error}");
    assert!(finish_tx(group).iter().all(|ledger| ledger.balance().is_ok()));
}

#[test]
fn what_cannot_be_sent_together_is_refused() {
    let (_radio, device) = device(1e6);
    let text = |error: TxError| error.to_string();
    assert!(text(device.tx_group(&[]).unwrap_err()).contains("no channel"));
    let mut group = device.tx_group(&[TxArgs::new(0), TxArgs::new(1)]).unwrap();
    let one = [[0i16; 2]; 3];
    let error = group.send_all(&[&one], TxMetadata::now(), PATIENCE).unwrap_err();
    assert!(text(error).contains("one slice of samples for each member"));
    let error = group.send_all(&[&one, &one[1..]], TxMetadata::now(), PATIENCE).unwrap_err();
    assert!(text(error).contains("different lengths"));
}
