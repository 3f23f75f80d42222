//! `millstream host net schema`: the shape of the configuration file.

use crate::output::Report;
use millstream_host::ethtool::Offload;
use millstream_link::options::{Opt, OptionValues, Options};
use millstream_net::EngineOptions;
use millstream_net::config::{
    Config, ConfigKey, InterfaceConfig, LinkName, RouteConfig, ThreadConfig,
};
use serde_json::{Map, Value};

/// Prints the JSON schema of the configuration file, which editors and other programs can use.
#[derive(clap::Args)]
pub struct Args {}

crate::results! {
    /// The JSON schema of the configuration file (draft 2020-12).
    struct ConfigSchema {
        /// The schema.
        #[serde(flatten)]
        schema: Value,
    }
}

/// Prints it.
pub fn run(Args {}: Args) -> anyhow::Result<Report> {
    let schema = schema();
    Ok(Report::of(serde_json::to_string_pretty(&schema)? + "\n", &ConfigSchema { schema }))
}

/// Options of link strings that stand elsewhere in the file.
const ELSEWHERE: [&str; 2] = ["address", "thread"];

/// Returns the schema, out of the structs of the file and the options of links and engine.
pub(super) fn schema() -> Value {
    let mut schema = table(Config::KEYS);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Millstream network configuration".into();
    let mut interface = table(InterfaceConfig::KEYS);
    // Its further keys are options, which its link decides about.
    if let Some(table) = interface.as_object_mut() {
        table.remove("additionalProperties");
    }
    interface["unevaluatedProperties"] = false.into();
    let properties = &mut interface["properties"];
    properties["link"]["enum"] = LinkName::all().map(|link| Value::from(link.name())).collect();
    properties["offloads"]["propertyNames"] = one_of(Offload::ALL.iter().map(|one| one.name()));
    interface["allOf"] = LinkName::all().map(of_link).collect();
    let mut thread = table(ThreadConfig::KEYS);
    for option in EngineOptions::describe() {
        if let Some(key) = thread["properties"].get_mut(option.name) {
            *key = of_option(&option);
        }
    }
    schema["$defs"] = Value::from_iter([
        ("interface", interface),
        ("route", table(RouteConfig::KEYS)),
        ("thread", thread),
    ]);
    schema
}

fn table(keys: &[ConfigKey]) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for key in keys.iter().filter(|key| !key.serde.contains("flatten")) {
        let renamed = key.serde.split("rename = \"").nth(1).and_then(|rest| rest.split('"').next());
        let name = renamed.unwrap_or(key.name);
        let mut schema = of_kind(&key.kind.replace(' ', ""));
        schema["description"] = key.help.trim().into();
        properties.insert(name.to_owned(), schema);
        if key.serde.is_empty() {
            required.push(Value::from(name));
        }
    }
    let mut table = of_type("object");
    table["additionalProperties"] = false.into();
    table["properties"] = properties.into();
    table["required"] = required.into();
    table
}

/// The schemas of Rust types; those of others are texts.
const KINDS: [(&str, &str); 9] = [
    ("bool", r#"{"type": "boolean"}"#),
    ("u32", r#"{"type": "integer", "minimum": 0, "maximum": 4294967295}"#),
    ("Subnet", r#"{"type": "string", "pattern": "^([0-9]{1,3}[.]){3}[0-9]{1,3}/[0-9]{1,2}$"}"#),
    ("Ipv4Addr", r#"{"type": "string", "format": "ipv4"}"#),
    ("InterfaceConfig", r##"{"$ref": "#/$defs/interface"}"##),
    ("RouteConfig", r##"{"$ref": "#/$defs/route"}"##),
    ("ThreadConfig", r##"{"$ref": "#/$defs/thread"}"##),
    (
        "BTreeMap<OffloadName,bool>",
        r#"{"type": "object", "additionalProperties": {"type": "boolean"}}"#,
    ),
    (
        "BTreeMap<String,u32>",
        r#"{"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}"#,
    ),
];

fn of_kind(kind: &str) -> Value {
    let inside = |start| kind.strip_prefix(start).and_then(|rest| rest.strip_suffix('>'));
    if let Some(kind) = inside("Option<") {
        return of_kind(kind);
    }
    if let Some(item) = inside("Vec<") {
        let mut list = of_type("array");
        list["items"] = of_kind(item);
        return list;
    }
    let known = KINDS.iter().find(|(name, _)| *name == kind);
    let named = if kind.starts_with("BTreeMap<") { "object" } else { "string" };
    known.map_or_else(|| of_type(named), |(_, json)| serde_json::from_str(json).expect("JSON"))
}

/// Returns the schema of an interface with a link: its options, beside the other keys or in a table
/// of their own.
fn of_link(link: LinkName) -> Value {
    let keys = [InterfaceConfig::KEYS, ThreadConfig::KEYS].concat();
    let has_place =
        |name: &str| ELSEWHERE.contains(&name) || keys.iter().any(|key| key.name == name);
    let options = (link.entry().options)().into_iter().chain(EngineOptions::describe());
    let options = options.filter(|option| !has_place(option.name));
    let described = options.map(|option| (option.name.to_owned(), of_option(&option)));
    let common = ["capture", "fault"].map(|name| (name.to_owned(), of_type("string")));
    let mut options: Map<String, Value> = described.chain(common).collect();
    // Options of the device's own driver are not known here.
    let others = Value::from(link.takes_device());
    let table = Value::from_iter([
        ("properties", Value::from(options.clone())),
        ("additionalProperties", others.clone()),
    ]);
    options.insert("options".to_owned(), table);
    let is_it = Value::from_iter([("const", link.name())]);
    let is_it = Value::from_iter([("link", is_it)]);
    let mut then = Value::from_iter([("properties", Value::from(options))]);
    if link.takes_device() {
        then["additionalProperties"] = others;
    }
    Value::from_iter([("if", Value::from_iter([("properties", is_it)])), ("then", then)])
}

/// Returns the schema of an option: text as in a link string, or the value itself.
fn of_option(option: &Opt) -> Value {
    let mut schema = match &option.values {
        OptionValues::Switch => {
            one_of([true.into(), false.into(), Value::from("on"), "off".into()])
        }
        OptionValues::Words(words) => one_of(words.iter().copied()),
        OptionValues::Number { min, max, or, .. } => {
            let word = or.map_or(String::new(), |word| format!("|{word}"));
            let mut text = of_type("string");
            text["pattern"] = format!("^([0-9]+{word})$").into();
            Value::from_iter([("anyOf", vec![whole(*min, *max), text])])
        }
        OptionValues::Text(_) => of_type(vec!["string", "number"]),
    };
    schema["description"] = option.about.into();
    if let Some(default) = &option.default {
        let number = default.parse::<u64>().ok().map(Value::from);
        let switch = (option.values == OptionValues::Switch).then(|| (default == "on").into());
        schema["default"] = number.or(switch).unwrap_or_else(|| default.as_str().into());
    }
    schema
}

/// Returns the schema of values of a type, or of some types.
fn of_type(names: impl Into<Value>) -> Value {
    Value::from_iter([("type", names.into())])
}

/// Returns the schema of whole numbers.
fn whole(min: u64, max: u64) -> Value {
    let mut number = of_type("integer");
    number["minimum"] = min.into();
    number["maximum"] = max.into();
    number
}

/// Returns the schema of one of these values.
fn one_of<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Value {
    Value::from_iter([("enum", values.into_iter().map(Into::into).collect::<Vec<Value>>())])
}
