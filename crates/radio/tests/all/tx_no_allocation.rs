//! Tests that a transmit stream in the steady state allocates nothing, and makes few system calls.

use crate::common::{PATIENCE, device};
use millstream_radio::{Complex32, TxArgs, TxMetadata};
use millstream_testkit::allocations;

#[test]
fn sending_allocates_nothing() {
    let (_radio, device) = device(8e6);
    let mut stream = device.tx_stream(TxArgs::new(0)).unwrap();
    let samples = vec![Complex32::new(0.5, 0.5); 10_007];
    let send = |stream: &mut millstream_radio::TxStreamer, meta| {
        let sent = stream.send(&samples, meta, PATIENCE).unwrap();
        assert_eq!(sent.samples, samples.len());
    };
    send(&mut stream, TxMetadata::now());
    let before = allocations();
    for _ in 0..400 {
        send(&mut stream, TxMetadata::now());
    }
    send(&mut stream, TxMetadata::now().ending());
    assert_eq!(allocations(), before);
    let counters = stream.counters();
    println!("{counters:?}");
    assert_eq!(stream.finish().transmitted, 402 * 10_007);
}

#[test]
fn sending_on_two_channels_allocates_nothing() {
    let (_radio, device) = device(4e6);
    let mut group = device.tx_group(&[TxArgs::new(0), TxArgs::new(1)]).unwrap();
    let samples = vec![Complex32::new(0.5, 0.5); 10_007];
    let slices = [&samples[..], &samples[..]];
    group.send_all(&slices, TxMetadata::now(), PATIENCE).unwrap();
    let before = allocations();
    for _ in 0..100 {
        group.send_all(&slices, TxMetadata::now(), PATIENCE).unwrap();
    }
    assert_eq!(allocations(), before);
}
