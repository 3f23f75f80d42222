//! The radio of a soak, and what it tells of itself.

use super::SoakError;
use millstream_radio::DeviceArgs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// An emulated radio that tells what it did, and takes faults.
pub trait SoakRadio {
    /// How to reach it, and over which link.
    fn args(&self) -> DeviceArgs;

    /// The folder of its threads (`/proc/PID/task`).
    fn threads(&self) -> PathBuf;

    /// Its counters by name.
    ///
    /// # Errors
    /// The reason in words.
    fn counters(&mut self) -> Result<BTreeMap<String, u64>, String>;

    /// Switches a fault on; returns its number.
    ///
    /// # Errors
    /// The reason in words.
    fn add_fault(&mut self, spec: &str) -> Result<u64, String>;

    /// Its faults.
    ///
    /// # Errors
    /// The reason in words.
    fn faults(&mut self) -> Result<Vec<ActiveFault>, String>;

    /// Switches a fault off.
    ///
    /// # Errors
    /// The reason in words.
    fn remove_fault(&mut self, id: u64) -> Result<(), String>;
}

/// A fault of the radio.
#[derive(Debug, Clone, Deserialize)]
pub struct ActiveFault {
    /// Its number.
    pub id: u64,
    /// Its text.
    pub fault: String,
    /// The number of times it acted.
    pub hit: u64,
    /// It can act no more.
    pub done: bool,
}

/// Counters of the radio, or their growth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RadioCounts {
    /// Samples sent to the host, of all channels.
    pub rx_samples: u64,
    /// Overruns.
    pub rx_overruns: u64,
    /// Those because the radio's process had no CPU.
    pub rx_overruns_own: u64,
    /// Samples that came for transmission.
    pub tx_received: u64,
    /// Samples transmitted.
    pub tx_samples: u64,
    /// Samples dropped: too late.
    pub tx_late: u64,
    /// Samples dropped: after an underflow or a late packet, flushed, or without room.
    pub tx_dropped: u64,
    /// Samples that wait for their transmission.
    pub tx_waiting: u64,
    /// Datagrams that the radio's system dropped.
    pub queue_drops: u64,
    /// Packets that the radio could not send.
    pub send_errors: u64,
}

impl RadioCounts {
    /// Asks the radio.
    pub(super) fn of(radio: &mut dyn SoakRadio) -> Result<Self, SoakError> {
        let counters = radio.counters().map_err(SoakError::Radio)?;
        let count = |name: &str| {
            let value = counters.get(name).copied();
            value.ok_or_else(|| SoakError::Radio(format!("its counters lack `{name}`")))
        };
        Ok(Self {
            rx_samples: count("rx_bytes")? / 4,
            rx_overruns: count("rx_overruns")?,
            rx_overruns_own: count("rx_overruns_own")?,
            tx_received: count("tx_bytes")? / 4,
            tx_samples: count("tx_samples")?,
            tx_late: count("tx_late_samples")?,
            tx_dropped: count("tx_skipped_samples")?
                + count("tx_flushed_samples")?
                + count("tx_overflow_samples")?,
            tx_waiting: count("tx_waiting_samples")?,
            queue_drops: count("queue_drops")?,
            send_errors: count("send_errors")?,
        })
    }

    /// What was counted since `earlier`; what waits is not a count.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            rx_samples: self.rx_samples.wrapping_sub(earlier.rx_samples),
            rx_overruns: self.rx_overruns.wrapping_sub(earlier.rx_overruns),
            rx_overruns_own: self.rx_overruns_own.wrapping_sub(earlier.rx_overruns_own),
            tx_received: self.tx_received.wrapping_sub(earlier.tx_received),
            tx_samples: self.tx_samples.wrapping_sub(earlier.tx_samples),
            tx_late: self.tx_late.wrapping_sub(earlier.tx_late),
            tx_dropped: self.tx_dropped.wrapping_sub(earlier.tx_dropped),
            tx_waiting: self.tx_waiting,
            queue_drops: self.queue_drops.wrapping_sub(earlier.queue_drops),
            send_errors: self.send_errors.wrapping_sub(earlier.send_errors),
        }
    }
}

/// The faults that a round has switched on. Faults of others are left alone: what they do is not
/// injected by the soak.
#[derive(Debug, Default)]
pub(super) struct Strike {
    ids: Vec<u64>,
}

/// The state of a strike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StrikeState {
    /// Hits of all its faults.
    pub hits: u64,
    /// Whether those that end have ended.
    pub is_over: bool,
}

impl Strike {
    /// Switches faults on.
    pub fn begin(radio: &mut dyn SoakRadio, specs: &[String]) -> Result<Self, SoakError> {
        let mut strike = Self::default();
        for spec in specs {
            strike.ids.push(radio.add_fault(spec).map_err(SoakError::Radio)?);
        }
        Ok(strike)
    }

    pub fn state(&self, radio: &mut dyn SoakRadio) -> Result<StrikeState, SoakError> {
        let all = radio.faults().map_err(SoakError::Radio)?;
        let mut state = StrikeState { hits: 0, is_over: true };
        for fault in all.iter().filter(|fault| self.ids.contains(&fault.id)) {
            state.hits += fault.hit;
            state.is_over &= fault.done || !ends(&fault.fault);
        }
        Ok(state)
    }

    /// Switches them off; returns their hits.
    pub fn end(self, radio: &mut dyn SoakRadio) -> Result<u64, SoakError> {
        let hits = self.state(radio)?.hits;
        for id in self.ids {
            radio.remove_fault(id).map_err(SoakError::Radio)?;
        }
        Ok(hits)
    }
}

/// Whether a fault ends by itself.
fn ends(spec: &str) -> bool {
    ["count=", "for_ms=", "ms=", "ticks="].iter().any(|key| spec.contains(key))
}
