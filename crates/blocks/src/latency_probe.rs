//! The latency of items between two points of a graph.

use millstream_flow::copied_ns;
use millstream_flow::observe::LatencyHistogram;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Counter, Gauge, In, Item, Out, Ports, Work, keys,
};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The interval between updates of the metrics.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// Returns the zero of the marks' clock, the same for all blocks of a program.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// Passes a stream on and marks items at regular intervals with the time (the tag `probe_ns`), for
/// a [`LatencyProbe`] downstream.
///
/// The time is read in each call that marks an item.
///
/// Ports: `in`, `out`.
#[derive(Debug, Ports)]
pub struct LatencyMark<T: Item> {
    /// Items.
    pub input: In<T>,
    /// The same items.
    pub output: Out<T>,
    every: u64,
    epoch: Instant,
}

impl<T: Item> LatencyMark<T> {
    /// Creates a block that marks the first of every `every` items.
    #[must_use]
    pub fn new(every: u64) -> Self {
        Self { input: In::new(), output: Out::new(), every: every.max(1), epoch: epoch() }
    }
}

impl<T: Item> Block for LatencyMark<T> {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len());
        output[..items].copy_from_slice(&input[..items]);
        let first = self.output.position().next_multiple_of(self.every) - self.output.position();
        if first < items as u64 {
            let now_ns = fresh_ns(context, self.epoch);
            for index in (first..items as u64).step_by(usize::try_from(self.every).unwrap_or(1)) {
                self.output.tag(index as usize, keys::PROBE_NS, now_ns);
            }
        }
        self.input.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.ns_per_item(copied_ns::<T>());
    }
}

/// Returns the nanoseconds from the epoch to now. The time of the context is that of the sweep's
/// begin, so it lacks what the blocks in front have worked since.
fn fresh_ns(context: &Context, epoch: Instant) -> u64 {
    Instant::now().max(context.now).saturating_duration_since(epoch).as_nanos() as u64
}

/// Passes a stream on and measures the age of its marks. The output may stay unconnected.
///
/// Ports: `in`, `out`.
///
/// # Metrics
/// `marks`; of their ages so far `p50_ms`, `p99_ms`, `max_ms`.
#[derive(Debug, Ports)]
pub struct LatencyProbe<T: Item> {
    /// Items.
    pub input: In<T>,
    /// The same items.
    pub output: Out<T>,
    epoch: Instant,
    ages_ns: LatencyHistogram,
    told: Option<Instant>,
    marks: Counter,
    p50_ms: Gauge,
    p99_ms: Gauge,
    max_ms: Gauge,
}

impl<T: Item> Default for LatencyProbe<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Item> LatencyProbe<T> {
    /// Creates a probe without values.
    #[must_use]
    pub fn new() -> Self {
        Self {
            input: In::new(),
            output: Out::new(),
            epoch: epoch(),
            ages_ns: LatencyHistogram::default(),
            told: None,
            marks: Counter::new(),
            p50_ms: Gauge::new(),
            p99_ms: Gauge::new(),
            max_ms: Gauge::new(),
        }
    }

    fn tell(&self) {
        if self.marks.get() > 0 {
            let ms = |ns: u64| ns as f64 / 1e6;
            self.p50_ms.set(ms(self.ages_ns.quantile(0.5)));
            self.p99_ms.set(ms(self.ages_ns.quantile(0.99)));
            self.max_ms.set(ms(self.ages_ns.max()));
        }
    }
}

impl<T: Item> Block for LatencyProbe<T> {
    fn work(&mut self, context: &mut Context) -> Result<Work, BlockError> {
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len());
        output[..items].copy_from_slice(&input[..items]);
        let mut now_ns = None;
        for (_, tag) in self.input.tags().take_while(|(index, _)| *index < items) {
            if let (keys::PROBE_NS, Some(then_ns)) = (tag.key, tag.value.as_count()) {
                let now_ns = *now_ns.get_or_insert_with(|| fresh_ns(context, self.epoch));
                self.marks.add(1);
                self.ages_ns.record(now_ns.saturating_sub(then_ns));
            }
        }
        let due =
            self.told.is_none_or(|told| context.now.saturating_duration_since(told) >= TELL_EVERY);
        if due {
            self.told = Some(context.now);
            self.tell();
        }
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
            .ns_per_item(copied_ns::<T>())
            .metric("marks", &self.marks)
            .metric("p50_ms", &self.p50_ms)
            .metric("p99_ms", &self.p99_ms)
            .metric("max_ms", &self.max_ms);
    }
}

/// Attaches the time to items, for a latency_probe.
#[derive(BlockParameters)]
#[block(latency_mark, pure, items(cf32, f32, sc16, u8))]
struct MarkParameters {
    /// number of items from one mark to the next
    #[parameter(default = 4096, least = 1)]
    every: u64,
}

impl MarkParameters {
    fn make<T: Item>(self) -> LatencyMark<T> {
        LatencyMark::new(self.every)
    }
}

/// Measures the time of items since a latency_mark.
#[derive(BlockParameters)]
#[block(latency_probe, pure, items(cf32, f32, sc16, u8))]
struct ProbeParameters {}

impl ProbeParameters {
    fn make<T: Item>(self) -> LatencyProbe<T> {
        LatencyProbe::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn the_first_of_every_so_many_items_is_marked() {
        let mut mock = Mock::new(LatencyMark::<u8>::new(100));
        for items in [1, 98, 2, 250] {
            mock.feed("in", &vec![0u8; items]);
            mock.run().unwrap();
        }
        let marked: Vec<u64> = mock.take_tags("out").iter().map(|tag| tag.offset).collect();
        assert_eq!(marked, [0, 100, 200, 300]);
    }

    #[test]
    fn a_mark_is_as_old_as_the_time_since() {
        let mut mock = Mock::new(LatencyProbe::<u8>::new());
        mock.feed("in", &[0u8; 10]);
        let second_ago = Instant::now().checked_sub(Duration::from_secs(1));
        let then = second_ago.and_then(|then| then.checked_duration_since(mock.block.epoch));
        let (then_ns, age_ms) = then.map_or((0, 0.0), |then| (then.as_nanos() as u64, 1000.0));
        mock.tag("in", 3, keys::PROBE_NS, then_ns);
        mock.tag("in", 4, keys::RX_TIME, 1u64);
        let (marks, max_ms) = (mock.block.marks.clone(), mock.block.max_ms.clone());
        mock.run().unwrap();
        assert_eq!(marks.get(), 1);
        assert!(max_ms.get() >= age_ms, "{}", max_ms.get());
        assert_eq!(mock.take::<u8>("out").len(), 10);
    }

    #[test]
    fn the_work_of_the_same_sweep_counts() {
        let context = Context::at(Instant::now());
        let begun = fresh_ns(&context, epoch());
        std::thread::sleep(Duration::from_millis(3));
        let passed = fresh_ns(&context, epoch()) - begun;
        assert!(passed >= 3_000_000, "{passed} ns");
    }
}
