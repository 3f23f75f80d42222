//! No allocation once everything runs.

mod common;

use common::{Channel, numbered, receive, receiver, signal};
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
