//! Watchers of the samples that receive channels send.

use super::EmulatedDevice;
use super::rx_chain::RxChain;
use crate::antenna::Sc16;

/// The band of a receive channel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RxBand {
    /// Samples a second of the device's time.
    pub rate_hz: f64,
    /// Frequency of its middle; `None` if its antenna has no frequencies.
    pub centre_hz: Option<f64>,
}

/// Sees the samples that a receive channel sends to hosts.
pub trait RxWatcher: Send {
    /// Sees the samples of a packet, or a part of them. The thread of the device calls it, so it
    /// must not wait, allocate or lock.
    fn sent(&mut self, band: RxBand, samples: &[Sc16]);
}

impl EmulatedDevice {
    /// Sets the watchers of the first channels.
    pub fn watch(&mut self, watchers: Vec<Box<dyn RxWatcher>>) {
        for (sender, watcher) in self.senders.iter_mut().zip(watchers) {
            sender.watcher = Some(watcher);
        }
    }

    /// Returns the band of a channel that somebody watches.
    pub(super) fn band(&mut self, channel: usize) -> RxBand {
        if self.senders[channel].watcher.is_none() {
            return RxBand::default();
        }
        let clock_hz = self.keeper.clock().rate_hz();
        let reception = self.radio.reception(channel, clock_hz);
        let chain = self.senders[channel].source().chain();
        let centre_hz = chain.and_then(|chain| RxChain::centre_hz(chain, &reception, clock_hz));
        let decimation = self.radio.channels[channel].rx.decimation();
        RxBand { rate_hz: clock_hz / decimation as f64, centre_hz }
    }
}
