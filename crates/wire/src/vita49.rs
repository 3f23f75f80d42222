//! Packets of samples by ANSI/VITA 49.2-2017, in the profile of DIFI (IEEE-ISTO 4900-2021, 1.1):
//! signal data and its context. Clauses are those of VITA 49.2. The header that is read is that of
//! any profile, and of VITA 49.0, which has the same one.
//!
//! All words are big-endian. A packet has a header, a stream identifier, a class identifier and a
//! timestamp of whole seconds and picoseconds (clause 5.1), then data without a trailer (clause 6),
//! or the context fields that DIFI wants, in every packet all whose values are known (clause 9).

use crate::{Error, Result};

/// Bytes before the samples of a data packet: seven words.
pub const DATA_HEADER_LEN: usize = 28;
/// Bytes of a context packet with all fields: 27 words.
pub const CONTEXT_LEN: usize = 108;
/// The organisation that defines the packet classes: the DIFI Consortium (clause 5.1.3).
pub const OUI: u32 = 0x6A_621E;

/// The packet class of signal data, and of its context.
const CLASSES: [u32; 2] = [0, 1];
/// The packet types of signal data with a stream identifier, and of context (clause 5.1.1).
const TYPES: [u32; 2] = [0x1, 0x4];
/// The fields of a context packet, without the indicator of a change (clause 9.1, CIF0): reference
/// point, bandwidth, IF and RF frequency, IF band offset, reference level, gain, sample rate,
/// timestamp adjustment and calibration, state and events, format of the data.
const CIF0: u32 = 0x7BB9_8000;
/// The fields in CIF0 that can be unknown: RF frequency and gain.
const FREQUENCY: u32 = 1 << 27;
const GAIN: u32 = 1 << 23;
/// The indicator of a change in CIF0.
const CHANGED: u32 = 1 << 31;
/// DIFI's reference point of these fields.
const REFERENCE_POINT: u32 = 0x64;
/// Format of the data (clause 9.13.3): link-efficient packing, complex cartesian, signed
/// fixed-point, 16 bits of 16.
const FORMAT_SC16: [u32; 2] = [0xA000_03CF, 0];
/// State and events (clause 9.10.8): the indicator of lost samples, and that it is valid.
const LOSS_ENABLE: u32 = 1 << 24;
const LOSS: u32 = 1 << 12;

/// The epoch of the whole seconds (clause 5.1.1, TSI).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epoch {
    /// Coordinated universal time.
    Utc,
    /// GPS time.
    Gps,
    /// Another one, such as the start of the device's clock.
    Other,
}

/// The fields that begin every packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrologueRepr {
    /// The stream.
    pub stream: u32,
    /// The number of the packet among those of its kind; its lowest four bits are sent.
    pub count: u8,
    /// The epoch of `seconds`.
    pub epoch: Epoch,
    /// Whole seconds.
    pub seconds: u32,
    /// The rest, picoseconds, below 10¹².
    pub picoseconds: u64,
}

impl PrologueRepr {
    /// Writes the seven words; `kind` is the place in [`TYPES`] and [`CLASSES`].
    fn emit(&self, kind: usize, words: usize, out: &mut Words<'_>) -> Result<()> {
        let size = u32::from(u16::try_from(words).map_err(|_| Error::PacketTooLong)?);
        if self.picoseconds >= 1_000_000_000_000 {
            return Err(Error::FieldOverflow);
        }
        let epoch = match self.epoch {
            Epoch::Utc => 1,
            Epoch::Gps => 2,
            Epoch::Other => 3,
        };
        // A class identifier follows. Context has the time of the packet, not that of a change
        // (DIFI: TSM is 1 in context, and that bit is 0 in data). Fractions are picoseconds (TSF).
        let timestamp_mode = kind as u32;
        let class = 1;
        out.put(
            TYPES[kind] << 28
                | class << 27
                | timestamp_mode << 24
                | epoch << 22
                | 2 << 20
                | u32::from(self.count & 0xF) << 16
                | size,
        )?;
        out.put(self.stream)?;
        out.put(OUI)?;
        out.put(CLASSES[kind])?;
        out.put(self.seconds)?;
        out.put_wide(self.picoseconds)
    }
}

/// What the header of any packet says, in the order of its words (clause 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// It carries signal data; otherwise context, commands or data of another kind.
    pub is_data: bool,
    /// The number of the packet among those of its kind, modulo 16.
    pub count: u8,
    /// Bytes of the whole packet.
    pub len: usize,
    /// The stream; `None` for data without a stream identifier.
    pub stream: Option<u32>,
    /// Whole seconds of an epoch.
    pub seconds: Option<u32>,
    /// The rest of the time.
    pub fraction: Option<Fraction>,
    /// Bytes before the payload.
    pub header_len: usize,
}

