//! `millstream graph blocks`: the types of blocks that graph files may name.

mod schema;

use crate::block_types;
use crate::output::Report;
use crate::table::Table;
use anyhow::bail;
use millstream_flow::registry::{BlockType, Parameter, ParameterRange};
use millstream_flow::{BlockFacts, InputPort, MessageSpec, OutputPort, PortVisitor, Registry};
use serde_json::Value;
use std::fmt::Write;

/// Lists the types of blocks, or describes one type: ports, parameters, messages and an example.
#[derive(clap::Args)]
pub struct Args {
    /// Type of block to describe.
    #[arg(value_name = "TYPE")]
    name: Option<String>,

    /// Print the JSON schema of graph files, which editors and other programs can use.
    #[arg(long, conflicts_with = "name")]
    schema: bool,
}

crate::results! {
    /// All types of blocks.
    struct ListedBlocks<'a> {
        /// Each type.
        blocks: Vec<DescribedBlock<'a>>,
    }

    /// With `--schema`: what editors check graph files by.
    struct GraphFileSchema {
        /// The JSON schema itself.
        #[serde(flatten)]
        schema: Value,
    }

    /// A type of blocks.
    struct DescribedBlock<'a> {
        /// Its name in graph files.
        name: &'a str,
        /// What it does.
        summary: &'a str,
        /// What it does outside the graph.
        effect: &'a str,
        /// Its inputs.
        inputs: &'a [Port],
        /// Its outputs.
        outputs: &'a [Port],
        /// Its parameters.
        parameters: Vec<DescribedParameter<'a>>,
        /// The messages that it takes.
        messages: Vec<DescribedMessage<'a>>,
        /// Items out per item in, in the example.
        rate: Option<String>,
        /// Its lines in an example.
        example: String,
    }

    /// A port.
    struct Port {
        /// Its name.
        name: String,
        /// The type of its items.
        item: String,
    }

    /// A parameter.
    struct DescribedParameter<'a> {
        /// Its name.
        name: &'a str,
        /// Its type.
        kind: String,
        /// What it means.
        help: &'a str,
        /// Its value where the graph gives none; a parameter without one is required.
        default: Option<Value>,
        /// Its possible values, where there are only some.
        choices: &'a [&'a str],
        /// The numbers that it may be, where not all.
        range: Option<String>,
    }

    /// A message.
    struct DescribedMessage<'a> {
        /// Its name.
        name: &'a str,
        /// The type of its value.
        kind: String,
        /// What it does.
        help: &'a str,
    }
}

/// Prints it.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let (registry, _) = block_types::registry();
    if args.schema {
        let schema = schema::of(&registry);
        return Ok(Report::of(format!("{schema:#}\n"), &GraphFileSchema { schema }));
    }
    let Some(name) = args.name else {
        let all: Vec<_> = registry.types().map(|known| facts(&registry, known)).collect();
        let blocks = all.iter().map(Facts::document).collect();
        return Ok(Report::of(list(&registry), &ListedBlocks { blocks }));
    };
    let Some(known) = registry.get(&name) else {
        // The registry's error is that of a graph file, with a suggestion.
        let problem = registry.make(&name, "").err().map(|error| error.problem.to_string());
        let problem = problem.unwrap_or(name);
        bail!("{}", problem.trim_start_matches("block `block`: "));
    };
    let facts = facts(&registry, known);
    Ok(Report::of(facts.text(), &facts.document()))
}

/// One line for each type.
fn list(registry: &Registry) -> String {
    let items = |ports: &[Port]| match ports {
        [] => "-".to_owned(),
        [only] => only.item.clone(),
        several => format!("{}x {}", several.len(), several[0].item),
    };
    let text = Table::of(registry.types())
        .left("", |known| known.name())
        .left("", |known| {
            let facts = facts(registry, known);
            format!("{} > {}", items(&facts.ports.inputs), items(&facts.ports.outputs))
        })
        .left("", |known| known.summary())
        .text();
    text + "\n`millstream graph blocks TYPE` describes one type; items are those of its example.\n"
}

/// The facts about a type.
struct Facts<'a> {
    known: &'a BlockType,
    ports: Ports,
    /// The facts of the block of the example, where it can be made.
    stated: Option<BlockFacts>,
}

