//! The front-end registers of the E320: its switches and LEDs.
//!
//! Each is a core of general outputs in the radio block. The radio selects one of four words by its
//! own state. Channels are as far apart as [`CHANNEL_STRIDE`].

/// Base of the LEDs' core of channel 0.
pub const LEDS: u32 = 0x80580;
/// Base of the switches' core of channel 0.
pub const SWITCHES: u32 = 0x80600;
/// Distance of the cores of two channels.
pub const CHANNEL_STRIDE: u32 = 0x800;

/// Offset in a core: the word while the radio neither receives nor transmits.
pub const IDLE: u32 = 0x00;
/// Offset: the word while it receives.
pub const RX: u32 = 0x08;
/// Offset: the word while it transmits.
pub const TX: u32 = 0x10;
/// Offset: the word while it does both.
pub const BOTH: u32 = 0x18;
/// Offset: 1 bits are outputs.
pub const DIRECTION: u32 = 0x20;
/// Offset: 1 bits do not follow the radio's state.
pub const STATIC: u32 = 0x28;

/// The four words of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct OutputWords {
    /// [`IDLE`].
    pub idle: u32,
    /// [`RX`].
    pub rx: u32,
    /// [`TX`].
    pub tx: u32,
    /// [`BOTH`].
    pub both: u32,
}

impl OutputWords {
    /// Returns the writes that make a core drive these words: offsets and values.
    #[must_use]
    pub const fn writes(self) -> [(u32, u32); 6] {
        [
            (DIRECTION, u32::MAX),
            (STATIC, 0),
            (IDLE, self.idle),
            (RX, self.rx),
            (TX, self.tx),
            (BOTH, self.both),
        ]
    }
}

/// Fields of a word of the switches.
pub mod switches {
    /// Returns `[2:0]` receive switch 1, `[5:3]` 2 and `[7:6]` 3.
    #[must_use]
    pub const fn rx(first: u32, second: u32, third: u32) -> u32 {
        first & 7 | (second & 7) << 3 | (third & 3) << 6
    }

    /// Returns `[10:8]` transmit switch 1, `[13:11]` 2 and `[18:17]` the amplifier: 1 for the low
    /// band, 2 for the high one, 3 for none.
    #[must_use]
    pub const fn tx(first: u32, second: u32, amplifier: u32) -> u32 {
        (first & 7) << 8 | (second & 7) << 11 | (amplifier & 3) << 17
    }

    /// Returns `[16:14]` the switch at the connector `TX/RX`.
    #[must_use]
    pub const fn connector(way: u32) -> u32 {
        (way & 7) << 14
    }
}

/// Bits of a word of the LEDs, as UHD writes them.
pub mod leds {
    /// The channel receives by the connector `RX2`.
    pub const RX2: u32 = 1 << 0;
    /// It transmits.
    pub const TRANSMITS: u32 = 1 << 1;
    /// It receives by the connector `TX/RX`.
    pub const TX_RX_RECEIVES: u32 = 1 << 2;
}
