//! The harness of the fuzz targets on random bytes.

use crate::{exercise, fault_mixes, tx_played};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Exercises `count` lists of bytes, each from its own seed, which is printed on failure.
fn drawn(count: u64, length: usize, exercise: impl Fn(&[u8])) {
    let first =
        std::env::var("SEED").map_or(u64::from(std::process::id()) << 20, |s| s.parse().unwrap());
    for seed in first..first + count {
        let mut random = SplitMix64::seed_from_u64(seed);
        let mut byte = || random.next_u64() as u8;
        let bytes: Vec<u8> = (0..1 + usize::from(byte()) * length / 256).map(|_| byte()).collect();
        // Printed for a failing test.
        println!("seed {seed}: {bytes:02x?}");
        exercise(&bytes);
    }
}

#[test]
fn any_history_of_a_receive_stream_balances() {
    drawn(400, 400, exercise::receive);
}

#[test]
fn any_packet_to_the_stream_of_a_block_is_taken_or_counted() {
    drawn(400, 400, exercise::blocks);
}

#[test]
fn any_mix_of_faults_and_corrupt_packets_balances() {
    drawn(300, 200, fault_mixes::endure);
    drawn(300, 200, tx_played::endure);
}

#[test]
fn any_answer_to_a_management_packet_ends_the_walk() {
    drawn(300, 400, exercise::topology);
}

#[test]
fn any_registers_and_answers_are_taken_apart() {
    drawn(200, 3000, exercise::registers);
    drawn(2000, 200, exercise::answers);
}
