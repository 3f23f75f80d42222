//! A wait mode that may be left out.

use millstream_ring::Wait;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

pub fn serialize<S: Serializer>(wait: &Option<Wait>, serializer: S) -> Result<S::Ok, S::Error> {
    wait.map(Wait::name).serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Wait>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    word.map(|word| word.parse().map_err(D::Error::custom)).transpose()
}
