//! Settings, readings and finding.

use std::time::{Duration, Instant};

use millstream_client::{
    ClientArgs, DeviceTime, Radio, RxOptions, StreamDirection, StreamStart, find,
};

use crate::common::{PATIENCE, radio};

use StreamDirection::{Rx, Tx};

fn open() -> Radio {
    radio("", 1e6)
}

#[test]
fn settings_return_what_was_set() {
    let radio = open();
    assert_eq!((radio.product(), radio.serial(), radio.is_emulated()), ("e320", "7F000001", true));
    assert_eq!((radio.channels(Rx), radio.channels(Tx)), (2, 2));
    let tuned = radio.rx(0).set_frequency(1e9, Some(2e6)).unwrap();
    assert!((tuned.freq_hz - 1e9).abs() < 1.0 && (tuned.rf_hz - 1.002e9).abs() < 10.0, "{tuned:?}");
    assert_eq!(tuned.freq_hz, tuned.rf_hz + tuned.bb_hz);
    assert_eq!(radio.rx(0).frequency().unwrap(), tuned);
    let tuned = radio.rx(0).set_rf(2e9).unwrap();
    assert!((tuned.freq_hz - 1.998e9).abs() < 10.0, "{tuned:?}");
    let tuned = radio.rx(0).set_bb(1e6).unwrap();
    assert!((tuned.freq_hz - 2.001e9).abs() < 10.0, "{tuned:?}");
    let tuned = radio.rx(0).set_frequency(1e9, Some(0.0)).unwrap();
    assert!(tuned.bb_hz.abs() < 10.0, "{tuned:?}");
    assert_eq!(radio.rx(0).set_gain(75.6).unwrap(), 75.0, "the step is 1 dB");
    radio.rx(0).set_automatic_gain(true).unwrap();
    assert!(radio.rx(0).automatic_gain().unwrap());
    radio.rx(0).set_automatic_gain(false).unwrap();
    assert_eq!(radio.rx(0).gain().unwrap(), 75.0);
    assert_eq!(radio.rx(1).antenna().unwrap(), "RX2");
    radio.rx(1).set_antenna("TX/RX").unwrap();
    assert_eq!(radio.rx(1).antenna().unwrap(), "TX/RX");
    assert_eq!(radio.rx(0).set_bandwidth(5e6).unwrap(), 5e6);
    assert_eq!(radio.rx(0).set_bandwidth(0.0).unwrap(), 1e6);
    assert_eq!(radio.clock_sources().unwrap(), ["internal", "external"]);
    radio.set_clock_source("external").unwrap();
    assert_eq!(radio.clock_source().unwrap(), "external");
    let [five, twenty] = [5, 20].map(|seconds| DeviceTime::from_ns(seconds * 1_000_000_000));
    radio.set_time(five).unwrap();
    assert!((five..twenty).contains(&radio.now().unwrap()));
}

