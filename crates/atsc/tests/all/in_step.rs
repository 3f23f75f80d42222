//! Interruptions, echoes and weak signals, through which the front end must keep its timing.

use crate::common::{Channel, Packet, Random, numbered, receive, receiver, signal};
use millstream_atsc::Sample;
use millstream_atsc::blocks::AtscDemod;
use millstream_atsc::monitor::LockState::{self, Locked, Pilot, SegmentSync};
use millstream_atsc::rx::RxConfig;
use millstream_atsc::segment::Segment;
use millstream_flow::{Mock, keys};
use std::sync::Arc;

/// Returns the positions of the packets in the stream of the seed; `None` for a packet that is not
/// in it.
fn places(seed: u64, packets: &[Packet]) -> Vec<Option<u64>> {
    let number = |packet: &Packet| u64::from_be_bytes(packet[4..12].try_into().unwrap());
    let of_stream = |packet: &Packet| *packet == numbered(seed, number(packet));
    packets.iter().map(|packet| of_stream(packet).then(|| number(packet))).collect()
}

#[test]
fn a_gap_that_is_known_costs_what_was_lost_and_nothing_else() {
    let seed = 11;
    let channel =
        Channel { cn_db: Some(25.0), offset_hz: 700.0, clock_ppm: 8.0, ..Channel::default() };
    let samples = signal(seed, 0.35, channel);
    for missing in [1, 2000, 33_333, 150_000] {
        let at = 1_200_345;
        let mut receiver = receiver(6.25e6);
        let mut packets = receive(&mut receiver, &samples[..at]);
        receiver.gap(missing as u64, &mut |packet| packets.push(*packet));
        packets.extend(receive(&mut receiver, &samples[at + missing..]));
        let status = receiver.monitor().status();
        let places = places(seed, &packets);
        let first = places[0].expect("the first packet is right");
        let wrong: Vec<usize> =
            (0..places.len()).filter(|n| places[*n] != Some(first + *n as u64)).collect();
        println!("{missing} missing: {} wrong, {status:?}", wrong.len());
        assert_eq!((status.relocks, status.missing_samples), (0, missing as u64));
        // The interleaver spreads a gap over 52 packets more.
        let lost = missing as f64 / 6.25e6 * 12_935.0;
        assert!(wrong.len() as f64 <= lost + 60.0, "{missing}: {} wrong", wrong.len());
        assert!(
            wrong.iter().all(|n| packets[*n][1] & 0x80 != 0),
            "{missing}: a wrong one is not marked"
        );
        assert!(packets.len() > 2500, "{}", packets.len());
    }
}

#[test]
fn a_fade_keeps_the_place_and_a_break_is_found_again_soon() {
    let seed = 12;
    let samples = signal(seed, 0.45, Channel { cn_db: Some(20.0), ..Channel::default() });
    let mut random = Random::new(seed);
    for fade_ms in [2, 10, 40] {
        for kept in [true, false] {
            // Noise instead of the signal, or inserted into it.
            let (at, count) = (1_234_567, fade_ms * 6250);
            let noise: Vec<Sample> = (0..count).map(|_| random.noise() * 0.2).collect();
            let mut receiver = receiver(6.25e6);
            receive(&mut receiver, &samples[..at]);
            receive(&mut receiver, &noise);
            let rest = &samples[if kept { at + count } else { at + 1111 }..];
            receive(&mut receiver, rest);
            let end = (at + count) as u64;
            let events = receiver.monitor().events_since(0);
            let back = events.iter().rev().find(|event| event.state == Locked).unwrap();
            let after_ms = back.at_sample.saturating_sub(end) as f64 / 6250.0;
            println!("{fade_ms} ms, kept {kept}: locked {after_ms:.1} ms after; {events:?}");
            // A field sync comes every 24.2 ms.
            let most_ms = if kept { 6.0 } else { 6.0 + 24.2 + 2.0 };
            assert!(after_ms < most_ms, "{fade_ms} ms, kept {kept}: {after_ms:.1} ms");
            assert_eq!(receiver.monitor().status().state, Locked);
        }
    }
}

#[test]
fn it_locks_every_time_close_to_the_threshold() {
    for seed in 20..26 {
        let offset_hz = (seed as f64 - 22.5) * 19_000.0;
        let clock_ppm = (seed as f64 - 22.5) * -37.0;
        let channel = Channel { cn_db: Some(14.5), offset_hz, clock_ppm, ..Channel::default() };
        let mut receiver = receiver(6.25e6);
        receive(&mut receiver, &signal(seed, 0.12, channel));
        let (status, events) = (receiver.monitor().status(), receiver.monitor().events_since(0));
        println!("seed {seed}: {status:?} {events:?}");
        let states: Vec<LockState> = events.iter().map(|event| event.state).collect();
        assert_eq!(states, [Pilot, SegmentSync, Locked], "seed {seed}");
        assert!((status.clock_offset_ppm.unwrap() - clock_ppm).abs() < 3.0, "seed {seed}");
    }
}

#[test]
fn strong_echoes_leave_segments_and_fields_alone() {
    // Minus 1 dB, near and far, in any phase.
    for (n, delay) in [3usize, 7, 30, 60].into_iter().enumerate() {
        for turn in 0..4 {
            let seed = 30 + n as u64;
            let mut samples =
                signal(seed, 0.11, Channel { cn_db: Some(25.0), ..Channel::default() });
            let echo = Sample::from_polar(0.89, 0.4 + turn as f32 * 1.57);
            for k in (delay..samples.len()).rev() {
                let late = samples[k - delay];
                samples[k] += late * echo;
            }
            let mut receiver = receiver(6.25e6);
            receive(&mut receiver, &samples);
            let events = receiver.monitor().events_since(0);
            let states: Vec<LockState> = events.iter().map(|event| event.state).collect();
            println!("{delay} samples, turn {turn}: {events:?} {:?}", receiver.monitor().status());
            assert_eq!(states, [Pilot, SegmentSync, Locked], "{delay} samples, turn {turn}");
        }
    }
}

#[test]
fn a_tag_that_samples_are_missing_reaches_the_front_end() {
    let samples = signal(13, 0.12, Channel::default());
    let (before, after) = samples.split_at(600_001);
    let missing = 5000;
    let monitor = Arc::default();
    let config = RxConfig { sample_rate_hz: 6.25e6 };
    let mut mock = Mock::new(AtscDemod::new(config, Arc::clone(&monitor)).unwrap());
    mock.feed("in", before);
    mock.tag("in", 600_001, keys::LOSS_CAUSE, millstream_flow::TagValue::text("network_loss"));
    mock.tag("in", 600_001, keys::LOSS_ITEMS, missing as u64);
    mock.feed("in", &after[missing..]);
    mock.run().unwrap();
    let status = monitor.status();
    assert_eq!((status.state, status.relocks, status.missing_samples), (Locked, 0, 5000));
    let segments: Vec<Segment> = mock.take("out");
    let held = segments.iter().filter(|segment| segment.held()).count();
    // 5000 samples are 10.3 segments.
    assert!((11..=13).contains(&held), "{held} of {}", segments.len());
    assert!(segments[1..].iter().all(|segment| !segment.restart()));
}
