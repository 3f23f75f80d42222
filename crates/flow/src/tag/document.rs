//! Metadata of any length as the value of a tag.

use millstream_ring::Lock;
use std::collections::BTreeSet;
use std::fmt;

/// A JSON object that describes a recording, a part of it or an annotation, with a text for people.
///
/// A tag is copied for every reader, so it has only a pointer. Each document stays in memory until
/// the program ends, once however often it is made, so documents are made from files before a graph
/// runs.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct TagDocument(&'static Contents);

#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct Contents {
    text: Box<str>,
    json: Box<str>,
}

impl TagDocument {
    /// Makes the document of this text and this JSON.
    #[must_use]
    pub fn new(text: &str, json: &str) -> Self {
        static KNOWN: Lock<BTreeSet<&'static Contents>> = Lock::new(BTreeSet::new());
        let contents = Contents { text: text.into(), json: json.into() };
        let mut known = KNOWN.lock();
        if let Some(known) = known.get(&contents) {
            return Self(known);
        }
        let contents: &'static Contents = Box::leak(Box::new(contents));
        known.insert(contents);
        Self(contents)
    }

    /// Returns the text for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        &self.0.text
    }

    /// Returns the JSON.
    #[must_use]
    pub fn json(self) -> &'static str {
        &self.0.json
    }
}

impl fmt::Debug for TagDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_kept_once() {
        let (one, other) = (TagDocument::new("a", "{}"), TagDocument::new("a", "{}"));
        assert!(std::ptr::eq(one.0, other.0) && one == other && one != TagDocument::new("b", "{}"));
        assert_eq!((one.text(), one.json()), ("a", "{}"));
    }
}
