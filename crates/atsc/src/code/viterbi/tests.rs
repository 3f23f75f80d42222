//! The decoders against the coder, and the fast copies against the plain ones.

use super::*;
use crate::code::trellis::{CoderState, level};
use millstream_testkit::cost;

/// Codes bytes of twelve coders, row by row.
fn coded(bytes: &[[u8; TRELLIS_CODERS]]) -> Vec<f32> {
    let mut states = [CoderState::default(); TRELLIS_CODERS];
    let mut out = Vec::new();
    for group in bytes {
        for round in 0..4 {
            for (state, byte) in states.iter_mut().zip(group) {
                let (next, symbol) = state.step(byte >> (6 - 2 * round) & 3);
                *state = next;
                out.push(f32::from(level(symbol)));
            }
        }
    }
    out
}

fn bytes(groups: usize) -> Vec<[u8; TRELLIS_CODERS]> {
    let byte = |n: usize| ((n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
    (0..groups).map(|g| std::array::from_fn(|c| byte(g * TRELLIS_CODERS + c))).collect()
}

fn decode(symbols: &[f32]) -> Vec<[u8; TRELLIS_CODERS]> {
    let mut decoders = Decoders::new();
    let mut received = Vec::new();
    // Pieces that are not a whole number of bytes.
    for turns in symbols.chunks(7 * TRELLIS_CODERS) {
        decoders.push(0, turns, &mut |bytes| received.push(bytes));
    }
    assert_eq!(received.len(), symbols.len() / TRELLIS_CODERS / 4 - DELAY_SYMBOLS / 4);
    decoders.finish(&mut |bytes| received.push(bytes));
    received
}

#[test]
fn clean_symbols_decode_to_the_bytes_after_the_delay() {
    let sent = bytes(100);
    let received = decode(&coded(&sent));
    // The coders' first Z2 is unknown in general: here it is zero, as the decoders assume.
    assert_eq!(received, sent);
}

#[test]
fn noise_beyond_half_the_level_distance_is_corrected() {
    let sent = bytes(200);
    let mut symbols = coded(&sent);
    // One symbol in 40 of each coder is off by 1.6: a plain slicer gets it wrong.
    for (n, symbol) in symbols.iter_mut().enumerate() {
        if (n / TRELLIS_CODERS + n) % 40 == 0 {
            *symbol += if n % 2 == 0 { 1.6 } else { -1.6 };
        }
    }
    let received = decode(&symbols);
    let decided = sent.len() - DELAY_SYMBOLS / 4;
    assert_eq!(received[..decided], sent[..decided]);
}

#[test]
fn the_turn_order_is_followed() {
    let sent = bytes(50);
    let symbols = coded(&sent);
    for first in [0, 4, 8] {
        let mut decoders = Decoders::new();
        let mut received = Vec::new();
        for turns in symbols.chunks_exact(4 * TRELLIS_CODERS) {
            let mut turned = turns.to_vec();
            turned.chunks_mut(TRELLIS_CODERS).for_each(|turn| turn.rotate_left(first));
            decoders.push(first, &turned, &mut |bytes| received.push(bytes));
        }
        assert_eq!(received, sent[..43], "first coder {first}");
    }
}

#[test]
fn the_fast_copy_decides_as_the_plain_one() {
    let mut symbols = coded(&bytes(100));
    for (n, symbol) in symbols.iter_mut().enumerate() {
        *symbol += ((n * 7919) % 1009) as f32 / 300.0 - 1.7;
    }
    let (mut fast, mut plain) = (Decoders::new(), Decoders::new());
    for turns in symbols.chunks_exact(4 * TRELLIS_CODERS).take(25) {
        run(&mut fast, 4, turns);
        let mut rows = [[0; LANES]; 4];
        arrange_body::<false>(4, turns, &mut rows);
        let memory = &mut plain.memory[plain.pending..][..4];
        run_plain(&mut plain.metrics, &rows, memory);
        plain.pending += 4;
    }
    assert_eq!((fast.metrics, &fast.memory), (plain.metrics, &plain.memory));
    let memory = &fast.memory[..fast.pending];
    let mut decisions = [[[0; LANES]; 100]; 2];
    trace(memory, fast.best(), &mut decisions[0]);
    trace_body::<false>(memory, fast.best(), &mut decisions[1]);
    assert_eq!(decisions[0], decisions[1]);
}

/// Computes the result of the lanes one decoder at a time and with full precision, from the coder
/// itself: the closest path that the code allows.
fn reference(symbols: &[f32], coder: usize) -> Vec<u8> {
    let mut best: [(f64, Vec<u8>); 8] = std::array::from_fn(|_| (0.0, Vec::new()));
    for y in symbols.iter().skip(coder).step_by(TRELLIS_CODERS) {
        let mut next: [(f64, Vec<u8>); 8] = std::array::from_fn(|_| (f64::INFINITY, Vec::new()));
        for (state, (metric, path)) in best.iter().enumerate() {
            for pair in 0..4 {
                let (after, bits) = CoderState::from_bits(state as u8).step(pair);
                let off = f64::from(*y) - f64::from(level(bits));
                let to = &mut next[usize::from(after.bits())];
                if metric + off * off < to.0 {
                    *to = (metric + off * off, [path.as_slice(), &[pair]].concat());
                }
            }
        }
        best = next;
    }
    best.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap().1
}

#[test]
fn lanes_decide_as_a_decoder_of_unlimited_precision() {
    let mut symbols = coded(&bytes(50));
    let mut noise = millstream_dsp::noise::Noise::new(3);
    symbols.iter_mut().for_each(|symbol| *symbol += 0.7 * noise.gaussian());
    let received = decode(&symbols);
    for coder in 0..TRELLIS_CODERS {
        let pairs = reference(&symbols, coder);
        let received: Vec<u8> = received.iter().map(|bytes| bytes[coder]).collect();
        // The first byte depends on an earlier Z2; the last ones are decided with fewer symbols.
        for (n, four) in pairs.chunks(4).enumerate().take(40).skip(1) {
            let byte = four.iter().fold(0, |byte, pair| byte << 2 | pair);
            assert_eq!(received[n], byte, "coder {coder}, byte {n}");
        }
    }
}

#[cfg(any(avx512, all(target_arch = "aarch64", target_endian = "little")))]
#[test]
fn the_wider_way_back_gives_the_same_bits() {
    #[cfg(target_arch = "x86_64")]
    if !(is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl")) {
        return println!("this processor has no such vectors");
    }
    let byte = |n: usize| ((n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
    let memory: Vec<[u8; LANES]> =
        (0..90).map(|turn| std::array::from_fn(|lane| byte(turn * LANES + lane))).collect();
    let state = std::array::from_fn(|lane| lane as u32 % 4);
    let (mut plain, mut fast) = ([[0; LANES]; 60], [[0; LANES]; 60]);
    trace_body::<false>(&memory, state, &mut plain);
    // SAFETY: the processor has the features.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        wide::trace(&memory, state, &mut fast);
    };
    // SAFETY: every processor of this kind has the features.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        neon::trace(&memory, state, &mut fast);
    };
    assert_eq!(fast, plain);
}

#[test]
#[ignore = "counted by docs/evidence/arm64_cost.py"]
fn cost_of_the_recursion() {
    let rows: [Row; TURNS_MAX] =
        std::array::from_fn(|n| std::array::from_fn(|lane| (n * 31 + lane * 57) as i16 % 192));
    let [mut plain, mut fast] = [[[0; LANES]; STATES]; 2];
    let mut memory = [[0; LANES]; TURNS_MAX];
    let mut again = memory;
    cost::repeat(
        || run_plain(&mut plain, &rows, &mut memory),
        || recur(&mut fast, &rows, &mut again),
    );
    assert_ne!((plain, fast), ([[0; LANES]; STATES], [[0; LANES]; STATES]));
}

#[test]
#[ignore = "counted by docs/evidence/arm64_cost.py"]
fn cost_of_the_traceback() {
    let memory: [[u8; LANES]; TURNS_MAX] =
        std::array::from_fn(|n| std::array::from_fn(|lane| (n * 31 + lane * 57) as u8));
    let state = std::array::from_fn(|lane| lane as u32 % 4);
    let [mut plain, mut fast] = [[[0; LANES]; TURNS_MAX]; 2];
    cost::repeat(
        || trace_body::<false>(&memory, state, &mut plain),
        || follow(&memory, state, &mut fast),
    );
    assert!(plain != fast || plain[0] != [0; LANES]);
}

#[test]
#[ignore = "counted by docs/evidence/arm64_cost.py"]
fn cost_of_the_order() {
    let symbols: [f32; DATA_SYMBOLS] = std::array::from_fn(|n| (n * 31 % 16) as f32 - 7.5);
    let [mut plain, mut fast] = [[[0; LANES]; TURNS_MAX]; 2];
    cost::repeat(
        || arrange_body::<false>(4, &symbols, &mut plain),
        || arrange(4, &symbols, &mut fast),
    );
    assert!(plain != fast || plain[0] != [0; LANES]);
}
