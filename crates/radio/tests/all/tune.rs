//! Tests of the settings of the front end.

use crate::common::group::finish_rx;
use crate::common::{patient, radio};
use millstream_radio::graph::StreamDirection::{Rx, Tx};
use millstream_radio::{Device, RadioError, RxArgs, TuneRequest};

/// The largest step of an oscillator, Hz.
const STEP_HZ: f64 = 10.0;

#[track_caller]
fn error(outcome: Result<f64, RadioError>) -> String {
    outcome.map(drop).unwrap_err().to_string()
}

#[test]
fn a_channel_is_tuned_and_what_it_does_not_have_is_refused() {
    let (_radio, args) = radio(patient());
    let mut device = Device::open(args).unwrap();
    device.set_rate(4e6).unwrap();
    // Without a DUC it stays that of the radio.
    assert_eq!(device.set_channel_rate(Tx, 1, 1e6).unwrap().samples_hz(), 4e6);
    assert_eq!(device.tuned(Rx, 0), None);
    let result = device.tune_rx(0, TuneRequest::new(915e6)).unwrap();
    assert!((result.freq_hz - 915e6).abs() < STEP_HZ && result.dsp_hz == 0.0, "{result:?}");
    assert_eq!(device.tuned(Rx, 0), Some(result));
    let result = device.tune_tx(1, TuneRequest::new(2.45e9)).unwrap();
    assert!((result.rf_hz - 2.45e9).abs() < STEP_HZ, "{result:?}");
    assert_eq!((device.tuned(Rx, 1), device.tuned(Tx, 0)), (None, None));

    assert_eq!(device.set_gain(Rx, 0, 75.6).unwrap(), 75.6);
    device.set_automatic_gain(0).unwrap();
    device.set_bandwidth(Rx, 0, 5e6).unwrap();
    device.set_antenna(Rx, 1, "TX/RX").unwrap();

    let tune = |device: &mut Device, request| device.tune_rx(0, request).map(|r| r.freq_hz);
    let text = error(tune(&mut device, TuneRequest::new(10e6)));
    assert_eq!(text, "frequency 10000000 Hz is not possible: it must be 70000000 to 6000000000 Hz");
    // Without a DDC, nothing shifts the spectrum back.
    let text = error(tune(&mut device, TuneRequest::new(915e6).with_lo_offset(1e6)));
    assert!(text.starts_with("LO offset 1000000 Hz is not possible: it must be "), "{text}");
    let text = error(tune(&mut device, TuneRequest::new(f64::NAN)));
    assert!(text.starts_with("frequency NaN Hz is not possible"), "{text}");
    let text = error(device.set_antenna(Tx, 0, "RX2").map(|()| 0.0));
    assert_eq!(text, "there is no antenna \"RX2\"; the channel has TX/RX");
    for (direction, gain_db, range) in
        [(Rx, 100.0, "0 to 76 dB"), (Tx, -3.0, "0 to 89.75 dB"), (Rx, f64::NAN, "0 to 76 dB")]
    {
        let text = error(device.set_gain(direction, 0, gain_db));
        assert_eq!(text, format!("gain {gain_db} dB is not possible: it must be {range}"));
    }
    let text = error(device.set_gain(Rx, 2, 1.0));
    assert_eq!(text, "there is no receive channel 2: the device has 2 channels, counted from 0");
}

#[test]
fn both_channels_stream_after_their_chains_are_powered() {
    let (_radio, args) = radio(patient());
    let device = Device::open(args).unwrap();
    let mut group = device.rx_group(&[RxArgs::new(0), RxArgs::new(1)]).unwrap();
    group.start_finite(1000, None).unwrap();
    group.stop().unwrap();
    assert!(finish_rx(group).iter().all(|ledger| ledger.balance().is_ok()));
}
