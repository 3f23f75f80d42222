//! The steady state has no allocation.

use crate::common::{Channel, echo, numbered, receive, receiver, signal};
use millstream_atsc::Sample;
use millstream_atsc::tx::{Transmitter, TxConfig};
use millstream_testkit::allocations;

#[test]
fn a_locked_receiver_does_not_allocate() {
    let samples = signal(21, 0.2, Channel::default());
    let (start, rest) = samples.split_at(600_000);
    let mut receiver = receiver(6.25e6);
    assert!(!receive(&mut receiver, start).is_empty());
    let mut packets = 0;
    let before = allocations();
    receiver.process(rest, &mut |_| packets += 1);
    assert_eq!(allocations(), before);
    assert!(packets > 1000, "{packets} packets");
}

#[test]
fn a_receiver_that_takes_echoes_off_does_not_allocate() {
    let mut samples = signal(23, 0.2, Channel { cn_db: Some(28.0), ..Channel::default() });
    echo(&mut samples, 40, Sample::from_polar(0.6, 0.8));
    // The taps are designed anew when the echo changes suddenly.
    echo(&mut samples[900_000..], 25, Sample::from_polar(0.5, 2.0));
    let (start, rest) = samples.split_at(600_000);
    let mut receiver = receiver(6.25e6);
    assert!(!receive(&mut receiver, start).is_empty());
    let taps = receiver.monitor().equalizer_taps();
    let largest = taps.feedback.iter().fold(0.0, |most: f32, tap| most.max(tap.abs()));
    assert!(largest > 0.1, "feedback is in use: {largest}");
    let mut packets = 0;
    let before = allocations();
    receiver.process(rest, &mut |_| packets += 1);
    assert_eq!(allocations(), before);
    assert!(packets > 1000, "{packets} packets");
}

#[test]
fn a_running_transmitter_does_not_allocate() {
    let mut transmitter = Transmitter::new(TxConfig::default()).unwrap();
    let mut samples = vec![Sample::default(); 100_000];
    let mut n = 0;
    let mut next = |packet: &mut [u8; 188]| {
        *packet = numbered(22, n);
        n += 1;
    };
    transmitter.generate(&mut next, &mut samples);
    let before = allocations();
    transmitter.generate(&mut next, &mut samples);
    assert_eq!(allocations(), before);
}
