//! The JSON schema of graph files (draft 2020-12), made from the registry.

use crate::output::document;
use millstream_flow::Registry;
use millstream_flow::registry::{BlockType, Parameter, ParameterKind, ParameterValue as Given};
use serde::Serialize;
use serde_json::{Map, Value};
use std::ops::Bound;

/// The schema without the types of blocks, and the types of parameters in its `$defs`.
const FRAME: &str = include_str!("schema.json");

/// The schema for graphs of these types.
pub fn of(registry: &Registry) -> Value {
    let mut schema: Value = serde_json::from_str(FRAME).expect("schema.json is JSON");
    // The types are written out, as not every editor follows references everywhere.
    let types = schema["$defs"].as_object_mut().expect("schema.json has $defs");
    let kept = ["value", "reference"].map(|name| (name.to_owned(), types[name].clone()));
    let types = std::mem::replace(types, kept.into_iter().collect());
    let blocks = registry.types().map(|known| document(&BlockSchema::of(known, &types)));
    schema["properties"]["block"]["items"]["oneOf"] = blocks.collect();
    schema
}

/// The form of one `[[block]]`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BlockSchema<'a> {
    r#type: &'static str,
    additional_properties: bool,
    required: Vec<&'a str>,
    properties: Map<String, Value>,
}

/// The type of a block.
#[derive(Serialize)]
struct TypeSchema<'a> {
    r#const: &'a str,
    description: &'a str,
}

/// One of some values.
#[derive(Serialize)]
struct ChoiceSchema<'a> {
    r#enum: &'a [&'a str],
}

/// One of two types.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EitherSchema {
    any_of: [Value; 2],
}

/// A type that stands elsewhere.
#[derive(Serialize)]
struct ReferenceSchema {
    #[serde(rename = "$ref")]
    to: &'static str,
}

impl<'a> BlockSchema<'a> {
    fn of(known: &'a BlockType, types: &Map<String, Value>) -> Self {
        let about = TypeSchema { r#const: known.name(), description: known.summary() };
        let mut properties = Map::new();
        properties.insert("name".into(), types["name"].clone());
        properties.insert("type".into(), document(&about));
        let mut required = vec!["name", "type"];
        for parameter in known.parameters() {
            properties.insert(parameter.name.into(), property(parameter, types));
            if parameter.default.is_none() {
                required.push(parameter.name);
            }
        }
        Self { r#type: "object", additional_properties: false, required, properties }
    }
}

/// A parameter's value, or a reference to one.
fn property(parameter: &Parameter, types: &Map<String, Value>) -> Value {
    let mut value = match parameter.kind {
        ParameterKind::Integer => types["integer"].clone(),
        ParameterKind::Number => types["number"].clone(),
        ParameterKind::Boolean => types["boolean"].clone(),
        ParameterKind::Numbers => types["numbers"].clone(),
        _ if !parameter.choices.is_empty() => document(&ChoiceSchema { r#enum: parameter.choices }),
        _ => types["text"].clone(),
    };
    // A default may lie outside of the range, as "none".
    let default = parameter.default.as_ref().and_then(Given::as_number);
    if default.is_none_or(|default| parameter.range.contains(default)) {
        for (bound, included, excluded) in [
            (parameter.range.least, "minimum", "exclusiveMinimum"),
            (parameter.range.most, "maximum", "exclusiveMaximum"),
        ] {
            match bound {
                Bound::Included(number) => value[included] = number.into(),
                Bound::Excluded(number) => value[excluded] = number.into(),
                Bound::Unbounded => {}
            }
        }
    }
    if parameter.kind != ParameterKind::Text || !parameter.choices.is_empty() {
        let reference = document(&ReferenceSchema { to: "#/$defs/reference" });
        value = document(&EitherSchema { any_of: [value, reference] });
    }
    value["description"] = parameter.help.into();
    if let Some(default) = &parameter.default {
        value["default"] = plain(default);
    }
    value
}

/// A value of a parameter.
pub fn plain(value: &Given) -> Value {
    match value {
        Given::Text(text) => text.as_str().into(),
        Given::Integer(n) => (*n).into(),
        Given::Number(x) => (*x).into(),
        Given::Boolean(b) => (*b).into(),
        Given::Numbers(list) => list.as_slice().into(),
        other => other.to_string().into(),
    }
}
