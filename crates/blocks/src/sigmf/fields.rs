//! The fields of SigMF metadata, by name and type.

use serde_json::{Map, Value};

impl<'a> From<&'a Map<String, Value>> for Fields<'a> {
    fn from(object: &'a Map<String, Value>) -> Self {
        Self(Some(object))
    }
}

/// The fields of an object. A null counts as absent, as writers mean it.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(Option<&'a Map<String, Value>>);

impl<'a> Fields<'a> {
    pub fn of(value: &'a Value) -> Self {
        Self(value.as_object())
    }

    pub fn get(self, key: &str) -> Option<&'a Value> {
        self.0?.get(key).filter(|value| !value.is_null())
    }

    /// A whole number from 0 on, also written as 5e2 or 7.0: JSON has one kind of number.
    pub fn whole(self, key: &str) -> Result<Option<u64>, String> {
        const LIMIT: f64 = 18_446_744_073_709_551_616.0;
        let Some(value) = self.get(key) else { return Ok(None) };
        let whole = |x: &f64| x.fract() == 0.0 && (0.0..LIMIT).contains(x);
        let found = value.as_u64().or_else(|| value.as_f64().filter(whole).map(|x| x as u64));
        found.map(Some).ok_or_else(|| wrong(key, value, "a whole number from 0 on"))
    }

    pub fn number(self, key: &str) -> Result<Option<f64>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| wrong(key, value, "a number"))
    }

    pub fn text(self, key: &str) -> Result<Option<&'a str>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| wrong(key, value, "a text"))
    }

    pub fn boolean(self, key: &str) -> Result<Option<bool>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| wrong(key, value, "true or false"))
    }

    pub fn list(self, key: &str) -> Result<&'a [Value], String> {
        let Some(value) = self.get(key) else { return Ok(&[]) };
        value.as_array().map(Vec::as_slice).ok_or_else(|| wrong(key, value, "a list"))
    }
}

fn wrong(key: &str, value: &Value, expected: &str) -> String {
    let mut value = value.to_string();
    if value.chars().count() > 40 {
        value = value.chars().take(40).chain("…".chars()).collect();
    }
    format!("{key} is {value}, but {expected} is expected")
}
