//! The JSON schema of a configuration file, for editors and other programs.

use millstream_link::options::{Opt, OptionValues, Options};
use serde_json::Value;

use super::LinkName;
use super::check::RESERVED;
use crate::EngineOptions;

/// The file's own keys. Keys that are options of links or of the engine are empty here, because
/// their schemas are generated.
const FRAME: &str = include_str!("schema.json");

/// Returns a JSON schema (draft 2020-12) of the configuration file.
#[must_use]
pub fn schema() -> Value {
    let mut schema: Value = serde_json::from_str(FRAME).expect("schema.json is JSON");
    let engine = EngineOptions::describe();
    let interface = &mut schema["$defs"]["interface"];
    interface["properties"]["link"]["enum"] = LinkName::all().map(LinkName::name).collect();
    for key in ["mode", "queues"] {
        interface["properties"][key] = of_links(key);
    }
    for key in ["io", "vlan"] {
        interface["properties"][key] = of_key(&engine, key);
    }
    interface["allOf"] = LinkName::all().map(|link| of_link(link, &engine)).collect();
    for key in ["cpu", "wait", "priority"] {
        schema["$defs"]["thread"]["properties"][key] = of_key(&engine, key);
    }
    schema
}

/// Returns the schema of a key that is an option of some links.
fn of_links(key: &str) -> Value {
    let have: Vec<_> = LinkName::all().filter(|link| link.entry().has_option(key)).collect();
    let names: Vec<_> = have.iter().map(|link| link.name()).collect();
    let mut key = have.first().map_or(Value::Null, |link| of_key(&(link.entry().options)(), key));
    let about = key["description"].as_str().unwrap_or_default();
    key["description"] = format!("{about} ({} only)", names.join(", ")).into();
    key
}

/// Returns the schema of a key that is one of these options, in its TOML type.
fn of_key(options: &[Opt], key: &str) -> Value {
    let Some(option) = options.iter().find(|option| option.name == key) else {
        return Value::Null;
    };
    let mut schema = match &option.values {
        OptionValues::Switch => of_type("boolean"),
        OptionValues::Words(words) => one_of(words),
        OptionValues::Number { min, max, .. } => whole(*min, *max),
        OptionValues::Text(_) => of_type("string"),
    };
    describe(&mut schema, option);
    schema
}

/// Returns the schema of `options` for a link: text as in a link string, or the value itself.
fn of_link(link: LinkName, engine: &[Opt]) -> Value {
    let own = (link.entry().options)();
    let free = |option: &&Opt| !RESERVED.contains(&option.name);
    let options = own.iter().chain(engine).filter(free);
    let properties = options.map(|option| {
        let mut schema = match &option.values {
            OptionValues::Switch => {
                one_of(&[Value::from(true), false.into(), "on".into(), "off".into()])
            }
            OptionValues::Words(words) => one_of(words),
            OptionValues::Number { min, max, or, .. } => {
                let word = or.map_or(String::new(), |word| format!("|{word}"));
                let mut text = of_type("string");
                text["pattern"] = format!("^([0-9]+{word})$").into();
                Value::from_iter([("anyOf", vec![whole(*min, *max), text])])
            }
            OptionValues::Text(_) => of_type(vec!["string", "number"]),
        };
        describe(&mut schema, option);
        (option.name.to_owned(), schema)
    });
    let common = ["capture", "fault"].map(|name| (name.to_owned(), of_type("string")));
    let properties: serde_json::Map<_, _> = properties.chain(common).collect();
    let is_it = Value::from_iter([("const", link.name())]);
    // Options of the device's own driver are not known here.
    let others = Value::from(link.takes_device());
    let options =
        Value::from_iter([("properties", properties.into()), ("additionalProperties", others)]);
    let with_property = |name: &str, schema: Value| {
        Value::from_iter([("properties", Value::from_iter([(name, schema)]))])
    };
    Value::from_iter([
        ("if", with_property("link", is_it)),
        ("then", with_property("options", options)),
    ])
}

/// Returns the schema of values of a type, or of some types.
fn of_type(names: impl Into<Value>) -> Value {
    Value::from_iter([("type", names.into())])
}

/// Returns the schema of whole numbers.
fn whole(min: impl Into<Value>, max: impl Into<Value>) -> Value {
    let limits = [("minimum", min.into()), ("maximum", max.into())];
    Value::from_iter([("type", Value::from("integer"))].into_iter().chain(limits))
}

/// Returns the schema of one of these values.
fn one_of<T: Clone + Into<Value>>(values: &[T]) -> Value {
    Value::from_iter([("enum", values.to_vec())])
}

fn describe(schema: &mut Value, option: &Opt) {
    schema["description"] = option.about.into();
    if let Some(default) = &option.default {
        let number = default.parse::<u64>().ok().map(Value::from);
        let switch = (option.values == OptionValues::Switch).then(|| (default == "on").into());
        schema["default"] = number.or(switch).unwrap_or_else(|| default.as_str().into());
    }
}
