//! `millstream graph blocks`: the types of blocks that graph files may name.

mod schema;

use crate::block_types;
use crate::output::Report;
use crate::table::Table;
use anyhow::bail;
use millstream_flow::registry::{BlockType, Parameter};
use millstream_flow::{BlockFacts, InputPort, MessageSpec, OutputPort, PortVisitor, Registry};
use serde::Serialize;
use serde_json::{Value, json};
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

/// Prints it.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let (registry, _) = block_types::registry();
    if args.schema {
        let schema = schema::of(&registry);
        return Ok(Report::done(format!("{schema:#}\n"), schema));
    }
    let Some(name) = args.name else {
        let json = |known| facts(&registry, known).json();
        let all: Vec<Value> = registry.types().map(json).collect();
        return Ok(Report::done(list(&registry), json!({ "blocks": all })));
    };
    let Some(known) = registry.get(&name) else {
        // The registry's error is that of a graph file, with a suggestion.
        let problem = registry.make(&name, "").err().map(|error| error.problem.to_string());
        let problem = problem.unwrap_or(name);
        bail!("{}", problem.trim_start_matches("block `block`: "));
    };
    let facts = facts(&registry, known);
    Ok(Report::done(facts.text(), facts.json()))
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

#[derive(Serialize)]
struct Port {
    name: String,
    item: String,
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

    fn json(&self) -> Value {
        let parameters: Vec<Value> =
            self.known.parameters().iter().map(schema::parameter_facts).collect();
        let message = |one: &MessageSpec| {
            let kind = one.kind.to_string();
            json!({ "name": one.name, "kind": kind, "help": one.help })
        };
        json!({
            "name": self.known.name(),
            "summary": self.known.summary(),
            "effect": self.known.effect().name(),
            "inputs": self.ports.inputs,
            "outputs": self.ports.outputs,
            "parameters": parameters,
            "messages": self.messages().iter().map(message).collect::<Vec<_>>(),
            "rate": self.stated.as_ref().map(|stated| stated.rate.to_string()),
            "example": self.known.example_values(),
        })
    }
}

/// The meaning of a parameter, and its possible values.
fn help(parameter: &Parameter) -> String {
    match parameter.choices {
        [] => parameter.help.to_owned(),
        choices => format!("{}: {}", parameter.help, choices.join(", ")),
    }
}
