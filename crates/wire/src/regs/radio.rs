//! Radio block registers. The constants are the offsets of compat 0.x, of UHD 4.0 to 4.9; they
//! name the registers of compat 1.x, of UHD 4.10 on, too, and [`RadioMap`] has the addresses.

mod map;

pub use map::{RadioMap, gain_of, gain_word};

/// Shared, read: `[31:16]` major (0 or 1), `[15:0]` minor (1).
pub const COMPAT: u32 = 0x0000;
/// Shared, read: time of the radio in ticks, bits 31 to 0.
pub const TIME_LO: u32 = 0x0004;
/// Shared, read: time of the radio in ticks, bits 63 to 32.
pub const TIME_HI: u32 = 0x0008;
/// Shared, read: `[31:16]` bits per sample (32), `[15:0]` samples per cycle.
pub const SAMPLE_WIDTH: u32 = 0x1004;

/// Offset, read, compat 1.x: [`FEATURE_TX_GAIN`] and [`FEATURE_RX_GAIN`].
pub const FEATURES: u32 = 0x08;
/// [`FEATURES`]: the transmitter has a complex gain.
pub const FEATURE_TX_GAIN: u32 = 1 << 0;
/// [`FEATURES`]: the receiver has a complex gain.
pub const FEATURE_RX_GAIN: u32 = 1 << 1;

/// The address of the registers of channel 0.
pub const CHANNEL_BASE: u32 = 0x1000;
/// Distance of the registers of two channels.
pub const CHANNEL_STRIDE: u32 = 0x80;

/// Offset: loopback enable.
pub const LOOPBACK: u32 = 0x00;
/// Offset, read: free command slots, 0 to 32.
pub const RX_STATUS: u32 = 0x10;
/// Offset: [`RxCommand`]; writing it queues the command.
pub const RX_CMD: u32 = 0x14;
/// Offset: length of a finite acquisition in radio words, bits 31 to 0.
pub const RX_NUM_WORDS_LO: u32 = 0x18;
/// Offset: length of a finite acquisition in radio words, bits 47 to 32.
pub const RX_NUM_WORDS_HI: u32 = 0x1C;
/// Offset: start time in ticks, bits 31 to 0.
pub const RX_TIME_LO: u32 = 0x20;
/// Offset: start time in ticks, bits 63 to 32.
pub const RX_TIME_HI: u32 = 0x24;
/// Offset: radio words per packet.
pub const RX_WORDS_PER_PKT: u32 = 0x28;
/// Offset: crossbar port for receive errors.
pub const RX_ERR_PORT: u32 = 0x2C;
/// Offset: remote control port for receive errors.
pub const RX_ERR_REM_PORT: u32 = 0x30;
/// Offset: remote endpoint for receive errors.
pub const RX_ERR_REM_EPID: u32 = 0x34;
/// Offset: address to write receive errors to.
pub const RX_ERR_ADDR: u32 = 0x38;
/// Offset, read: the receiver's current sample.
pub const RX_DATA: u32 = 0x3C;
/// Offset: the sample transmitted when idle.
pub const TX_IDLE_VALUE: u32 = 0x40;
/// Offset: `TX_POLICY_*`.
pub const TX_ERR_POLICY: u32 = 0x44;
/// Offset: crossbar port for transmit errors.
pub const TX_ERR_PORT: u32 = 0x48;
/// Offset: remote control port for transmit errors.
pub const TX_ERR_REM_PORT: u32 = 0x4C;
/// Offset: remote endpoint for transmit errors.
pub const TX_ERR_REM_EPID: u32 = 0x50;
/// Offset: address to write transmit errors to.
pub const TX_ERR_ADDR: u32 = 0x54;
/// Offset, compat 1.x: the complex gain behind the receiver, see [`gain_word`]. Compat 0.x has
/// nothing there.
pub const RX_GAIN: u32 = 0x60;
/// Offset, compat 1.x: the complex gain before the transmitter.
pub const TX_GAIN: u32 = 0x64;
/// The [`gain_word`] of a gain of one.
pub const GAIN_ONE: u32 = 1 << 30;
/// Offset: 1 = received packets carry time.
pub const RX_HAS_TIME: u32 = 0x70;

