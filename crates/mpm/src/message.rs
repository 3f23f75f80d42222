//! Requests and responses as protobuf messages, by the table of methods.
//!
//! In proto3 a field at its default is absent, and a field may come several times: lists and maps
//! go on, and of anything else the last one counts.

use millstream_wire::protobuf::{ProtoError, ProtoValue, fields, fixed64, varint};
use rmpv::Value;

use crate::methods::{FieldKind, Method};

/// The only field of the messages `StringMap` and `BytesMap`, and the key of an entry.
const FIRST: u32 = 1;
/// The value of an entry.
const SECOND: u32 = 2;

/// Encodes the request of `method` with `arguments` as MessagePack has them: the token first, if
/// the method needs one. Arguments that are left out at the end get their defaults.
///
/// # Errors
/// A description of an argument of the wrong kind, or too many.
pub fn encode_request(
    method: &Method,
    board: Option<u32>,
    arguments: &[Value],
) -> Result<Vec<u8>, String> {
    let mut message = Vec::new();
    let split = usize::from(method.request.contains(&FieldKind::Token)).min(arguments.len());
    let (token, arguments) = arguments.split_at(split);
    let mut arguments = arguments.iter();
    for (number, &kind) in (1..).zip(method.request) {
        match kind {
            FieldKind::Board => put_uint(&mut message, number, board.unwrap_or(0).into()),
            FieldKind::Token => put(&mut message, number, kind, token.first())?,
            _ => put(&mut message, number, kind, arguments.next())?,
        }
    }
    match arguments.len() {
        0 => Ok(message),
        more => Err(format!("{more} arguments more than {} takes", method.grpc)),
    }
}

/// Decodes the request of `method`: the number of the daughterboard, if it has one, and the
/// arguments as MessagePack has them.
///
/// # Errors
/// When the bytes are no message, or one with a text that is not UTF-8, with a field of another
/// kind, or with more than `items` elements of lists and maps.
pub fn decode_request(
    method: &Method,
    message: &[u8],
    items: usize,
) -> Result<(Option<u32>, Vec<Value>), ProtoError> {
    let mut values = decode(method.request, message, items)?;
    let place = |wanted| method.request.iter().position(|&kind| kind == wanted);
    let token = place(FieldKind::Token).map(|at| std::mem::replace(&mut values[at], Value::Nil));
    let board = place(FieldKind::Board).map(|at| values[at].as_u64().unwrap_or(0));
    let board = board.map(|board| u32::try_from(board).unwrap_or(u32::MAX));
    let others = values.into_iter().zip(method.request);
    let others = others.filter(|(_, kind)| !matches!(kind, FieldKind::Token | FieldKind::Board));
    Ok((board, token.into_iter().chain(others.map(|(value, _)| value)).collect()))
}

/// Encodes the result of `method`.
///
/// # Errors
/// A description of a result of the wrong kind.
pub fn encode_response(method: &Method, result: &Value) -> Result<Vec<u8>, String> {
    let mut message = Vec::new();
    match method.response {
        [] => {}
        [kind] => put(&mut message, FIRST, *kind, Some(result))?,
        kinds => {
            let results = result.as_array().ok_or_else(|| wrong(FIRST, "a list", result))?;
            for ((number, &kind), result) in (1..).zip(kinds).zip(results) {
                put(&mut message, number, kind, Some(result))?;
            }
        }
    }
    Ok(message)
}

/// Decodes the response of `method`.
///
/// # Errors
/// As [`decode_request`].
pub fn decode_response(method: &Method, message: &[u8], items: usize) -> Result<Value, ProtoError> {
    let mut values = decode(method.response, message, items)?;
    Ok(match values.len() {
        0 => Value::Nil,
        1 => values.remove(0),
        _ => Value::Array(values),
    })
}

