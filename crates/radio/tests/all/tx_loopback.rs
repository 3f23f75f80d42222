//! Tests that sent samples come back by the loopback antenna: the same bits at the same times.

use std::time::Duration;

use crate::common::burst::{sample, send};
use crate::common::{PATIENCE, patient, radio_with};
use millstream_emulator::RadioConfig;
use millstream_radio::{Device, RxArgs, RxEvent, TxArgs};

const RATE_HZ: f64 = 1e6;
const DELAY: u64 = 77;

#[test]
fn every_sample_comes_back_at_its_time_whatever_the_buffers() {
    let antenna = format!("loopback:0,delay={DELAY}");
    let config = RadioConfig { rx_antennas: vec![antenna], ..patient() };
    let (_radio, args) = radio_with(config);
    let mut device = Device::open(args).unwrap();
    device.set_rate(RATE_HZ).unwrap();
    let mut rx = device.rx_stream(RxArgs::new(0)).unwrap();
    let mut tx = device.tx_stream(TxArgs::new(0).with_samples_per_packet(501)).unwrap();
    let samples: Vec<_> = (0..20_023).map(sample).collect();
    for sizes in [&[usize::MAX][..], &[1, 2, 3], &[501], &[4999, 7], &[1000]] {
        let at = device.time_ticks().unwrap() + 300_000;
        rx.start_finite(30_000, Some(at)).unwrap();
        send(&mut tx, at, &samples, sizes, Duration::from_millis(1), |_| ());
        let mut heard = vec![[0; 2]; 30_000];
        let mut count = 0;
        while count < heard.len() {
            let meta = rx.recv(&mut heard[count..], PATIENCE).unwrap();
            assert_eq!((meta.event, meta.time_ticks), (RxEvent::None, Some(at + count as u64)));
            count += meta.samples;
        }
        let (before, rest) = heard.split_at(DELAY as usize);
        assert!(before.iter().all(|sample| *sample == [0; 2]), "{sizes:?}");
        assert!(rest[..samples.len()] == samples, "{sizes:?}");
        assert!(rest[samples.len()..].iter().all(|sample| *sample == [0; 2]), "{sizes:?}");
    }
    let ledger = tx.finish();
    assert_eq!((ledger.transmitted, ledger.lost_total()), (5 * 20_023, 0));
}
