//! Tests of a device whose streams share a port of this host.

use crate::common::group::{finish_rx, receive_group};
use crate::common::{Action, Meddler, PATIENCE, SPP, patient, radio, receive};
use millstream_emulator::{RadioConfig, RunningRadio};
use millstream_radio::{Cause, Device, DeviceArgs, RxArgs, TxArgs, TxMetadata};

fn opened(meddler: Option<Meddler>, rate_hz: f64) -> (RunningRadio, Device) {
    let (radio, args) = radio(RadioConfig { rx_buffer_samples: 1 << 24, ..patient() });
    let open_port = meddler.map(Meddler::open_port);
    let mut device = Device::open(DeviceArgs { one_port: true, open_port, ..args }).unwrap();
    assert_eq!(device.set_rate(rate_hz).unwrap(), rate_hz);
    (radio, device)
}

fn of(channel: usize) -> RxArgs {
    RxArgs::new(channel).with_samples_per_packet(SPP as u32)
}

#[test]
fn aligned_channels_and_a_transmission_share_a_port() {
    let (radio, device) = opened(None, 2e6);
    let mut tx = device.tx_stream(TxArgs::new(0)).unwrap();
    let mut group = device.rx_group(&[of(0), of(1)]).unwrap();
    assert!(group.members().iter().all(|member| member.local() == tx.members()[0].local()));
    let at = device.time_ticks().unwrap() + 400_000;
    let burst = vec![[7i16, 7]; 100_001];
    let sent = tx.send(&burst, TxMetadata::at(at).ending(), PATIENCE).unwrap();
    assert_eq!(sent.samples, burst.len());
    group.start_finite(300_000, Some(at)).unwrap();
    let brought = receive_group(&mut group, u64::MAX);
    assert!(brought.events.is_empty() && brought.samples == 300_000, "{brought:?}");
    let ledger = tx.finish();
    assert_eq!((ledger.transmitted, ledger.lost_total()), (100_001, 0));
    assert!(finish_rx(group).iter().all(|ledger| ledger.delivered == 300_000));
    assert_eq!(device.strays(), 0);
    drop(device);
    assert_eq!(radio.stop().rx_overruns, 0);
}

#[test]
fn threads_receive_from_a_port_side_by_side_and_one_after_the_other() {
    let (_radio, device) = opened(None, 2e6);
    for turn in 1..=2 {
        let streams = [0, 1].map(|channel| device.rx_stream(of(channel)).unwrap());
        std::thread::scope(|scope| {
            for mut stream in streams {
                scope.spawn(move || {
                    stream.start_finite(400_000, None).unwrap();
                    let brought = receive(&mut stream, u64::MAX);
                    assert!(brought.ended && brought.events.is_empty(), "{turn}: {brought:?}");
                    let ledger = stream.finish();
                    assert_eq!((ledger.delivered, ledger.lost_total()), (400_000, 0));
                });
            }
        });
    }
}

#[test]
fn a_loss_is_that_of_one_stream() {
    let mut first = None;
    let meddler = Meddler::data(move |number, packet| {
        let epid = u16::from_le_bytes([packet[0], packet[1]]);
        let lost = *first.get_or_insert(epid) == epid && number % 16 == 3;
        if lost { Action::Drop } else { Action::Pass }
    });
    let (_radio, device) = opened(Some(meddler), 2e6);
    let mut streams = [0, 1].map(|channel| device.rx_stream(of(channel)).unwrap());
    // The first packet is one of channel 0.
    streams[0].start_finite(200 * SPP, None).unwrap();
    let lossy = receive(&mut streams[0], 10 * SPP);
    streams[1].start_finite(200 * SPP, None).unwrap();
    let whole = receive(&mut streams[1], u64::MAX);
    let rest = receive(&mut streams[0], u64::MAX);
    assert_eq!((whole.samples, whole.missing), (200 * SPP, 0), "{whole:?}");
    assert_eq!(lossy.samples + rest.samples + lossy.missing + rest.missing, 200 * SPP);
    let [lossy, whole] = streams.map(|stream| stream.finish());
    assert!(lossy.lost(Cause::NetworkLoss) > 0 && lossy.balance() == Ok(()), "{lossy}");
    assert_eq!((whole.lost_total(), whole.balance()), (0, Ok(())));
}
