//! Decodes a television channel (ATSC 8-VSB): an impaired signal to the packets in it.

use millstream::atsc::Sample;
use millstream::atsc::monitor::ReceiverStatus;
use millstream::atsc::rx::{Receiver, RxConfig};
use millstream::atsc::tx::{Impairments, Numbered, TestSignal, TxConfig};
use std::error::Error;

const SEED: u64 = 1;
const RATE_HZ: f64 = 6.25e6;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Returns `count` samples of numbered packets, with noise, an echo and a wrong frequency.
fn signal(count: usize) -> Outcome<Vec<Sample>> {
    let impairments = Impairments {
        cn_db: Some(25.0),
        offset_hz: 12e3,
        echoes: vec!["1.6us:-12dB:115deg".parse()?],
        ..Impairments::default()
    };
    let config = TxConfig { sample_rate_hz: RATE_HZ, ..TxConfig::default() };
    let mut packets = Numbered::new(SEED);
    let mut samples = vec![Sample::default(); count];
    TestSignal::new(config, &impairments, SEED)?
        .generate(&mut |packet| packets.next_packet(packet), &mut samples);
    Ok(samples)
}

/// Returns the numbers of the packets (`None` for a wrong one), and the receiver's state.
fn decode(samples: &[Sample]) -> Outcome<(Vec<Option<u64>>, ReceiverStatus)> {
    let mut receiver = Receiver::new(RxConfig { sample_rate_hz: RATE_HZ })?;
    let (sent, mut numbers) = (Numbered::new(SEED), Vec::new());
    let mut on_packet = |packet: &[u8; 188]| numbers.push(sent.number(packet));
    receiver.process(samples, &mut on_packet);
    receiver.finish(&mut on_packet);
    let status = receiver.monitor().status();
    Ok((numbers, status))
}

fn main() -> Outcome<()> {
    let (numbers, status) = decode(&signal(RATE_HZ as usize / 5)?)?;
    let right = numbers.iter().flatten().count();
    println!("{} packets, {right} of them right; {status:?}", numbers.len());
    Ok(())
}

#[test]
fn the_packets_are_right_and_in_order() {
    let (numbers, status) = decode(&signal(RATE_HZ as usize / 5).unwrap()).unwrap();
    assert!(numbers.len() > 900, "only {} packets", numbers.len());
    let first = numbers[0].unwrap();
    assert!(numbers.iter().copied().eq((first..).map(Some).take(numbers.len())));
    assert_eq!(status.uncorrected_packets, 0);
    let offset_hz = status.pilot_offset_hz.unwrap();
    assert!((offset_hz - 12e3).abs() < 20.0, "{offset_hz} Hz");
}
