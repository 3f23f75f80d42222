//! What programs of seify see of a radio.

use millstream_client::StatusKind;
use millstream_seify::MillstreamDevice;
use num_complex::Complex32;
use seify::{Args, Direction, Error, FrequencyControl, RxDevice, RxStreamer, TxDevice, TxStreamer};

/// Far longer than any step takes, so that a failing test ends.
const PATIENCE_US: i64 = 20_000_000;

/// An emulated radio of which five packets are lost.
const LOSSES: &str = "radio=emulated,rx_buffer_samples=67108864,\
                      fault='lose to_host data skip=20 every=50 count=5'";

/// The first packet that is lost: the last of 50 behind the first 20.
const FIRST: u64 = 20 + 49;

fn open(args: &str) -> MillstreamDevice {
    let device = MillstreamDevice::open(args).unwrap();
    for channel in 0..2 {
        device.radio().rx(channel).set_rate(1e6).unwrap();
        device.radio().tx(channel).set_rate(1e6).unwrap();
    }
    device
}

/// Oscillators and mixers have steps.
fn assert_near(is: Result<f64, Error>, wanted: f64) {
    let is = is.unwrap();
    assert!((is - wanted).abs() < 10.0, "{is} in place of {wanted}");
}

#[test]
fn every_control_is_set_and_read() {
    let device = open("radio=emulated").into_seify().into_dyn();
    for channel in [0, 1] {
        let rx = device.rx(channel).unwrap();
        rx.frequency().set(433.9e6).unwrap();
        assert_near(rx.frequency().value(), 433.9e6);
        assert!(rx.frequency().range().unwrap().contains(1e9));
        assert_eq!(rx.frequency().components().unwrap(), ["RF", "BB"]);
        rx.frequency().component("BB").set(100e3).unwrap();
        assert_near(rx.frequency().component("BB").value(), 100e3);
        let rf = rx.frequency().component("RF").value().unwrap();
        assert_near(rx.frequency().value(), rf + 100e3);
        rx.gain().set(40.0).unwrap();
        assert_eq!(rx.gain().element("PGA").value().unwrap(), Some(40.0));
        assert!(rx.gain().set(1000.0).is_err() && rx.gain().element("LNA").set(1.0).is_err());
        rx.agc().enable().unwrap();
        assert!(rx.agc().enabled().unwrap() && rx.gain().value().unwrap().is_none());
        rx.agc().disable().unwrap();
        assert_eq!(rx.gain().value().unwrap(), Some(40.0));
        rx.sample_rate().set(2e6).unwrap();
        assert_eq!(rx.sample_rate().value().unwrap(), 2e6);
        rx.bandwidth().set(1.5e6).unwrap();
        assert_eq!(rx.bandwidth().value().unwrap(), 1.5e6);
        for port in rx.antenna().ports().unwrap() {
            rx.antenna().select(&port).unwrap();
            assert_eq!(rx.antenna().selected().unwrap(), port);
        }
    }
    assert!(device.full_duplex().unwrap() && device.tx(0).unwrap().agc().enable().is_err());
    assert_eq!(device.num_channels(Direction::Tx).unwrap(), 2);
    assert_eq!(device.info().unwrap().get::<String>("product").unwrap(), "e320");
    assert!(device.rx(2).is_err());
}

#[test]
fn an_offset_moves_the_oscillator_only() {
    let device = open("radio=emulated");
    let args: Args = "OFFSET=2e6".parse().unwrap();
    device.set_frequency(Direction::Rx, 0, 1e9, args).unwrap();
    assert_near(device.frequency(Direction::Rx, 0), 1e9);
    assert_near(device.component_frequency(Direction::Rx, 0, "RF"), 1.002e9);
}

