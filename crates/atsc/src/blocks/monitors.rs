//! The monitors of the receivers in graphs.

use crate::monitor::Monitor;
use millstream_flow::registry::{BlockParameters, Registry};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The [`Monitor`]s of the receivers in the graphs that were built, by receiver name.
///
/// Blocks with the same parameter `receiver` (default `atsc`) report to the same monitor.
#[derive(Clone, Debug, Default)]
pub struct Monitors {
    by_name: Arc<Mutex<BTreeMap<String, Arc<Monitor>>>>,
}

impl Monitors {
    /// Returns the monitor of the receiver called `name`, and creates it first if necessary.
    #[must_use]
    pub fn of(&self, name: &str) -> Arc<Monitor> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.entry(name.to_owned()).or_default().clone()
    }

    /// Returns every monitor with its receiver's name.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Arc<Monitor>)> {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.iter().map(|(name, monitor)| (name.clone(), monitor.clone())).collect()
    }
}

/// The receiver that a block is part of.
#[derive(BlockParameters)]
pub(super) struct ReceiverName {
    /// name of the receiver that this block is part of
    #[parameter(default = "atsc")]
    receiver: String,
}

impl ReceiverName {
    pub(super) fn monitor(&self, monitors: &Monitors) -> Arc<Monitor> {
        monitors.of(&self.receiver)
    }
}

/// Adds the receiver's blocks to a registry, and returns the monitors that they report to.
///
/// # Panics
/// If the registry has them already.
pub fn register(registry: &mut Registry) -> Monitors {
    registry.register_crate(module_path!());
    registry.shared()
}