#[derive(Default)]
struct Ports {
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

impl PortVisitor for Ports {
    fn input(&mut self, name: &str, port: &mut dyn InputPort) {
        self.inputs.push(Port { name: name.to_owned(), item: port.item_type().to_string() });
    }

    fn output(&mut self, name: &str, port: &mut dyn OutputPort) {
        self.outputs.push(Port { name: name.to_owned(), item: port.item_type().to_string() });
    }
}

fn facts<'a>(registry: &Registry, known: &'a BlockType) -> Facts<'a> {
    let mut ports = Ports::default();
    let mut stated = None;
    if let Some(listed) = known.outside_ports() {
        for port in listed {
            let (name, item) = port.split_once(": ").unwrap_or((port, ""));
            let port = Port { name: name.to_owned(), item: item.to_owned() };
            let side = if name.starts_with("in") { &mut ports.inputs } else { &mut ports.outputs };
            side.push(port);
        }
    } else if let Ok(mut made) = registry.make_example(known.name()) {
        made.ports(&mut ports);
        stated = Some(BlockFacts::of(&made));
    }
    Facts { known, ports, stated }
}

impl Facts<'_> {
    fn text(&self) -> String {
        let known = self.known;
        let mut text = format!("{}: {}\n", known.name(), known.summary());
        for (way, ports) in [("in", &self.ports.inputs), ("out", &self.ports.outputs)] {
            for port in ports {
                let _ = writeln!(text, "  {way:<4} {:<10} {}", port.name, port.item);
            }
        }
        if let Some(stated) = &self.stated {
            if !self.ports.inputs.is_empty() && !self.ports.outputs.is_empty() {
                let (rate, holds) = (stated.rate, stated.holds);
                let _ = writeln!(text, "  rate {rate}, keeps {holds} items, in the example below");
            }
        }
        let stand_in = if known.effect().has_stand_in() { "; rehearsals replace it" } else { "" };
        let _ = writeln!(text, "  effect {}{stand_in}", known.effect().name());
        if !known.parameters().is_empty() {
            text += "\nparameters\n";
        }
        for parameter in known.parameters() {
            let value = match &parameter.default {
                Some(default) if !parameter.choices.is_empty() => format!("\"{default}\""),
                Some(default) => default.to_string(),
                None => format!("({}, required)", parameter.kind),
            };
            let help = help(parameter);
            let _ = writeln!(text, "  {:<15} {value:<20} {help}", parameter.name);
        }
        let messages = self.messages();
        if !messages.is_empty() {
            text += "\nmessages\n";
        }
        for message in messages {
            let kind = message.kind.to_string();
            let _ = writeln!(text, "  {:<15} {kind:<20} {}", message.name, message.help);
        }
        let _ = writeln!(text, "\nexample\n  [[block]]\n  name = \"it\"");
        let _ = writeln!(text, "  type = \"{}\"", known.name());
        known.example_values().lines().for_each(|line| {
            let _ = writeln!(text, "  {line}");
        });
        text
    }

    fn messages(&self) -> &[MessageSpec] {
        self.stated.as_ref().map_or(&[], |stated| &stated.messages)
    }

    fn document(&self) -> DescribedBlock<'_> {
        let parameter = |one: &'_ Parameter| DescribedParameter {
            name: one.name,
            kind: one.kind.to_string(),
            help: one.help,
            default: one.default.as_ref().map(schema::plain),
            choices: one.choices,
            range: (one.range != ParameterRange::ANY).then(|| one.range.to_string()),
        };
        let message = |one: &MessageSpec| DescribedMessage {
            name: one.name,
            kind: one.kind.to_string(),
            help: one.help,
        };
        DescribedBlock {
            name: self.known.name(),
            summary: self.known.summary(),
            effect: self.known.effect().name(),
            inputs: &self.ports.inputs,
            outputs: &self.ports.outputs,
            parameters: self.known.parameters().iter().map(parameter).collect(),
            messages: self.messages().iter().map(message).collect(),
            rate: self.stated.as_ref().map(|stated| stated.rate.to_string()),
            example: self.known.example_values().to_string(),
        }
    }
}

/// The meaning of a parameter, and its possible values.
fn help(parameter: &Parameter) -> String {
    match parameter.choices {
        [] if parameter.range != ParameterRange::ANY => {
            format!("{} ({})", parameter.help, parameter.range)
        }
        [] => parameter.help.to_owned(),
        choices => format!("{}: {}", parameter.help, choices.join(", ")),
    }
}
