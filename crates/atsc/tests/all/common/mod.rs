//! Shared parts of the receiver's tests: numbered packets, impairments, and the comparison.

#![allow(dead_code, reason = "each test uses its part")]

use millstream_atsc::Sample;
use millstream_atsc::rx::{Receiver, RxConfig};
use millstream_atsc::tx::{Impairments, Numbered, TestSignal, TxConfig};
use millstream_dsp::chunks::Chunks;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

pub type Packet = [u8; 188];

/// Pseudo-random numbers from a seed.
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform value in 0..1.
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a complex normal value of unit mean square.
    pub fn noise(&mut self) -> Sample {
        let radius = (-(1.0 - self.uniform()).ln()).sqrt();
        Sample::from_polar(radius as f32, (self.uniform() * std::f64::consts::TAU) as f32)
    }
}

/// Returns a random seed, and prints it so that a failure can be reproduced.
pub fn drawn_seed() -> u64 {
    let seed = std::env::var("MILLSTREAM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(()));
    println!("seed {seed} (set MILLSTREAM_SEED to use it again)");
    seed
}

/// Returns packet `n` of the endless stream of a seed: its number, then random bytes.
pub fn numbered(seed: u64, n: u64) -> Packet {
    Numbered::new(seed).packet(n)
}

/// Checks that packets are those of the stream, in order and without gap; returns the number of the
/// first.
pub fn check_numbered(seed: u64, packets: &[Packet]) -> u64 {
    let first = packets.first().expect("no packet was received");
    let start = u64::from_be_bytes(first[4..12].try_into().unwrap());
    for (i, packet) in packets.iter().enumerate() {
        assert!(*packet == numbered(seed, start + i as u64), "packet {i} of seed {seed} is wrong");
    }
    start
}

/// The impairments of a signal.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    pub sample_rate_hz: f64,
    pub offset_hz: f64,
    /// Sender's sample clock error: positive if its symbols come faster.
    pub clock_ppm: f64,
    /// Carrier to noise as [`Impairments::cn_db`]; `None` without noise.
    pub cn_db: Option<f64>,
    pub gain: f32,
}

impl Default for Channel {
    fn default() -> Self {
        Self { sample_rate_hz: 6.25e6, offset_hz: 0.0, clock_ppm: 0.0, cn_db: None, gain: 1.0 }
    }
}

/// Returns `seconds` of the numbered stream of `seed` through a channel.
pub fn signal(seed: u64, seconds: f64, channel: Channel) -> Vec<Sample> {
    let Channel { sample_rate_hz, offset_hz, clock_ppm, cn_db, gain } = channel;
    let impairments = Impairments { offset_hz, clock_ppm, cn_db, ..Impairments::default() };
    let mut samples = impaired(seed, seconds, sample_rate_hz, &impairments);
    samples.iter_mut().for_each(|sample| *sample *= gain);
    samples
}

/// Returns `seconds` of the numbered stream of `seed`, with impairments.
pub fn impaired(
    seed: u64,
    seconds: f64,
    sample_rate_hz: f64,
    impairments: &Impairments,
) -> Vec<Sample> {
    let config = TxConfig { sample_rate_hz, ..TxConfig::default() };
    let mut signal = TestSignal::new(config, impairments, seed).unwrap();
    let mut samples = vec![Sample::default(); (seconds * sample_rate_hz) as usize];
    let mut packets = Numbered::new(seed);
    signal.generate(&mut |packet| packets.next_packet(packet), &mut samples);
    samples
}

/// Adds an echo that is `delay` samples late.
pub fn echo(samples: &mut [Sample], delay: usize, gain: Sample) {
    for n in (delay..samples.len()).rev() {
        let late = samples[n - delay];
        samples[n] += late * gain;
    }
}

/// Returns a new receiver.
pub fn receiver(sample_rate_hz: f64) -> Receiver {
    Receiver::new(RxConfig { sample_rate_hz }).unwrap()
}

/// Returns every packet that a receiver decodes from the samples.
pub fn receive(receiver: &mut Receiver, samples: &[Sample]) -> Vec<Packet> {
    let mut packets = Vec::new();
    receiver.process(samples, &mut |packet| packets.push(*packet));
    packets
}

/// Returns a file of the captures, or `None` (and prints the reason) where they are absent.
pub fn capture(name: &str) -> Option<PathBuf> {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let folder = std::env::var_os("MILLSTREAM_CAPTURES").map_or_else(default, PathBuf::from);
    let path = folder.join(name);
    if !path.exists() {
        println!("skipped: there is no {} (set MILLSTREAM_CAPTURES)", path.display());
        return None;
    }
    Some(path)
}

/// Reads a file of interleaved 16-bit samples.
pub fn read_sc16(path: &std::path::Path) -> Vec<Sample> {
    let bytes = std::fs::read(path).unwrap();
    let part = |pair: [u8; 2]| f32::from(i16::from_le_bytes(pair)) / 32_768.0;
    bytes
        .in_chunks::<4>()
        .0
        .iter()
        .map(|[a, b, c, d]| Sample::new(part([*a, *b]), part([*c, *d])))
        .collect()
}
