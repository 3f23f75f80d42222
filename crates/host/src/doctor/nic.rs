//! The settings of a network card that its driver reports (ethtool(8)).

use crate::ethtool::{Channels, Coalescing, Ethtool, Offload, Rings};
use serde::{Deserialize, Serialize};

/// The answers of a driver; `None` where it gives none.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct DriverAnswers {
    /// The name of the driver.
    pub driver: String,
    /// The numbers of queues: active, and the maximum.
    pub channels: Option<(Channels, Channels)>,
    /// The numbers of descriptors in its rings: present, and the maximum.
    pub rings: Option<(Rings, Rings)>,
    /// The time that it collects frames before an interrupt.
    pub coalescing: Option<Coalescing>,
    /// The offloads that are off.
    pub off: Vec<Offload>,
}

impl DriverAnswers {
    /// Queries the driver on this machine; `None` where there is no such interface.
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
