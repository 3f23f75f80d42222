//! The constants of the system (ATSC A/53 Part 2).

/// Symbols per second: 4.5 MHz / 286 * 684, about 10.762 million (A/53 Part 2, clause 5.1).
pub const SYMBOL_RATE_HZ: f64 = 4.5e6 / 286.0 * 684.0;

/// Symbols in a segment, segment sync included.
pub const SEGMENT_SYMBOLS: usize = 832;

/// Symbols of the segment sync.
pub const SYNC_SYMBOLS: usize = 4;

/// Symbols of a data segment that carry data.
pub const DATA_SYMBOLS: usize = SEGMENT_SYMBOLS - SYNC_SYMBOLS;

/// Data segments in a field.
pub const FIELD_DATA_SEGMENTS: usize = 312;

/// Segments in a field, the field sync included.
pub const FIELD_SEGMENTS: usize = FIELD_DATA_SEGMENTS + 1;

/// Bytes of a transport stream packet.
pub const PACKET_BYTES: usize = 188;

/// Bytes of a packet without its sync byte: the data of a Reed-Solomon codeword.
pub const PAYLOAD_BYTES: usize = PACKET_BYTES - 1;

/// Parity bytes of a Reed-Solomon codeword.
pub const PARITY_BYTES: usize = 20;

/// Bytes of a Reed-Solomon codeword, and of the data of a segment.
pub const CODEWORD_BYTES: usize = PAYLOAD_BYTES + PARITY_BYTES;

/// Trellis coders, used in rotation.
pub const TRELLIS_CODERS: usize = 12;

/// The transport stream's sync byte.
pub const TS_SYNC: u8 = 0x47;

/// Transport stream bits per second: one packet per data segment.
pub const TS_RATE_BPS: f64 = SYMBOL_RATE_HZ / SEGMENT_SYMBOLS as f64 * FIELD_DATA_SEGMENTS as f64
    / FIELD_SEGMENTS as f64
    * (PACKET_BYTES * 8) as f64;

/// The pilot's frequency relative to the middle of the channel.
pub const PILOT_OFFSET_HZ: f64 = -SYMBOL_RATE_HZ / 4.0;

/// The level that the pilot adds to every symbol.
pub const PILOT_LEVEL: f32 = 1.25;

/// Mean square of the eight data levels (1, 3, 5, 7 on both sides).
pub const DATA_POWER: f32 = 21.0;

/// The level of sync symbols.
pub const SYNC_LEVEL: f32 = 5.0;

/// Roll-off of the root-raised-cosine shaping, of Nyquist rate `SYMBOL_RATE_HZ / 2`.
pub const ROLL_OFF: f64 = 0.1152;

/// The lowest accepted complex sample rate. Below 6 MHz the roll-offs of the signal's two sides
/// overlap, which leaves a modulation error ratio of 28 dB at 5.6 MS/s, 22 dB at 5.5 and 19 dB at
/// 5.45. At 5.4 it would be 15 dB, at which packets are lost without any noise.
pub const MIN_SAMPLE_RATE_HZ: f64 = 5.45e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_match_the_standard() {
        assert!((SYMBOL_RATE_HZ - 10_762_237.762).abs() < 1e-3);
        assert!((TS_RATE_BPS - 19_392_658.46).abs() < 1e-1);
        assert!((PILOT_OFFSET_HZ + 2_690_559.44).abs() < 1e-2);
    }
}
