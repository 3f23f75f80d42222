//! What a network card's driver tells of itself (ethtool(8)).

use crate::ethtool::{Channels, Coalescing, Ethtool, Offload, Rings};
use serde::{Deserialize, Serialize};

/// A driver's answers; none where it gives none.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct DriverAnswers {
    /// Its name.
    pub driver: String,
    /// How many queues serve, and how many could.
    pub channels: Option<(Channels, Channels)>,
    /// How many descriptors its rings have, and could have.
    pub rings: Option<(Rings, Rings)>,
    /// How long it gathers before it interrupts.
    pub coalescing: Option<Coalescing>,
    /// Offloads that are off.
    pub off: Vec<Offload>,
}

impl DriverAnswers {
    /// Asks this machine's; none where there is no such interface.
    #[must_use]
    pub fn ask(interface: &str) -> Option<Self> {
        let ethtool = Ethtool::open().ok()?;
        let driver = ethtool.driver(interface).ok()?;
        let is_off = |offload: &Offload| matches!(ethtool.offload(interface, *offload), Ok(false));
        Some(Self {
            driver,
            channels: ethtool.channels(interface).ok(),
            rings: ethtool.rings(interface).ok(),
            coalescing: ethtool.coalescing(interface).ok(),
            off: Offload::ALL.into_iter().filter(is_off).collect(),
        })
    }
}
