//! The front end of an E320: an AD9361 with its oscillators, gains and filters, and the switches to
//! its antennas (blocks section 3).

mod ad9361;
mod receiver;
mod settings;
mod switches;

pub(crate) use receiver::Receiver;
pub(crate) use settings::FrontEnd;
pub(crate) use switches::{AntennaPort, SwitchWords};

/// Transmission between parts that the switches do not join, dB.
pub(crate) const ISOLATION_DB: f64 = -40.0;

/// The state in which a channel receives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reception {
    pub lo_hz: f64,
    pub gain_db: f64,
    pub bandwidth_hz: f64,
    /// The antenna that the switches choose; `None` when they pass another band, or none.
    pub antenna: Option<AntennaPort>,
}