/// The address of front-end control: 8 bytes per register, with meanings of the daughterboard.
pub const FRONT_END_BASE: u32 = 0x80000;

/// [`TX_ERR_POLICY`]: resume at the next packet; the default.
pub const TX_POLICY_NEXT_PACKET: u32 = 1;
/// [`TX_ERR_POLICY`]: resume at the next burst.
pub const TX_POLICY_NEXT_BURST: u32 = 2;

/// Most receive commands that queue up.
pub const RX_CMD_SLOTS: u32 = 32;

/// Returns the address of a register of a channel.
#[must_use]
pub const fn channel_register(channel: u8, offset: u32) -> u32 {
    CHANNEL_BASE + CHANNEL_STRIDE * channel as u32 + offset
}

/// Returns the channel and offset of an address in the per-channel range of `channels` channels.
/// The shared [`SAMPLE_WIDTH`] lies in the range of channel 0, at an offset that no channel uses.
#[must_use]
pub const fn channel_of(address: u32, channels: u8) -> Option<(u8, u32)> {
    if address < CHANNEL_BASE {
        return None;
    }
    let channel = (address - CHANNEL_BASE) / CHANNEL_STRIDE;
    if channel >= channels as u32 {
        return None;
    }
    Some((channel as u8, (address - CHANNEL_BASE) % CHANNEL_STRIDE))
}

/// The operation of [`RX_CMD`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RxMode {
    /// 0: stop; the current packet ends with EOB.
    Stop,
    /// 1: receive the number of radio words in `RX_NUM_WORDS_*`.
    Finite,
    /// 2: receive until stopped.
    Continuous,
}

/// The word written to [`RX_CMD`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RxCommand {
    /// `[1:0]` the operation.
    pub mode: RxMode,
    /// Bit 31: execute at the time in `RX_TIME_*` instead of at once.
    pub timed: bool,
    /// Bit 30, compat 1.x: execute when the transmitter of the channel runs. Not together with
    /// [`RxCommand::timed`].
    pub with_transmitter: bool,
}

impl RxCommand {
    /// A command that is executed at once.
    #[must_use]
    pub const fn now(mode: RxMode) -> RxCommand {
        RxCommand { mode, timed: false, with_transmitter: false }
    }

    /// The same, executed at the time in `RX_TIME_*`.
    #[must_use]
    pub const fn timed(mode: RxMode) -> RxCommand {
        RxCommand { timed: true, ..RxCommand::now(mode) }
    }

    /// Decodes the word; `None` for mode 3, which is not assigned.
    #[must_use]
    pub const fn from_word(word: u32) -> Option<RxCommand> {
        let mode = match word & 3 {
            0 => RxMode::Stop,
            1 => RxMode::Finite,
            2 => RxMode::Continuous,
            _ => return None,
        };
        let with_transmitter = word >> 30 & 1 != 0;
        Some(RxCommand { mode, timed: word >> 31 != 0, with_transmitter })
    }

    /// Encodes the word.
    #[must_use]
    pub const fn to_word(self) -> u32 {
        self.mode as u32 | (self.timed as u32) << 31 | (self.with_transmitter as u32) << 30
    }
}

/// Asynchronous messages: control writes from the device, always with time and one data word.
pub mod async_msg {
    /// Address of channel 0's transmit messages.
    pub const TX_BASE: u32 = 0x0000;
    /// Address of channel 0's receive messages.
    pub const RX_BASE: u32 = 0x1000;
    /// Distance of the addresses of two channels.
    pub const CHANNEL_STRIDE: u32 = 0x40;

