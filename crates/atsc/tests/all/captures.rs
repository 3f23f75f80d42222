//! Signals of an independent transmitter, with the transport streams that were sent.

use crate::common::{Packet, Random, capture, read_sc16, receive, receiver};
use millstream_atsc::Sample;
use millstream_atsc::monitor::LockState;
use millstream_dsp::chunks::Chunks;
use std::collections::HashMap;

struct Capture {
    name: &'static str,
    /// Correct packets that GNU Radio's receiver decodes from it.
    peer_packets: usize,
    pilot_offset_hz: f64,
    clock_offset_ppm: f64,
    least_mer_db: f64,
}

const CAPTURES: [Capture; 2] = [
    Capture {
        name: "8vsb-clean-6.25MSps",
        peer_packets: 7127,
        pilot_offset_hz: 0.0,
        clock_offset_ppm: 0.0,
        least_mer_db: 32.0,
    },
    Capture {
        name: "8vsb-cn30-cfo2kHz-3ppm-6.25MSps",
        peer_packets: 5721,
        // Shifted by 2 kHz, and 3 ppm of 2.69 MHz lower for the sender's faster clock.
        pilot_offset_hz: 1992.0,
        clock_offset_ppm: 3.0,
        least_mer_db: 28.0,
    },
];

#[test]
fn every_packet_is_the_one_sent_and_more_come_than_at_the_peer() {
    for expected in CAPTURES {
        let Some(signal) = capture(&format!("{}.sc16", expected.name)) else { return };
        let Some(sent) = capture(&format!("{}.sent.ts", expected.name)) else { return };
        let mut receiver = receiver(6.25e6);
        let packets = receive(&mut receiver, &read_sc16(&signal));
        let sent = std::fs::read(sent).unwrap();
        let sent = sent.in_chunks::<188>().0;
        let places: HashMap<&Packet, usize> = sent.iter().zip(0..).collect();
        let start = *places.get(&packets[0]).expect("the first packet was not sent");
        let wrong = packets.iter().zip(&sent[start..]).filter(|(a, b)| a != b).count();
        let status = receiver.monitor().status();
        println!("{}: {} packets, {wrong} wrong; {status:?}", expected.name, packets.len());
        assert_eq!(wrong, 0);
        assert!(packets.len() > expected.peer_packets, "{} packets", packets.len());
        assert_eq!((status.state, status.relocks), (LockState::Locked, 0));
        assert_eq!((status.uncorrected_packets, status.packets), (0, packets.len() as u64));
        assert!((status.pilot_offset_hz.unwrap() - expected.pilot_offset_hz).abs() < 5.0);
        assert!((status.clock_offset_ppm.unwrap() - expected.clock_offset_ppm).abs() < 0.2);
        assert!(status.mer_db.unwrap() > expected.least_mer_db);
    }
}

#[test]
fn the_output_does_not_depend_on_how_samples_arrive() {
    let Some(path) = capture("8vsb-cn30-cfo2kHz-3ppm-6.25MSps.sc16") else { return };
    let samples = &read_sc16(&path)[..800_000];
    let whole = receive(&mut receiver(6.25e6), samples);
    assert!(whole.len() > 500, "{} packets", whole.len());
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let mut receiver = receiver(6.25e6);
        let mut parts = Vec::new();
        let mut rest = samples;
        while !rest.is_empty() {
            let longest = [3, 500, 50_000][(random.next() % 3) as usize];
            let count = (1 + random.next() as usize % longest).min(rest.len());
            parts.extend(receive(&mut receiver, &rest[..count]));
            rest = &rest[count..];
        }
        assert!(parts == whole, "seed {seed}: other packets than in one go");
    }
}

#[test]
fn zeros_in_front_of_a_capture_cost_nothing() {
    let Some(path) = capture("8vsb-clean-6.25MSps.sc16") else { return };
    let samples = &read_sc16(&path)[..800_000];
    let bare = receive(&mut receiver(6.25e6), samples);
    let mut receiver = receiver(6.25e6);
    let mut packets = receive(&mut receiver, &[Sample::ZERO; 2048]);
    packets.extend(receive(&mut receiver, samples));
    assert!(packets == bare, "{} packets instead of {}", packets.len(), bare.len());
}
