//! The layout of samples in packets: integers of one width, I before Q, little-endian.

/// A sample format of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wire {
    /// 16-bit I, then 16-bit Q: 4 bytes a sample.
    Sc16,
    /// 12-bit I, then 12-bit Q, most significant bit first, four samples in three little-endian
    /// 32-bit words: 3 bytes a sample, only in whole groups of four. UHD's name is
    /// `sc12_item32_le`; found by experiment, see `peers/uhd_converters.py`.
    Sc12,
    /// 8-bit I, then 8-bit Q: 2 bytes a sample.
    Sc8,
}

impl Wire {
    /// Every format, the widest first.
    pub const ALL: [Self; 3] = [Self::Sc16, Self::Sc12, Self::Sc8];

    /// Returns the usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sc16 => "sc16",
            Self::Sc12 => "sc12",
            Self::Sc8 => "sc8",
        }
    }

    /// Returns the largest integer, which stands for 1.0 by convention: 32767, 2047 or 127.
    pub fn full_scale(self) -> f64 {
        match self {
            Self::Sc16 => 32767.0,
            Self::Sc12 => 2047.0,
            Self::Sc8 => 127.0,
        }
    }

    /// Returns the number of samples that must be packed together.
    pub fn group_samples(self) -> usize {
        match self {
            Self::Sc16 => Sc16::GROUP_SAMPLES,
            Self::Sc12 => Sc12::GROUP_SAMPLES,
            Self::Sc8 => Sc8::GROUP_SAMPLES,
        }
    }

    /// Returns the bytes that `samples` samples occupy, whole groups.
    pub fn bytes_of(self, samples: usize) -> usize {
        match self {
            Self::Sc16 => Sc16::bytes_of(samples),
            Self::Sc12 => Sc12::bytes_of(samples),
            Self::Sc8 => Sc8::bytes_of(samples),
        }
    }
}

/// A wire format as a type: single samples of a packed buffer.
pub(super) trait WirePacking {
    const WIRE: Wire;
    const GROUP_SAMPLES: usize;
    const GROUP_BYTES: usize;

    /// Reads the sample at `index`.
    fn load(wire: &[u8], index: usize) -> [i16; 2];

    /// Writes a sample at `index`, saturated to the width of the format.
    fn store(wire: &mut [u8], index: usize, sample: [i16; 2]);

    /// Returns the number of samples in `bytes` bytes.
    fn samples_in(bytes: usize) -> usize {
        bytes / Self::GROUP_BYTES * Self::GROUP_SAMPLES
    }

    /// Returns the bytes that `samples` samples occupy, whole groups.
    fn bytes_of(samples: usize) -> usize {
        samples.div_ceil(Self::GROUP_SAMPLES) * Self::GROUP_BYTES
    }
}

pub(super) struct Sc16;
pub(super) struct Sc12;
pub(super) struct Sc8;

impl WirePacking for Sc16 {
    const WIRE: Wire = Wire::Sc16;
    const GROUP_SAMPLES: usize = 1;
    const GROUP_BYTES: usize = 4;

    #[inline]
    fn load(wire: &[u8], index: usize) -> [i16; 2] {
        let [a, b, c, d] = *wire[4 * index..].first_chunk().expect("a whole sample");
        [i16::from_le_bytes([a, b]), i16::from_le_bytes([c, d])]
    }

    #[inline]
    fn store(wire: &mut [u8], index: usize, [i, q]: [i16; 2]) {
        let ([a, b], [c, d]) = (i.to_le_bytes(), q.to_le_bytes());
        wire[4 * index..][..4].copy_from_slice(&[a, b, c, d]);
    }
}

impl WirePacking for Sc8 {
    const WIRE: Wire = Wire::Sc8;
    const GROUP_SAMPLES: usize = 1;
    const GROUP_BYTES: usize = 2;

    #[inline]
    fn load(wire: &[u8], index: usize) -> [i16; 2] {
        let pair: [u8; 2] = *wire[2 * index..].first_chunk().expect("a whole sample");
        pair.map(|byte| i16::from(byte as i8))
    }

    #[inline]
    fn store(wire: &mut [u8], index: usize, sample: [i16; 2]) {
        let byte = |value: i16| value.clamp(i8::MIN.into(), i8::MAX.into()) as u8;
        wire[2 * index..][..2].copy_from_slice(&sample.map(byte));
    }
}

impl Sc12 {
    /// Largest and smallest value.
    pub const LIMITS: (i16, i16) = (-2048, 2047);

    /// Returns the places of a sample's three bytes, most significant first, in the whole buffer:
    /// byte `k` of a big-endian stream is byte `k ^ 3` of little-endian 32-bit words.
    #[inline]
    fn places(index: usize) -> [usize; 3] {
        [3 * index, 3 * index + 1, 3 * index + 2].map(|byte| byte ^ 3)
    }
}

impl WirePacking for Sc12 {
    const WIRE: Wire = Wire::Sc12;
    const GROUP_SAMPLES: usize = 4;
    const GROUP_BYTES: usize = 12;

    #[inline]
    fn load(wire: &[u8], index: usize) -> [i16; 2] {
        let [high, middle, low] = Self::places(index).map(|place| wire[place]);
        // The 12 bits at the top of 16, so that the shift extends the sign.
        [
            i16::from_be_bytes([high, middle]) >> 4,
            i16::from_be_bytes([middle << 4 | low >> 4, low << 4]) >> 4,
        ]
    }

    #[inline]
    fn store(wire: &mut [u8], index: usize, sample: [i16; 2]) {
        let (low, high) = Self::LIMITS;
        let [i, q] = sample.map(|value| value.clamp(low, high) as u16 & 0xFFF);
        let bytes = [(i >> 4) as u8, (i << 4) as u8 | (q >> 8) as u8, q as u8];
        for (place, byte) in Self::places(index).into_iter().zip(bytes) {
            wire[place] = byte;
        }
    }
}
