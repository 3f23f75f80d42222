//! Recordings with silence at the start or inside: a muted switch, a stream that starts before the
//! tuner has settled, a file padded with zeros.

use crate::common::{Channel, Packet, check_numbered, receive, receiver, signal};
use millstream_atsc::Sample;
use millstream_atsc::monitor::{LockState, ReceiverStatus};

const SEED: u64 = 60;

fn one_signal() -> Vec<Sample> {
    signal(SEED, 0.09, Channel { cn_db: Some(25.0), offset_hz: 800.0, ..Channel::default() })
}

/// Returns every packet of the pieces one after the other, to the last sample.
fn run(pieces: &[&[Sample]]) -> (Vec<Packet>, ReceiverStatus) {
    let mut receiver = receiver(6.25e6);
    let mut packets: Vec<Packet> =
        pieces.iter().flat_map(|piece| receive(&mut receiver, piece)).collect();
    receiver.finish(&mut |packet| packets.push(*packet));
    let status = receiver.monitor().status();
    (packets, status)
}

#[test]
fn a_recording_that_begins_with_nothing_gives_as_many_packets_as_without() {
    let samples = one_signal();
    let (bare, _) = run(&[&samples]);
    check_numbered(SEED, &bare[..bare.len() - 52]);
    assert!(bare.len() > 600, "{} packets", bare.len());
    let nothing = [0.0, f32::NAN, f32::INFINITY];
    for len in [1, 777, 2047, 2048, 2049, 4096, 30_001, 65_536, 70_000] {
        for part in nothing.iter().take(if len == 2048 { 3 } else { 1 }) {
            let lead = vec![Sample::new(*part, *part); len];
            let (packets, status) = run(&[&lead, &samples]);
            println!("{len} times {part}: {} packets, {status:?}", packets.len());
            let [got, all] = [&packets, &bare].map(|packets| &packets[..packets.len() - 52]);
            assert!(got == all, "{len} times {part}: {} packets", packets.len());
            let harm = (status.state, status.relocks, status.uncorrected_packets);
            assert_eq!(harm, (LockState::Locked, 0, 0), "{len} times {part}");
            let bad = if *part == 0.0 { 0 } else { len as u64 };
            assert_eq!(status.bad_samples, bad, "{len} times {part}");
        }
    }
}

#[test]
fn nothing_in_the_middle_costs_what_it_covers() {
    let samples = one_signal();
    for (at, len) in [(300_000, 2048), (350_001, 5000), (401_408, 40_960)] {
        let mut holed = samples.clone();
        holed[at..at + len].fill(Sample::ZERO);
        let (packets, status) = run(&[&holed]);
        println!("{len} zeros at {at}: {} packets, {status:?}", packets.len());
        assert_eq!(status.state, LockState::Locked);
        // The interleaver spreads the hole over 52 packets more.
        let most = (len as f64 / 6.25e6 * 12_935.0) as usize + 60;
        let marked = packets.iter().filter(|packet| packet[1] & 0x80 != 0).count();
        assert!(marked <= most, "{len} zeros at {at}: {marked} marked");
        let last = packets.iter().rposition(|packet| packet[1] & 0x80 != 0).unwrap();
        check_numbered(SEED, &packets[last + 1..packets.len() - 52]);
    }
}

#[test]
fn what_is_no_number_counts_while_a_pilot_is_looked_for() {
    let piece = vec![Sample::new(f32::NAN, 0.0); 100_000];
    let (packets, status) = run(&[&piece]);
    assert_eq!((packets.len(), status.state), (0, LockState::NoPilot));
    assert_eq!((status.bad_samples, status.samples), (100_000, 100_000));
}

#[test]
fn the_last_samples_count_however_few_they_are() {
    // A segment is 483 samples long, a chunk 2048.
    let samples = one_signal();
    let counts: Vec<usize> =
        (0..4).map(|quarter| run(&[&samples[..270 * 2048 - 1 - quarter * 483]]).0.len()).collect();
    for pair in counts.windows(2) {
        assert!(pair[0] > pair[1], "{counts:?}");
    }
}