    /// A radio's message about one of its channels.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Event {
        /// Transmit 1: no data when needed inside a burst; the burst is over.
        TxUnderrun,
        /// Transmit 2: a packet came after its time.
        TxLate,
        /// Transmit 3: the last sample of a burst has been sent.
        TxBurstAck,
        /// Receive 1: a timed command came after its time.
        RxLateCommand,
        /// Receive 2: samples could not be sent; reception has stopped.
        RxOverrun,
    }

    impl Event {
        /// Returns the data word.
        #[must_use]
        pub const fn code(self) -> u32 {
            match self {
                Event::TxUnderrun | Event::RxLateCommand => 1,
                Event::TxLate | Event::RxOverrun => 2,
                Event::TxBurstAck => 3,
            }
        }

        /// Returns the address that a host programs into the error reporting registers of this
        /// channel.
        #[must_use]
        pub const fn address(self, channel: u8) -> u32 {
            let base = match self {
                Event::TxUnderrun | Event::TxLate | Event::TxBurstAck => TX_BASE,
                Event::RxLateCommand | Event::RxOverrun => RX_BASE,
            };
            base + CHANNEL_STRIDE * channel as u32
        }

        /// Returns the event and channel of a message; `None` for other messages.
        #[must_use]
        pub const fn from_message(address: u32, code: u32) -> Option<(Event, u8)> {
            let (base, event) = match (address >= RX_BASE, code) {
                (false, 1) => (TX_BASE, Event::TxUnderrun),
                (false, 2) => (TX_BASE, Event::TxLate),
                (false, 3) => (TX_BASE, Event::TxBurstAck),
                (true, 1) => (RX_BASE, Event::RxLateCommand),
                (true, 2) => (RX_BASE, Event::RxOverrun),
                _ => return None,
            };
            let channel = (address - base) / CHANNEL_STRIDE;
            if channel > u8::MAX as u32 || (address - base) % CHANNEL_STRIDE != 0 {
                return None;
            }
            Some((event, channel as u8))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::async_msg::Event;
    use super::*;

    #[test]
    fn addresses_of_channels_are_found_again() {
        assert_eq!(channel_register(1, RX_CMD), 0x1094);
        assert_eq!(channel_of(0x1094, 2), Some((1, RX_CMD)));
        assert_eq!(channel_of(0x1094, 1), None);
        assert_eq!(channel_of(0x0FFC, 2), None);
        assert_eq!(channel_of(u32::MAX, 255), None);
    }

    #[test]
    fn receive_commands_are_the_words_uhd_writes() {
        let word = |mode, timed| match timed {
            true => RxCommand::timed(mode).to_word(),
            false => RxCommand::now(mode).to_word(),
        };
        assert_eq!(word(RxMode::Continuous, false), 2);
        assert_eq!(word(RxMode::Continuous, true), 0x8000_0002);
        assert_eq!(word(RxMode::Finite, true), 0x8000_0001);
        assert_eq!(word(RxMode::Stop, false), 0);
        for word in [0, 1, 2, 0x4000_0001, 0x8000_0000, 0x8000_0001, 0x8000_0002] {
            assert_eq!(RxCommand::from_word(word).unwrap().to_word(), word);
        }
        assert_eq!(RxCommand::from_word(3), None);
    }

    #[test]
    fn every_event_is_recognised_on_every_channel() {
        use Event::*;
        for event in [TxUnderrun, TxLate, TxBurstAck, RxLateCommand, RxOverrun] {
            for channel in [0, 1, 7] {
                let address = event.address(channel);
                assert_eq!(Event::from_message(address, event.code()), Some((event, channel)));
            }
        }
        assert_eq!(RxOverrun.address(1), 0x1040);
        assert_eq!(Event::from_message(0x1000, 3), None);
        assert_eq!(Event::from_message(0x0004, 1), None);
        assert_eq!(Event::from_message(u32::MAX, 1), None);
    }
}