/// Appends a field, unless its value is the default.
fn put(
    message: &mut Vec<u8>,
    number: u32,
    kind: FieldKind,
    value: Option<&Value>,
) -> Result<(), String> {
    let value = match value {
        None | Some(Value::Nil) => return Ok(()),
        Some(value) => value,
    };
    match kind {
        FieldKind::Text | FieldKind::Token => {
            let text = text(value).ok_or_else(|| wrong(number, "a text", value))?;
            if !text.is_empty() {
                put_bytes(message, number, &text);
            }
        }
        FieldKind::Double => {
            let bits = value.as_f64().ok_or_else(|| wrong(number, "a number", value))?.to_bits();
            if bits != 0 {
                put_varint(message, u64::from(number << 3 | 1));
                message.extend(bits.to_le_bytes());
            }
        }
        FieldKind::Bool | FieldKind::Uint | FieldKind::Int | FieldKind::Board => {
            put_uint(message, number, integer(number, kind, value)?);
        }
        FieldKind::Texts => {
            for item in list(number, value)? {
                let text = text(item).ok_or_else(|| wrong(number, "a text", item))?;
                put_bytes(message, number, &text);
            }
        }
        FieldKind::Uints | FieldKind::Ints => {
            let mut packed = Vec::new();
            for item in list(number, value)? {
                put_varint(&mut packed, integer(number, kind, item)?);
            }
            put_packed(message, number, &packed);
        }
        FieldKind::Doubles => {
            let mut packed = Vec::new();
            for item in list(number, value)? {
                let item = item.as_f64().ok_or_else(|| wrong(number, "a number", item))?;
                packed.extend(item.to_le_bytes());
            }
            put_packed(message, number, &packed);
        }
        FieldKind::Map | FieldKind::Blobs => put_bytes(message, number, &map(number, value)?),
        FieldKind::Maps => {
            for item in list(number, value)? {
                put_bytes(message, number, &map(number, item)?);
            }
        }
    }
    Ok(())
}

/// Returns the message that contains a map. Entries whose value is no text are left out.
fn map(number: u32, value: &Value) -> Result<Vec<u8>, String> {
    let mut message = Vec::new();
    for (key, value) in value.as_map().ok_or_else(|| wrong(number, "a map", value))? {
        let (Some(key), Some(value)) = (text(key), text(value)) else { continue };
        let mut entry = Vec::new();
        put_bytes(&mut entry, FIRST, &key);
        put_bytes(&mut entry, SECOND, &value);
        put_bytes(&mut message, FIRST, &entry);
    }
    Ok(message)
}

/// Returns a text; numbers and truth values are written as one.
fn text(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Binary(bytes) => Some(bytes.clone()),
        Value::Boolean(_) | Value::Integer(_) | Value::F32(_) | Value::F64(_) => {
            Some(value.to_string().into_bytes())
        }
        _ => None,
    }
}

fn integer(number: u32, kind: FieldKind, value: &Value) -> Result<u64, String> {
    let integer = match (kind, value) {
        (_, Value::Boolean(value)) => Some(u64::from(*value)),
        (FieldKind::Bool, Value::Integer(value)) => Some(u64::from(value.as_i64() != Some(0))),
        (FieldKind::Int | FieldKind::Ints, _) => value.as_i64().map(|value| value as u64),
        _ => value.as_u64().or_else(|| whole(value.as_f64()?)),
    };
    integer.ok_or_else(|| wrong(number, "an integer", value))
}

/// Returns a double without a fraction as an integer.
fn whole(value: f64) -> Option<u64> {
    (value >= 0.0 && value.fract() == 0.0 && value < 1e18).then_some(value as u64)
}

fn list(number: u32, value: &Value) -> Result<&[Value], String> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| wrong(number, "a list", value))
}

fn wrong(number: u32, expected: &str, value: &Value) -> String {
    format!("field {number} must be {expected}, not {value}")
}

fn put_uint(message: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        put_varint(message, u64::from(number << 3));
        put_varint(message, value);
    }
}

