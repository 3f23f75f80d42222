//! Statistics of a stream.

use crate::agc::Magnitude;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{Block, BlockError, BlockFacts, Context, Gauge, In, Out, Ports, Work};
use std::time::{Duration, Instant};

/// The interval between updates of the rate.
const RATE_EVERY: Duration = Duration::from_millis(200);

/// Passes a stream on and measures it. The output may stay unconnected: a probe is a sink, too.
///
/// Ports: `in`, `out`.
///
/// # Metrics
/// Of the last `window` items (at the end: of the remaining ones): `rms`, `peak`; `rate_hz`, items
/// per second.
#[derive(Debug, Default, Ports)]
pub struct Probe<T: Magnitude> {
    /// Items.
    pub input: In<T>,
    /// The same items.
    pub output: Out<T>,
    window: u64,
    count: u64,
    power: f64,
    largest: f32,
    since: Option<(Instant, u64)>,
    passed: u64,
    rms: Gauge,
    peak: Gauge,
    rate_hz: Gauge,
}

impl<T: Magnitude> Probe<T> {
    /// Creates a probe of groups of `window` items.
    #[must_use]
    pub fn new(window: u64) -> Self {
        Self { window: window.max(1), ..Self::default() }
    }

    fn note(&mut self, items: usize) {
        let mut at = 0;
        while at < items {
            let left = usize::try_from(self.window - self.count).unwrap_or(usize::MAX);
            let end = items.min(at.saturating_add(left));
            for x in &self.input.slice()[at..end] {
                let magnitude = x.magnitude();
                self.power += f64::from(magnitude) * f64::from(magnitude);
                self.largest = self.largest.max(magnitude);
            }
            self.count += (end - at) as u64;
            at = end;
            if self.count == self.window {
                self.tell();
            }
        }
    }

    fn tell(&mut self) {
        if self.count > 0 {
            self.rms.set((self.power / self.count as f64).sqrt());
            self.peak.set(f64::from(self.largest));
        }
        (self.count, self.power, self.largest) = (0, 0.0, 0.0);
    }

    fn tell_rate(&mut self, now: Instant) {
        let (start, before) = *self.since.get_or_insert((now, self.passed));
        let elapsed = now.saturating_duration_since(start);
        if elapsed >= RATE_EVERY {
            self.rate_hz.set((self.passed - before) as f64 / elapsed.as_secs_f64());
            self.since = Some((now, self.passed));
        }
    }
}

impl<T: Magnitude> Block for Probe<T> {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len());
        output[..items].copy_from_slice(&input[..items]);
        self.tell_rate(context.now);
        self.note(items);
        self.passed += items as u64;
        self.input.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        self.tell();
        Ok(())
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts
            .ns_per_item(2.0)
            .metric("rms", &self.rms)
            .metric("peak", &self.peak)
            .metric("rate_hz", &self.rate_hz);
    }
}

/// Measures RMS, peak and rate of a stream, and passes it on.
#[derive(BlockParameters)]
#[block(probe, pure, items(cf32, f32))]
struct ProbeParameters {
    /// number of items in one measurement
    #[parameter(default = 65_536, least = 1)]
    window: u64,
}

impl ProbeParameters {
    fn make<T: Magnitude>(self) -> Probe<T> {
        Probe::new(self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn each_stretch_is_told_about() {
        let mut mock = Mock::new(Probe::<f32>::new(4));
        let (rms, peak) = (mock.block.rms.clone(), mock.block.peak.clone());
        mock.feed("in", &[3.0f32, -4.0, 3.0, -4.0, 100.0]);
        mock.run().unwrap();
        assert!((rms.get() - 12.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(peak.get(), 4.0);
        mock.end("in");
        mock.run().unwrap();
        assert_eq!((rms.get(), peak.get()), (100.0, 100.0));
        assert_eq!(mock.take::<f32>("out").len(), 5);
    }
}