/// The fractional part of a time (clause 5.1.1, TSF).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fraction {
    /// Samples since the last whole second.
    Samples(u64),
    /// Picoseconds since the last whole second.
    Picoseconds(u64),
    /// A count of samples that runs freely.
    Free(u64),
}

impl Header {
    /// Reads a header; the packet behind it may be cut off.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::UnknownPacketType`] for types that the standard does not
    /// define, [`Error::LengthTooSmall`] for a packet that ends within its header.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut words = bytes
            .chunks_exact(4)
            .map(|word| word.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)));
        let mut next = || words.next().ok_or(Error::Truncated);
        let first = next()?;
        let (kind, mut header_len) = (first >> 28, 4);
        if kind > 7 {
            return Err(Error::UnknownPacketType);
        }
        let mut word = |is_there: bool| {
            header_len += if is_there { 4 } else { 0 };
            is_there.then(&mut next).transpose()
        };
        // Signal data and extension data, each without and with a stream identifier.
        let stream = word(!matches!(kind, 0 | 2))?;
        let has_class = first >> 27 & 1 == 1;
        for _ in 0..2 {
            word(has_class)?;
        }
        let seconds = word(first >> 22 & 3 != 0)?;
        let mode = first >> 20 & 3;
        let fraction = word(mode != 0)?.zip(word(mode != 0)?);
        let fraction = fraction.map(|(high, low)| u64::from(high) << 32 | u64::from(low));
        let fraction = fraction.map(match mode {
            1 => Fraction::Samples,
            2 => Fraction::Picoseconds,
            _ => Fraction::Free,
        });
        let len = 4 * (first & 0xFFFF) as usize;
        if len < header_len {
            return Err(Error::LengthTooSmall);
        }
        let count = (first >> 16 & 0xF) as u8;
        Ok(Self { is_data: kind < 2, count, len, stream, seconds, fraction, header_len })
    }
}

/// Writes the header of a data packet of `samples` complex samples of 16-bit integers, which follow
/// it; returns [`DATA_HEADER_LEN`].
///
/// # Errors
/// [`Error::PacketTooLong`] for more than 65528 samples; [`Error::FieldOverflow`] for a second or
/// more of picoseconds; [`Error::BufferTooSmall`].
pub fn emit_data_header(
    prologue: &PrologueRepr,
    samples: usize,
    buffer: &mut [u8],
) -> Result<usize> {
    let mut out = Words { buffer, len: 0 };
    prologue.emit(0, (DATA_HEADER_LEN / 4).saturating_add(samples), &mut out)?;
    Ok(out.len)
}

/// The context of a stream: what its samples are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContextRepr {
    /// Whether a field differs from the context before (clause 9.1.1, bit 31 of CIF0).
    pub is_changed: bool,
    /// Bandwidth, Hz (clause 9.5.1).
    pub bandwidth_hz: f64,
    /// The frequency in the middle of the samples' band, Hz (clause 9.5.10); `None`: not known, so
    /// the packet has no such field.
    pub frequency_hz: Option<f64>,
    /// Gain, dB (clause 9.5.3); `None` as above.
    pub gain_db: Option<f64>,
    /// Samples per second (clause 9.5.12).
    pub rate_hz: f64,
    /// Whether samples are missing right before the timestamp (clause 9.10.8).
    pub is_after_loss: bool,
}

impl ContextRepr {
    /// Writes a context packet; returns its length, at most [`CONTEXT_LEN`].
    ///
    /// # Errors
    /// [`Error::FieldOverflow`] for a value that its field cannot hold; [`Error::BufferTooSmall`].
    pub fn emit(&self, prologue: &PrologueRepr, buffer: &mut [u8]) -> Result<usize> {
        let mut out = Words { buffer, len: 0 };
        let (mut fields, mut words) = (CIF0, CONTEXT_LEN / 4);
        if self.frequency_hz.is_none() {
            (fields, words) = (fields & !FREQUENCY, words - 2);
        }
        if self.gain_db.is_none() {
            (fields, words) = (fields & !GAIN, words - 1);
        }
        prologue.emit(1, words, &mut out)?;
        out.put(fields | if self.is_changed { CHANGED } else { 0 })?;
        out.put(REFERENCE_POINT)?;
        out.put_wide(hertz(self.bandwidth_hz)?)?;
        // Samples are at 0 Hz: no IF, and no offset of the band from it (clauses 9.5.5, 9.5.4).
        out.put_wide(0)?;
        if let Some(frequency_hz) = self.frequency_hz {
            out.put_wide(hertz(frequency_hz)?)?;
        }
        out.put_wide(0)?;
        // The level of full scale is not known (clause 9.5.9).
        out.put(0)?;
        if let Some(gain_db) = self.gain_db {
            out.put(decibels(gain_db)?)?;
        }
        out.put_wide(hertz(self.rate_hz)?)?;
        // Timestamp adjustment and calibration (clauses 9.7.3.1 and 9.7.3.3).
        out.put_wide(0)?;
        out.put(0)?;
        out.put(LOSS_ENABLE | if self.is_after_loss { LOSS } else { 0 })?;
        FORMAT_SC16.into_iter().try_for_each(|word| out.put(word))?;
        Ok(out.len)
    }
}

