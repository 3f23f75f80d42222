//! Tests of the same samples over every link, in both directions: bit-identical, without loss.
//!
//! The device and the host are in separate network namespaces, joined by a veth pair; each may use
//! another link. The expected antenna samples and the expected file of transmitted samples are
//! computed independently of any link.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::time::Duration;

use millstream_emulator::antenna::{Antenna, NoiseAntenna};
use millstream_emulator::{Radio, RadioConfig, RunningRadio};
use millstream_radio::{Device, DeviceArgs, RxArgs, RxEvent, TxArgs, TxMetadata};
use millstream_testkit::netns::{PairOptions, VethPair};

/// Far longer than any step takes, so that a failing test ends.
const PATIENCE: Duration = Duration::from_secs(20);
const RATE_HZ: f64 = 2e6;
const SAMPLES: usize = 1_000_000;
const AMPLITUDE: f64 = 0.3;
const SEED: u64 = 4;
/// The device time at which reception begins, for the same noise in all runs; the clock is set
/// [`AHEAD_TICKS`] before it.
const START_TICKS: u64 = 1 << 40;
const AHEAD_TICKS: u64 = 1_000_000;

/// The links of CHDR at the host and at the device, and the network between them.
struct Case {
    host: &'static str,
    device: &'static str,
    shape: PairOptions,
}

fn hash(bytes: &[u8]) -> u64 {
    // With fixed keys: the same number in every process.
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Returns the hash of the antenna's samples from [`START_TICKS`] on.
fn expected() -> u64 {
    let mut samples = vec![[0; 4]; SAMPLES];
    NoiseAntenna::new(AMPLITUDE, SEED).fill(START_TICKS, &mut samples);
    hash(samples.as_flattened())
}

fn radio(link: &str, pair: &VethPair, tx_out: &Path) -> RunningRadio {
    let config = RadioConfig {
        addr: pair.right.address,
        link: link.to_owned(),
        rx_antennas: vec![format!("noise:{AMPLITUDE},{SEED}")],
        tx_out: vec![tx_out.to_owned()],
        // It tolerates a busy machine.
        rx_buffer_samples: 1 << 26,
        tx_buffer_samples: 1 << 20,
        ..RadioConfig::default()
    };
    pair.right.run(|| Radio::start(config)).unwrap_or_else(|error| panic!("{link}: {error}"))
}

/// Receives [`SAMPLES`] samples at a fixed device time; returns their hash.
fn receive(device: &Device) -> u64 {
    // On a busy machine the start may come after its time: then the clock is set anew.
    (0..20).find_map(|_| receive_in_time(device)).expect("one of many starts comes in time")
}

/// Returns `None` when the start came too late.
fn receive_in_time(device: &Device) -> Option<u64> {
    let mut stream = device.rx_stream(RxArgs::new(0)).expect("the stream opens");
    device.set_time_now(START_TICKS - AHEAD_TICKS).expect("the device takes the time");
    stream.start_finite(SAMPLES as u64, Some(START_TICKS)).expect("the device obeys");
    let mut samples = vec![[0i16; 2]; SAMPLES];
    let mut got = 0;
    while got < SAMPLES {
        let meta = stream.recv(&mut samples[got..], PATIENCE).expect("the device lives");
        if meta.event == RxEvent::LateCommand {
            return None;
        }
        let counters = stream.counters();
        assert_eq!(meta.event, RxEvent::None, "{got} samples came; {counters:?}");
        got += meta.samples;
    }
    assert_eq!(stream.members()[0].queue_drops(), 0);
    let ledger = stream.finish();
    assert_eq!((ledger.delivered, ledger.lost_total()), (SAMPLES as u64, 0));
    ledger.balance().expect("the ledger balances");
    let bytes: Vec<u8> = samples.iter().flatten().flat_map(|part| part.to_le_bytes()).collect();
    Some(hash(&bytes))
}

/// Transmits noise; returns the hash of the sent samples.
fn transmit(device: &Device) -> u64 {
    let mut samples = vec![[0; 4]; SAMPLES / 4];
    NoiseAntenna::new(AMPLITUDE, SEED + 1).fill(0, &mut samples);
    let pair = |s: &[u8; 4]| [[s[0], s[1]], [s[2], s[3]]].map(i16::from_le_bytes);
    let words: Vec<_> = samples.iter().map(pair).collect();
    let mut stream = device.tx_stream(TxArgs::new(0)).expect("the stream opens");
    let sent = stream.send(&words, TxMetadata::now().ending(), PATIENCE).expect("it is sent");
    assert_eq!(sent.samples, words.len());
    let ledger = stream.finish();
    assert_eq!((ledger.transmitted, ledger.balance()), (words.len() as u64, Ok(())));
    hash(samples.as_flattened())
}

/// Checks both directions over one case.
fn bit_identical(case: &Case) {
    let Some(pair) = VethPair::new(case.shape) else { return };
    let folder = tempfile::tempdir().unwrap();
    let tx_out = folder.path().join("sent.sc16");
    let radio = radio(case.device, &pair, &tx_out);
    let args = DeviceArgs { link: case.host.to_owned(), ..DeviceArgs::new(pair.right.address) };
    let (received, sent, frame_bytes) = pair.left.run(|| {
        let mut device = Device::open(args).expect("the device opens");
        assert_eq!(device.set_rate(RATE_HZ).unwrap(), RATE_HZ);
        (receive(&device), transmit(&device), device.frame_bytes())
    });
    let counters = radio.stop();
    let heard = hash(&std::fs::read(&tx_out).unwrap());
    let Case { host, device, shape } = case;
    println!("{host} <- {device}, MTU {}: {received:016x}, {frame_bytes} bytes", shape.mtu);
    assert_eq!(received, expected(), "what the host received is what the antenna said");
    assert_eq!(heard, sent, "what the device transmitted is what the host sent");
    assert_eq!((counters.rx_overruns, counters.tx_sequence_errors), (0, 0));
    let largest = (shape.mtu - 28).min(8016);
    assert_eq!(frame_bytes, largest, "packets are as long as the path carries");
}

/// A test for each case: host link, device link, MTU, queues.
macro_rules! cases {
    ($($name:ident: $host:literal, $device:literal, $mtu:literal, $queues:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let shape = PairOptions { mtu: $mtu, queues: $queues };
                bit_identical(&Case { host: $host, device: $device, shape });
            }
        )*
    };
}

