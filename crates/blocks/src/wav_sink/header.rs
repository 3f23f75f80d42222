//! The header of a WAV file.

use super::WavFormat;

/// The bytes before the samples.
pub(super) const DATA_AT: usize = 92;
/// The bytes of the chunk `ds64`, whose place is kept for it.
const DS64_BYTES: u32 = 28;

/// What the header says.
pub(super) struct WavHeader {
    pub format: WavFormat,
    pub channels: u16,
    pub rate_hz: u32,
    /// The bytes of samples; `None` if nobody knows yet.
    pub data_bytes: Option<u64>,
}

impl WavHeader {
    pub fn to_bytes(&self) -> [u8; DATA_AT] {
        let item_bytes = self.channels * self.format.value_bytes();
        let riff_bytes = self.data_bytes.map(|bytes| bytes + DATA_AT as u64 - 8);
        // A length that does not fit is 0xFFFFFFFF, and `ds64` has it. 0xFFFFFFFF itself says so.
        let is_long = riff_bytes.is_some_and(|bytes| bytes >= u64::from(u32::MAX));
        let short = |bytes: Option<u64>| {
            let short = bytes.filter(|_| !is_long).and_then(|bytes| u32::try_from(bytes).ok());
            short.unwrap_or(u32::MAX).to_le_bytes()
        };
        let frames = self.data_bytes.map(|bytes| bytes / u64::from(item_bytes));
        let long = |count: Option<u64>| count.filter(|_| is_long).unwrap_or(0).to_le_bytes();

        let mut header = [0; DATA_AT];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            header[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(if is_long { b"RF64" } else { b"RIFF" });
        put(&short(riff_bytes));
        put(b"WAVE");
        put(if is_long { b"ds64" } else { b"JUNK" });
        put(&DS64_BYTES.to_le_bytes());
        [riff_bytes, self.data_bytes, frames].into_iter().for_each(|count| put(&long(count)));
        // No other chunk is long.
        put(&[0; 4]);
        put(b"fmt ");
        put(&16u32.to_le_bytes());
        put(&self.format.tag().to_le_bytes());
        put(&self.channels.to_le_bytes());
        put(&self.rate_hz.to_le_bytes());
        put(&self.rate_hz.saturating_mul(item_bytes.into()).to_le_bytes());
        put(&item_bytes.to_le_bytes());
        put(&(8 * self.format.value_bytes()).to_le_bytes());
        // Floats need this chunk, and integers may have it.
        put(b"fact");
        put(&4u32.to_le_bytes());
        put(&short(frames));
        put(b"data");
        put(&short(self.data_bytes));
        header
    }
}
