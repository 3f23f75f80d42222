//! A graph file with a block type of its own: a power of each item.

use millstream::prelude::*;

/// Raises each item to a power.
struct Power(i32);

impl OneToOne for Power {
    type Input = f32;
    type Output = f32;

    fn run(&mut self, input: &[f32], output: &mut [f32]) {
        for (to, from) in output.iter_mut().zip(input) {
            *to = from.powi(self.0);
        }
    }
}

/// Raises each item to a power.
#[derive(BlockParameters)]
#[block(power, pure, example = "exponent = 2")]
struct PowerParameters {
    /// the exponent
    #[parameter(least = 1, most = 100)]
    exponent: u32,
}

impl PowerParameters {
    fn make(self) -> Each<Power> {
        Each::new(Power(self.exponent as i32))
    }
}

/// Returns the types of the library and `power`.
fn registry() -> Registry {
    let mut registry = millstream::registry();
    registry.register_crate(module_path!());
    registry
}

const GRAPH: &str = r#"
    parameters.exponent = { help = "the exponent", default = 2 }
    block = [
        { name = "tone", type = "signal_source", item = "f32", rate_hz = 48e3, frequency_hz = 1e3 },
        { name = "power", type = "power", exponent = "${exponent}" },
        { name = "second", type = "head", item = "f32", count = 48000 },
        { name = "level", type = "probe", item = "f32" },
    ]
    graph.connections = ["tone -> power -> second -> level"]
"#;

/// Returns the root mean square of a cosine to a power.
fn level(exponent: u32) -> Result<f64, BlockError> {
    let file = GraphFile::parse("power.toml", GRAPH)?;
    let end = file.build(&registry(), &[format!("exponent={exponent}")])?.run(file.plan())?;
    Ok(end.block("level").and_then(|level| level.metric("rms")).ok_or("no level")?)
}

fn main() -> Result<(), BlockError> {
    println!("{:.4} {:.4}", level(2)?, level(1)?);
    Ok(())
}

#[test]
fn the_means_of_the_squares_are_three_eighths_and_a_half() {
    assert!((level(2).unwrap() - 0.375f64.sqrt()).abs() < 1e-5);
    assert!((level(1).unwrap() - 0.5f64.sqrt()).abs() < 1e-5);
}