cases! {
    udp: "udp", "udp", 1500, 1;
    udp_jumbo: "udp", "udp", 9000, 1;
    packet: "packet:veth0", "packet:veth0", 1500, 1;
    packet_jumbo: "packet:veth0", "packet:veth0", 9000, 1;
    packet_host: "packet:veth0", "udp", 1500, 1;
    packet_device: "udp", "packet:veth0", 1500, 1;
    xdp_generic: "xdp:veth0,mode=generic", "xdp:veth0,mode=generic", 1500, 1;
    xdp_generic_jumbo: "xdp:veth0,mode=generic", "xdp:veth0,mode=generic", 9000, 1;
    xdp_native: "xdp:veth0,mode=native", "xdp:veth0,mode=native", 1500, 1;
    xdp_native_jumbo: "xdp:veth0,mode=native", "xdp:veth0,mode=native", 9000, 1;
    xdp_queues: "xdp:veth0,mode=native", "xdp:veth0,mode=native", 1500, 4;
    xdp_host: "xdp:veth0,mode=native", "udp", 1500, 1;
    xdp_device: "udp", "xdp:veth0,mode=native", 1500, 1;
    // Generic mode receives a kernel sender's trains on the same machine unsegmented, and
    // drops them.
    xdp_generic_device: "udp:gso=off", "xdp:veth0,mode=generic", 1500, 1;
}