fn put_bytes(message: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(message, u64::from(number << 3 | 2));
    put_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

fn put_packed(message: &mut Vec<u8>, number: u32, packed: &[u8]) {
    if !packed.is_empty() {
        put_bytes(message, number, packed);
    }
}

fn put_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

/// Decodes a message into a value for each of `kinds`; fields with other numbers are passed over.
fn decode(kinds: &[FieldKind], message: &[u8], items: usize) -> Result<Vec<Value>, ProtoError> {
    let mut values: Vec<_> = kinds.iter().map(|&kind| default(kind)).collect();
    let mut left = items;
    for field in fields(message) {
        let (number, content) = field?;
        let at = number as usize - 1;
        if let Some(&kind) = kinds.get(at) {
            take(&mut values[at], kind, content, &mut left).ok_or(ProtoError)?;
        }
    }
    Ok(values)
}

fn default(kind: FieldKind) -> Value {
    match kind {
        FieldKind::Token | FieldKind::Text => Value::from(""),
        FieldKind::Bool => Value::from(false),
        FieldKind::Board | FieldKind::Uint | FieldKind::Int => Value::from(0),
        FieldKind::Double => Value::from(0.0),
        FieldKind::Map | FieldKind::Blobs => Value::Map(Vec::new()),
        _ => Value::Array(Vec::new()),
    }
}

/// Puts a received field into `value`; `None` when it has another kind, or too many elements.
fn take(
    value: &mut Value,
    kind: FieldKind,
    content: ProtoValue<'_>,
    left: &mut usize,
) -> Option<()> {
    match (kind, content) {
        (FieldKind::Token | FieldKind::Text, ProtoValue::Bytes(bytes)) => *value = utf8(bytes)?,
        (FieldKind::Bool, ProtoValue::Varint(bits)) => *value = Value::from(bits != 0),
        (FieldKind::Board | FieldKind::Uint, ProtoValue::Varint(bits)) => {
            *value = Value::from(bits);
        }
        (FieldKind::Int, ProtoValue::Varint(bits)) => *value = signed(bits),
        (FieldKind::Double, ProtoValue::Fixed64(bits)) => *value = Value::F64(f64::from_bits(bits)),
        (FieldKind::Map | FieldKind::Blobs, ProtoValue::Bytes(bytes)) => {
            let Value::Map(entries) = value else { return None };
            take_map(entries, kind, bytes, left)?;
        }
        (_, content) => {
            let Value::Array(items) = value else { return None };
            take_items(items, kind, content, left)?;
        }
    }
    Some(())
}

/// Appends one element of a list, or a packed run of numbers.
fn take_items(
    items: &mut Vec<Value>,
    kind: FieldKind,
    content: ProtoValue<'_>,
    left: &mut usize,
) -> Option<()> {
    let mut push = |item| {
        *left = left.checked_sub(1)?;
        items.push(item);
        Some(())
    };
    match (kind, content) {
        (FieldKind::Texts, ProtoValue::Bytes(bytes)) => push(utf8(bytes)?),
        (FieldKind::Uints, ProtoValue::Varint(bits)) => push(Value::from(bits)),
        (FieldKind::Ints, ProtoValue::Varint(bits)) => push(signed(bits)),
        (FieldKind::Doubles, ProtoValue::Fixed64(bits)) => push(Value::F64(f64::from_bits(bits))),
        (FieldKind::Maps, ProtoValue::Bytes(bytes)) => {
            *left = left.checked_sub(1)?;
            let mut entries = Vec::new();
            take_map(&mut entries, FieldKind::Map, bytes, left)?;
            items.push(Value::Map(entries));
            Some(())
        }
        (
            FieldKind::Uints | FieldKind::Ints | FieldKind::Doubles,
            ProtoValue::Bytes(mut packed),
        ) => {
            while !packed.is_empty() {
                push(match kind {
                    FieldKind::Uints => Value::from(varint(&mut packed)?),
                    FieldKind::Ints => signed(varint(&mut packed)?),
                    _ => Value::F64(f64::from_bits(fixed64(&mut packed)?)),
                })?;
            }
            Some(())
        }
        _ => None,
    }
}

/// Appends the entries of a map.
fn take_map(
    entries: &mut Vec<(Value, Value)>,
    kind: FieldKind,
    message: &[u8],
    left: &mut usize,
) -> Option<()> {
    for field in fields(message) {
        let (FIRST, ProtoValue::Bytes(entry)) = field.ok()? else { continue };
        *left = left.checked_sub(2)?;
        let (mut key, mut value) = (&[][..], &[][..]);
        for field in fields(entry) {
            match field.ok()? {
                (FIRST, ProtoValue::Bytes(bytes)) => key = bytes,
                (SECOND, ProtoValue::Bytes(bytes)) => value = bytes,
                _ => {}
            }
        }
        let value = match kind {
            FieldKind::Blobs => Value::Binary(value.to_vec()),
            _ => utf8(value)?,
        };
        entries.push((utf8(key)?, value));
    }
    Some(())
}

fn utf8(bytes: &[u8]) -> Option<Value> {
    Some(Value::from(std::str::from_utf8(bytes).ok()?))
}

/// Returns an integer of 32 bits.
fn signed(bits: u64) -> Value {
    Value::from(bits as i32)
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
