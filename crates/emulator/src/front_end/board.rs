//! A daughterboard as its radio block reaches it: by registers from 0x80000 on.

use super::magnesium::Magnesium;
use super::rhodium::Rhodium;
use super::switches::SwitchWords;
use super::zbx::Zbx;
use super::{FrontEnd, Reception};
use crate::personality::FrontEndKind;

/// The registers of a daughterboard.
#[derive(Debug)]
pub(crate) enum Board {
    E320(SwitchWords),
    /// Its channels are the chains of the AD9361 in the other order.
    E310(SwitchWords),
    N310(Box<Magnesium>),
    N320(Box<Rhodium>),
    X410(Box<Zbx>),
}

impl Board {
    /// Returns the state after power-on.
    pub fn new(kind: FrontEndKind) -> Self {
        match kind {
            FrontEndKind::Ad9361 => Self::E320(SwitchWords::default()),
            FrontEndKind::Ad9361Swapped => Self::E310(SwitchWords::default()),
            FrontEndKind::Ad9371 => Self::N310(Box::default()),
            FrontEndKind::Lmx2592 => Self::N320(Box::default()),
            FrontEndKind::Zbx => Self::X410(Box::default()),
        }
    }

    /// Restores the state after power-on.
    pub fn reset(&mut self) {
        match self {
            Self::E320(switches) | Self::E310(switches) => *switches = SwitchWords::default(),
            Self::N310(board) => **board = Magnesium::default(),
            Self::N320(board) => **board = Rhodium::default(),
            Self::X410(board) => **board = Zbx::default(),
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
            Self::E320(switches) | Self::E310(switches) => switches.write(address, value),
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
        match self {
            Self::E320(switches) => Reception {
                lo_hz: tuning.lo_hz,
                gain_db: tuning.gain_db[port],
                bandwidth_hz: tuning.bandwidth_hz[port],
                antenna: switches.antenna(port, transmits, tuning.lo_hz),
            },
            Self::E310(switches) => Reception {
                lo_hz: tuning.lo_hz,
                gain_db: tuning.gain_db[1 - port],
                bandwidth_hz: tuning.bandwidth_hz[1 - port],
                antenna: switches.e310_antenna(port, transmits, tuning.lo_hz),
            },
            Self::N310(board) => board.reception(port, tuning, clock_hz),
            Self::N320(board) => board.reception(),
            Self::X410(board) => board.reception(),
        }
    }
}
