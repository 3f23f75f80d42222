//! The protocol of `rtl_tcp`, which many programs speak: a server of unsigned 8-bit samples over
//! TCP. It has no standard; programs agree on this:
//!
//! - The server sends a header of twelve bytes: `RTL0`, the type of the tuner and the number of its
//!   gains, both 32-bit big-endian. Then it sends samples without end: I, then Q, each a byte whose
//!   middle is 128.
//! - The client sends commands of five bytes: a code, and a 32-bit big-endian value.

/// Bytes of the server's header.
pub const HEADER_LEN: usize = 12;

/// Bytes of a command.
pub const COMMAND_LEN: usize = 5;

/// The type of the tuner R820T, whose gains are in tenths of a decibel, as ours are.
pub const TUNER_R820T: u32 = 5;

/// Returns the server's header.
#[must_use]
pub fn header(tuner: u32, gains: u32) -> [u8; HEADER_LEN] {
    let mut bytes = [0; HEADER_LEN];
    bytes[..4].copy_from_slice(b"RTL0");
    bytes[4..8].copy_from_slice(&tuner.to_be_bytes());
    bytes[8..].copy_from_slice(&gains.to_be_bytes());
    bytes
}

/// A command of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RtlCommand {
    /// The frequency, Hz.
    Frequency(u32),
    /// The sample rate, per second.
    SampleRate(u32),
    /// Whether the client sets the gain; otherwise the radio does.
    ManualGain(bool),
    /// The gain, tenths of a decibel.
    Gain(i32),
    /// The gain by its number among those that the header counts.
    GainIndex(u32),
    /// The error of the receiver's crystal, parts per million.
    Correction(i32),
    /// Any other code with its value.
    Other(u8, u32),
}

impl RtlCommand {
    /// Parses a command; every value is one.
    #[must_use]
    pub fn parse(bytes: &[u8; COMMAND_LEN]) -> Self {
        let [code, value @ ..] = *bytes;
        let value = u32::from_be_bytes(value);
        match code {
            0x01 => Self::Frequency(value),
            0x02 => Self::SampleRate(value),
            0x03 => Self::ManualGain(value != 0),
            0x04 => Self::Gain(value as i32),
            0x05 => Self::Correction(value as i32),
            0x0D => Self::GainIndex(value),
            _ => Self::Other(code, value),
        }
    }

    /// Returns the bytes of the command.
    #[must_use]
    pub fn emit(self) -> [u8; COMMAND_LEN] {
        let (code, value) = match self {
            Self::Frequency(hz) => (0x01, hz),
            Self::SampleRate(hz) => (0x02, hz),
            Self::ManualGain(manual) => (0x03, manual.into()),
            Self::Gain(tenths) => (0x04, tenths as u32),
            Self::Correction(ppm) => (0x05, ppm as u32),
            Self::GainIndex(index) => (0x0D, index),
            Self::Other(code, value) => (code, value),
        };
        let [a, b, c, d] = value.to_be_bytes();
        [code, a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_that_of_the_programs() {
        assert_eq!(&header(TUNER_R820T, 29), b"RTL0\0\0\0\x05\0\0\0\x1d");
    }

    #[test]
    fn commands_have_five_bytes() {
        // 100 MHz, as clients send it.
        assert_eq!(RtlCommand::parse(b"\x01\x05\xf5\xe1\x00"), RtlCommand::Frequency(100_000_000));
        assert_eq!(RtlCommand::parse(b"\x04\xff\xff\xff\xf6"), RtlCommand::Gain(-10));
        assert_eq!(RtlCommand::parse(b"\x03\0\0\0\0"), RtlCommand::ManualGain(false));
        assert_eq!(RtlCommand::parse(b"\x0e\0\0\0\x01"), RtlCommand::Other(14, 1));
    }

    #[test]
    fn every_command_comes_back() {
        for code in 0..=255 {
            for value in [0, 1, 0x8000_0000, u32::MAX] {
                let given = RtlCommand::Other(code, value).emit();
                let again = RtlCommand::parse(&given).emit();
                // The gain mode has one bit.
                let same = again == given || (code == 3 && again[4] == 1);
                assert!(same, "{given:?} {again:?}");
            }
        }
    }
}
