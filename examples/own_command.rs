//! The `millstream` command with a block of its own, an average of neighbouring items.

use millstream::prelude::*;
use millstream_cli::main_with;
use std::process::ExitCode;

/// Replaces every `count` items by their mean.
struct Average {
    count: u32,
}

impl Process for Average {
    type Input = f32;
    type Output = f32;

    fn process(&mut self, input: &[f32], output: &mut [f32]) -> (usize, usize) {
        let count = self.count as usize;
        let made = output.len().min(input.len() / count);
        for (mean, items) in output.iter_mut().zip(input.chunks_exact(count)) {
            *mean = items.iter().sum::<f32>() / count as f32;
        }
        (made * count, made)
    }

    fn least(&self) -> (usize, usize) {
        (self.count as usize, 1)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.rate(ItemRatio::decimate(self.count));
    }
}

/// Replaces neighbouring items by their mean.
#[derive(BlockParameters)]
#[block(average, pure, example = "count = 4")]
struct AverageParameters {
    /// items of one mean
    #[parameter(least = 1)]
    count: u32,
}

impl AverageParameters {
    fn make(self) -> Through<Average> {
        Through::new(Average { count: self.count })
    }
}

fn register(registry: &mut Registry) {
    registry.register_crate(module_path!());
}

fn main() -> ExitCode {
    main_with(register, std::env::args_os())
}

#[test]
fn the_command_runs_a_graph_with_the_block() {
    let folder = std::env::temp_dir().join(format!("own_command-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let (graph, data) = (folder.join("mean.toml"), folder.join("mean.f32"));
    let text = r#"
        block = [
            { name = "ones", type = "signal_source", item = "f32", rate_hz = 1, frequency_hz = 0 },
            { name = "mean", type = "average", count = 4 },
            { name = "some", type = "head", item = "f32", count = 1000 },
            { name = "file", type = "file_sink", item = "f32", path = "PATH" },
        ]
        graph.connections = ["ones -> mean -> some -> file"]
    "#;
    std::fs::write(&graph, text.replace("PATH", data.to_str().unwrap())).unwrap();
    let args = ["millstream".into(), "run".into(), graph.into_os_string()];
    assert_eq!(main_with(register, args), ExitCode::SUCCESS);
    assert_eq!(std::fs::read(&data).unwrap(), 1f32.to_le_bytes().repeat(1000));
    std::fs::remove_dir_all(&folder).unwrap();
}
