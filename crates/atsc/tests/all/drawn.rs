//! New random captures: the packets, noise, rate and offsets of a seed drawn for this run.

use crate::common::{Channel, Random, check_numbered, drawn_seed, receive, receiver, signal};
use millstream_atsc::Sample;
use millstream_atsc::monitor::LockState;
use millstream_atsc::params::{FIELD_DATA_SEGMENTS, PACKET_BYTES, TS_RATE_BPS};

const SECONDS: f64 = 0.16;

/// Rounds samples to those of a recording of 16-bit integers.
fn recorded(samples: &mut [Sample]) {
    let part = |part: f32| (part * 32_767.0).round_ties_even() / 32_768.0;
    samples.iter_mut().for_each(|x| *x = Sample::new(part(x.re), part(x.im)));
}

#[test]
fn a_capture_of_a_seed_drawn_now_is_bit_exact() {
    let seed = drawn_seed();
    let mut random = Random::new(seed);
    let mut within = |most: f64| (2.0 * random.uniform() - 1.0) * most;
    for cn_db in [None, Some(30.0)] {
        let channel = Channel {
            cn_db,
            sample_rate_hz: 8e6 + within(2e6),
            offset_hz: within(50e3),
            clock_ppm: within(100.0),
            ..Channel::default()
        };
        let mut samples = signal(seed, SECONDS, channel);
        recorded(&mut samples);
        let mut receiver = receiver(channel.sample_rate_hz);
        let packets = receive(&mut receiver, &samples);
        let status = receiver.monitor().status();
        println!("{channel:?}: {} packets; {status:?}", packets.len());
        let first = check_numbered(seed, &packets);
        assert_eq!(first % FIELD_DATA_SEGMENTS as u64, 0, "the first of a field comes first");
        assert!(first <= 2 * FIELD_DATA_SEGMENTS as u64, "locked after {first} packets");
        // All following packets, except the 52 in the interleaver and those in the stages: a chunk
        // of 2048 samples, and two segments.
        let sent = SECONDS * TS_RATE_BPS / (8 * PACKET_BYTES) as f64;
        let expected = sent as usize - first as usize - 62;
        assert!(packets.len() >= expected, "{} of {expected} packets", packets.len());
        let harm = (status.state, status.relocks, status.uncorrected_packets);
        assert_eq!(harm, (LockState::Locked, 0, 0));
    }
}
