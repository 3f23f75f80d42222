//! Tests against further devices of the family: an N320 with two links, and blocks that are no
//! radio, at each width of CHDR words.

use std::net::Ipv4Addr;

use crate::common::group::{finish_rx, finish_tx};
use crate::common::{PATIENCE, patient, radio_with};
use millstream_emulator::scene::Scene;
use millstream_emulator::{DeviceKind, RadioConfig, RunningRadio, SecondLink};
use millstream_radio::graph::StreamDirection::Rx;
use millstream_radio::noc::{BlockReceiver, GeneratorSignal, NullSrcSink, Replay, SigGen};
use millstream_radio::{
    Complex32, Device, DeviceArgs, RxArgs, RxEvent, TuneRequest, TxArgs, TxMetadata,
};
use millstream_wire::Width;

const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 32, 2);

/// Returns an N320 on two addresses, a hundred times slower than a real one.
fn n320() -> (RunningRadio, DeviceArgs) {
    let second_link = Some(SecondLink { addr: SECOND, link: "udp".to_owned() });
    let (radio, mut args) = radio_with(RadioConfig {
        device: DeviceKind::N320,
        second_link,
        master_clock_rate_hz: 200e6,
        time_scale: 0.01,
        ..patient()
    });
    args.further_addrs.push(SECOND);
    (radio, args)
}

#[test]
fn channels_are_spread_over_two_links_in_both_directions() {
    let (_radio, args) = n320();
    let mut device = Device::open(args).unwrap();
    device.set_rate(20e6).unwrap();
    let [first, second] = device.links() else { panic!("two links") };
    assert_eq!((first.address.ip(), second.address.ip()), (&Ipv4Addr::LOCALHOST, &SECOND));
    assert_ne!(first.entry_port, second.entry_port);

    let mut group = device.rx_group(&[RxArgs::new(0), RxArgs::new(1)]).unwrap();
    let texts: Vec<_> = group.members().iter().map(|stream| format!("{stream:?}")).collect();
    assert!(texts[0].contains("127.0.0.1:") && texts[1].contains("127.0.32.2:"), "{texts:?}");
    group.start_finite(20_000, None).unwrap();
    let mut blocks = vec![vec![Complex32::default(); 4096]; 2];
    let mut samples = 0;
    while group.is_running() {
        let mut outs: Vec<&mut [Complex32]> = blocks.iter_mut().map(Vec::as_mut_slice).collect();
        let meta = group.recv_all(&mut outs, PATIENCE).unwrap();
        assert_eq!(meta.event, RxEvent::None);
        samples += meta.samples;
    }
    assert_eq!(samples, 20_000);
    assert!(finish_rx(group).iter().all(|ledger| ledger.delivered == 20_000));

    let mut group = device.tx_group(&[TxArgs::new(0), TxArgs::new(1)]).unwrap();
    let texts: Vec<_> = group.members().iter().map(|stream| format!("{stream:?}")).collect();
    assert!(texts[0].contains("127.0.0.1:") && texts[1].contains("127.0.32.2:"), "{texts:?}");
    let tone = vec![Complex32::new(0.5, 0.0); 10_000];
    let both = [&tone[..], &tone[..]];
    // The device's time is slow.
    let soon = device.time_ticks().unwrap() + 400_000;
    let sent = group.send_all(&both, TxMetadata::at(soon).ending(), PATIENCE).unwrap();
    assert_eq!((sent.samples, sent.end_of_burst), (10_000, true));
    assert!(finish_tx(group).iter().all(|ledger| ledger.transmitted == 10_000));

    // A stream alone takes the first link.
    let stream = device.rx_stream(RxArgs::new(1)).unwrap();
    assert!(format!("{stream:?}").contains("127.0.0.1:"), "{stream:?}");
}

#[test]
fn many_bursts_over_two_radio_blocks_are_all_reported() {
    let (_radio, args) = n320();
    let mut device = Device::open(args).unwrap();
    device.set_rate(20e6).unwrap();
    let mut group = device.tx_group(&[TxArgs::new(0), TxArgs::new(1)]).unwrap();
    let tone = vec![Complex32::new(0.5, 0.0); 500];
    // Each block counts its own messages: more bursts than there are numbers.
    let (bursts, soon) = (70, device.time_ticks().unwrap() + 400_000);
    for burst in 0..bursts {
        let at = TxMetadata::at(soon + burst * 6_000).ending();
        let sent = group.send_all(&[&tone, &tone], at, PATIENCE).unwrap();
        assert_eq!((sent.samples, sent.end_of_burst), (500, true));
    }
    group.end(Some(PATIENCE));
    for ledger in group.ledgers() {
        assert_eq!((ledger.transmitted, ledger.unknown.samples), (500 * bursts, 0), "{ledger:?}");
    }
}

