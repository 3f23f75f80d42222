//! The JSON schema of graph files (draft 2020-12), made from the registry.

use millstream_flow::Registry;
use millstream_flow::registry::{
    BlockType, Parameter, ParameterKind, ParameterRange, ParameterValue as Given,
};
use serde_json::{Map, Value, json};
use std::ops::Bound;

/// The schema for graphs of these types.
pub fn of(registry: &Registry) -> Value {
    let blocks: Vec<Value> = registry.types().map(block).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Millstream graph",
        "type": "object",
        "additionalProperties": false,
        "required": ["block"],
        "properties": {
            "description": { "type": "string" },
            "parameters": {
                "type": "object",
                "description": "What --set NAME=VALUE may override: a default, or a table.",
                "additionalProperties": { "anyOf": [
                    { "$ref": "#/$defs/value" },
                    { "type": "object", "additionalProperties": false, "properties": {
                        "default": { "$ref": "#/$defs/value" },
                        "help": { "type": "string" },
                    } },
                ] },
            },
            "block": { "type": "array", "minItems": 1, "items": { "oneOf": blocks } },
            "graph": {
                "type": "object",
                "additionalProperties": false,
                "properties": { "connections": { "type": "array", "items": {
                    "type": "string",
                    "description": "from -> to, each block or block.port; longer chains too",
                    "pattern": "->",
                } } },
            },
            "plan": { "type": "object" },
        },
        "$defs": {
            "value": { "type": ["string", "number", "boolean", "array"] },
            "reference": {
                "type": "string",
                "pattern": "\\$\\{[^}]+\\}",
                "description": "the value of a parameter of the graph",
            },
        },
    })
}

/// The form of one `[[block]]`.
fn block(known: &BlockType) -> Value {
    let mut properties = Map::new();
    properties.insert("name".into(), json!({ "type": "string", "pattern": "^[\\w-]+$" }));
    let about = json!({ "const": known.name(), "description": known.summary() });
    properties.insert("type".into(), about);
    let mut required = vec!["name", "type"];
    for parameter in known.parameters() {
        properties.insert(parameter.name.into(), property(parameter));
        if parameter.default.is_none() {
            required.push(parameter.name);
        }
    }
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

/// A parameter's value, or a reference to one.
fn property(parameter: &Parameter) -> Value {
    let mut value = match parameter.kind {
        ParameterKind::Integer => json!({ "type": "number", "multipleOf": 1 }),
        ParameterKind::Number => json!({ "type": "number" }),
        ParameterKind::Boolean => json!({ "type": "boolean" }),
        ParameterKind::Numbers => json!({ "type": "array", "items": { "type": "number" } }),
        _ if !parameter.choices.is_empty() => json!({ "enum": parameter.choices }),
        _ => json!({ "type": "string" }),
    };
    // A default may lie outside of the range, as "none".
    let default = parameter.default.as_ref().and_then(Given::as_number);
    if default.is_none_or(|default| parameter.range.contains(default)) {
        for (bound, included, excluded) in [
            (parameter.range.least, "minimum", "exclusiveMinimum"),
            (parameter.range.most, "maximum", "exclusiveMaximum"),
        ] {
            match bound {
                Bound::Included(number) => value[included] = json!(number),
                Bound::Excluded(number) => value[excluded] = json!(number),
                Bound::Unbounded => {}
            }
        }
    }
    if parameter.kind != ParameterKind::Text || !parameter.choices.is_empty() {
        value = json!({ "anyOf": [value, { "$ref": "#/$defs/reference" }] });
    }
    value["description"] = json!(parameter.help);
    if let Some(default) = &parameter.default {
        value["default"] = plain(default);
    }
    value
}

/// A parameter as `--json` lists it.
pub fn parameter_facts(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "kind": parameter.kind.to_string(),
        "help": parameter.help,
        "default": parameter.default.as_ref().map(plain),
        "choices": parameter.choices,
        "range": (parameter.range != ParameterRange::ANY).then(|| parameter.range.to_string()),
    })
}

fn plain(value: &Given) -> Value {
    match value {
        Given::Text(text) => json!(text),
        Given::Integer(n) => json!(n),
        Given::Number(x) => json!(x),
        Given::Boolean(b) => json!(b),
        Given::Numbers(list) => json!(list),
        other => json!(other.to_string()),
    }
}
