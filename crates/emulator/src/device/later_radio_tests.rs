//! Tests of what radios of UHD 4.10 and newer have more, on simulated time: captures that begin
//! with a transmission, and complex gains.

use crate::UhdGeneration;
use crate::antenna::Loopback;
use crate::device::test_bench::*;
use crate::device::*;
use millstream_dsp::chunks::Chunks;
use millstream_wire::chdr::{DataRepr, Packet};
use millstream_wire::regs::radio::{FEATURE_RX_GAIN, FEATURE_TX_GAIN, gain_word};
use millstream_wire::stream::CommandOp;

const RX_CMD: u32 = 0x1104;
const RX_LENGTH: u32 = 0x1108;
const TX_GAIN: u32 = 0x1300;
const RX_GAIN: u32 = 0x1310;
/// The bit of a command that waits for the transmitter.
const TRIGGERED: u32 = 1 << 30;
/// The ticks after which a gain acts.
const LATE: usize = 6;

/// Returns a radio of this generation whose channel 0 receives what it transmits.
fn bench(uhd: UhdGeneration) -> Bench {
    let cable = || AntennaSource::Loopback(Loopback { channel: 0, delay_samples: 0 });
    let mut bench = Bench::hearing([cable(), cable()], RATE_HZ, TX_BUFFER_SAMPLES);
    bench.connect();
    bench.open_stream(1 << 30);
    bench.receive(&stream_command(CommandOp::Init, 0, 0));
    bench.device.execute(DeviceCommand::Speak(uhd.row()));
    let gains = FEATURE_RX_GAIN | FEATURE_TX_GAIN;
    bench.device.radio.channels.iter_mut().for_each(|channel| channel.features = gains);
    bench
}

/// Transmits samples of this value, as one burst at `time`.
fn transmit(bench: &mut Bench, seq: u16, time: u64, value: (i16, i16), count: usize) {
    let (timestamp, payload_len) = (Some(time), 4 * count);
    let repr = DataRepr { seq, timestamp, eob: true, payload_len, ..DataRepr::default() };
    let mut packet = samples_from(0, repr);
    let at = packet.len() - payload_len;
    let sample = [value.0.to_le_bytes(), value.1.to_le_bytes()].concat();
    packet[at..].copy_from_slice(&sample.repeat(count));
    bench.device.receive(&packet, HOST, bench.now_ns);
}

/// Returns time and samples of each data packet.
fn heard(sent: &[Vec<u8>]) -> Vec<(u64, Vec<(i16, i16)>)> {
    let parse = |packet: &Vec<u8>| {
        let packet = Packet::parse(packet, Width::W64).unwrap();
        let time = DataRepr::parse(&packet).ok()?.timestamp?;
        let samples: &[Sc16] = packet.payload().in_chunks().0;
        let parts = |&[a, b, c, d]: &Sc16| (i16::from_le_bytes([a, b]), i16::from_le_bytes([c, d]));
        Some((time, samples.iter().map(parts).collect()))
    };
    sent.iter().filter_map(parse).collect()
}

#[test]
fn a_capture_begins_with_the_next_transmission_on_its_channel() {
    let mut bench = bench(UhdGeneration::V4_10);
    bench.now_ns = 1_000 * US;
    for length in [40, 30] {
        bench.write(RX_LENGTH, length, None);
        bench.write(RX_CMD, TRIGGERED | 1, None);
    }
    assert!(heard(&bench.run(2_000)).is_empty(), "nothing is transmitted");
    for (seq, time) in [(0, 3_000), (1, 4_000), (2, 5_000)] {
        transmit(&mut bench, seq, time, (7, -7), 60);
    }
    let captures = heard(&bench.run(9_000));
    // The second one begins when the radio is ready again, amid the burst.
    let times: Vec<_> = captures.iter().map(|(time, samples)| (*time, samples.len())).collect();
    assert_eq!(times, [(3_000, 40), (3_043, 30)]);
    assert_eq!(captures[0].1, vec![(7, -7); 40]);
    assert_eq!(captures[1].1, [vec![(7, -7); 17], vec![(0, 0); 13]].concat());
    // A stop removes a capture that waits.
    bench.write(RX_CMD, TRIGGERED | 2, None);
    bench.write(RX_CMD, 0, None);
    transmit(&mut bench, 3, 10_000, (1, 1), 60);
    assert!(heard(&bench.run(12_000)).is_empty());
}

#[test]
fn a_radio_of_an_older_image_does_not_know_the_trigger() {
    let mut bench = bench(UhdGeneration::V4_9);
    bench.write(0x1018, 40, None);
    bench.write(0x1014, TRIGGERED | 1, None);
    assert_eq!(heard(&bench.run(500)).len(), 1);
}

#[test]
fn complex_gains_multiply_the_samples_from_their_time_on() {
    let mut bench = bench(UhdGeneration::V4_10);
    bench.now_ns = 1_000 * US;
    bench.write(RX_LENGTH, 100, None);
    bench.write(RX_CMD, TRIGGERED | 1, None);
    // The first acts at once, the others at their times.
    bench.write(TX_GAIN, gain_word(0.0, 1.0), None);
    bench.write(TX_GAIN, gain_word(-1.0, 0.0), Some(3_030)).expect("it does not wait");
    bench.write(RX_GAIN, gain_word(0.5, 0.0), Some(3_050)).expect("it does not wait");
    transmit(&mut bench, 0, 3_000, (200, 30), 100);
    let captures = heard(&bench.run(9_000));
    let want = [vec![(-30, 200); 30 + LATE], vec![(-200, -30); 20], vec![(-100, -15); 50 - LATE]];
    assert_eq!(captures, [(3_000, want.concat())]);
}