#[test]
fn wrong_settings_say_what_is_possible() {
    let radio = open();
    for (error, part) in [
        (radio.rx(0).set_antenna("RX9").unwrap_err(), "the channel has RX2"),
        (radio.rx(0).set_frequency(60e9, None).map(drop).unwrap_err(), "it must be"),
        (radio.rx(0).set_gain(99.0).map(drop).unwrap_err(), "it must be 0 to 76 dB"),
        (radio.rx(0).set_gain(f64::NAN).map(drop).unwrap_err(), "it must be 0 to 76 dB"),
        (radio.rx(0).set_rate(100e6).map(drop).unwrap_err(), "is 61440000 Hz"),
        (radio.tx(7).set_rate(1e6).map(drop).unwrap_err(), "no transmit channel 7"),
        (radio.tx(0).set_automatic_gain(true).unwrap_err(), "receive channel only"),
        (radio.rx(0).sensor("x").map(drop).unwrap_err(), "there are rssi"),
        (radio.sensor("x").map(drop).unwrap_err(), "there are ref_locked"),
        (radio.add_fault("x").unwrap_err(), "`x` is no fault; give one of lose"),
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn channels_keep_their_rates_as_far_as_the_clock_allows() {
    let radio = open();
    assert_eq!(radio.tick_rate().unwrap(), 16e6);
    assert_eq!(radio.tx(0).set_rate(2e6).unwrap(), 2e6);
    assert_eq!(radio.rx(0).rate().unwrap(), 1e6);
    let stream = radio.rx(0).stream(RxOptions::default()).unwrap();
    stream.start(StreamStart::now()).unwrap();
    // The clock stays while another stream runs, and a rate that it does not allow is refused.
    let error = radio.tx(0).set_rate(1.92e6).unwrap_err().to_string();
    assert!(error.contains("the nearest at its clock of 16000000 Hz is 2000000 Hz"), "{error}");
    assert_eq!((radio.tx(0).rate().unwrap(), radio.tick_rate().unwrap()), (2e6, 16e6));
    let taken = radio.tx(0).set_rate(1.99e6).unwrap();
    assert_eq!((taken, radio.tick_rate().unwrap()), (2e6, 16e6));
    stream.stop().unwrap();
    assert_eq!(radio.tx(0).set_rate(1.92e6).unwrap(), 1.92e6);
    assert_eq!(radio.tick_rate().unwrap(), 30.72e6);
    // The idle stream was opened anew at the nearest rate of the new clock.
    assert_eq!(stream.rate_hz(), radio.rx(0).rate().unwrap());
    stream.start(StreamStart::now()).unwrap();
    let mut samples = vec![[0_i16; 2]; 100];
    assert_eq!(stream.read(&mut [&mut samples], PATIENCE).unwrap().samples, 100);
}

#[test]
fn a_master_clock_that_is_set_stays() {
    let radio = open();
    let (low, high) = radio.tick_rate_range().unwrap();
    assert!(low < 1e6 && high > 60e6, "{low} {high}");
    let stream = radio.rx(0).stream(RxOptions::default()).unwrap();
    stream.start(StreamStart::now()).unwrap();
    assert_eq!(radio.set_tick_rate(30.72e6).unwrap(), 30.72e6);
    assert_eq!((radio.tick_rate().unwrap(), stream.tick_rate_hz()), (30.72e6, 30.72e6));
    // The stream goes on, at the nearest fraction of the clock.
    let mut samples = vec![[0_i16; 2]; 100];
    assert_eq!(stream.read(&mut [&mut samples], PATIENCE).unwrap().samples, 100);
    let nearest = stream.rate_hz();
    assert!((nearest - 1e6).abs() < 20e3 && nearest == radio.rx(0).rate().unwrap(), "{nearest}");
    assert_eq!(radio.rx(0).set_rate(1.92e6).unwrap(), 1.92e6);
    assert_eq!(radio.tick_rate().unwrap(), 30.72e6);
    for wrong in [0.0, -1.0, f64::NAN] {
        assert!(radio.set_tick_rate(wrong).is_err());
    }
    assert!(stream.is_active());
}

#[test]
fn a_search_is_short() {
    use millstream_emulator::{Radio, RadioConfig};
    let config =
        RadioConfig { discovery_port: 0, rpc_port: 0, chdr_port: 0, ..RadioConfig::default() };
    let running = Radio::start(config).unwrap();
    let address = running.discovery_addr();
    let port = address.port();
    let best = |text: &str, limit_ms: u64| {
        let args = text.parse::<ClientArgs>().unwrap();
        let limit = Duration::from_millis(limit_ms);
        let mut best = Duration::MAX;
        let search = || {
            let begin = Instant::now();
            let found = find(&args).unwrap();
            assert!(found.iter().any(|one| one.addr == Some(*address.ip())), "{text}: {found:?}");
            begin.elapsed()
        };
        // The best of many: another program may have the processor at any one.
        for _ in 0..60 {
            best = best.min(search());
            if best <= limit {
                break;
            }
        }
        println!("{text}: {best:?}");
        assert!(best <= limit, "{text}: {best:?}");
    };
    best(&format!("addr={},discovery_port={port}", address.ip()), 5);
    best(&format!("discovery_port={port}"), 150);
}

#[test]
fn readings_have_values_and_units() {
    let radio = open();
    let names = radio.rx(0).sensors().unwrap();
    for name in ["rssi", "lo_locked", "ledger_expected", "ledger_lost_network_loss"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    let rssi = radio.rx(0).sensor("rssi").unwrap();
    assert!(rssi.value.parse::<f64>().unwrap() < 0.0);
    assert_eq!((&*rssi.unit, &*rssi.kind), ("dB", "REALNUM"));
    let lost = radio.tx(1).sensor("ledger_lost").unwrap();
    assert_eq!((&*lost.value, &*lost.unit, &*lost.kind), ("0", "samples", "INTEGER"));
}

#[test]
fn an_emulated_radio_is_found_only_by_its_key() {
    let args = |text: &str| text.parse::<ClientArgs>().unwrap();
    let found = find(&args("radio=emulated")).unwrap();
    assert_eq!((found.len(), found[0].addr, &*found[0].product), (1, None, "e320"));
    let running = open();
    let elsewhere = find(&args("serial=7F000001")).unwrap();
    assert!(elsewhere.iter().all(|one| one.addr != Some(running.address())), "{elsewhere:?}");
    let error = find(&args("addr=nowhere")).unwrap_err().to_string();
    assert!(error.contains("give an IPv4 address"), "{error}");
}