/// Returns a frequency as a field: a signed number with 20 bits behind the point.
fn hertz(value: f64) -> Result<u64> {
    let scaled = value * f64::from(1u32 << 20);
    // 2^63: the first float that does not fit.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&scaled) {
        return Err(Error::FieldOverflow);
    }
    // Without std there is no `round`; half a unit is a half of a millionth of a hertz.
    let half = if scaled < 0.0 { -0.5 } else { 0.5 };
    Ok((scaled + half) as i64 as u64)
}

/// Returns a gain as a field: the first stage in the lower half, with 7 bits behind the point.
fn decibels(value: f64) -> Result<u32> {
    let scaled = value * 128.0;
    if !(-32_768.0..32_767.5).contains(&scaled) {
        return Err(Error::FieldOverflow);
    }
    let half = if scaled < 0.0 { -0.5 } else { 0.5 };
    Ok(u32::from((scaled + half) as i16 as u16))
}

/// Writes the samples of a data packet: each value big-endian.
///
/// # Panics
/// If `buffer` has not four bytes for each sample.
pub fn emit_samples(samples: &[[i16; 2]], buffer: &mut [u8]) {
    assert!(buffer.len() / 4 >= samples.len(), "four bytes for each sample");
    for (place, [i, q]) in buffer.chunks_exact_mut(4).zip(samples) {
        let ([a, b], [c, d]) = (i.to_be_bytes(), q.to_be_bytes());
        place.copy_from_slice(&[a, b, c, d]);
    }
}

