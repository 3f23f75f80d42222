//! Echoes, over the whole receiver.

use crate::common::{Channel, Random, check_numbered, drawn_seed, echo, receive, receiver, signal};
use millstream_atsc::Sample;
use millstream_atsc::monitor::LockState;

/// Receives a signal with an echo; checks the packets that are not marked, and returns the packets
/// and the number of marked ones.
fn packets_behind(seed: u64, cn_db: f64, delay: usize, gain: Sample) -> (usize, u64) {
    let mut samples = signal(seed, 0.12, Channel { cn_db: Some(cn_db), ..Channel::default() });
    echo(&mut samples, delay, gain);
    let mut receiver = receiver(6.25e6);
    let packets = receive(&mut receiver, &samples);
    let status = receiver.monitor().status();
    println!(
        "seed {seed}, {delay} samples late, gain {gain}: {} packets; {status:?}",
        packets.len()
    );
    assert_eq!(status.state, LockState::Locked);
    let marked = packets.iter().rposition(|p| p[1] & 0x80 != 0).map_or(0, |last| last + 1);
    check_numbered(seed, &packets[marked..]);
    (packets.len() - marked, status.uncorrected_packets)
}

#[test]
fn an_echo_of_a_seed_drawn_now_is_removed() {
    let seed = drawn_seed();
    let mut random = Random::new(seed);
    let delay = 3 + random.next() as usize % 60;
    let gain = Sample::from_polar(0.5, (random.uniform() * std::f64::consts::TAU) as f32);
    let (right, marked) = packets_behind(seed, 26.0, delay, gain);
    assert!(right > 500 && marked == 0, "seed {seed}: {right} right, {marked} marked");
}

#[test]
fn an_echo_nearly_as_strong_as_the_signal_is_removed() {
    // Minus 1 dB, 5.6 and 19.2 microseconds late; the phases leave a pilot to lock to.
    for (seed, delay, phase) in [(41, 35, 0.8), (42, 120, 1.0)] {
        // The first field may be lost to training.
        let (right, _) = packets_behind(seed, 30.0, delay, Sample::from_polar(0.89, phase));
        assert!(right > 500, "{delay} samples late: {right} packets");
    }
}
