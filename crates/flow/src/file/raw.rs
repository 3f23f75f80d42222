//! From TOML to a [`GraphFile`].

use super::{BlockEntry, FileProblem, GraphFile, GraphParameter};
use crate::plan::Pins;
use crate::plan::Plan;
use crate::value::ParameterValue;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: BTreeMap<String, toml::Value>,
    #[serde(default, rename = "block")]
    blocks: Vec<RawBlock>,
    #[serde(default)]
    graph: RawConnections,
    #[serde(default)]
    plan: Plan,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConnections {
    #[serde(default)]
    connections: Vec<String>,
    #[serde(default)]
    messages: Vec<String>,
}

#[derive(Deserialize)]
struct RawBlock {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    #[serde(flatten)]
    values: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawParameter {
    default: Option<toml::Value>,
    #[serde(default)]
    help: String,
}

pub(super) fn parse(name: &str, text: &str) -> Result<GraphFile, FileProblem> {
    let raw: RawFile = toml::from_str(text)
        .map_err(|error| FileProblem::Syntax(error.to_string().trim_end().to_owned()))?;
    let parameters = raw.parameters.into_iter().map(|(name, value)| {
        let parameter = parameter(&name, value)?;
        Ok((name, parameter))
    });
    // The entries as written, not only the [`Plan`] read from them. The text parsed as TOML above.
    let written = text.parse::<toml::Table>().ok().and_then(|mut table| table.remove("plan"));
    let written = match written {
        Some(toml::Value::Table(written)) => written,
        _ => toml::Table::new(),
    };
    Ok(GraphFile {
        name: name.to_owned(),
        description: raw.description,
        parameters: parameters.collect::<Result<_, FileProblem>>()?,
        blocks: raw.blocks.into_iter().map(block).collect::<Result<_, _>>()?,
        connections: raw.graph.connections,
        messages: raw.graph.messages,
        plan: raw.plan,
        pins: Pins::of(written),
    })
}

fn block(raw: RawBlock) -> Result<BlockEntry, FileProblem> {
    let values = raw.values.into_iter().map(|(key, toml)| {
        let value = value(&format!("block `{}`, {key}", raw.name), toml)?;
        Ok((key, value))
    });
    let values = values.collect::<Result<_, FileProblem>>()?;
    Ok(BlockEntry { name: raw.name, type_name: raw.type_name, values })
}

fn parameter(name: &str, toml: toml::Value) -> Result<GraphParameter, FileProblem> {
    let key = format!("parameter `{name}`");
    let raw = match toml {
        toml::Value::Table(table) => table.try_into::<RawParameter>().map_err(|error| {
            FileProblem::Syntax(format!("{key}: {}", error.to_string().trim_end()))
        })?,
        default => RawParameter { default: Some(default), help: String::new() },
    };
    let default = raw.default.map(|default| value(&key, default)).transpose()?;
    Ok(GraphParameter { default, help: raw.help })
}

fn value(key: &str, toml: toml::Value) -> Result<ParameterValue, FileProblem> {
    Ok(match toml {
        toml::Value::String(text) => ParameterValue::Text(text),
        toml::Value::Integer(n) => ParameterValue::Integer(n),
        toml::Value::Float(x) => ParameterValue::Number(x),
        toml::Value::Boolean(b) => ParameterValue::Boolean(b),
        toml::Value::Array(list) => {
            let number = |value: &toml::Value| match value {
                toml::Value::Integer(n) => Some(*n as f64),
                toml::Value::Float(x) => Some(*x),
                _ => None,
            };
            let numbers = list.iter().map(number).collect::<Option<_>>();
            let key = || key.to_owned();
            return numbers
                .map(ParameterValue::Numbers)
                .ok_or_else(|| FileProblem::NoNumbers { key: key() });
        }
        other => {
            return Err(FileProblem::NoValue { key: key.to_owned(), found: other.type_str() });
        }
    })
}