#[test]
fn a_second_address_must_be_one_of_the_device() {
    let (_radio, mut args) = n320();
    args.further_addrs = vec![Ipv4Addr::new(127, 0, 32, 3)];
    let error = Device::open(args).unwrap_err().to_string();
    let known = "it has no link with the address 127.0.32.3; the addresses of its links are \
                 127.0.0.1, 127.0.32.2";
    assert!(error.ends_with(known), "{error}");
}

#[test]
fn the_host_sets_the_whole_front_end_of_an_n320() {
    let (_radio, args) = n320();
    let mut device = Device::open(args).unwrap();
    device.set_rate(2e6).unwrap();
    // The scene has a carrier at 1 GHz.
    device.tune_rx(0, TuneRequest::new(999.5e6)).unwrap();
    device.set_gain(Rx, 0, 30.0).unwrap();
    let lock = device.channel_sensor(Rx, 0, "lo_locked").unwrap();
    assert_eq!(lock.as_bool(), Some(true));
    // Without an antenna, or in the low band, it would hear nothing.
    for antenna in ["RX2", "TX/RX"] {
        device.set_antenna(Rx, 0, antenna).unwrap();
        let mut stream = device.rx_stream(RxArgs::new(0)).unwrap();
        stream.start_finite(6_000, None).unwrap();
        let mut samples = Vec::new();
        let mut block = vec![Complex32::default(); 4096];
        while stream.is_running() {
            let meta = stream.recv(&mut block, PATIENCE).unwrap();
            samples.extend_from_slice(&block[..meta.samples]);
        }
        let steps = samples[1000..].windows(2).map(|pair| pair[1] * pair[0].conj());
        let turn = steps.sum::<Complex32>().arg() / std::f32::consts::TAU;
        assert!((turn - 0.25).abs() < 0.01, "{antenna}: {turn} cycles a sample");
    }
    let error = device.set_bandwidth(Rx, 0, 1e6).unwrap_err().to_string();
    assert!(error.contains("whose bandwidth this host cannot set"), "{error}");
}

/// Receives samples of channel 1; returns the turn from one to the next, in cycles, and the level,
/// dB of full scale.
fn tone(device: &Device) -> (f64, f64) {
    let mut stream = device.rx_stream(RxArgs::new(1)).unwrap();
    stream.start_finite(6_000, None).unwrap();
    let (mut samples, mut block) = (Vec::new(), vec![Complex32::default(); 4096]);
    while stream.is_running() {
        let meta = stream.recv(&mut block, PATIENCE).unwrap();
        samples.extend_from_slice(&block[..meta.samples]);
    }
    let samples = &samples[1000..];
    let steps = samples.windows(2).map(|pair| pair[1] * pair[0].conj());
    let turn = steps.sum::<Complex32>().arg() / std::f32::consts::TAU;
    let power = samples.iter().map(Complex32::norm_sqr).sum::<f32>() / samples.len() as f32;
    (f64::from(turn), f64::from(10.0 * power.log10()))
}

