//! A daughterboard as its radio block reaches it: by registers from 0x80000 on.

use super::magnesium::Magnesium;
use super::rhodium::Rhodium;
use super::settings::BOARD_CHANNELS;
use super::zbx::Zbx;
use super::{FrontEnd, Reception};
use crate::personality::FrontEndKind;
use millstream_wire::regs::front_end::{OutputWords, SWITCHES, e3xx, write_outputs};

/// The registers of a daughterboard.
#[derive(Debug)]
pub(crate) enum Board {
    /// The switches before an AD9361, by channel.
    E320([OutputWords; BOARD_CHANNELS]),
    /// Its channels are the chains of the AD9361 in the other order.
    E310([OutputWords; BOARD_CHANNELS]),
    N310(Box<Magnesium>),
    N320(Box<Rhodium>),
    X410(Box<Zbx>),
}

impl Board {
    /// Returns the state after power-on.
    pub fn new(kind: FrontEndKind) -> Self {
        match kind {
            FrontEndKind::Ad9361 => Self::E320(Default::default()),
            FrontEndKind::Ad9361Swapped => Self::E310(Default::default()),
            FrontEndKind::Ad9371 => Self::N310(Box::default()),
            FrontEndKind::Lmx2592 => Self::N320(Box::default()),
            FrontEndKind::Zbx => Self::X410(Box::default()),
        }
    }

    /// Reads a register; those without a memory read as 0.
    pub fn read(&self, address: u32) -> u32 {
        match self {
            Self::E320(_) | Self::E310(_) => 0,
            Self::N310(board) => board.read(address),
            Self::N320(board) => board.read(address),
            Self::X410(board) => board.read(address),
        }
    }

    /// Writes a register; those without a function have no effect.
    pub fn write(&mut self, address: u32, value: u32) {
        match self {
            Self::E320(words) | Self::E310(words) => {
                write_outputs(words, SWITCHES, address, value);
            }
            Self::N310(board) => board.write(address, value),
            Self::N320(board) => board.write(address, value),
            Self::X410(board) => board.write(address, value),
        }
    }

    /// Returns the state in which the channel of port `port` receives, with `settings` from remote
    /// procedure calls and a master clock of `clock_hz`.
    pub fn reception(
        &self,
        port: usize,
        transmits: bool,
        settings: &FrontEnd,
        clock_hz: f64,
    ) -> Reception {
        let tuning = &settings.rx;
        // An AD9361 behind switches, of which one word passes an antenna at its frequency.
        let switched =
            |channel: usize, antenna: fn(usize, u32, f64) -> _, words: &[OutputWords]| {
                Reception {
                    lo_hz: tuning.lo_hz,
                    gain_db: tuning.gain_db[channel],
                    bandwidth_hz: tuning.bandwidth_hz[channel],
                    // Words for an idle channel are not asked for: its samples go nowhere.
                    antenna: antenna(port, words[port].of(true, transmits), tuning.lo_hz),
                }
            };
        match self {
            Self::E320(words) => switched(port, e3xx::antenna, words),
            Self::E310(words) => switched(1 - port, e3xx::e310_antenna, words),
            Self::N310(board) => board.reception(port, tuning, clock_hz),
            Self::N320(board) => board.reception(),
            Self::X410(board) => board.reception(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_wire::regs::front_end::RxAntenna;

    /// The registers of the words of channel 0 and 1, and words that UHD 4.3 writes for 2.4 GHz.
    #[test]
    fn the_word_of_the_channel_and_state_chooses_the_antenna() {
        let antenna = |board: &Board, kind, port, transmits| {
            let settings = FrontEnd::new(kind, true);
            board.reception(port, transmits, &settings, 16e6).antenna
        };
        let tx_rx = Some(RxAntenna::TxRx);
        for (kind, register, word, port, transmits) in [
            (FrontEndKind::Ad9361, 0x80608, 0x1_0041, 0, false),
            (FrontEndKind::Ad9361, 0x80618, 0x3_4441, 0, true),
            (FrontEndKind::Ad9361, 0x80E08, 0x0_4041, 1, false),
            (FrontEndKind::Ad9361Swapped, 0x80608, 0x90A0, 0, false),
            (FrontEndKind::Ad9361Swapped, 0x80E18, 0xA068, 1, true),
        ] {
            let mut board = Board::new(kind);
            board.write(register, word);
            for (port_read, state) in [(0, false), (0, true), (1, false), (1, true)] {
                let want = if (port_read, state) == (port, transmits) { tx_rx } else { None };
                assert_eq!(antenna(&board, kind, port_read, state), want, "{register:#x}");
            }
        }
    }
}
