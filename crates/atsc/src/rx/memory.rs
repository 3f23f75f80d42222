//! How much of its past each stage needs, see [`millstream_flow::observe::memory`].
//!
//! Loops and averages have no last item. They are given the time in which they pass all of their
//! bandwidths, and then three times the inverse of the last bandwidth, or the length of an average
//! up to three times: what a wrong start left of a loop is a twentieth by then, below the noise of
//! the estimates themselves. Where two parts of a recording are joined, their packets are compared.

use super::equalizer::MEMORY;
use super::sync_search::LOOK_SYMBOLS;
use super::{balance, carrier, demodulator, front_end, level, pilot, symbol_block, timing};
use crate::code::interleaver::TOTAL_DELAY_BYTES;
use crate::code::viterbi::DELAY_SYMBOLS;
use crate::params::{
    CODEWORD_BYTES, FIELD_SEGMENTS, SEGMENT_SYMBOLS, SYMBOL_RATE_HZ, TRELLIS_CODERS,
};
use millstream_flow::{BlockMemory, MemorySpan, Numbering};

/// Looks that find the segment sync even with strong echoes.
const LOOKS: usize = 5;

/// Inverses of a bandwidth, or lengths of an average, until a loop has settled.
const SETTLED: f64 = 3.0;

const SEGMENT_S: f64 = SEGMENT_SYMBOLS as f64 / SYMBOL_RATE_HZ;

/// Returns the time of a field, seconds.
const FIELD_S: f64 = FIELD_SEGMENTS as f64 * SEGMENT_S;

fn symbols(count: usize) -> MemorySpan {
    MemorySpan::Seconds(count as f64 / SYMBOL_RATE_HZ)
}

/// Returns the memory of the front end, whose results are numbered by its samples, a field at a
/// time.
#[must_use]
pub fn of_front_end(sample_rate_hz: f64) -> BlockMemory {
    let pull_in_s = f64::from(carrier::ACQUIRE_UPDATES) * carrier::BLOCK_S;
    let carrier_s = pull_in_s + SETTLED / carrier::TRACK_BANDWIDTH_HZ;
    let [.., (segments, bandwidth_hz)] = timing::GEARS;
    let timing_s = f64::from(segments) * SEGMENT_S + SETTLED / bandwidth_hz;
    let level_symbols = level::POWER_BLOCKS as usize * symbol_block::BLOCK_SYMBOLS;
    let balance = u64::from(balance::SPAN * balance::EVERY) * front_end::CHUNK_SAMPLES as u64;
    let filter_symbols = (4.0 * demodulator::HALF_SPAN).ceil() as usize;
    BlockMemory::none()
        .with(
            "search for the pilot",
            MemorySpan::Items(pilot::piece_samples(sample_rate_hz) as u64),
        )
        .with("search for the segment sync", symbols(LOOKS * LOOK_SYMBOLS))
        .with("search for the field sync", MemorySpan::Seconds(FIELD_S))
        .with("mixer correction, average", MemorySpan::Items(balance))
        .with("carrier loop", MemorySpan::Seconds(carrier_s))
        .with("matched filter", symbols(filter_symbols))
        .with("level, average", symbols((SETTLED * level_symbols as f64) as usize))
        .with("timing loop", MemorySpan::Seconds(timing_s))
        .numbering(Numbering { rate_hz: sample_rate_hz, group: FIELD_S * sample_rate_hz })
}

/// Returns the memory of the equaliser.
#[must_use]
pub fn of_equalizer() -> BlockMemory {
    BlockMemory::none()
        .with("training on field syncs", MemorySpan::Seconds(f64::from(MEMORY) * FIELD_S))
        .with("segment before", MemorySpan::Seconds(SEGMENT_S))
}

/// Returns the memory of the trellis decoder.
#[must_use]
pub fn of_trellis_decoder() -> BlockMemory {
    BlockMemory::none().with("symbols before a decision", symbols(DELAY_SYMBOLS * TRELLIS_CODERS))
}

/// Returns the memory of the deinterleaver.
#[must_use]
pub fn of_deinterleaver() -> BlockMemory {
    let segments = TOTAL_DELAY_BYTES.div_ceil(CODEWORD_BYTES);
    BlockMemory::none().with("interleaver", MemorySpan::Seconds(segments as f64 * SEGMENT_S))
}
