//! The header of a WAV file: chunks of RIFF/WAVE ("Multimedia Programming Interface and Data
//! Specifications 1.0", IBM and Microsoft, 1991), up to the samples. Files beyond 4 GiB have their
//! lengths in the chunk `ds64` (EBU Tech 3306, RF64; ITU-R BS.2088, BW64).

use std::fmt;

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
    /// Bytes of the whole file, by the header.
    pub file_bytes: u64,
    /// Bytes of values, by the header; `None` if it says that they are unknown.
    pub data_bytes: Option<u64>,
}

impl WavHeader {
    /// Returns the bytes of values in a file with `there` bytes from `data_at` on, and what is
    /// wrong with the header's own number, in words. `is_part`: the file was left incomplete.
    pub fn data_bytes_of(&self, there: u64, is_part: bool) -> (u64, Option<String>) {
        let rest = |why: &str| {
            let text = format!("its header {why}, so all {there} bytes to the end are samples");
            (there, Some(text))
        };
        match self.data_bytes {
            None => rest("does not tell the length"),
            Some(said) if said > there => {
                let missing = said - there;
                (there, Some(format!("it is truncated: {missing} bytes are missing")))
            }
            Some(said) if said == there => (there, None),
            Some(_) if is_part => rest("was not brought up to date at the end"),
            Some(0) if self.file_bytes != self.data_at + there => rest("says that it is empty"),
            // Programs without RF64 count modulo 4 GiB.
            Some(said) if there > u64::from(u32::MAX) && said < u64::from(u32::MAX) => {
                rest("cannot count beyond 4 GiB")
            }
            // Other chunks.
            Some(said) => (said, None),
        }
    }
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

impl fmt::Display for WavValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Other(2 | 0x11) => "ADPCM",
            Self::Other(6) => "A-law",
            Self::Other(7) => "mu-law",
            Self::Other(0x55) => "MP3",
            Self::Other(code) => return write!(f, "code {code}"),
        })
    }
}

/// The code that leaves the kind of values to a longer `fmt ` chunk.
const EXTENSIBLE: u16 = 0xFFFE;

/// Reads a header from the first bytes of a file.
pub fn read(bytes: &[u8]) -> Result<WavHeader, String> {
    let begin = bytes.get(..4).filter(|_| bytes.get(8..12) == Some(b"WAVE"));
    let is_long = match begin {
        Some(b"RIFF") => false,
        Some(b"RF64" | b"BW64") => true,
        Some(b"RIFX") => {
            return Err("it is RIFX, whose values are big-endian: convert it to RIFF".to_owned());
        }
        _ => return Err("it does not begin with RIFF and WAVE".to_owned()),
    };
    let (mut at, mut format) = (12_usize, None);
    let riff_bytes = word(bytes, 4).unwrap_or(0);
    let (mut file_bytes, mut long) = (u64::from(riff_bytes) + 8, None);
    loop {
        let (Some(name), Some(length)) = (bytes.get(at..at + 4), word(bytes, at + 4)) else {
            let missing = if format.is_none() { "fmt" } else { "data" };
            return Err(format!("the header of the WAV file has no {missing} chunk"));
        };
        let body = at + 8;
        if name == b"fmt " {
            format = Some(values(bytes, body, length)?);
        } else if name == b"ds64" && is_long {
            let count = |at| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
            let lengths = count(body).zip(count(body + 8)).filter(|_| length >= 16);
            let (riff, data) = lengths.ok_or("its ds64 chunk is too short")?;
            (file_bytes, long) = (riff.saturating_add(8), Some(data));
        } else if name == b"data" {
            let (values, channels, rate_hz, bits) =
                format.ok_or("the header of the WAV file has no fmt chunk")?;
            let data_at = body as u64;
            let data_bytes = if length == u32::MAX { long } else { Some(length.into()) };
            return Ok(WavHeader {
                values,
                channels,
                rate_hz,
                bits,
                data_at,
                file_bytes,
                data_bytes,
            });
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
        let (channels, rate_hz, bits) = (2, 48_000, 16);
        let (file_bytes, data_bytes) = (8, Some(8));
        let want = WavHeader { values, channels, rate_hz, bits, data_at, file_bytes, data_bytes };
        assert_eq!(header, want);
        let mut longer = [&FORMAT[..], &[22, 0, 16, 0, 0, 0, 0, 0, 3, 0]].concat();
        longer[..2].copy_from_slice(&EXTENSIBLE.to_le_bytes());
        let bytes = file(&[chunk(b"fmt ", &longer), chunk(b"data", &[])]);
        assert_eq!(read(&bytes).unwrap().values, WavValues::Float);
    }

    #[test]
    fn a_length_that_the_header_cannot_know_is_that_of_the_file() {
        let header = |begin: &[u8], said: u32, before: Vec<u8>| {
            let data = [&b"data"[..], &said.to_le_bytes()].concat();
            let format = chunk(b"fmt ", &FORMAT);
            let bytes = [begin, &[0xff; 4], b"WAVE", &before[..], &format[..], &data[..]];
            read(&bytes.concat()).unwrap()
        };
        let riff = |said| header(b"RIFF", said, Vec::new());
        let long = |said: u64| {
            let ds64 = [said + 80, said, said / 4].map(u64::to_le_bytes).concat();
            header(b"RF64", u32::MAX, chunk(b"ds64", &[&ds64[..], &[0; 4]].concat()))
        };
        let big = 5 << 30;
        for (header, there, is_part, bytes, words) in [
            (riff(400), 400, false, 400, None),
            (riff(400), 430, false, 400, None),
            (riff(400), 430, true, 430, Some("not brought up to date")),
            (riff(400), 300, false, 300, Some("100 bytes are missing")),
            (riff(0), 0, false, 0, None),
            (riff(0), 400, false, 400, Some("says that it is empty")),
            (riff(u32::MAX), 400, false, 400, Some("does not tell the length")),
            (riff(1 << 30), big, false, big, Some("cannot count beyond 4 GiB")),
            (long(big), big, false, big, None),
            (long(big), big + 20, false, big, None),
        ] {
            let (found, text) = header.data_bytes_of(there, is_part);
            assert_eq!(found, bytes, "{header:?} {text:?}");
            assert_eq!(text.is_some(), words.is_some(), "{text:?}");
            assert!(text.unwrap_or_default().contains(words.unwrap_or_default()));
        }
        // An honest 0, with another chunk behind it.
        let honest = WavHeader { file_bytes: riff(0).data_at + 30, ..riff(0) };
        assert_eq!(honest.data_bytes_of(30, false), (0, None));
    }

    #[test]
    fn what_is_no_wav_file_is_named() {
        let no_channels = [&[1, 0, 0, 0][..], &FORMAT[4..]].concat();
        for (bytes, part) in [
            (b"RIFX".to_vec(), "does not begin with RIFF"),
            (b"RIFX\0\0\0\0WAVE".to_vec(), "whose values are big-endian"),
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
