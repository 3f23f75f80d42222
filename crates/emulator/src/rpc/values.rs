//! Conversion of arguments from, and results to, MessagePack values.

use rmpv::Value;

/// Returns a map of strings. It never contains nil: the UHD client would abort.
pub fn string_map<const N: usize>(pairs: [(&str, &str); N]) -> Value {
    Value::Map(pairs.iter().map(|&(key, value)| (Value::from(key), Value::from(value))).collect())
}

/// Returns a map of strings to bytes.
pub fn binary_map<const N: usize>(pairs: [(&str, &str); N]) -> Value {
    let bytes = |value: &str| Value::Binary(value.as_bytes().to_vec());
    Value::Map(pairs.iter().map(|&(key, value)| (Value::from(key), bytes(value))).collect())
}

/// Returns a list of strings.
pub fn strings(items: &[&str]) -> Value {
    Value::Array(items.iter().map(|&item| Value::from(item)).collect())
}

/// Returns an empty list.
pub fn none() -> Value {
    Value::Array(Vec::new())
}

/// Returns argument `index` as a number.
pub fn number(args: &[Value], index: usize) -> Result<f64, String> {
    let value = args.get(index).and_then(Value::as_f64);
    value.ok_or_else(|| format!("argument {index} of the call must be a number"))
}

/// Returns argument `index` as an unsigned integer.
pub fn unsigned(args: &[Value], index: usize) -> Result<u64, String> {
    let value = args.get(index).and_then(Value::as_u64);
    value.ok_or_else(|| format!("argument {index} of the call must be an unsigned integer"))
}

/// Returns argument `index` as a truth value; integers are accepted, as some clients send them.
pub fn truth(args: &[Value], index: usize) -> Result<bool, String> {
    match args.get(index) {
        Some(Value::Boolean(value)) => Ok(*value),
        Some(Value::Integer(value)) => Ok(value.as_i64() != Some(0)),
        _ => Err(format!("argument {index} of the call must be true or false")),
    }
}

/// Returns argument `index` as text.
pub fn text(args: &[Value], index: usize) -> Result<&str, String> {
    args.get(index)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("argument {index} of the call must be text"))
}

/// Returns the text under `key` in the map that is argument `index`, if present.
pub fn entry<'a>(args: &'a [Value], index: usize, key: &str) -> Option<&'a str> {
    let map = args.get(index)?.as_map()?;
    map.iter().find(|(name, _)| name.as_str() == Some(key))?.1.as_str()
}

/// Returns argument `index` as bytes: MessagePack str and bin are both in use for tokens.
pub fn bytes(args: &[Value], index: usize) -> &[u8] {
    match args.get(index) {
        Some(Value::String(text)) => text.as_bytes(),
        Some(Value::Binary(bytes)) => bytes,
        _ => &[],
    }
}
