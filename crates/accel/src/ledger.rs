//! Where each sample of an accelerated block was calculated, and why.

use millstream_flow::observe::LatencyHistogram;
use millstream_flow::{Counter, Gauge, Metric};
use std::sync::Arc;
use std::time::Duration;

/// Why the CPU calculated a batch in place of the device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cause {
    /// The device did not answer in time.
    Stall,
    /// The device is lost.
    Lost,
    /// A result of the device was wrong.
    Wrong,
}

/// Samples, bytes and times of one block's device. The samples balance: those taken are those of
/// the device, those of the CPU by cause, and at the end the tail.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceLedger {
    pub(crate) device_items: Counter,
    pub(crate) checked_items: Counter,
    stall_items: Counter,
    lost_items: Counter,
    wrong_items: Counter,
    /// Of a last frame that has no results.
    pub(crate) tail_items: Counter,
    pub(crate) to_device_bytes: Counter,
    pub(crate) from_device_bytes: Counter,
    pub(crate) pinned_bytes: Gauge,
    pub(crate) is_gone: Gauge,
    latency_us: Gauge,
    latency_p99_us: Gauge,
    latencies: Arc<LatencyHistogram>,
    batches: u64,
}

/// Batches between two calculations of the quantiles.
const QUANTILES_EVERY: u64 = 32;

impl DeviceLedger {
    pub(crate) fn of(&self, cause: Cause) -> &Counter {
        match cause {
            Cause::Stall => &self.stall_items,
            Cause::Lost => &self.lost_items,
            Cause::Wrong => &self.wrong_items,
        }
    }

    /// Counts the time from the last sample of a batch to its results.
    pub(crate) fn record_latency(&mut self, latency: Duration) {
        self.latencies.record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
        self.batches += 1;
        if self.batches <= QUANTILES_EVERY || self.batches % QUANTILES_EVERY == 0 {
            self.publish();
        }
    }

    pub(crate) fn publish(&self) {
        self.latency_us.set(self.latencies.quantile(0.5) as f64 / 1e3);
        self.latency_p99_us.set(self.latencies.quantile(0.99) as f64 / 1e3);
    }

    pub(crate) fn metrics(&self) -> Vec<(&'static str, Metric)> {
        vec![
            ("device_items", (&self.device_items).into()),
            ("device_checked_items", (&self.checked_items).into()),
            ("accelerator_stall_items", (&self.stall_items).into()),
            ("accelerator_lost_items", (&self.lost_items).into()),
            ("accelerator_wrong_items", (&self.wrong_items).into()),
            ("tail_items", (&self.tail_items).into()),
            ("to_device_bytes", (&self.to_device_bytes).into()),
            ("from_device_bytes", (&self.from_device_bytes).into()),
            ("device_latency_us", (&self.latency_us).into()),
            ("device_latency_p99_us", (&self.latency_p99_us).into()),
            ("device_pinned_bytes", (&self.pinned_bytes).into()),
            ("device_gone", (&self.is_gone).into()),
        ]
    }
}
