//! Transmitter to receiver: rates, offsets, clock errors, noise, interruptions.

use crate::common::{Channel, Random, check_numbered, impaired, receive, receiver, signal};
use millstream_atsc::Sample;
use millstream_atsc::monitor::{LockState, ReceiverStatus};
use millstream_atsc::tx::Impairments;

/// Receives a tenth of a second and checks every packet.
fn run(seed: u64, channel: Channel) -> ReceiverStatus {
    let mut receiver = receiver(channel.sample_rate_hz);
    let packets = receive(&mut receiver, &signal(seed, 0.1, channel));
    let first = check_numbered(seed, &packets);
    let status = receiver.monitor().status();
    println!("seed {seed}, {channel:?}: {} packets from {first} on; {status:?}", packets.len());
    // The signal starts with a field sync that comes too early; the next one is 24 ms later.
    assert_eq!(first % 312, 0, "the first packet of a field comes first");
    assert!(packets.len() > 500, "only {} packets", packets.len());
    assert_eq!((status.state, status.uncorrected_packets), (LockState::Locked, 0));
    status
}

#[test]
fn packets_return_at_every_sample_rate() {
    for sample_rate_hz in [6.0e6, 6.25e6, 8e6, 10.762e6, 20e6, 25e6] {
        let status = run(1, Channel { sample_rate_hz, ..Channel::default() });
        assert_eq!(status.corrected_bytes, 0, "{sample_rate_hz} Hz");
        // The loops still settle after a tenth of a second; the final value is 45 dB.
        assert!(status.mer_db.unwrap() > 36.0, "{sample_rate_hz} Hz: {:?} dB", status.mer_db);
    }
}

#[test]
fn offsets_of_carrier_and_clock_are_followed_and_measured() {
    for (offset_hz, clock_ppm) in
        [(-55e3, 0.0), (50e3, 20.0), (1e3, -20.0), (300.0, 100.0), (-300.0, -100.0)]
    {
        let status = run(2, Channel { offset_hz, clock_ppm, ..Channel::default() });
        // A sender whose clock is fast also has its pilot too low.
        let pilot_hz = offset_hz - 2_690_559.4 * clock_ppm * 1e-6;
        let measured = status.pilot_offset_hz.unwrap();
        assert!((measured - pilot_hz).abs() < 10.0, "{measured} for {pilot_hz} Hz");
        let measured = status.clock_offset_ppm.unwrap();
        assert!((measured - clock_ppm).abs() < 2.0, "{measured} for {clock_ppm} ppm");
    }
}

#[test]
fn noise_down_to_18_db_is_received_without_a_wrong_packet() {
    for (seed, cn_db) in [(3, 30.0), (4, 22.0), (5, 18.0)] {
        let status = run(seed, Channel { cn_db: Some(cn_db), ..Channel::default() });
        let mer_db = status.mer_db.unwrap();
        assert!((mer_db - cn_db).abs() < 2.0, "{mer_db} dB for {cn_db} dB");
    }
}

#[test]
fn level_does_not_matter() {
    for gain in [1e-3, 30.0] {
        run(6, Channel { gain, ..Channel::default() });
    }
}

#[test]
fn an_echo_is_equalised() {
    let echoes = vec!["1.6us:-8dB:115deg".parse().unwrap()];
    let impairments = Impairments { cn_db: Some(28.0), echoes, ..Impairments::default() };
    let samples = impaired(7, 0.15, 6.25e6, &impairments);
    let mut receiver = receiver(6.25e6);
    let packets = receive(&mut receiver, &samples);
    check_numbered(7, &packets);
    assert!(packets.len() > 900, "only {} packets", packets.len());
}

#[test]
fn after_a_break_the_receiver_locks_again_and_packets_are_right() {
    let samples = signal(8, 0.3, Channel::default());
    let mut random = Random::new(8);
    // A hole of a few samples, and a stretch of noise.
    for (skip, noise) in [(1234, 0), (0, 300_000)] {
        let mut receiver = receiver(6.25e6);
        let mut packets = receive(&mut receiver, &samples[..900_000]);
        let before = packets.len();
        let gap: Vec<Sample> = (0..noise).map(|_| random.noise() * 0.2).collect();
        packets.extend(receive(&mut receiver, &gap));
        packets.extend(receive(&mut receiver, &samples[900_000 + skip..]));
        let status = receiver.monitor().status();
        println!("skip {skip}, noise {noise}: {status:?}");
        assert_eq!(status.state, LockState::Locked);
        assert_eq!(status.relocks, 1);
        check_numbered(8, &packets[..before]);
        // Wrong packets are marked, and all packets after the last marked one are correct.
        let marked = packets.iter().rposition(|p| p[1] & 0x80 != 0).map_or(before, |i| i + 1);
        assert!(packets.len() - marked > 500, "{} after {marked}", packets.len());
        let unmarked: Vec<_> = packets[marked..].to_vec();
        let fresh = unmarked
            .iter()
            .position(|p| u64::from_be_bytes(p[4..12].try_into().unwrap()) % 312 == 0);
        check_numbered(8, &unmarked[fresh.expect("a field starts")..]);
    }
}

#[test]
fn after_a_break_the_clock_is_found_anew_as_at_the_start() {
    use LockState::{Locked, Pilot, SegmentSync};
    for clock_ppm in [-110.0, 110.0] {
        let samples = signal(9, 0.3, Channel { clock_ppm, ..Channel::default() });
        let mut random = Random::new(9);
        let mut receiver = receiver(6.25e6);
        receive(&mut receiver, &samples[..700_000]);
        let before = receiver.monitor().status();
        assert_eq!(before.state, LockState::Locked);
        let gap: Vec<Sample> = (0..60_000).map(|_| random.noise() * 0.2).collect();
        receive(&mut receiver, &gap);
        receive(&mut receiver, &samples[700_000..]);
        let events = receiver.monitor().events_since(0);
        println!("{events:?}");
        let states: Vec<LockState> = events.iter().map(|event| event.state).collect();
        assert_eq!(states, [Pilot, SegmentSync, Locked, Pilot, SegmentSync, Locked]);
    }
}

#[test]
fn after_silence_no_field_sync_is_seen_where_there_is_none() {
    let samples = signal(8, 0.25, Channel::default());
    let mut receiver = receiver(6.25e6);
    receive(&mut receiver, &samples[..900_000]);
    receive(&mut receiver, &vec![Sample::default(); 350_000]);
    receive(&mut receiver, &samples[900_000..]);
    let status = receiver.monitor().status();
    assert_eq!((status.state, status.relocks), (LockState::Locked, 1), "{status:?}");
}

#[test]
fn one_wild_sample_costs_packets_but_not_the_lock() {
    for (place, wild) in [(900_000, 1e2), (901_234, 1e4), (902_345, 9e8)] {
        let mut samples = signal(10, 0.3, Channel::default());
        samples[place] = Sample::new(wild, -wild);
        let mut receiver = receiver(6.25e6);
        let packets = receive(&mut receiver, &samples);
        let status = receiver.monitor().status();
        println!("{wild}: {} packets, {status:?}", packets.len());
        assert_eq!(status.relocks, 0, "a sample of {wild}");
        assert!(status.uncorrected_packets < 10, "a sample of {wild}: {status:?}");
    }
}