/// Reads until the radio's ledger says that all losses have struck; returns the samples.
fn read_all(device: &MillstreamDevice, channels: &[usize]) -> (u64, u64) {
    let mut stream = device.rx_streamer(channels, Args::new()).unwrap();
    let mut memory = vec![vec![Complex32::default(); 3000]; channels.len()];
    let empty = stream.read(&mut lend(&mut memory), 0);
    assert!(matches!(empty, Err(Error::StreamInactive)), "{empty:?}");
    stream.activate().unwrap();
    let (mut count, mut overruns) = (0, 0);
    while count < 1_000_000 {
        match stream.read(&mut lend(&mut memory), PATIENCE_US) {
            Ok(samples) => {
                let last = stream.last();
                assert_eq!(last.samples, samples);
                count += samples as u64;
            }
            Err(Error::Overrun) => overruns += 1,
            Err(error) => panic!("{error}"),
        }
    }
    stream.deactivate().unwrap();
    (count, overruns)
}

fn lend(memory: &mut [Vec<Complex32>]) -> Vec<&mut [Complex32]> {
    memory.iter_mut().map(|one| &mut one[..]).collect()
}

#[test]
fn every_gap_is_an_overrun_with_its_place_and_count() {
    for channels in [&[0][..], &[1]] {
        let device = open(LOSSES);
        let (_, overruns) = read_all(&device, channels);
        let gaps = device.take_gaps();
        assert_eq!((gaps.len() as u64, overruns), (5, 5));
        let lost = device.radio().rx(channels[0]).ledger().map(|ledger| ledger.lost_total());
        let packet = gaps[0].gap.samples;
        for (number, gap) in gaps.iter().enumerate() {
            assert_eq!((gap.channel, gap.gap.samples), (channels[0], packet));
            assert_eq!(gap.place, (FIRST + 50 * number as u64) * packet);
        }
        // The stream has ended, and its ledger with it.
        assert!(lost.is_none_or(|lost| lost == 5 * packet));
        assert!(device.take_gaps().is_empty());
    }
}

#[test]
fn zeros_keep_the_count_of_samples() {
    let device = open(&format!("{LOSSES},gaps=zeros"));
    let (_, overruns) = read_all(&device, &[0]);
    let gaps = device.take_gaps();
    assert_eq!((gaps.len(), overruns), (5, 0));
    assert_eq!(gaps[4].place, (FIRST + 200) * gaps[0].gap.samples);
}

#[test]
fn a_burst_leaves_at_its_time() {
    let device = open("radio=emulated,antenna='loopback:0;delay=100',rx_buffer_samples=67108864");
    let mut input = device.rx_streamer(&[0], Args::new()).unwrap();
    let mut output = device.tx_streamer(&[0], Args::new()).unwrap();
    let sent: Vec<_> = (0..5000).map(|n| Complex32::new(n as f32 / 8192.0, -0.25)).collect();
    input.activate().unwrap();
    output.activate_at(Some(300_000_000)).unwrap();
    output.write_all(&[&sent], None, true, PATIENCE_US).unwrap();
    let mut got = vec![Complex32::default(); 1_000_000];
    let mut count = 0;
    while count < got.len() {
        count += input.read(&mut [&mut got[count..]], PATIENCE_US).unwrap();
    }
    let begin = got.iter().position(|sample| sample.im != 0.0).unwrap();
    let end = got.iter().rposition(|sample| sample.im != 0.0).unwrap() + 1;
    assert_eq!(end - begin, sent.len());
    let same = |(one, other): (&Complex32, &Complex32)| (one - other).norm() < 1e-4;
    assert!(got[begin..end].iter().zip(&sent).all(same));
    let status = output.stream().take_status(std::time::Duration::from_secs(20)).unwrap();
    assert_eq!(status.kind, StatusKind::BurstEnd);
    assert!(matches!(output.deactivate_at(Some(1)), Err(Error::Unsupported { .. })));
    output.deactivate().unwrap();
    assert!(matches!(output.write(&[&sent], None, false, 0), Err(Error::StreamInactive)));
}

#[test]
fn wrong_keys_are_refused_with_a_reason() {
    for (args, reason) in [
        ("adr=1.2.3.4", "the driver does not know this key"),
        ("radio=real", "give emulated, or addr=IPV4"),
        ("radio=emulated,gaps=some", "some is not one of event, zeros, drop"),
    ] {
        let error = MillstreamDevice::open(args).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}
