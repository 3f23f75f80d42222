//! Tests that reads and writes allocate nothing in the steady state, whatever the type of samples.

use millstream_client::{Radio, StreamSample, StreamStart, TxOptions};
use millstream_testkit::allocations;
use num_complex::{Complex32, Complex64};

use crate::common::{PATIENCE, radio, reports};

/// Odd, so that reads and packets begin at different samples.
const BLOCK: usize = 5001;

const RATE_HZ: f64 = 4e6;

/// Returns a radio with two channels in each direction.
fn two_channels() -> Radio {
    let radio = radio(",antenna=ramp", RATE_HZ);
    assert_eq!(radio.tx(0).set_rate(RATE_HZ).unwrap(), RATE_HZ);
    radio
}

fn reads<T: StreamSample>(radio: &Radio, channels: &[usize]) {
    let stream = radio.rx_stream(channels, reports()).unwrap();
    let mut memory = vec![vec![T::zeroed(); BLOCK]; channels.len()];
    let mut outs: Vec<_> = memory.iter_mut().map(|one| &mut one[..]).collect();
    stream.start(StreamStart::now()).unwrap();
    let mut read = |some| {
        let outs = &mut outs[..];
        let read =
            if some { stream.read_some(outs, PATIENCE) } else { stream.read(outs, PATIENCE) };
        read.unwrap().samples > 0
    };
    // A gap, which only a busy machine makes here, is an event, for which a queue may grow.
    let mut without_a_gap = || {
        let before = allocations();
        (0..60).all(|turn| read(turn % 2 == 1)).then(|| allocations() - before)
    };
    without_a_gap();
    let counted = (0..20).find_map(|_| without_a_gap());
    assert_eq!(counted, Some(0), "{} on {channels:?}", std::any::type_name::<T>());
}

fn writes<T: StreamSample>(radio: &Radio, channels: &[usize]) {
    let stream = radio.tx_stream(channels, TxOptions::default()).unwrap();
    let memory = vec![vec![T::zeroed(); BLOCK]; channels.len()];
    let ins: Vec<_> = memory.iter().map(|one| &one[..]).collect();
    stream.start(StreamStart::now()).unwrap();
    let write = || {
        assert_eq!(stream.write(&ins, None, false, PATIENCE).unwrap().samples, BLOCK);
    };
    write();
    let before = allocations();
    (0..40).for_each(|_| write());
    assert_eq!(allocations(), before, "{} on {channels:?}", std::any::type_name::<T>());
    stream.stop().unwrap();
}

/// Runs a test with each type on one and two channels.
macro_rules! each_type {
    ($test:ident, $radio:expr) => {
        for channels in [&[0][..], &[0, 1]] {
            $test::<Complex32>($radio, channels);
            $test::<Complex64>($radio, channels);
            $test::<[i16; 2]>($radio, channels);
            $test::<[i8; 2]>($radio, channels);
            $test::<[u8; 3]>($radio, channels);
        }
    };
}

#[test]
fn reads_allocate_nothing() {
    let radio = two_channels();
    each_type!(reads, &radio);
}

#[test]
fn writes_allocate_nothing() {
    let radio = two_channels();
    each_type!(writes, &radio);
}
