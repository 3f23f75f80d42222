//! The header of a WAV file: chunks of RIFF/WAVE ("Multimedia Programming Interface and Data
//! Specifications 1.0", IBM and Microsoft, 1991), up to the samples.

/// The content of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WavHeader {
    /// The kind of values.
    pub values: WavValues,
    /// Values of one moment.
    pub channels: u16,
    /// Moments per second.
    pub rate_hz: u32,
    /// Bits of a value.
    pub bits: u16,
    /// Start of the values, bytes from the start of the file.
    pub data_at: u64,
    /// Bytes of values.
    pub data_bytes: u64,
}

/// Kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WavValues {
    /// Whole numbers; full scale is 1.
    Integer,
    /// Floats.
    Float,
    /// Another code, by its number in the header.
    Other(u16),
}

/// The code that leaves the kind of values to a longer `fmt ` chunk.
const EXTENSIBLE: u16 = 0xFFFE;

/// Reads a header from the first bytes of a file.
pub fn read(bytes: &[u8]) -> Result<WavHeader, String> {
    if bytes.get(..4) != Some(b"RIFF") || bytes.get(8..12) != Some(b"WAVE") {
        return Err("it does not begin with RIFF and WAVE".to_owned());
    }
    let (mut at, mut format) = (12_usize, None);
    loop {
        let (Some(name), Some(length)) = (bytes.get(at..at + 4), word(bytes, at + 4)) else {
            let missing = if format.is_none() { "fmt" } else { "data" };
            return Err(format!("the header of the WAV file has no {missing} chunk"));
        };
        let body = at + 8;
        if name == b"fmt " {
            format = Some(values(bytes, body, length)?);
        } else if name == b"data" {
            let (values, channels, rate_hz, bits) =
                format.ok_or("the header of the WAV file has no fmt chunk")?;
            let (data_at, data_bytes) = (body as u64, u64::from(length));
            return Ok(WavHeader { values, channels, rate_hz, bits, data_at, data_bytes });
        }
        // A chunk of an odd length is followed by one byte of padding.
        let next = u64::from(length) + u64::from(length % 2) + body as u64;
        at = usize::try_from(next).unwrap_or(usize::MAX).min(bytes.len());
    }
}

/// The chunk `fmt `: kind of values, channels, rate, bits.
fn values(bytes: &[u8], at: usize, length: u32) -> Result<(WavValues, u16, u32, u16), String> {
    let short = || "its fmt chunk is too short".to_owned();
    if length < 16 {
        return Err(short());
    }
    let half = |offset| half(bytes, at + offset).ok_or_else(short);
    let (code, channels, bits) = (half(0)?, half(2)?, half(14)?);
    let rate_hz = word(bytes, at + 4).ok_or_else(short)?;
    let code = if code == EXTENSIBLE && length >= 26 { half(24)? } else { code };
    let values = match code {
        1 => WavValues::Integer,
        3 => WavValues::Float,
        other => WavValues::Other(other),
    };
    if channels == 0 || rate_hz == 0 || bits == 0 {
        return Err(format!("its header gives {channels} channels, {rate_hz} Hz and {bits} bits"));
    }
    Ok((values, channels, rate_hz, bits))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32).to_le_bytes();
        [&name[..], &length, body, &[0][..body.len() % 2]].concat()
    }

    fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
        [&b"RIFF\0\0\0\0WAVE"[..], &chunks.concat()].concat()
    }

    /// 48 kHz, 16 bits, two channels.
    const FORMAT: [u8; 16] = [1, 0, 2, 0, 0x80, 0xBB, 0, 0, 0, 0xEE, 2, 0, 4, 0, 16, 0];

    #[test]
    fn chunks_are_passed_over_until_the_data() {
        let odd = chunk(b"LIST", b"abc");
        let bytes = file(&[odd, chunk(b"fmt ", &FORMAT), chunk(b"data", &[0; 8])]);
        let header = read(&bytes).unwrap();
        let (values, data_at) = (WavValues::Integer, bytes.len() as u64 - 8);
        let want =
            WavHeader { values, channels: 2, rate_hz: 48_000, bits: 16, data_at, data_bytes: 8 };
        assert_eq!(header, want);
        let mut longer = [&FORMAT[..], &[22, 0, 16, 0, 0, 0, 0, 0, 3, 0]].concat();
        longer[..2].copy_from_slice(&EXTENSIBLE.to_le_bytes());
        let bytes = file(&[chunk(b"fmt ", &longer), chunk(b"data", &[])]);
        assert_eq!(read(&bytes).unwrap().values, WavValues::Float);
    }

    #[test]
    fn what_is_no_wav_file_is_named() {
        let no_channels = [&[1, 0, 0, 0][..], &FORMAT[4..]].concat();
        for (bytes, part) in [
            (b"RIFX".to_vec(), "does not begin with RIFF"),
            (file(&[]), "no fmt chunk"),
            (file(&[chunk(b"data", &[0; 4])]), "no fmt chunk"),
            (file(&[chunk(b"fmt ", &FORMAT)]), "no data chunk"),
            (file(&[chunk(b"fmt ", &FORMAT[..8])]), "too short"),
            (file(&[chunk(b"fmt ", &no_channels), chunk(b"data", &[])]), "0 channels"),
        ] {
            let error = read(&bytes).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
