//! The spectra of what emulated radios send.

use millstream_emulator::{RxBand, RxWatcher};
use millstream_web::{Board, ShownSamples, StreamFacts, Streams};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The receive channels of all radios as streams of a dashboard.
#[derive(Default)]
pub struct Spectra {
    streams: Streams,
    bands: Vec<Arc<BandCell>>,
}

/// The band in which a channel sent last: bits of a rate and of a frequency, NaN if unknown. The
/// two are of one moment only once nothing changes.
struct BandCell {
    rate_hz: AtomicU64,
    centre_hz: AtomicU64,
}

/// Shows the samples of one channel.
struct Watcher {
    shown: ShownSamples<[u8; 4]>,
    band: Arc<BandCell>,
}

impl Spectra {
    /// Adds the channels of a radio, whose names begin with `prefix`; returns their watchers.
    pub fn add(&mut self, prefix: &str, channels: usize) -> Vec<Box<dyn RxWatcher>> {
        let watcher = |channel: usize| {
            let name = format!("{prefix}rx{channel}");
            let shown = self.streams.shown(&name, StreamFacts::default(), 1.0);
            let unknown = || AtomicU64::new(f64::NAN.to_bits());
            let band = Arc::new(BandCell { rate_hz: unknown(), centre_hz: unknown() });
            self.bands.push(Arc::clone(&band));
            Box::new(Watcher { shown, band }) as Box<dyn RxWatcher>
        };
        (0..channels).map(watcher).collect()
    }

    /// Returns the streams for a server, and their bands.
    pub fn split(self) -> (Streams, Bands) {
        (self.streams, Bands(self.bands))
    }
}

impl RxWatcher for Watcher {
    fn sent(&mut self, band: RxBand, samples: &[[u8; 4]]) {
        let centre_hz = band.centre_hz.unwrap_or(f64::NAN);
        self.band.rate_hz.store(band.rate_hz.to_bits(), Ordering::Relaxed);
        self.band.centre_hz.store(centre_hz.to_bits(), Ordering::Relaxed);
        self.shown.show(samples);
    }
}

/// The bands of all streams, which hosts change.
pub struct Bands(Vec<Arc<BandCell>>);

impl Bands {
    /// Tells clients of changed bands.
    pub fn publish(&self, board: &Board) {
        let read = |bits: &AtomicU64| {
            let value = f64::from_bits(bits.load(Ordering::Relaxed));
            value.is_finite().then_some(value)
        };
        let now = self.0.iter().map(|band| (read(&band.rate_hz), read(&band.centre_hz)));
        let now: Vec<_> = now.collect();
        board.change_if(|hello| {
            let mut has_changed = false;
            for (stream, (rate_hz, centre_hz)) in hello.streams.iter_mut().zip(&now) {
                has_changed |= (stream.rate_hz, stream.centre_hz) != (*rate_hz, *centre_hz);
                (stream.rate_hz, stream.centre_hz) = (*rate_hz, *centre_hz);
            }
            has_changed
        });
    }
}
