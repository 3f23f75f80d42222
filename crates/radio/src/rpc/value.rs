//! MessagePack values as the types that MPM methods return.

use std::collections::BTreeMap;

use rmpv::Value;

/// A map of strings, as in device information.
pub type Map = BTreeMap<String, String>;

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text.as_str().map(str::to_owned),
        Value::Binary(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::Boolean(_) | Value::Integer(_) | Value::F64(_) | Value::F32(_) => {
            Some(value.to_string())
        }
        _ => None,
    }
}

/// Returns a map whose keys and values are texts; other entries are left out (UHD's simulator has
/// nil).
pub fn as_map(value: &Value) -> Option<Map> {
    let entries = value.as_map()?;
    Some(entries.iter().filter_map(|(key, value)| Some((text(key)?, text(value)?))).collect())
}

/// Returns a list of such maps.
pub fn as_maps(value: &Value) -> Option<Vec<Map>> {
    value.as_array()?.iter().map(as_map).collect()
}

/// Returns a number that is not negative.
pub fn as_u64(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let float = value.as_f64()?;
        (float >= 0.0 && float.fract() == 0.0 && float < 1e18).then_some(float as u64)
    })
}

/// Returns a finite number.
pub fn as_f64(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

/// Returns a `[major, minor]` pair.
pub fn as_version(value: &Value) -> Option<(u64, u64)> {
    match value.as_array()?.as_slice() {
        [major, minor] => Some((major.as_u64()?, minor.as_u64()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_without_text_are_left_out() {
        let value = Value::Map(vec![
            ("serial".into(), "EMU1".into()),
            ("mender_artifact".into(), Value::Nil),
            (Value::Binary(b"pid".to_vec()), 58144.into()),
        ]);
        let map = as_map(&value).unwrap();
        assert_eq!(map.get("serial").unwrap(), "EMU1");
        assert_eq!(map.get("pid").unwrap(), "58144");
        assert_eq!(map.len(), 2);
    }

    #[test]
    fn numbers_are_checked() {
        assert_eq!(as_u64(&Value::from(5.0)), Some(5));
        assert_eq!(as_u64(&Value::from(-1)), None);
        assert_eq!(as_f64(&Value::from(f64::NAN)), None);
        assert_eq!(as_f64(&Value::from(7)), Some(7.0));
        assert_eq!(as_version(&Value::Array(vec![4.into(), 2.into()])), Some((4, 2)));
        assert_eq!(as_version(&Value::Array(vec![4.into()])), None);
    }
}