/// Words in a buffer of fixed size.
struct Words<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl Words<'_> {
    fn put(&mut self, word: u32) -> Result<()> {
        let end = self.len + 4;
        let room = self.buffer.get_mut(self.len..end).ok_or(Error::BufferTooSmall)?;
        room.copy_from_slice(&word.to_be_bytes());
        self.len = end;
        Ok(())
    }

    fn put_wide(&mut self, words: u64) -> Result<()> {
        self.put((words >> 32) as u32)?;
        self.put(words as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROLOGUE: PrologueRepr = PrologueRepr {
        stream: 0x0102_0304,
        count: 0x1A,
        epoch: Epoch::Utc,
        seconds: 5,
        picoseconds: 500_000_000_000,
    };

    #[test]
    fn a_data_packet_is_that_of_the_standard() {
        let mut packet = [0xEE; 36];
        assert_eq!(emit_data_header(&PROLOGUE, 2, &mut packet), Ok(DATA_HEADER_LEN));
        emit_samples(&[[1, -2], [0x1234, 0]], &mut packet[DATA_HEADER_LEN..]);
        let mut expected = Vec::new();
        // Type 1, class identifier, UTC, picoseconds, count 10, 9 words.
        for word in [0x186A_0009, 0x0102_0304, 0x006A_621E, 0, 5, 0x74, 0x6A52_8800u32] {
            expected.extend(word.to_be_bytes());
        }
        expected.extend([0, 1, 0xFF, 0xFE, 0x12, 0x34, 0, 0]);
        assert_eq!(packet[..], expected);
    }

    #[test]
    fn headers_of_any_profile_are_read() {
        let mut packet = [0; 36];
        emit_data_header(&PROLOGUE, 2, &mut packet).unwrap();
        let header = Header {
            is_data: true,
            count: 10,
            len: 36,
            stream: Some(0x0102_0304),
            seconds: Some(5),
            fraction: Some(Fraction::Picoseconds(500_000_000_000)),
            header_len: DATA_HEADER_LEN,
        };
        assert_eq!(Header::parse(&packet), Ok(header));
        assert_eq!(Header::parse(&packet[..27]), Err(Error::Truncated));
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect();
        // Data without a stream identifier, class or seconds, and with a count that runs freely.
        let bytes: Vec<u8> = words(&[0x0033_0004, 1, 2, 9]);
        let found = Header::parse(&bytes).unwrap();
        assert_eq!((found.stream, found.seconds, found.count), (None, None, 3));
        assert_eq!((found.fraction, found.header_len), (Some(Fraction::Free(1 << 32 | 2)), 12));
        let context: Vec<u8> = words(&[0x4000_0002, 7]);
        assert!(!Header::parse(&context).unwrap().is_data);
        let short: Vec<u8> = words(&[0x1000_0001, 7]);
        assert_eq!(Header::parse(&short), Err(Error::LengthTooSmall));
        assert_eq!(Header::parse(&[0x80, 0, 0, 1]), Err(Error::UnknownPacketType));
    }

    #[test]
    fn a_context_packet_has_the_fields_of_its_profile() {
        let context = ContextRepr {
            is_changed: true,
            bandwidth_hz: 5e6,
            frequency_hz: Some(98.5e6),
            gain_db: Some(-0.5),
            rate_hz: 6.25e6,
            is_after_loss: true,
        };
        let mut packet = [0; CONTEXT_LEN];
        assert_eq!(context.emit(&PROLOGUE, &mut packet), Ok(CONTEXT_LEN));
        let words: Vec<_> =
            packet.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
        assert_eq!(words[0], 0x496A_001B, "TSM is 1");
        assert_eq!(words[3], 1, "the class of context");
        assert_eq!(words[7..9], [0xFBB9_8000, 0x64]);
        let wide = |at: usize| u64::from(words[at]) << 32 | u64::from(words[at + 1]);
        let scaled = |hz: u64| hz << 20;
        assert_eq!([9, 11, 13, 15].map(wide), [scaled(5_000_000), 0, scaled(98_500_000), 0]);
        assert_eq!(words[17..19], [0, 0x0000_FFC0], "-0.5 dB in 128 parts");
        assert_eq!((wide(19), wide(21), words[23]), (scaled(6_250_000), 0, 0));
        assert_eq!(words[24..], [0x0100_1000, 0xA000_03CF, 0]);
    }

    #[test]
    fn a_field_whose_value_is_not_known_is_left_out() {
        let context = ContextRepr {
            is_changed: false,
            bandwidth_hz: 5e6,
            frequency_hz: None,
            gain_db: None,
            rate_hz: 6.25e6,
            is_after_loss: false,
        };
        let mut packet = [0; CONTEXT_LEN];
        assert_eq!(context.emit(&PROLOGUE, &mut packet), Ok(CONTEXT_LEN - 12));
        let words: Vec<_> =
            packet.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
        assert_eq!((words[0], words[7]), (0x496A_0018, 0x7339_8000));
        let wide = |at: usize| u64::from(words[at]) << 32 | u64::from(words[at + 1]);
        // Bandwidth; IF, band offset and reference level; sample rate.
        assert_eq!((wide(9), wide(16)), (5_000_000 << 20, 6_250_000 << 20));
        assert_eq!(words[11..16], [0; 5]);
        assert_eq!(words[21..24], [0x0100_0000, 0xA000_03CF, 0]);
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let overflow = Err(Error::FieldOverflow);
        let late = PrologueRepr { picoseconds: 1_000_000_000_000, ..PROLOGUE };
        assert_eq!(emit_data_header(&late, 1, &mut [0; 64]), overflow);
        let long = emit_data_header(&PROLOGUE, 65_529, &mut [0; 64]);
        assert_eq!(long, Err(Error::PacketTooLong));
        assert_eq!(emit_data_header(&PROLOGUE, 65_528, &mut [0; 64]), Ok(28));
        assert_eq!(emit_data_header(&PROLOGUE, 1, &mut [0; 27]), Err(Error::BufferTooSmall));
        let context = ContextRepr {
            is_changed: false,
            bandwidth_hz: 0.0,
            frequency_hz: Some(0.0),
            gain_db: Some(0.0),
            rate_hz: 1.0,
            is_after_loss: false,
        };
        for bad in [f64::NAN, 1e13, -1e13] {
            let context = ContextRepr { frequency_hz: Some(bad), ..context };
            assert_eq!(context.emit(&PROLOGUE, &mut [0; 108]), overflow);
        }
        for bad in [f64::NAN, 300.0, -257.0] {
            let context = ContextRepr { gain_db: Some(bad), ..context };
            assert_eq!(context.emit(&PROLOGUE, &mut [0; 108]), overflow);
        }
    }
}
