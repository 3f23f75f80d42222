//! The front ends between the antennas and the samples: oscillators, gains, filters and switches.

mod board;
mod magnesium;
mod receiver;
mod rhodium;
mod settings;
mod spi;
mod zbx;

pub(crate) use board::Board;
pub(crate) use receiver::Receiver;
pub(crate) use settings::FrontEnd;

use crate::personality::FrontEndKind;
use millstream_wire::regs::front_end::RxAntenna;

/// Transmission between parts that the switches do not join, dB.
pub(crate) const ISOLATION_DB: f64 = -40.0;

/// The state in which a channel receives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reception {
    pub lo_hz: f64,
    pub gain_db: f64,
    pub bandwidth_hz: f64,
    /// The antenna that the switches choose; `None` when they pass another band, or none.
    pub antenna: Option<RxAntenna>,
}

impl FrontEndKind {
    /// Returns whether tuning and gain have their effects.
    pub const fn has_effects(self) -> bool {
        !matches!(self, FrontEndKind::Zbx)
    }

    /// Returns the bits of its converters.
    pub const fn converter_bits(self) -> u32 {
        match self {
            FrontEndKind::Ad9361 | FrontEndKind::Ad9361Swapped => 12,
            FrontEndKind::Ad9371 => 16,
            FrontEndKind::Lmx2592 => 14,
            FrontEndKind::Zbx => 12,
        }
    }
}