#[test]
fn the_host_sets_the_whole_front_end_of_an_n310() {
    const LEVEL_DBM: f64 = -70.0;
    let stations: String = [120e6, 1e9, 1.4e9, 5.8e9]
        .map(|hz| {
            format!(
                "[[station]]\nkind = \"tone\"\nfrequency = {hz:e}\nlevel = {LEVEL_DBM:?}\n\
                 antenna = \"RX2\"\n"
            )
        })
        .concat();
    let (_radio, args) = radio_with(RadioConfig {
        device: DeviceKind::N310,
        master_clock_rate_hz: 125e6,
        time_scale: 0.01,
        scene: Some(Scene::parse(&stations).unwrap()),
        ..patient()
    });
    let mut device = Device::open(args).unwrap();
    device.set_rate(1.25e6).unwrap();
    for gain_db in [31.0, 45.5, 60.0] {
        // The split of the gain follows the frequency.
        assert_eq!(device.set_gain(Rx, 1, gain_db).unwrap(), gain_db);
        for hz in [1e9, 120e6, 1.4e9, 5.8e9] {
            let result = device.tune_rx(1, TuneRequest::new(hz - 125e3)).unwrap();
            assert!((result.freq_hz - hz + 125e3).abs() < 10.0, "{result:?}");
            let (turn, level) = tone(&device);
            assert!((turn - 0.1).abs() < 0.001, "{hz} Hz: {turn} cycles a sample");
            let want = LEVEL_DBM + gain_db;
            assert!((level - want).abs() < 0.5, "{hz} Hz, {gain_db} dB: {level} dB");
        }
    }
    device.set_antenna(Rx, 1, "TX/RX").unwrap();
    let (_, level) = tone(&device);
    assert!(level < LEVEL_DBM + 60.0 - 30.0, "{level} dB at the other antenna");
    assert!(device.set_gain(Rx, 1, 90.0).is_err());
}

/// Receives until the slice is full, or the burst ends.
fn fill(stream: &mut BlockReceiver, samples: &mut [[i16; 2]]) -> usize {
    let mut count = 0;
    while count < samples.len() {
        let received = stream.recv(&mut samples[count..], PATIENCE).unwrap();
        assert_eq!(received.lost_packets, 0);
        count += received.samples;
        if received.samples == 0 || received.end_of_burst {
            break;
        }
    }
    count
}

#[test]
fn blocks_that_are_no_radio_stream_at_each_width() {
    for chdr_width in [Width::W64, Width::W128, Width::W256, Width::W512] {
        let (_radio, args) = radio_with(RadioConfig {
            device: DeviceKind::E320,
            chdr_width,
            extra_blocks: true,
            ..patient()
        });
        let device = Device::open(args).unwrap();
        assert_eq!(device.width(), chdr_width);

        let null = NullSrcSink::open(&device).unwrap();
        let mut stream = device.block_receiver(null.place()).unwrap();
        let packet = null.start(stream.samples_per_packet() / 2).unwrap();
        let mut samples = vec![[0i16; 2]; 50 * packet];
        assert_eq!(fill(&mut stream, &mut samples), 50 * packet);
        null.stop().unwrap();
        assert!(null.source_counters().unwrap().packets >= 50);
        drop(stream);
        let mut sender = device.block_sender(null.place()).unwrap();
        assert_eq!(sender.send(&samples, true, PATIENCE).unwrap(), samples.len());
        assert!(sender.finish(PATIENCE).unwrap(), "{chdr_width:?}");

        let generator = SigGen::open(&device, 0).unwrap();
        let mut stream = device.block_receiver(generator.place()).unwrap();
        generator.set(GeneratorSignal::Constant(0.5, -0.25)).unwrap();
        generator.start(stream.samples_per_packet()).unwrap();
        let mut samples = vec![[0i16; 2]; 10_000];
        assert_eq!(fill(&mut stream, &mut samples), 10_000);
        generator.stop().unwrap();
        let near = |value: i16, want: i16| (value - want).abs() <= 2;
        assert!(samples.iter().all(|[i, q]| near(*i, 16384) && near(*q, -8192)), "{samples:?}");

        let replay = Replay::open(&device, 0).unwrap();
        let wanted: Vec<[i16; 2]> = (0..20_000i16).map(|n| [n, -n]).collect();
        replay.record(4096, 20_000).unwrap();
        let mut sender = device.block_sender(replay.place()).unwrap();
        assert_eq!(sender.send(&wanted, true, PATIENCE).unwrap(), 20_000);
        assert!(sender.finish(PATIENCE).unwrap());
        assert_eq!(replay.recorded().unwrap(), 20_000);
        let mut stream = device.block_receiver(replay.place()).unwrap();
        replay.play(4096, 20_000, stream.samples_per_packet(), true, None).unwrap();
        let mut played = vec![[0i16; 2]; 20_000];
        assert_eq!(fill(&mut stream, &mut played), 20_000);
        assert!(played == wanted, "{chdr_width:?}");
        let outside = replay.record(replay.memory_samples(), 20_000).unwrap_err().to_string();
        assert!(outside.contains("end of the place in the memory"), "{outside}");
        let error = SigGen::open(&device, 7).err().unwrap().to_string();
        assert!(error.contains("has no port 7"), "{error}");
    }
}
