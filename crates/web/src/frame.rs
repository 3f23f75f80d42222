//! Binary frames: a line of a spectrum, or symbols.

use crate::message::ValueFormat;

/// Bytes before the values.
pub(crate) const HEADER_BYTES: usize = 72;
/// The version of the header.
const VERSION: u8 = 1;
/// The level of the value 0, dBFS, and the dB of a step: from -150 dB to +15.75 dB.
pub(crate) const REFERENCE_DB: f32 = -150.0;
pub(crate) const STEP_DB: f32 = 0.65;

/// Samples are missing before this line.
pub(crate) const FLAG_GAP: u8 = 1;
/// The ticks are known.
pub(crate) const FLAG_TICKS: u8 = 2;

/// The header of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FrameHeader {
    /// 1: a line, 2: symbols.
    pub kind: u8,
    pub flags: u8,
    pub stream: u16,
    /// Transforms in a line, or values of a symbol.
    pub average: u16,
    pub seq: u32,
    pub bins: u32,
    pub ticks: u64,
    pub item: u64,
    pub centre_hz: f64,
    pub span_hz: f64,
    pub share: f32,
    pub dropped: u32,
    pub unix_s: f64,
}

/// Returns values as they stand in a frame.
pub(crate) fn encode_values(format: ValueFormat, values: &[f32]) -> Vec<u8> {
    match format {
        ValueFormat::U8 => values.iter().map(|db| step(*db)).collect(),
        ValueFormat::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    }
}

/// Returns a whole frame of encoded values.
pub(crate) fn encode(header: &FrameHeader, format: ValueFormat, values: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + values.len());
    bytes.extend_from_slice(&[header.kind, VERSION, format as u8, header.flags]);
    bytes.extend_from_slice(&header.stream.to_le_bytes());
    bytes.extend_from_slice(&header.average.to_le_bytes());
    bytes.extend_from_slice(&header.seq.to_le_bytes());
    bytes.extend_from_slice(&header.bins.to_le_bytes());
    bytes.extend_from_slice(&header.ticks.to_le_bytes());
    bytes.extend_from_slice(&header.item.to_le_bytes());
    bytes.extend_from_slice(&header.centre_hz.to_le_bytes());
    bytes.extend_from_slice(&header.span_hz.to_le_bytes());
    bytes.extend_from_slice(&header.share.to_le_bytes());
    bytes.extend_from_slice(&REFERENCE_DB.to_le_bytes());
    bytes.extend_from_slice(&STEP_DB.to_le_bytes());
    bytes.extend_from_slice(&header.dropped.to_le_bytes());
    bytes.extend_from_slice(&header.unix_s.to_le_bytes());
    debug_assert_eq!(bytes.len(), HEADER_BYTES);
    bytes.extend_from_slice(values);
    bytes
}

/// Returns the nearest step of a level.
fn step(db: f32) -> u8 {
    // The cast keeps within 0 to 255.
    ((db - REFERENCE_DB) / STEP_DB).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_where_the_page_says() {
        let header = FrameHeader {
            kind: 1,
            flags: FLAG_TICKS,
            stream: 0x0203,
            average: 4,
            seq: 5,
            bins: 3,
            ticks: 6,
            item: 7,
            centre_hz: 98.5e6,
            span_hz: 25e6,
            share: 0.25,
            dropped: 8,
            unix_s: 1.5,
        };
        let bytes =
            encode(&header, ValueFormat::U8, &encode_values(ValueFormat::U8, &[-150.0, 0.0, 99.0]));
        assert_eq!(bytes[..8], [1, 1, 0, 2, 3, 2, 4, 0]);
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let f32_at = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((bytes[8], bytes[12], u64_at(16), u64_at(24)), (5, 3, 6, 7));
        assert_eq!(f64::from_bits(u64_at(32)), 98.5e6);
        assert_eq!(f64::from_bits(u64_at(40)), 25e6);
        assert_eq!((f32_at(48), f32_at(52), f32_at(56)), (0.25, -150.0, 0.65));
        assert_eq!((bytes[60], f64::from_bits(u64_at(64))), (8, 1.5));
        assert_eq!(bytes[72..], [0, 231, 255]);
        let bytes = encode(&header, ValueFormat::F32, &encode_values(ValueFormat::F32, &[-1.5]));
        assert_eq!((bytes[2], &bytes[72..]), (1, &(-1.5f32).to_le_bytes()[..]));
    }

    #[test]
    fn a_level_comes_back_within_half_a_step() {
        for db in [-150.0f32, -149.9, -77.3, -0.1, 0.0, 15.7] {
            let back = REFERENCE_DB + f32::from(step(db)) * STEP_DB;
            assert!((back - db).abs() <= STEP_DB / 2.0 + 1e-4, "{db} {back}");
        }
        assert_eq!((step(-200.0), step(100.0), step(f32::NAN)), (0, 255, 0));
    }
}
