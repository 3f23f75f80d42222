//! A block defined outside the library: a limiter, used from a graph file and from the Rust
//! builder.

use millstream_blocks::signal_source::{SignalSource, Waveform};
use millstream_flow::blocks::{Head, VectorSink};
use millstream_flow::registry::{BlockParameters, ParameterKind};
use millstream_flow::{BlockError, BlockFacts, Graph, GraphFile, ParameterValue, Plan, Registry};
use millstream_flow::{Each, OneToOne};

/// Clips values at `±limit`.
///
/// # Messages
/// `limit`.
struct Limiter {
    limit: f32,
}

impl OneToOne for Limiter {
    type Input = f32;
    type Output = f32;

    fn run(&mut self, input: &[f32], output: &mut [f32]) {
        for (to, from) in output.iter_mut().zip(input) {
            *to = from.clamp(-self.limit, self.limit);
        }
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.message("limit", ParameterKind::Number, "largest magnitude from the next item on");
    }

    fn message(&mut self, _: &str, value: &ParameterValue) -> Result<(), BlockError> {
        match value {
            ParameterValue::Number(limit) if *limit >= 0.0 => self.limit = *limit as f32,
            other => return Err(format!("limit = {other}: expected zero or more").into()),
        }
        Ok(())
    }
}

/// Cuts what lies beyond a limit.
#[derive(BlockParameters)]
#[block(limiter, pure, example = "limit = 0.5")]
struct LimiterParameters {
    /// largest magnitude
    #[parameter(least = 0)]
    limit: f32,
}

impl LimiterParameters {
    fn make(self) -> Each<Limiter> {
        Each::new(Limiter { limit: self.limit })
    }
}

/// The same graph as in [`from_builder`].
const FILE: &str = r#"
    [[block]]
    name = "tone"
    type = "signal_source"
    item = "f32"
    rate_hz = 48e3
    frequency_hz = 440

    [[block]]
    name = "limit"
    type = "limiter"
    limit = 0.5

    [[block]]
    name = "second"
    type = "head"
    item = "f32"
    count = 48000

    [[block]]
    name = "level"
    type = "probe"
    item = "f32"

    [graph]
    connections = ["tone -> limit -> second -> level"]
"#;

fn from_file() -> Result<f64, BlockError> {
    let mut registry = Registry::builtin();
    millstream_blocks::register(&mut registry);
    registry.register_crate(module_path!());
    let file = GraphFile::parse("limited.toml", FILE)?;
    let end = file.build(&registry, &[])?.run(file.plan())?;
    Ok(end.block("level").and_then(|level| level.metric("peak")).unwrap_or(f64::NAN))
}

fn from_builder() -> Result<Vec<f32>, BlockError> {
    let (sink, collected) = VectorSink::new();
    let mut graph = Graph::new();
    graph.add("tone", SignalSource::<f32>::new(Waveform::Cosine, 440.0, 48e3)?)?;
    graph.add("limit", Each::new(Limiter { limit: 0.5 }))?;
    graph.add("second", Head::<f32>::new(48_000))?;
    graph.add("sink", sink)?;
    graph.chain(&["tone", "limit", "second", "sink"])?;
    graph.run(&Plan::default())?;
    Ok(collected.take())
}

fn main() -> Result<(), BlockError> {
    let peak = from_file()?;
    let items = from_builder()?;
    let largest = items.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
    println!("from the file: peak {peak}; from the builder: {} items, peak {largest}", items.len());
    assert_eq!((peak, largest), (0.5, 0.5));
    Ok(())
}

#[test]
fn both_ways_limit_the_tone() {
    main().unwrap();
}
